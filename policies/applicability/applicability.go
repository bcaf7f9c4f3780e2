// Package applicability answers, as policy files are loaded, whether what they say can ever apply: whether a match
// block can match a request, a rule can fail or pass, and a path can be reached. Each question is a function of what
// the files and the configuration say, and returns findings; nothing of the set is changed.
//
// What the files and the configuration prove is an error. What an API server decides, which may have resources that no
// file describes, is a warning.
package applicability

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/policies/finding"
)

// Files is what the policy files and the configuration say, as far as it decides what can apply.
type Files struct {
	Objects []*manifest.Object
	// Resources are the resources that the files describe, Operations the operations that are no verbs of these.
	Resources  []Resource
	Operations []Operation
	States     []*state.Source
	// ParamKinds are the kinds of the parameters of policies, and HeldKinds those of which the files have objects to
	// refer to.
	ParamKinds, HeldKinds map[schema.GroupKind]bool
	// PlainKinds are kinds whose objects look like policies and are none.
	PlainKinds map[schema.GroupKind]bool
	Routes     []Route
	// IsUnused reports whether the author of an object says that it may never apply.
	IsUnused func(*manifest.Object) bool
}

// A Resource is a resource that a file describes.
type Resource struct {
	*resource.Resource
	// From describes it at the path At.
	From *manifest.Object
	At   string
	// Props is the schema as it is written; nil if there is none.
	Props *apiextensionsv1.JSONSchemaProps
}

// An Operation is an operation of a document that is no verb of a resource.
type Operation struct {
	*resource.Documented
	From *manifest.Object
	At   string
}

// An Index is what the files say, by names. It answers the questions.
type Index struct {
	Files
	names *names
	// policies are the objects by which others refer to policies.
	policies map[objectName][]*manifest.Object
	// isPlain says that every route leads to an ordinary API.
	isPlain bool
	// namespaces are the Namespaces of the files; hasNamespaces says that others may be known.
	namespaces    []*manifest.Object
	hasNamespaces bool
}

// objectName is how an object of a cluster-scoped kind is referred to.
type objectName struct{ kind, name string }

// New indexes what the files say.
func New(f Files) *Index {
	x := &Index{Files: f, names: newNames(f.Resources), policies: map[objectName][]*manifest.Object{}}
	for _, o := range f.Objects {
		switch group, _ := o.GroupVersion(); {
		case group == "" && o.Kind == "Namespace":
			x.namespaces = append(x.namespaces, o)
		case group == admissionRegistrationGroup, group == ownGroup:
			name := objectName{o.Kind, o.Name}
			x.policies[name] = append(x.policies[name], o)
		}
	}
	isNamespace := func(group, kind string) bool { return group == "" && kind == "Namespace" }
	x.hasNamespaces = slices.ContainsFunc(f.Resources,
		func(r Resource) bool { return isNamespace(r.Group, r.Names.Kind) }) ||
		slices.ContainsFunc(f.States, func(s *state.Source) bool { return isNamespace(s.Kind.Group, s.Kind.Kind) })
	x.isPlain = len(f.Routes) > 0 && !slices.ContainsFunc(f.Routes, func(r Route) bool { return r.Kubernetes })
	return x
}

// Policies returns the policies of a kind that have one of some names.
func (x *Index) Policies(kind string, names ...string) (all []*manifest.Object) {
	for _, name := range names {
		all = append(all, x.policies[objectName{kind, name}]...)
	}
	return all
}

// judge collects what can never apply.
type judge struct {
	finding.List
	*Index
}

// never records that something can never apply.
func (j *judge) never(o *manifest.Object, path, format string, args ...any) {
	severity := finding.Warning
	if j.isPlain {
		severity = finding.Error
	}
	j.By(neverMatches, o, severity, path, format, args...)
}

// unlessUndescribed records that something applies to nothing that the files describe, though it may apply to what they
// do not.
func (j *judge) unlessUndescribed(o *manifest.Object, path, format string, args ...any) {
	j.By(neverMatches, o, finding.Warning, path, format, args...)
}

// The groups whose kinds are policies.
const (
	ownGroup                   = "admission-gateway.io"
	admissionRegistrationGroup = "admissionregistration.k8s.io"
	auditGroup                 = "audit.k8s.io"
)

// AnyName stands in match blocks for all groups or all resources.
const AnyName = "*"

// OrAny returns the names of a list, or the one that stands for all if the list leaves them out.
func OrAny(names []string) []string {
	if len(names) == 0 {
		return []string{AnyName}
	}
	return names
}
