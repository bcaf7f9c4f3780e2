package mutation

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/gatekeeper/match"
	"github.com/admission-gateway/gateway/internal/resource"
)

// A Mutator is a compiled Assign, AssignMetadata, ModifySet or AssignImage. It is immutable and safe
// for concurrent use.
type Mutator struct {
	kind, name string
	match      *match.Matcher
	appliesTo  []applies // none: any object
	path       []step
	tests      []condition // of the value at each step
	setter     setter
	rules      []admission.Rule
	about      []admission.Rule // of the match block alone
	scopes     []scope
	terms      admission.Terms // nil: always enforced
}

// Govern gives the mutator its terms. It must not be called once the mutator is in use.
func (m *Mutator) Govern(t admission.Terms) { m.terms = t }

// Terms are the terms of the mutator; nil: it has none.
func (m *Mutator) Terms() admission.Terms { return m.terms }

// applies names kinds and operations.
type applies struct {
	groups, versions, kinds []string
	operations              admission.Operation
}

// condition says what must be at a step.
type condition uint8

const (
	anything condition = iota
	mustExist
	mustNotExist
)

// allows reports whether the mutator's tests let it go on if there is something at the step, or
// nothing.
func (m *Mutator) allows(depth int, exists bool) bool {
	switch m.tests[depth] {
	case mustExist:
		return exists
	case mustNotExist:
		return !exists
	}
	return true
}

// String names the mutator.
func (m *Mutator) String() string { return m.kind + " '" + m.name + "'" }

// Name implements admission.Policy. Mutators run in the order of their kinds and names.
func (m *Mutator) Name() string { return m.kind + "/" + m.name }

// Rules implements admission.Policy.
func (m *Mutator) Rules() []admission.Rule { return m.rules }

// FailurePolicy implements admission.Policy.
func (m *Mutator) FailurePolicy() admission.FailurePolicy { return admission.Fail }

// NeedsOld implements admission.Policy.
func (m *Mutator) NeedsOld() bool { return false }

// CanPrefilter implements admission.Prefilter.
func (m *Mutator) CanPrefilter() bool { return m.match.CanPrefilter() }

// IsFilteredOut implements admission.Prefilter.
func (m *Mutator) IsFilteredOut(ctx context.Context, a *admission.Attributes) bool {
	return m.match.IsFilteredOut(ctx, a)
}

// References implements admission.Referrer.
func (m *Mutator) References() admission.References { return m.match.References() }

// Applicabilities implements admission.Explainer.
func (m *Mutator) Applicabilities(a *admission.Attributes) []resource.Applicability {
	o := admission.ApplicabilityOf(m.name, m.rules, a)
	o.Kind = m.kind
	return []resource.Applicability{m.match.Applicability(a.Info, o)}
}

// Excludes implements admission.Narrower.
func (m *Mutator) Excludes(i *resource.Info, _ admission.Operation) bool {
	return m.match.Excludes(i) || !slices.ContainsFunc(m.about, func(r admission.Rule) bool { return r.Names(i) })
}

// Reasons implements admission.Reasoner.
func (m *Mutator) Reasons(ctx context.Context, a *admission.Attributes) []admission.Reason {
	if !m.appliesToKind(a) {
		return []admission.Reason{
			{Field: "spec.applyTo", Because: "no entry names the kind of the object and the operation"}}
	}
	return m.match.Reasons(ctx, "spec.match", []match.Object{match.New(a, a.Object)})
}

func (m *Mutator) appliesToKind(a *admission.Attributes) bool {
	kind := a.KindOf(a.Object)
	return len(m.appliesTo) == 0 ||
		slices.ContainsFunc(m.appliesTo, func(to applies) bool { return to.match(kind, a.Operation) })
}

// matches reports whether the mutator matches the object as it is now.
func (m *Mutator) matches(ctx context.Context, a *admission.Attributes) (bool, error) {
	if !m.appliesToKind(a) {
		return false, nil
	}
	o := match.New(a, a.Object)
	return m.match.Matches(ctx, &o)
}

func (a *applies) match(kind schema.GroupVersionKind, operation admission.Operation) bool {
	return a.operations&operation != 0 && slices.Contains(a.groups, kind.Group) &&
		slices.Contains(a.versions, kind.Version) && slices.Contains(a.kinds, kind.Kind)
}

// A scope is a kind and an operation. Mutators of one scope must agree about the fields of its objects.
type scope struct {
	kind      schema.GroupVersionKind
	operation admission.Operation
}

// compare orders mutators as Gatekeeper runs them.
func compare(a, b *Mutator) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
}
