package policies

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/admission/conventions"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/rollout"
	"github.com/admission-gateway/gateway/policies/applicability"
	"github.com/admission-gateway/gateway/policies/reuse"
)

// ConventionPolicy checks objects against rules of the API conventions. Its definition,
// crds/conventionpolicies.yaml, says what the fields mean and may hold.
type ConventionPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ConventionPolicySpec `json:"spec"`
}

// ConventionPolicySpec says which rules hold, and for what.
type ConventionPolicySpec struct {
	MatchConstraints   *admissionv1.MatchResources  `json:"matchConstraints"`
	MatchConditions    []admissionv1.MatchCondition `json:"matchConditions"`
	Checks             ConventionChecks             `json:"checks"`
	AllowedKeyPrefixes []string                     `json:"allowedKeyPrefixes"`
	TargetRefs         []resource.TargetRef         `json:"targetRefs"`
	Rollout            *rollout.Spec                `json:"rollout"`
}

// conventionPolicies are the ConventionPolicies of the files.
type conventionPolicies struct{ all []loadedConvention }

// loadedConvention is a ConventionPolicy and its source.
type loadedConvention struct {
	from    *manifest.Object
	rollout *rollout.Spec
	policy  *conventions.Policy
}

// ConventionChecks says what becomes of a request that breaks a rule.
type ConventionChecks struct {
	Conditions      string `json:"conditions"`
	TopLevelFields  string `json:"topLevelFields"`
	ReservedKeys    string `json:"reservedKeys"`
	FractionsInSpec string `json:"fractionsInSpec"`
	UnsafeIntegers  string `json:"unsafeIntegers"`
	Dates           string `json:"dates"`
	ReservedNames   string `json:"reservedNames"`
}

func (c *conventionPolicies) take(l *loader, o *manifest.Object, p *ConventionPolicy) {
	spec := &conventions.Spec{
		Name: p.Name, MatchConstraints: p.Spec.MatchConstraints, MatchConditions: p.Spec.MatchConditions,
		AllowedKeyPrefixes: p.Spec.AllowedKeyPrefixes,
		TargetRefs:         p.Spec.TargetRefs,
	}
	l.useTargets(o, p.Spec.TargetRefs)
	on := false
	for check, action := range map[conventions.Check]string{
		conventions.Conditions:      p.Spec.Checks.Conditions,
		conventions.TopLevelFields:  p.Spec.Checks.TopLevelFields,
		conventions.ReservedKeys:    p.Spec.Checks.ReservedKeys,
		conventions.FractionsInSpec: p.Spec.Checks.FractionsInSpec,
		conventions.UnsafeIntegers:  p.Spec.Checks.UnsafeIntegers,
		conventions.Dates:           p.Spec.Checks.Dates,
		conventions.ReservedNames:   p.Spec.Checks.ReservedNames,
	} {
		switch action {
		case "Warn":
			spec.Actions[check] = conventions.Warn
		case "Deny":
			spec.Actions[check] = conventions.Deny
		}
		on = on || spec.Actions[check] != conventions.Off
	}
	compiled := reuse.OfObject(l.kept, &l.findings, o, "policy", nil, func(f *findings) *conventions.Policy {
		compiled, errs := conventions.Compile(spec)
		f.Fields(o, Error, errs)
		return compiled
	})
	if !l.mayBeUnused(o) {
		l.Found = append(l.Found,
			applicability.CanMatchWrites(o, "a convention is about objects that are created or updated")...)
	}
	switch {
	case !on:
		l.At(o, Warning, "spec.checks", "every check is 'Off', so that the policy does nothing")
	case compiled != nil:
		l.plans.note(o, compiled.Programs())
		l.failing(o, compiled.Programs())
		l.reads.expressions(o, compiled.Programs())
		c.all = append(c.all, loadedConvention{o, p.Spec.Rollout, compiled})
	}
}

// compile implements compiler.
func (c *conventionPolicies) compile(l *loader) {
	checks := make([]*conventions.Policy, len(c.all))
	for i, one := range c.all {
		checks[i] = one.policy.Governed(l.terms.Terms(one.from, one.rollout))
		l.matched.rules(one.policy.Rules())
	}
	l.set.conventions = conventions.New(checks)
}
