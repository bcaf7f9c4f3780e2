package policies

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	schemaruntime "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission/typecheck"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/merge/kubernetes"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
)

// knownKinds are the kinds of the policy files and those of Kubernetes itself, for the types of expressions.
type knownKinds struct {
	natives   map[schemaruntime.GroupVersionKind]*cel.ObjectType // that were asked for
	resources map[schemaruntime.GroupVersionResource]*loadedResource
	kinds     map[schemaruntime.GroupVersionKind]*loadedResource
	made      map[*loadedResource]*cel.ObjectType
}

func (l *loader) knownKinds() *knownKinds {
	k := &knownKinds{
		natives:   map[schemaruntime.GroupVersionKind]*cel.ObjectType{},
		resources: map[schemaruntime.GroupVersionResource]*loadedResource{},
		kinds:     map[schemaruntime.GroupVersionKind]*loadedResource{},
		made:      map[*loadedResource]*cel.ObjectType{},
	}
	for i := range l.resources {
		r := &l.resources[i]
		k.resources[schemaruntime.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Plural}] = r
		k.kinds[schemaruntime.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}] = r
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
		t = typeOf(r.Kind, r.props, r.Envelope == resource.Kubernetes)
		k.made[r] = t
	}
	return typecheck.Kind{
		GroupVersionKind: schemaruntime.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind},
		Type:             t,
		Own:              true,
	}
}

func typeOf(kind string, props *apiextensionsv1.JSONSchemaProps, envelope bool) *cel.ObjectType {
	if props == nil {
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
		l.at(o, Warning, "spec", "the types of expressions cannot be checked: %v", err)
	}
	for _, w := range warnings {
		l.at(o, Warning, w.Field, "%s", w.Text)
	}
}

// mutatingExpressions are what is checked of a MutatingAdmissionPolicy.
func mutatingExpressions(spec *admissionv1.MutatingAdmissionPolicySpec, states []string) *typecheck.Policy {
	p := &typecheck.Policy{Match: spec.MatchConstraints, ParamKind: spec.ParamKind, Variables: spec.Variables, States: states, Mutating: true}
	root := field.NewPath("spec")
	for i, c := range spec.MatchConditions {
		p.Expressions = append(p.Expressions, typecheck.Expression{Field: root.Child("matchConditions").Index(i).Child("expression"), Text: c.Expression})
	}
	for i, m := range spec.Mutations {
		path := root.Child("mutations").Index(i)
		if m.ApplyConfiguration != nil {
			p.Expressions = append(p.Expressions, typecheck.Expression{Field: path.Child("applyConfiguration", "expression"), Text: m.ApplyConfiguration.Expression})
		}
		if m.JSONPatch != nil {
			p.Expressions = append(p.Expressions, typecheck.Expression{Field: path.Child("jsonPatch", "expression"), Text: m.JSONPatch.Expression})
		}
	}
	return p
}
