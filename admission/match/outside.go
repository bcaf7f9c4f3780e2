package match

import (
	"context"

	"github.com/admission-gateway/gateway/admission"
)

// Foresees reports whether [Matcher.IsOutside] may know of a request that the matcher is not about it.
func (m *Matcher) Foresees() bool {
	return m != nil && !m.namespaces.Empty() && !m.namespaceByNameAlone
}

// IsOutside reports whether the matcher is certainly not about a request that [Matcher.Excludes] does not exclude, by the
// labels of its namespace. isUnsure says that to match the request may fail, or lead to another version of its resource:
// nothing that comes after may decide then.
func (m *Matcher) IsOutside(ctx context.Context, a *admission.Attributes) (isOutside, isUnsure bool) {
	if m == nil {
		return false, false
	}
	if m.mayNeedOthers(m.excluded, a) || !m.all && m.mayNeedOthers(m.rules, a) {
		isUnsure = true
	}
	if !m.Foresees() || a.Info.Resource == "namespaces" || a.Namespace() == "" {
		return false, isUnsure || !m.namespaces.Empty() && a.Info.Resource == "namespaces"
	}
	namespace, err := a.LookUpNamespace(ctx)
	if err != nil || !namespace.Valid() {
		return false, true
	}
	return !admission.Selects(m.namespaces, namespace), isUnsure
}

// mayNeedOthers reports whether the rules match the request, if at all, as another version of its resource.
func (m *Matcher) mayNeedOthers(rules []rule, a *admission.Attributes) (may bool) {
	as := a.Info.GroupVersionResource()
	cohabitant, cohabits := admission.Cohabitant(as.Group, as.Resource)
	for i := range rules {
		switch r := &rules[i]; {
		case !r.matchesRequest(a):
		case r.matchesVersion(as):
			return false
		case r.matchesGroup(as.Group) || cohabits && r.matchesGroup(cohabitant):
			may = m.equivalent
		}
	}
	return may
}
