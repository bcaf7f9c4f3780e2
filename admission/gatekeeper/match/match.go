// Package match says which requests a constraint or a mutator of Gatekeeper matches, by its match
// block, as Gatekeeper's own package of that name does.
package match

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	vapmatch "github.com/admission-gateway/gateway/admission/match"
)

// A Spec is a match block.
type Spec struct {
	Source             string                `json:"source,omitempty"`
	Kinds              []Kinds               `json:"kinds,omitempty"`
	Scope              string                `json:"scope,omitempty"`
	Namespaces         []Wildcard            `json:"namespaces,omitempty"`
	ExcludedNamespaces []Wildcard            `json:"excludedNamespaces,omitempty"`
	LabelSelector      *metav1.LabelSelector `json:"labelSelector,omitempty"`
	NamespaceSelector  *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	Name               Wildcard              `json:"name,omitempty"`
}

// Kinds names kinds in groups; none, or "*", stands for any.
type Kinds struct {
	APIGroups []string `json:"apiGroups,omitempty"`
	Kinds     []string `json:"kinds,omitempty"`
}

// The values of scope that mean something. Any other value, as in Gatekeeper, means both.
const (
	scopeCluster    = "Cluster"
	scopeNamespaced = "Namespaced"
)

// The values of source. What a client sends is original.
const (
	sourceAll       = "All"
	sourceOriginal  = "Original"
	sourceGenerated = "Generated"
)

// A Matcher is a compiled match block. It is immutable and safe for concurrent use. A nil Matcher
// matches every object.
type Matcher struct {
	kinds      []kinds
	scope      string
	namespaces []Wildcard // none: any
	excluded   []Wildcard
	labels     labels.Selector // nil: any
	namespace  labels.Selector // of the namespace; nil: any
	byName     bool            // namespace asks for nothing but the name of the namespace
	name       Wildcard
	never      bool // it matches generated objects alone, and the gateway generates none
}

// kinds are kinds in groups; nil stands for any.
type kinds struct{ groups, kinds []string }

// Compile compiles a match block.
func Compile(s *Spec, path *field.Path) (*Matcher, field.ErrorList) {
	var errs field.ErrorList
	selector := func(s *metav1.LabelSelector, path *field.Path) labels.Selector {
		if s == nil {
			return nil
		}
		errs = append(errs, validation.ValidateLabelSelector(s, validation.LabelSelectorValidationOptions{}, path)...)
		parsed, err := metav1.LabelSelectorAsSelector(s)
		if err != nil && len(errs) == 0 {
			errs = append(errs, field.Invalid(path, field.OmitValueType{}, err.Error()))
		}
		return parsed
	}
	m := &Matcher{
		scope: s.Scope, namespaces: s.Namespaces, excluded: s.ExcludedNamespaces, name: s.Name,
		labels:    selector(s.LabelSelector, path.Child("labelSelector")),
		namespace: selector(s.NamespaceSelector, path.Child("namespaceSelector")),
		never:     s.Source == sourceGenerated,
	}
	if s.Source != "" {
		errs = append(errs, vapmatch.OneOf(s.Source, path.Child("source"), sourceAll, sourceOriginal,
			sourceGenerated)...)
	}
	for _, k := range s.Kinds {
		m.kinds = append(m.kinds, kinds{unlessAny(k.APIGroups), unlessAny(k.Kinds)})
	}
	if len(errs) > 0 {
		return nil, errs
	}
	if m.namespace != nil {
		m.byName = vapmatch.AsksForNames(m.namespace)
	}
	return m, nil
}

func unlessAny(names []string) []string {
	if len(names) == 0 || slices.Contains(names, anyName) {
		return nil
	}
	return names
}

// NeedsOld reports whether the stored object can decide about an update: it counts as well as the
// new one, and some of its properties can change.
func (m *Matcher) NeedsOld() bool {
	if m == nil {
		return false
	}
	return m.labels != nil || m.namespace != nil && m.matchesKind(&Object{Kind: namespaceKind})
}

// References returns what the matcher asks for beyond the request.
func (m *Matcher) References() admission.References {
	return admission.References{Namespaces: m != nil && m.namespace != nil && !m.byName}
}

func (m *Matcher) matchesKind(o *Object) bool {
	if len(m.kinds) == 0 {
		return true
	}
	for i := range m.kinds {
		k := &m.kinds[i]
		if (k.kinds == nil || slices.Contains(k.kinds, o.Kind)) &&
			(k.groups == nil || slices.Contains(k.groups, o.Group)) {
			return true
		}
	}
	return false
}

func (m *Matcher) matchesName(o *Object) bool {
	return m.name.Matches(o.name()) || m.name.MatchesGenerated(o.metadata("generateName"))
}
