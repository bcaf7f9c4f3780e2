package match

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Excludes reports whether the matcher is certainly not about an operation, whatever the object is and the labels of its
// namespace are. It is asked before anything is read, so that a policy which is bound elsewhere costs nothing.
func (m *Matcher) Excludes(i *resource.Info, o admission.Operation) bool {
	as := i.GroupVersionResource()
	switch {
	case neverAdmitted(as.GroupResource()):
		return true
	case m == nil:
		return false
	case m.excludesNamespace(i):
		return true
	}
	for n := range m.excluded {
		r := &m.excluded[n]
		if r.operations&o == o && r.matchesResource(i.Resource, i.Subresource) && r.matchesVersion(as) && r.scope == admissionv1.AllScopes &&
			(len(r.names) == 0 || i.Name != "" && slices.Contains(r.names, i.Name)) {
			return true
		}
	}
	if m.all {
		return false
	}
	cohabitant, cohabits := admission.Cohabitant(as.Group, as.Resource)
	return !slices.ContainsFunc(m.rules, func(r rule) bool {
		return r.operations&o != 0 && r.matchesResource(i.Resource, i.Subresource) &&
			(len(r.names) == 0 || i.Name == "" || slices.Contains(r.names, i.Name)) &&
			(r.matchesVersion(as) || m.equivalent && (r.matchesGroup(as.Group) || cohabits && r.matchesGroup(cohabitant)))
	})
}

// excludesNamespace reports whether the name of the request's namespace alone decides that it is not selected.
func (m *Matcher) excludesNamespace(i *resource.Info) bool {
	return m.namespaceByNameAlone && !m.namespaces.Empty() && i.Namespace != "" && i.Resource != "namespaces" &&
		!m.namespaces.Matches(NamespaceName(i.Namespace))
}
