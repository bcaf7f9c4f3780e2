package policies

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/policies/natives"
)

// SourceOf returns the StateSource that has every object of the kind in the namespace, so that these are looked for
// there first; nil without one.
func (s *Set) SourceOf(kind schema.GroupVersionKind, namespace string) *state.Source {
	for _, source := range s.states {
		if source.Covers(kind, namespace) {
			return source
		}
	}
	return nil
}

// HoldsParams reports whether the files have the object that a reference names, so that no backend is asked for it. The
// one of a request's namespace cannot be known.
func (s *Set) HoldsParams(p admission.ParamReference) bool {
	if p.Name == "" {
		return false
	}
	if namespaced, known := s.kinds.scopes[p.Kind.GroupKind()]; p.Namespace == "" && (!known || namespaced) {
		return false
	}
	_, found := s.Object(p.Kind.Group, p.Kind.Kind, p.Namespace, p.Name)
	return found
}

// PluralOf returns the name of the resource of a kind, as far as the files and Kubernetes itself
// name it.
func (s *Set) PluralOf(kind schema.GroupVersionKind) (plural string, known bool) {
	if r := s.kinds.described[kind]; r != nil {
		return r.Names.Plural, true
	}
	n, known := natives.Kinds[kind.GroupKind()]
	return n.Plural, known
}
