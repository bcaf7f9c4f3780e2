// Package policy has the common part of policies that are written in CEL and act
// through bindings. It matches requests with a policy and its bindings, finds
// parameters, converts the object to the version that the rules name, evaluates
// match conditions, opens variables, binds the namespace, and handles failures. The
// packages vap and mutate add what they evaluate. k8s.io/apiserver has
// admission/plugin/policy/generic for its plugins in the same way.
package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/match"
	"github.com/admission-gateway/gateway/admission/params"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// A Kind describes one kind of policies.
type Kind struct {
	// Name is the kind of their definitions.
	Name string
	// Denied begins the sentences of denials.
	Denied func(policy, binding string) string
	// Misconfigured is the reason of a denial if it is not known whether the policy or
	// a binding matches.
	Misconfigured metav1.StatusReason
	// Operations are the only ones that policies can match.
	Operations admission.Operation
	// ValidateMatch checks matchConstraints and matchResources.
	ValidateMatch func(*admissionv1.MatchResources, *field.Path) field.ErrorList
}

// A Policy is the common part of a compiled policy. It is immutable and safe for concurrent use.
type Policy struct {
	kind       *Kind
	name       string
	match      *match.Matcher
	params     schema.GroupVersionKind // of the parameters; empty: there are none
	findsKind  bool                    // no file provides the kind of the parameters: it is looked for at the backend
	failure    admission.FailurePolicy
	rules      []admission.Rule
	needs      needs
	conditions match.Conditions
	variables  *cel.Variables
	terms      admission.Terms // nil: always enforced
	references admission.References
}

// needs says what the expressions of a policy read beside the object.
type needs struct{ old, namespace, carried bool }

// A Binding is a compiled binding of a policy. It is immutable and safe for
// concurrent use.
type Binding struct {
	name   string
	policy string
	match  *match.Matcher // nil: all that the policy matches
	params *params.Ref
	terms  admission.Terms // nil: as far as the policy is
	// What it selects is in one of the namespaces, or in none, and has one of the labels; none: it may have any.
	namespaces []string
	labels     []admission.Label
}

// Name is the name of the binding.
func (b *Binding) Name() string { return b.name }

// PolicyName is the name of the policy that the binding is for.
func (b *Binding) PolicyName() string { return b.policy }

// Name implements admission.Policy.
func (p *Policy) Name() string { return p.name }

// Rules implements admission.Policy.
func (p *Policy) Rules() []admission.Rule { return p.rules }

// FailurePolicy implements admission.Policy.
func (p *Policy) FailurePolicy() admission.FailurePolicy { return p.failure }

// NeedsOld implements admission.Policy.
func (p *Policy) NeedsOld() bool { return p.needs.old }

// ReadsCarried implements admission.CarriedReader.
func (p *Policy) ReadsCarried() bool { return p.needs.carried }

// Excludes implements admission.Narrower for policies that have no bindings of their own.
func (p *Policy) Excludes(i *resource.Info, o admission.Operation) bool {
	return p.kind.Operations&o == 0 || p.match.Excludes(i, o)
}

// Excludes reports whether the binding is certainly not about an operation, before anything is read.
func (b *Binding) Excludes(i *resource.Info, o admission.Operation) bool {
	return b.match.Excludes(i, o)
}

// FindsKind reports whether the kind of the parameters has to be found at the backend. If it is not
// there, every request that the policy matches fails, bound or not.
func (p *Policy) FindsKind() bool { return p.findsKind }

// ExcludesBy is Excludes for a policy with bindings: one that is bound elsewhere costs nothing.
func (p *Policy) ExcludesBy(i *resource.Info, o admission.Operation, bindings []*Binding) bool {
	return p.Excludes(i, o) || !p.findsKind &&
		!slices.ContainsFunc(bindings, func(b *Binding) bool { return !b.Excludes(i, o) })
}

// NeverExcludesBy is what admission.Insistent asks, for a policy with bindings.
func (p *Policy) NeverExcludesBy(i *resource.Info, o admission.Operation, bindings []*Binding) bool {
	return p.kind.Operations&o != 0 && p.match.NeverExcludes(i, o) &&
		(p.findsKind || slices.ContainsFunc(bindings, func(b *Binding) bool { return b.match.NeverExcludes(i, o) }))
}

// AlwaysMatchesBy is what admission.Decided asks, for a policy with bindings.
func (p *Policy) AlwaysMatchesBy(i *resource.Info, o admission.Operation, bindings []*Binding) bool {
	return p.kind.Operations&o != 0 && !p.findsKind && p.match.AlwaysMatches(i, o) &&
		!slices.ContainsFunc(bindings, func(b *Binding) bool { return !b.match.AlwaysMatches(i, o) })
}

// CanPrefilter implements admission.Prefilter for policies that have no bindings of their own.
func (p *Policy) CanPrefilter() bool { return p.CanPrefilterBy() }

