package match

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Matches reports whether the matcher matches the request, and as which resource: its own or, if
// the rules name only another version of it, that one, to which the object then has to be
// converted. It errs only about requests that its rules match.
func (m *Matcher) Matches(ctx context.Context,
	a *admission.Attributes) (as schema.GroupVersionResource, matches bool, err error) {
	as = a.Info.GroupVersionResource()
	if m.AlwaysMatches(a.Info, a.Operation) {
		return as, true, nil
	}
	v := m.judge(ctx, &matchRequest{a.Info, a.Operation, ByObject, a})
	if v.other != nil {
		as = *v.other
	}
	return as, v.matches(), v.err
}

// Excludes reports whether the matcher is certainly not about an operation, whatever the object is and the labels of
// its namespace are. It is asked before anything is read, so that a policy which is bound elsewhere costs nothing.
func (m *Matcher) Excludes(i *resource.Info, o admission.Operation) bool {
	v := m.judge(context.Background(), &matchRequest{info: i, operation: o})
	return v.excludes()
}

// NeverExcludes reports whether [Matcher.Excludes] is false for all requests that have the group, version, resource and
// subresource of this one.
func (m *Matcher) NeverExcludes(i *resource.Info, o admission.Operation) bool {
	switch {
	case neverAdmitted(i.Group, i.Resource):
		return false
	case m == nil:
		return true
	case !m.byRules && (len(m.targets)+len(m.excluded) > 0 || !m.namespaces.Empty()):
		return false
	}
	if m.all {
		return true
	}
	q := matchRequest{info: i, operation: o}
	for n := range m.rules {
		r := &m.rules[n]
		if len(r.names) == 0 && r.scope == admissionv1.AllScopes && r.matchesGroup(i.Group) &&
			r.miss(&q, i.Group, i.Version, false) == missNothing {
			return true
		}
	}
	return false
}

// AlwaysMatches reports whether the matcher matches all requests that have the group, version, resource and subresource
// of this one, as they are.
func (m *Matcher) AlwaysMatches(i *resource.Info, o admission.Operation) bool {
	return (m == nil || m.byRules) && m.NeverExcludes(i, o)
}

// IsFilteredOut reports whether the matcher is certainly not about a request whose attributes have no object yet, by
// the labels of its namespace. isUnsure says that to match the request may fail, or lead to another version of its
// resource: nothing that comes after may decide then.
func (m *Matcher) IsFilteredOut(ctx context.Context, a *admission.Attributes) (isFilteredOut, isUnsure bool) {
	v := m.judge(ctx, &matchRequest{a.Info, a.Operation, ByNamespace, a})
	return v.excludes(), v.isUnsure
}

// CanPrefilter reports whether [Matcher.IsFilteredOut] may know of a request that the matcher is not about it, though
// [Matcher.Excludes] does not.
func (m *Matcher) CanPrefilter() bool {
	return m != nil && !m.namespaces.Empty() && !m.namespaceByNameAlone
}
