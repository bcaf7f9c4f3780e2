package policies

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	schemaruntime "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission/typecheck"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/merge/kubernetes"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
)

// knownKinds are the kinds of the policy files and of Kubernetes itself, for the types of
// expressions.
type knownKinds struct {
	natives   map[schemaruntime.GroupVersionKind]*cel.ObjectType // that were asked for
	resources map[schemaruntime.GroupVersionResource]*loadedResource
	kinds     map[schemaruntime.GroupVersionKind]*loadedResource
	made      map[*loadedResource]*cel.ObjectType
}

func newKnownKinds(resources []loadedResource) *knownKinds {
	k := &knownKinds{
		natives:   map[schemaruntime.GroupVersionKind]*cel.ObjectType{},
		resources: map[schemaruntime.GroupVersionResource]*loadedResource{},
		kinds:     map[schemaruntime.GroupVersionKind]*loadedResource{},
		made:      map[*loadedResource]*cel.ObjectType{},
	}
	for i := range resources {
		r := &resources[i]
		gvr := schemaruntime.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Names.Plural}
		if r.Operation != nil && r.Operation.Subresource != "" {
			continue
		}
		if k.resources[gvr] != nil {
			r = &loadedResource{Resource: r.Resource} // of several kinds of bodies nothing is known
		}
		k.resources[gvr] = r
		if r.Operation != nil {
			continue
		}
		k.kinds[schemaruntime.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Names.Kind}] = r
	}
	return k
}

// Resource implements typecheck.Kinds.
func (k *knownKinds) Resource(gvr schemaruntime.GroupVersionResource) (typecheck.Kind, bool) {
	if r, ok := k.resources[gvr]; ok {
		return k.of(r), true
	}
	for kind, n := range natives {
		if kind.Group == gvr.Group && n.plural == gvr.Resource {
			return k.native(kind.WithVersion(gvr.Version))
		}
	}
	return typecheck.Kind{}, false
}

// Kind implements typecheck.Kinds.
func (k *knownKinds) Kind(gvk schemaruntime.GroupVersionKind) (typecheck.Kind, bool) {
	if r, ok := k.kinds[gvk]; ok {
		return k.of(r), true
	}
	return k.native(gvk)
}

// native is one of Kubernetes' own kinds.
func (k *knownKinds) native(gvk schemaruntime.GroupVersionKind) (typecheck.Kind, bool) {
	t, ok := k.natives[gvk]
	if !ok {
		if s := kubernetes.Published(gvk); s != nil {
			t = cel.NewObjectType(gvk.Kind, s, true)
		}
		k.natives[gvk] = t
	}
	return typecheck.Kind{GroupVersionKind: gvk, Type: t}, t != nil
}

func (k *knownKinds) of(r *loadedResource) typecheck.Kind {
	t, ok := k.made[r]
	if !ok {
		props := r.compiled.props
		if r.showsItems() && props != nil && props.Items != nil {
			props = props.Items.Schema
		}
		t = typeOf(r.Names.Kind, props, r.Envelope == resource.Kubernetes)
		k.made[r] = t
	}
	return typecheck.Kind{
		GroupVersionKind: schemaruntime.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Names.Kind},
		Type:             t,
		Own:              true,
	}
}

func typeOf(kind string, props *apiextensionsv1.JSONSchemaProps, envelope bool) *cel.ObjectType {
	if props == nil || props.Type != "object" {
		return nil
	}
	published := schema.Published(props, envelope)
	if published == nil {
		return nil
	}
	return cel.NewObjectType(kind, published, envelope)
}

// reviewed records what was found in reviewing a policy.
func (l *loader) reviewed(o *manifest.Object, warnings []typecheck.Warning, err error) {
	if err != nil {
		l.At(o, Warning, "spec", "the types of expressions cannot be checked: %v", err)
	}
	for _, w := range warnings {
		l.At(o, Warning, w.Field, "%s", w.Text)
	}
}
