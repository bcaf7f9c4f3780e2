package match

import (
	"context"

	"github.com/admission-gateway/gateway/admission"
	vapmatch "github.com/admission-gateway/gateway/admission/match"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Excludes reports whether the matcher is certainly not about a request, by what the URL says and whatever the object is.
func (m *Matcher) Excludes(i *resource.Info) bool {
	if m == nil {
		return false
	}
	namespace, isNamespaces := i.ObjectNamespace(), isNamespaces(i)
	namespaced := namespace != "" && !isNamespaces
	switch {
	case m.never, m.scope == scopeCluster && namespaced, m.scope == scopeNamespaced && !namespaced:
		return true
	case m.name != "" && i.Name != "" && i.Verb != resource.VerbCreate && i.Subresource == "" && !m.name.mayBeGenerated() && !m.name.Matches(i.Name):
		return true
	case isNamespaces:
		// Of a subresource the object may be something else.
		return i.Name != "" && i.Verb != resource.VerbCreate && i.Subresource == "" && !m.selectsName(i.Name)
	case namespace == "":
		return false // what is in no namespace is never exempt
	}
	return !m.selectsName(namespace) || m.namespace != nil && m.byName && !m.namespace.Matches(vapmatch.NamespaceName(namespace))
}

// Foresees reports whether [Matcher.IsOutside] may know of a request that the matcher is not about it.
func (m *Matcher) Foresees() bool { return m != nil && m.namespace != nil && !m.byName }

// IsOutside reports whether the matcher is certainly not about a request that Excludes does not exclude, by the labels of its
// namespace.
func (m *Matcher) IsOutside(ctx context.Context, a *admission.Attributes) bool {
	if !m.Foresees() || isNamespaces(a.Info) || a.Info.ObjectNamespace() == "" {
		return false
	}
	namespace, err := a.LookUpNamespace(ctx)
	return err == nil && namespace.Valid() && !admission.Selects(m.namespace, namespace)
}

// Holds reports whether a request is certainly about an object in one of the namespaces, or about one of them.
func Holds(namespaces []Wildcard, i *resource.Info) bool {
	switch {
	case len(namespaces) == 0:
		return false
	case isNamespaces(i):
		return i.Name != "" && i.Verb != resource.VerbCreate && i.Subresource == "" && Any(namespaces, i.Name)
	}
	return Any(namespaces, i.ObjectNamespace())
}

func isNamespaces(i *resource.Info) bool { return i.Resource == "namespaces" && i.Group == "" }

// selectsName looks at the name of a namespace.
func (m *Matcher) selectsName(name string) bool {
	return (len(m.namespaces) == 0 || Any(m.namespaces, name)) && !Any(m.excluded, name)
}

// mayBeGenerated reports whether the wildcard may stand for the beginning of a generated name, which objects keep.
func (w Wildcard) mayBeGenerated() bool {
	_, _, after := w.parts()
	return after
}
