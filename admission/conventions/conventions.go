// Package conventions checks rules of the Kubernetes API conventions that schemas do not express:
// the form of conditions, what may stand beside spec and status, keys and names that are reserved,
// numbers that do not survive every client, dates. A ConventionPolicy says for which requests a
// rule is off, warns or refuses.
//
// All policies that match a request count, and of each rule the strictest action
// among them. What an update leaves as it was is never refused, only warned of.
package conventions

import (
	"context"
	"iter"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/match"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Action says what becomes of a request that breaks a rule.
type Action uint8

// The actions, from the mildest.
const (
	Off Action = iota
	Warn
	Deny
)

// Check is one rule.
type Check uint8

// The rules.
const (
	// Conditions: status.conditions has the standard form (STAT-4).
	Conditions Check = iota
	// TopLevelFields: nothing stands beside spec and status (STAT-5).
	TopLevelFields
	// ReservedKeys: keys of labels and annotations do not have prefixes of the
	// Kubernetes project (META-2).
	ReservedKeys
	// FractionsInSpec: spec has no numbers with fractions (VAL-5).
	FractionsInSpec
	// UnsafeIntegers: integers are the same to clients in JavaScript (VAL-5).
	UnsafeIntegers
	// Dates are RFC 3339 (VAL-8).
	Dates
	// ReservedNames: namespaces and API groups do not have names of the Kubernetes
	// project (RES-9).
	ReservedNames
	checks
)

// Spec has the settings of a policy.
type Spec struct {
	Name             string
	MatchConstraints *admissionv1.MatchResources
	MatchConditions  []admissionv1.MatchCondition
	TargetRefs       []resource.TargetRef
	Actions          [checks]Action
	// AllowedKeyPrefixes are reserved prefixes of keys that every client may use.
	AllowedKeyPrefixes []string
}

// Policy is a compiled ConventionPolicy. It is immutable and safe for concurrent
// use.
type Policy struct {
	name       string
	match      *match.Matcher
	rules      []admission.Rule
	conditions []*cel.Program
	actions    [checks]Action
	allowed    []string
	terms      admission.Terms // nil: always enforced
}

// Governed returns the policy with terms, which shares with it all that is compiled.
func (p *Policy) Governed(t admission.Terms) *Policy {
	governed := *p
	governed.terms = t
	return &governed
}

// Terms are the terms of the policy; nil: it has none.
func (p *Policy) Terms() admission.Terms { return p.terms }

// Compile checks and compiles a policy. Findings have paths such as
// spec.matchConditions[0].expression; with any, the Policy is nil.
func Compile(s *Spec) (*Policy, field.ErrorList) {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if s.MatchConstraints != nil {
		errs = match.Validate(s.MatchConstraints, spec.Child("matchConstraints"))
	}
	errs = append(errs, match.ValidateConditions(s.MatchConditions, spec.Child("matchConditions"))...)
	matcher, found := match.New(s.MatchConstraints, resource.TargetsOf(s.TargetRefs), spec.Child("matchConstraints"))
	p := &Policy{name: s.Name, match: matcher, actions: s.Actions, allowed: s.AllowedKeyPrefixes}
	p.rules = match.IndexRules(s.MatchConstraints)
	if s.MatchConstraints == nil {
		p.rules = []admission.Rule{{Group: "*", Resource: "*", Operations: admission.AllOperations}}
	}
	compiler := cel.NewAdmissionCompiler(false)
	for i, c := range s.MatchConditions {
		if c.Expression == "" {
			continue // which was found before
		}
		program, err := compiler.MatchCondition(c.Expression)
		if err != nil {
			found = append(found, field.Invalid(spec.Child("matchConditions").Index(i).Child("expression"),
				c.Expression, err.Error()))
		}
		p.conditions = append(p.conditions, program)
	}
	if errs = append(errs, found...); len(errs) > 0 {
		return nil, errs
	}
	return p, nil
}

// Programs are all expressions of the policy.
func (p *Policy) Programs() []*cel.Program { return p.conditions }

// Name implements admission.Policy.
func (p *Policy) Name() string { return p.name }

// Rules implements admission.Policy.
func (p *Policy) Rules() []admission.Rule { return p.rules }

// FailurePolicy implements admission.Policy.
func (p *Policy) FailurePolicy() admission.FailurePolicy { return admission.Fail }

// Excludes implements admission.Narrower.
func (p *Policy) Excludes(i *resource.Info, o admission.Operation) bool {
	return !looksAt(i, o) || p.match.Excludes(i, o)
}

// References implements admission.Referrer.
func (p *Policy) References() admission.References { return p.match.References() }

// NeedsOld implements admission.Policy. The stored object is only needed if it makes a difference.
func (p *Policy) NeedsOld() bool { return false }

// Applicabilities implements admission.Explainer.
func (p *Policy) Applicabilities(a *admission.Attributes) []resource.Applicability {
	o := resource.Applicability{Kind: "ConventionPolicy", Name: p.name, Applies: resource.Always}
	return []resource.Applicability{match.ConditionsApplicability(len(p.conditions), p.match.Applicability(a, o))}
}

// Applicabilities says of each policy whether it matches a request that has no object yet.
func (p *Policies) Applicabilities(a *admission.Attributes) []resource.Applicability {
	if p == nil {
		return nil
	}
	all := p.selection.Applicabilities(a)
	if !looksAt(a.Info, a.Operation) {
		for i, o := range all {
			all[i] = o.Unless("conventions are about objects that are created or updated, and their status")
		}
	}
	return all
}

// matches reports whether the policy matches the request. A match condition that cannot be
// evaluated counts as true: a rule is rather applied once too often. The error is the answer to the
// request.
func (p *Policy) matches(ctx context.Context, a *admission.Attributes) (bool, error) {
	if _, ok, err := p.match.Matches(ctx, a); !ok || err != nil {
		return false, err
	}
	if len(p.conditions) == 0 {
		return true, nil
	}
	vars := a.Bind()
	a.Frame.SetBudget(cel.MatchConditionsBudget)
	for _, c := range p.conditions {
		if ok, err := c.EvalBool(a.Frame, vars); err == nil && !ok {
			return false, nil
		} else if cel.IsSkip(err) {
			return false, err
		}
	}
	return true, nil
}

// Policies are the ConventionPolicies of a set. It is immutable and safe for concurrent use; nil
// Policies are empty.
type Policies struct {
	all       []*Policy
	selection *admission.Selection[*Policy]
}

// All returns the policies. The answer must not be changed.
func (p *Policies) All() []*Policy {
	if p == nil {
		return nil
	}
	return p.all
}

// New makes the policies of a set, in any order; nil for none.
func New(policies []*Policy) *Policies {
	if len(policies) == 0 {
		return nil
	}
	return &Policies{policies, admission.NewSelection(policies)}
}

// Concern reports whether a policy may concern the request: only objects of a resource and their
// status are looked at.
func (p *Policies) Concern(i *resource.Info, o admission.Operation) bool {
	if p == nil || !looksAt(i, o) {
		return false
	}
	return isAny(p.selection.For(i, o), i, o)
}

// isAny reports whether any of some policies may match the request.
func isAny(policies iter.Seq[*Policy], i *resource.Info, o admission.Operation) bool {
	for p := range policies {
		if !p.match.Excludes(i, o) {
			return true
		}
	}
	return false
}

func looksAt(i *resource.Info, o admission.Operation) bool {
	return o&(admission.Create|admission.Update) != 0 && (i.Subresource == "" || i.Subresource == "status")
}

// stand returns how the policy stands to the request. Terms that fail hold nothing back.
func (p *Policy) stand(ctx context.Context, a *admission.Attributes) (s admission.Standing) {
	if p.terms == nil {
		return s
	}
	defer func() {
		if recover() != nil {
			s = admission.Standing{}
		}
	}()
	return p.terms.Stand(ctx, a)
}

// Check compares the object of the request with the rules of the policies that match it. The error
// is the answer to the request if a policy cannot decide if it matches.
func (p *Policies) Check(ctx context.Context, a *admission.Attributes, o Object) (Result, error) {
	return check(ctx, p.selection.For(a.Info, a.Operation), a, o)
}

// check does the same for some policies.
func check(ctx context.Context, policies iter.Seq[*Policy], a *admission.Attributes, o Object) (Result, error) {
	c := checker{Object: o, attributes: a}
	for policy := range policies {
		ok, err := policy.matches(ctx, a)
		if err != nil {
			return Result{}, err
		}
		if ok {
			c.add(policy, policy.stand(ctx, a))
		}
	}
	result := c.check()
	result.DryRuns, result.Excepted = c.dryRuns, c.excepted
	return result, nil
}

// ResourcePolicies has the policies that may match operations on one resource or subresource: what Policies
// has for them, found once. The requests that it is asked about must have the group, version, resource
// and subresource of the Info that it was made for. It is immutable and safe for concurrent use; the
// nil Scoped has no policies.
type ResourcePolicies struct{ selected *admission.Selected[*Policy] }

// For returns the policies for the resource or subresource of a request; nil if there are none.
func (p *Policies) For(i *resource.Info) *ResourcePolicies {
	if p == nil || !looksAt(i, admission.Create) {
		return nil
	}
	selected := p.selection.Scope(i)
	if selected == nil {
		return nil
	}
	return &ResourcePolicies{selected}
}

// Concern reports whether a policy may match the request, as [Policies.Concern] does.
func (s *ResourcePolicies) Concern(i *resource.Info, o admission.Operation) bool {
	return s != nil && looksAt(i, o) && isAny(s.selected.For(i, o), i, o)
}

// Check compares the object of the request with the rules of the policies that match it, as [Policies.Check] does.
func (s *ResourcePolicies) Check(ctx context.Context, a *admission.Attributes, o Object) (Result, error) {
	if s == nil {
		return Result{}, nil
	}
	return check(ctx, s.selected.For(a.Info, a.Operation), a, o)
}
