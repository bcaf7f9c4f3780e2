package match

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Matches reports whether the matcher matches the request, and as which resource: its own or, if
// the rules name only another version of it, that one, to which the object then has to be
// converted. It errs only about requests that its rules match.
func (m *Matcher) Matches(ctx context.Context, a *admission.Attributes) (as schema.GroupVersionResource, matches bool, err error) {
	v := m.judge(ctx, &question{a.Info, a.Operation, ByObject, a})
	if as = a.Info.GroupVersionResource(); v.other != nil {
		as = *v.other
	}
	return as, v.matches(), v.err
}

// Excludes reports whether the matcher is certainly not about an operation, whatever the object is and the labels of its
// namespace are. It is asked before anything is read, so that a policy which is bound elsewhere costs nothing.
func (m *Matcher) Excludes(i *resource.Info, o admission.Operation) bool {
	v := m.judge(context.Background(), &question{info: i, operation: o})
	return v.excludes()
}

// IsOutside reports whether the matcher is certainly not about a request whose attributes have no object yet, by the labels
// of its namespace. isUnsure says that to match the request may fail, or lead to another version of its resource: nothing
// that comes after may decide then.
func (m *Matcher) IsOutside(ctx context.Context, a *admission.Attributes) (isOutside, isUnsure bool) {
	v := m.judge(ctx, &question{a.Info, a.Operation, ByNamespace, a})
	return v.excludes(), v.isUnsure
}

// Foresees reports whether [Matcher.IsOutside] may know of a request that the matcher is not about it, though
// [Matcher.Excludes] does not.
func (m *Matcher) Foresees() bool {
	return m != nil && !m.namespaces.Empty() && !m.namespaceByNameAlone
}
