package admission

import (
	"context"
	"errors"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// Bind binds the variables of admission policies in the Frame's Vars to the attributes as they are
// now. The Chain calls it first, and then a policy. The variables params and namespaceObject are
// null until a policy that reads them binds them.
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

// BindNamespace binds the variable namespaceObject: null for what is in no namespace, and for
// namespaces themselves. If the namespace does not exist the error is the answer to the request, as
// in Kubernetes.
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
	kind := a.bound.request.Kind.Kind
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
	a.bound.matched = cel.Matched{Kind: a.KindAs(as, kind), Resource: as}
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

// Kind returns the kind of the objects that the request carries: as the server says, as the policy
// files say, or else as the object itself says.
func (a *Attributes) Kind() schema.GroupVersionKind {
	switch {
	case a.Served != nil:
		return a.Served.Kind
	case a.hasKnownKind():
		return a.own().WithKind(a.Resource.Names.Kind)
	}
	for _, d := range []*document.Document{a.Object, a.Old} {
		if kind := a.stated(d); kind.Kind != "" {
			return kind
		}
	}
	switch {
	case a.Info.Subresource == "scale":
		return autoscalingv1.SchemeGroupVersion.WithKind("Scale")
	case a.Resource != nil:
		return a.own().WithKind(a.Resource.Names.Kind)
	}
	return a.own().WithKind("")
}

// KindOf returns the kind of a document of the request.
func (a *Attributes) KindOf(d *document.Document) schema.GroupVersionKind {
	if a.Served == nil && !a.hasKnownKind() && d != nil {
		if kind := a.stated(d); kind.Kind != "" {
			return kind
		}
	}
	return a.Kind()
}

// KindAs returns the kind of an object that was converted to another resource and then says that it
// is of a kind. The objects of a subresource with a kind of its own, such as Scale, stay what they
// are.
func (a *Attributes) KindAs(as schema.GroupVersionResource, kind string) schema.GroupVersionKind {
	if a.Served != nil && a.Served.Kind.GroupVersion() != a.own() {
		return a.Served.Kind
	}
	return as.GroupVersion().WithKind(kind)
}

// own returns the group and version in the path.
func (a *Attributes) own() schema.GroupVersion {
	return schema.GroupVersion{Group: a.Info.Group, Version: a.Info.Version}
}

// hasKnownKind reports whether the policy files name the kind of the objects.
func (a *Attributes) hasKnownKind() bool {
	return a.Resource != nil && (a.Info.Subresource == "" || a.Info.Subresource == "status")
}

// stated returns the kind that a document says it is of; an object that is not of a subresource is
// of the group and version in the path.
func (a *Attributes) stated(d *document.Document) schema.GroupVersionKind {
	if d == nil {
		return schema.GroupVersionKind{}
	}
	apiVersion, kind := text(at(d.Root(), "apiVersion")), text(at(d.Root(), "kind"))
	if apiVersion != "" && kind != "" {
		return schema.FromAPIVersionAndKind(apiVersion, kind)
	}
	return a.own().WithKind(kind)
}
