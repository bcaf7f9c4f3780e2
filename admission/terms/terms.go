// Package terms has the terms of policies: rollouts, by which a policy is enforced from a time on, for
// a share of objects or in some namespaces, and exceptions, by which it is not asked about a request.
//
// An exception comes before a rollout. An unknown fact never suspends a policy: an exception that
// fails to match excepts nothing, and a policy is enforced in a namespace whose labels are not
// known.
package terms

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/rollout"
)

// Terms are the terms of one policy. They implement admission.Terms.
type Terms struct {
	plan       *rollout.Plan // nil: enforced
	exceptions []*Exception
	index      *admission.Selection[*Exception] // of the exceptions
}

// New makes terms of a rollout, which may be nil, and exceptions. It returns nil if there are neither.
func New(plan *rollout.Plan, exceptions []*Exception) admission.Terms {
	if plan == nil && len(exceptions) == 0 {
		return nil
	}
	return &Terms{plan, exceptions, admission.InOrder(exceptions)}
}

// Stand implements admission.Terms.
func (t *Terms) Stand(ctx context.Context, a *admission.Attributes) (s admission.Standing) {
	for e := range t.index.For(a.Info, a.Operation) {
		if e.excepts(ctx, a) {
			if !a.IsUncounted {
				e.used.Add(1)
			}
			s.Exception, s.Reason = e.name, e.reason
			return s
		}
	}
	s.IsDryRun = t.plan != nil && !t.plan.Enforces(requestOf(ctx, a))
	return s
}

// References implements admission.Referrer.
func (t *Terms) References() (r admission.References) {
	r = t.index.References()
	r.Namespaces = r.Namespaces || t.plan != nil && t.plan.SelectsNamespaces()
	return r
}

// NeedsOld implements admission.Terms.
func (t *Terms) NeedsOld() bool {
	for _, e := range t.exceptions {
		if e.needsOld {
			return true
		}
	}
	return false
}

// ReportDryRun implements admission.Terms.
func (t *Terms) ReportDryRun(would bool) { t.plan.Count().Add(would) }

// Applicability implements admission.Terms.
func (t *Terms) Applicability(a *admission.Attributes, o resource.Applicability) resource.Applicability {
	for _, e := range t.exceptions {
		o = e.applicability(a, o)
	}
	if t.plan == nil || o.Applies == resource.Never {
		return o
	}
	if how := t.plan.In(a.Time()); how != "" {
		return o.Also("enforced " + how + ", and only tried otherwise")
	}
	return o
}

// requestOf returns what a rollout looks at. What always has the same verdict is an object; if its
// name is not known, it is the user.
func requestOf(ctx context.Context, a *admission.Attributes) *rollout.Request {
	i := a.Info
	q := &rollout.Request{At: a.Time(), Namespace: i.Namespace}
	name := a.Name()
	switch {
	case name != "":
		q.Subject = []string{i.Group, i.Resource, i.Namespace, name}
	case a.User != nil:
		q.Subject = []string{a.User.Name}
	}
	if i.IsNamespaces() {
		q.Namespace = name
		q.Selects = func(s labels.Selector) bool { return selectsNamespace(s, a) }
		return q
	}
	q.Selects = func(s labels.Selector) bool {
		namespace, err := a.LookUpNamespace(ctx)
		return err != nil || !namespace.Valid() || admission.Selects(s, namespace)
	}
	return q
}

// selectsNamespace reports whether a selector selects the namespace that is written, as it is or as
// it is stored: no client leaves a rollout by a label.
func selectsNamespace(s labels.Selector, a *admission.Attributes) bool {
	for _, d := range []*document.Document{a.Object, a.Old} {
		if d != nil && admission.Selects(s, d.Root()) {
			return true
		}
	}
	return a.Object == nil && a.Old == nil
}

// named joins the kind and the name of a policy.
func named(kind, name string) string { return kind + "/" + name }
