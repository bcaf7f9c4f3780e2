package admission

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// Bind binds the variables of admission policies in the Frame's Vars to the
// attributes as they are now. The Chain calls it before it calls a policy. The
// variables params and namespaceObject are null until a policy that reads them
// binds them.
func (a *Attributes) Bind() *cel.Vars {
	v := a.Frame.Vars()
	v.Set(value.Object, root(a.Object), nil)
	v.Set(value.OldObject, root(a.Old), nil)
	v.Set(value.NamespaceObject, document.Node{}, nil)
	v.Set(value.Params, document.Node{}, nil)
	a.describe(&a.bound.request)
	v.SetRequest(&a.bound.request)
	v.SetHTTP(a.HTTP)
	if a.Lookup != nil {
		v.SetStates(a.Lookup.States())
		v.SetAuthorizer(a.Lookup.Authorizer())
	}
	return v
}

// BindNamespace binds the variable namespaceObject: null for what is in no
// namespace, and for namespaces themselves. Where the namespace does not exist the
// error is the answer to the request, as in Kubernetes.
func (a *Attributes) BindNamespace(ctx context.Context) error {
	if a.Info.ObjectNamespace() == "" {
		return nil
	}
	namespace, err := a.LookUpNamespace(ctx)
	if err != nil {
		return err
	}
	a.Frame.Vars().Set(value.NamespaceObject, namespace, nil)
	return nil
}

// BindAs binds object, oldObject and request as a policy sees them whose rules
// name another version of the request's resource. [Attributes.Bind] takes it back.
// It returns the object in that version, which may be edited.
func (a *Attributes) BindAs(as schema.GroupVersionResource) (object *document.Document, err error) {
	if a.Lookup == nil {
		return nil, errors.New("nothing is known of other versions")
	}
	v := a.Frame.Vars()
	kind := a.bound.request.Kind
	for _, one := range []struct {
		slot value.Slot
		of   *document.Document
	}{{value.Object, a.Object}, {value.OldObject, a.Old}} {
		if one.of == nil {
			continue
		}
		converted, k, err := a.Lookup.Convert(one.of, as)
		if err != nil {
			return nil, err
		}
		if one.slot == value.Object {
			object = converted
		}
		kind = k
		v.Set(one.slot, converted.Root(), nil)
	}
	a.bound.matched = cel.Matched{Group: as.Group, Version: as.Version, Kind: kind, Resource: as.Resource}
	a.bound.request.Matched = &a.bound.matched
	return object, nil
}

func (a *Attributes) describe(r *cel.Request) {
	i := a.Info
	*r = cel.Request{
		Group: i.Group, Version: i.Version, Resource: i.Resource, Subresource: i.Subresource,
		Namespace: a.RequestNamespace(), Name: a.Name(),
		Operation: a.Operation.String(), DryRun: a.DryRun, Options: a.Options,
	}
	r.Kind = a.Kind()
	if a.User != nil {
		r.User = cel.User{Name: a.User.Name, UID: a.User.UID, Groups: a.User.Groups, Extra: a.User.Extra}
	}
}

// KindOf is the kind of a document of the request: the one of its resource, or what the document says
// of itself if no policy file describes it.
func (a *Attributes) KindOf(d *document.Document) schema.GroupVersionKind {
	if !a.hasKnownKind() && d != nil {
		apiVersion, kind := text(at(d.Root(), "apiVersion")), text(at(d.Root(), "kind"))
		if apiVersion != "" && kind != "" {
			return schema.FromAPIVersionAndKind(apiVersion, kind)
		}
	}
	return schema.GroupVersionKind{Group: a.Info.Group, Version: a.Info.Version, Kind: a.Kind()}
}

// hasKnownKind reports whether the request's resource says what its objects are.
func (a *Attributes) hasKnownKind() bool {
	return a.Resource != nil && (a.Info.Subresource == "" || a.Info.Subresource == "status")
}

// Kind is the kind of the object; what no policy file describes has to say it itself.
func (a *Attributes) Kind() string {
	if a.hasKnownKind() {
		return a.Resource.Names.Kind
	}
	for _, d := range []*document.Document{a.Object, a.Old} {
		if d != nil {
			if kind := text(at(d.Root(), "kind")); kind != "" {
				return kind
			}
		}
	}
	if a.Resource != nil {
		return a.Resource.Names.Kind
	}
	return ""
}
