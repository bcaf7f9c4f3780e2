package policies

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	schemaruntime "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission/typecheck"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
)

// knownKinds are the kinds of the policy files, for the types of expressions.
type knownKinds struct {
	resources map[schemaruntime.GroupVersionResource]*loadedResource
	kinds     map[schemaruntime.GroupVersionKind]*loadedResource
	made      map[*loadedResource]*cel.ObjectType
}

func (l *loader) knownKinds() *knownKinds {
	k := &knownKinds{
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
	r, ok := k.resources[gvr]
	if !ok {
		return typecheck.Kind{}, false
	}
	return k.of(r), true
}

// Kind implements typecheck.Kinds.
func (k *knownKinds) Kind(gvk schemaruntime.GroupVersionKind) (typecheck.Kind, bool) {
	r, ok := k.kinds[gvk]
	if !ok {
		return typecheck.Kind{}, false
	}
	return k.of(r), true
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