// IsFilteredOut implements admission.Prefilter for policies that have no bindings of their own.
func (p *Policy) IsFilteredOut(ctx context.Context, a *admission.Attributes) bool {
	isFilteredOut, isUnsure := p.match.IsFilteredOut(ctx, a)
	return isFilteredOut || !isUnsure && p.excludedByConditions(a)
}

// CanPrefilterBy is CanPrefilter for a policy with bindings.
func (p *Policy) CanPrefilterBy(bindings ...*Binding) bool {
	return p.match.CanPrefilter() || p.params.Empty() && p.conditions.NeedNoObject() ||
		slices.ContainsFunc(bindings, func(b *Binding) bool { return b.match.CanPrefilter() })
}

// IsFilteredOutBy is IsFilteredOut for a policy with bindings. It takes the steps in the order in which they are taken
// for the whole request: a match that may fail is left to that.
func (p *Policy) IsFilteredOutBy(ctx context.Context, a *admission.Attributes, bindings []*Binding) bool {
	isFilteredOut, isUnsure := p.match.IsFilteredOut(ctx, a)
	if isFilteredOut || isUnsure || p.findsKind {
		return isFilteredOut
	}
	isBound := false
	for _, b := range bindings {
		if b.Excludes(a.Info, a.Operation) {
			continue
		}
		isFilteredOut, isUnsure := b.match.IsFilteredOut(ctx, a)
		if isUnsure && !isFilteredOut {
			return false
		}
		isBound = isBound || !isFilteredOut
	}
	return !isBound || p.excludedByConditions(a)
}

// excludedByConditions reports whether a match condition that needs no object is false. Parameters come before
// conditions, and those that are missing are a failure.
func (p *Policy) excludedByConditions(a *admission.Attributes) bool {
	if !p.params.Empty() || !p.conditions.NeedNoObject() {
		return false
	}
	return p.conditions.Exclude(a.Frame, a.Bind())
}

// NeedsNamespace reports whether an expression reads namespaceObject.
func (p *Policy) NeedsNamespace() bool { return p.needs.namespace }

// References implements admission.Referrer.
func (p *Policy) References() admission.References {
	r := p.match.References()
	r.Add(p.references)
	r.Namespaces = r.Namespaces || p.needs.namespace
	return r
}

// Bound returns the policy with bindings, which shares with it all that is compiled. Without any it
// matches no request. Bindings can only narrow what it matches. The policy must have none before.
func (p *Policy) Bound(bindings ...*Binding) Policy {
	bound := *p
	switch {
	case p.findsKind:
	case len(bindings) == 0:
		bound.rules = nil
	default:
		bound.rules = narrowed(bound.rules, bindings)
	}
	bound.needs.old = bound.needs.old ||
		slices.ContainsFunc(bindings, func(b *Binding) bool { return b.match.SelectsObjects() })
	for _, b := range bindings {
		narrowed := b.match.References()
		bound.references.Add(admission.References{Namespaces: narrowed.Namespaces,
			Params: b.params.References(p.params)})
	}
	return bound
}

// narrowed returns the rules by which the index finds a policy for the namespaces, or else the labels, that its
// bindings ask for: a policy for each team costs the others nothing.
func narrowed(rules []admission.Rule, bindings []*Binding) []admission.Rule {
	var namespaces []string
	var labels []admission.Label
	byNamespace, byLabel := len(bindings) > 0, len(bindings) > 0
	for _, b := range bindings {
		byNamespace, byLabel = byNamespace && len(b.namespaces) > 0, byLabel && len(b.labels) > 0
		namespaces, labels = append(namespaces, b.namespaces...), append(labels, b.labels...)
	}
	rules = slices.Clone(rules)
	for i := range rules {
		switch r := &rules[i]; {
		case len(r.Namespaces)+len(r.Labels) > 0: // by the policy itself
		case byNamespace:
			r.Namespaces = namespaces
		case byLabel:
			r.Labels = labels
		}
	}
	return rules
}

// IsPlain reports whether the policy evaluates validations alone, which see the request alone.
func (p *Policy) IsPlain() bool {
	return len(p.conditions) == 0 && p.variables == nil && !p.needs.namespace && !p.HasParams()
}

// HasParams reports whether the policy has parameters.
func (p *Policy) HasParams() bool { return !p.params.Empty() }

// HasSecretParams reports whether the parameters are Secrets.
func (p *Policy) HasSecretParams() bool { return p.params.Group == "" && p.params.Kind == "Secret" }

// Programs are the expressions that all kinds of policies have.
func (p *Policy) Programs() []*cel.Program {
	all := append([]*cel.Program{}, p.conditions...)
	if p.variables != nil {
		all = append(all, p.variables.Programs()...)
	}
	return all
}

// Matches reports whether the policy matches the request, and as which version of its resource. It
// handles failures; the error is the answer to the request.
func (p *Policy) Matches(ctx context.Context, a *admission.Attributes,
	r *admission.Report) (as schema.GroupVersionResource, matches bool, err error) {
	as, matches, err = p.match.Matches(ctx, a)
	if err == nil && matches && p.findsKind && !p.servesKind(ctx, a) {
		err = fmt.Errorf("failed to find resource referenced by paramKind: '%v'", p.params)
	}
	if err != nil {
		return as, false, p.Misconfigured(nil, err, r)
	}
	return as, matches, nil
}

