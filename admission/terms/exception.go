package terms

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/match"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/rollout"
)

// A PolicyException lets requests pass that policies would refuse. Its definition,
// policies/crds/policyexceptions.yaml, says what the fields mean and may hold.
type PolicyException struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              PolicyExceptionSpec `json:"spec"`
}

// PolicyExceptionSpec says which policies are not asked about which requests, why, and how long.
type PolicyExceptionSpec struct {
	Policies         []PolicyRef                  `json:"policies"`
	MatchConstraints *admissionv1.MatchResources  `json:"matchConstraints"`
	MatchConditions  []admissionv1.MatchCondition `json:"matchConditions"`
	TargetRefs       []resource.TargetRef         `json:"targetRefs"`
	Reason           string                       `json:"reason"`
	Expires          string                       `json:"expires"`
}

// PolicyRef names policies of one kind.
type PolicyRef struct {
	Kind  string   `json:"kind"`
	Names []string `json:"names"`
}

// An Exception is a compiled PolicyException. It is immutable, but for its count, and safe for
// concurrent use.
type Exception struct {
	name, reason string
	from         string   // the folder with an owner that it comes from, if any
	policies     []string // by kind and name
	expires      time.Time
	match        *match.Matcher
	rules        []admission.Rule
	conditions   match.Conditions
	needsOld     bool
	used         atomic.Int64
}

// Compile checks and compiles an exception. Findings have paths such as spec.expires; with any, the
// Exception is nil.
func Compile(p *PolicyException) (*Exception, field.ErrorList) {
	spec := field.NewPath("spec")
	e := &Exception{name: p.Name, reason: p.Spec.Reason}
	errs := match.Validate(p.Spec.MatchConstraints, spec.Child("matchConstraints"))
	errs = append(errs, match.ValidateConditions(p.Spec.MatchConditions, spec.Child("matchConditions"))...)
	matcher, found := match.New(p.Spec.MatchConstraints, resource.TargetsOf(p.Spec.TargetRefs),
		spec.Child("matchConstraints"))
	e.match, errs = matcher, append(errs, found...)
	e.rules = match.IndexRules(p.Spec.MatchConstraints)
	if strings.TrimSpace(p.Spec.Reason) == "" {
		errs = append(errs, field.Required(spec.Child("reason"), "must say why the requests may pass"))
	}
	if p.Spec.Expires != "" {
		var err error
		if e.expires, err = rollout.Time(p.Spec.Expires); err != nil {
			errs = append(errs, field.Invalid(spec.Child("expires"), p.Spec.Expires, err.Error()))
		}
	}
	compiler := cel.NewAdmissionCompiler(false)
	for i, c := range p.Spec.MatchConditions {
		if strings.TrimSpace(c.Expression) == "" {
			continue // which was found before
		}
		program, err := compiler.MatchCondition(c.Expression)
		if err != nil {
			errs = append(errs, field.Invalid(spec.Child("matchConditions").Index(i).Child("expression"), c.Expression,
				err.Error()))
			continue
		}
		e.conditions = append(e.conditions, program)
		e.needsOld = e.needsOld || program.Uses(value.OldObject) || program.ReadsCarried()
	}
	for _, ref := range p.Spec.Policies {
		for _, name := range ref.Names {
			e.policies = append(e.policies, named(ref.Kind, name))
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	e.needsOld = e.needsOld || matcher.SelectsObjects()
	return e, nil
}

// SetFrom says which folder of an owner the exception comes from. It is called before the exception is in use.
func (e *Exception) SetFrom(folder string) { e.from = folder }

// Name is the name of the exception.
func (e *Exception) Name() string { return e.name }

// Rules implements admission.Policy: under them a policy's terms find the exception.
func (e *Exception) Rules() []admission.Rule { return e.rules }

// FailurePolicy implements admission.Policy. An exception that fails excepts nothing.
func (e *Exception) FailurePolicy() admission.FailurePolicy { return admission.Ignore }

// NeedsOld implements admission.Policy.
func (e *Exception) NeedsOld() bool { return e.needsOld }

// References implements admission.Referrer.
func (e *Exception) References() admission.References {
	return admission.References{Namespaces: e.match.References().Namespaces}
}

// Reason is why there is the exception.
func (e *Exception) Reason() string { return e.reason }

// Expires is when the exception ends; zero for never.
func (e *Exception) Expires() time.Time { return e.expires }

// Policies are the policies that it names, by kind and name.
func (e *Exception) Policies() []string { return e.policies }

// Programs are all expressions of the exception.
func (e *Exception) Programs() []*cel.Program { return e.conditions }

// Used is how often a policy was not asked because of the exception.
func (e *Exception) Used() int64 { return e.used.Load() }

// Names reports whether the exception names a policy.
func (e *Exception) Names(kind, name string) bool {
	return slices.Contains(e.policies, named(kind, name))
}

// IsOver reports whether the exception has ended at a time.
func (e *Exception) IsOver(at time.Time) bool { return !e.expires.IsZero() && !at.Before(e.expires) }

// excepts reports whether the exception matches the request. One that cannot decide does not.
func (e *Exception) excepts(ctx context.Context, a *admission.Attributes) bool {
	if e.IsOver(a.Time()) || e.match.IsTargeted() && a.Info.Place == nil {
		return false
	}
	as, matches, err := e.match.Matches(ctx, withoutOld(a))
	if err != nil || !matches {
		return false
	}
	if len(e.conditions) == 0 {
		return true
	}
	vars := a.Bind()
	defer a.Bind()
	if as != a.Info.GroupVersionResource() {
		if _, err := a.BindAs(as); err != nil {
			return false
		}
	}
	matches, err = e.conditions.Match(a.Frame, vars)
	return err == nil && matches
}

// withoutOld returns the attributes without the stored object, unless there is no other. A policy
// matches an object if either of its two versions has the labels, so that no client escapes it by a
// change of labels. An exception matches only objects that have its labels from now on.
func withoutOld(a *admission.Attributes) *admission.Attributes {
	if a.Object == nil || a.Old == nil {
		return a
	}
	alone := *a
	alone.Old = nil
	return &alone
}

// applicability adds to the applicability of a policy whether the exception may match the request.
func (e *Exception) applicability(a *admission.Attributes, o resource.Applicability) resource.Applicability {
	if o.Applies == resource.Never || e.IsOver(a.Time()) {
		return o
	}
	own := match.ConditionsApplicability(len(e.conditions),
		e.match.Applicability(a, resource.Applicability{Applies: resource.Always}))
	name := "the PolicyException '" + e.name + "'"
	if e.from != "" {
		name += " from " + e.from
	}
	if !e.expires.IsZero() {
		name += ", which ends at " + e.expires.Format(time.RFC3339) + ","
	}
	switch own.Applies {
	case resource.Never:
		return o
	case resource.Always:
		return o.Unless(name + " excepts the request: " + e.reason)
	}
	return o.If(name + " does not except the object")
}