// servesKind reports whether the kind of the parameters is there.
func (p *Policy) servesKind(ctx context.Context, a *admission.Attributes) bool {
	if a.Lookup == nil {
		return false
	}
	_, err := a.Lookup.Namespaced(ctx, p.params)
	return err == nil
}

// Params returns the parameters for which the policy runs by a binding: none if the
// binding does not match the request. It handles failures; the error is the answer
// to the request.
func (p *Policy) Params(ctx context.Context, b *Binding, a *admission.Attributes,
	r *admission.Report) ([]document.Node, error) {
	if !a.IsMatched() {
		if _, matches, err := b.match.Matches(ctx, a); err != nil {
			return nil, p.Misconfigured(b, err, r)
		} else if !matches {
			return nil, nil
		}
	}
	found, err := b.params.Find(ctx, p.params, a)
	if err != nil {
		return nil, p.Misconfigured(b, err, r)
	}
	return found, nil
}

// Convert lets the policy see the request as another version of its resource, and
// returns the object in that version.
func Convert(a *admission.Attributes, as schema.GroupVersionResource) (*document.Document, error) {
	converted, err := a.BindAs(as)
	if err != nil {
		return nil, ConversionFailed(err)
	}
	return converted, nil
}

// ConversionFailed is the failure of a policy because of an object that cannot be
// converted.
func ConversionFailed(err error) error {
	return fmt.Errorf("failed to convert object version: %w", err)
}

// MatchesConditions reports whether the match conditions do. They do not see
// namespaceObject.
func (p *Policy) MatchesConditions(f *cel.Frame, v *cel.Vars) (bool, error) {
	v.Set(value.NamespaceObject, document.Node{}, nil)
	applies, err := p.conditions.Match(f, v)
	if t := f.Tracer(); t != nil && !applies && err == nil {
		if r, asks := t.(interface{ Unmatched() }); asks {
			r.Unmatched()
		}
	}
	return applies, err
}

// BindNamespace binds namespaceObject, if an expression reads it. The error may be the
// answer to the request.
func (p *Policy) BindNamespace(ctx context.Context, a *admission.Attributes) error {
	if !p.needs.namespace {
		return nil
	}
	return a.BindNamespace(ctx)
}

// OpenVariables begins an evaluation of expressions that read the policy's
// variables. CloseVariables ends it.
func (p *Policy) OpenVariables(f *cel.Frame, v *cel.Vars) {
	if p.variables != nil {
		f.OpenVariables(v, p.variables)
	}
}

// CloseVariables ends what OpenVariables began.
func (p *Policy) CloseVariables(f *cel.Frame, v *cel.Vars) {
	if p.variables != nil {
		f.CloseVariables(v)
	}
}

// Misconfigured handles an error that leaves it unknown if the policy, or the binding unless it is
// nil, matches. It returns the error of a namespace that does not exist, which is the answer to the
// request.
func (p *Policy) Misconfigured(b *Binding, err error, r *admission.Report) error {
	var missing *admission.NoNamespace
	if errors.As(err, &missing) {
		return missing
	}
	if p.ignores(err) {
		r.Ignored(p.name, err)
		return nil
	}
	what := "policy"
	if b != nil {
		what = "binding"
	}
	p.Deny(b, Failure(p.kind.Misconfigured, fmt.Sprintf("failed to configure %s: %v", what, err)), r)
	return nil
}

// Failed handles a failure of the policy, or of the binding unless it is nil, as
// the failure policy says.
func (p *Policy) Failed(b *Binding, reason metav1.StatusReason, err error, r *admission.Report) {
	if p.ignores(err) {
		r.Ignored(p.name, err)
		return
	}
	p.Deny(b, Failure(reason, err.Error()), r)
}

func (p *Policy) ignores(err error) bool { return p.failure == admission.Ignore || cel.IsSkip(err) }

// AnswerOr returns an error that is the answer to the request, and handles any
// other as a failure of the policy or of the binding.
func (p *Policy) AnswerOr(b *Binding, err error, r *admission.Report) error {
	var answer *status.Error
	if errors.As(err, &answer) {
		return answer
	}
	p.Failed(b, metav1.StatusReasonInvalid, err, r)
	return nil
}

// Deny adds a denial by the policy, or by the binding unless it is nil. The
// messages of the denial say what is wrong, and become whole sentences.
func (p *Policy) Deny(b *Binding, d status.Denial, r *admission.Report) {
	d.Policy = p.name
	if b != nil {
		d.Binding = b.name
	}
	d.Begin(p.kind.Denied(d.Policy, d.Binding))
	r.Deny(d)
}

// Failure is a denial by a policy that could not decide. No object is to blame for it.
func Failure(reason metav1.StatusReason, message string) status.Denial {
	return status.Denial{
		Reason: reason,
		Cause:  metav1.StatusCause{Type: metav1.CauseType(field.ErrorTypeInternal), Message: message},
		Failed: true,
	}
}
