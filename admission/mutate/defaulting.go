package mutate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/match"
	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
)

// A DefaultingPolicy sets fields that objects leave unset. Its definition,
// policies/crds/defaultingpolicies.yaml, says what the fields mean and may hold.
type DefaultingPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              DefaultingPolicySpec `json:"spec"`
}

// DefaultingPolicySpec says which requests are concerned, and what is set.
type DefaultingPolicySpec struct {
	Mode             string                        `json:"mode"`
	FailurePolicy    admissionv1.FailurePolicyType `json:"failurePolicy"`
	MatchConstraints *admissionv1.MatchResources   `json:"matchConstraints"`
	MatchConditions  []admissionv1.MatchCondition  `json:"matchConditions"`
	Defaults         []Default                     `json:"defaults"`
}

// A Default is one field with its value.
type Default struct {
	Field           string          `json:"field"`
	Value           json.RawMessage `json:"value"`
	ValueExpression string          `json:"valueExpression"`
	When            string          `json:"when"`
}

// Enabled tells whether the policy runs.
func (p *DefaultingPolicy) Enabled() bool { return p.Spec.Mode != "Disabled" }

// A Defaulting is a compiled DefaultingPolicy. It is immutable and safe for
// concurrent use.
type Defaulting struct {
	name       string
	match      *match.Matcher
	failure    admission.FailurePolicy
	rules      []admission.Rule
	needs      needs
	conditions match.Conditions
	settings   []Setting
}

// A Setting is a compiled Default.
type Setting struct {
	// Path names the field.
	Path *defaults.Path
	// Value is what is set, nil where an expression says it.
	Value []byte
	// Kind is that of the expression's value as far as it is known when the policy
	// is loaded, else document.Invalid.
	Kind document.Kind

	path             string // in the policy
	expression, when *cel.Program
}

// Settings are the policy's defaults in their order. The slice must not be
// changed.
func (p *Defaulting) Settings() []Setting { return p.settings }

// CompileDefaulting checks and compiles a DefaultingPolicy. Findings have paths
// such as spec.defaults[0].valueExpression; with any, the Defaulting is nil.
func (set Compiler) CompileDefaulting(p *DefaultingPolicy) (*Defaulting, field.ErrorList) {
	spec, fldPath := &p.Spec, field.NewPath("spec")
	c := defaultingCompiler{cel: cel.NewDefaultingCompiler(), policy: &Defaulting{name: p.Name, failure: failurePolicy(&spec.FailurePolicy)}}
	c.cel.DeclareState(set.States)
	c.errs = append(c.errs, validateConstraints(spec.MatchConstraints, fldPath.Child("matchConstraints"))...)
	c.errs = append(c.errs, match.ValidateConditions(spec.MatchConditions, fldPath.Child("matchConditions"))...)
	if len(c.errs) == 0 {
		var errs field.ErrorList
		c.policy.match, errs = match.New(spec.MatchConstraints, fldPath.Child("matchConstraints"))
		c.errs = append(c.errs, errs...)
		c.policy.rules = mutable(match.IndexRules(spec.MatchConstraints))
	}
	for i, condition := range spec.MatchConditions {
		path := fldPath.Child("matchConditions").Index(i).Child("expression")
		c.policy.conditions = append(c.policy.conditions, c.program(c.cel.MatchCondition, condition.Expression, path))
	}
	c.policy.needs.namespace = false // match conditions do not see it
	for i := range spec.Defaults {
		c.compile(&spec.Defaults[i], fldPath.Child("defaults").Index(i))
	}
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	c.policy.needs.old = c.policy.needs.old || c.policy.match.SelectsObjects()
	return c.policy, nil
}

type defaultingCompiler struct {
	cel    *cel.DefaultingCompiler
	policy *Defaulting
	errs   field.ErrorList
}

func (c *defaultingCompiler) compile(d *Default, fldPath *field.Path) {
	s := Setting{path: fldPath.String()}
	var err error
	if s.Path, err = defaults.ParsePath(d.Field); err != nil {
		c.errs = append(c.errs, field.Invalid(fldPath.Child("field"), d.Field, err.Error()))
	}
	s.Value = bytes.TrimSpace(d.Value)
	if len(s.Value) == 0 || string(s.Value) == "null" {
		s.Value = nil
	}
	expression := strings.TrimSpace(d.ValueExpression) != ""
	switch {
	case expression && s.Value != nil:
		c.errs = append(c.errs, field.Forbidden(fldPath.Child("valueExpression"), "must not be set beside `value`"))
	case expression:
		s.expression = c.program(func(text string) (p *cel.Program, err error) {
			p, s.Kind, err = c.cel.Value(text)
			return p, err
		}, d.ValueExpression, fldPath.Child("valueExpression"))
	case s.Value == nil:
		c.errs = append(c.errs, field.Required(fldPath.Child("value"), "must be set, other than to null, unless there is a `valueExpression`"))
	default:
		s.Kind = kindOf(s.Value)
	}
	if strings.TrimSpace(d.When) != "" {
		s.when = c.program(c.cel.When, d.When, fldPath.Child("when"))
	}
	if s.Path != nil && s.Path.NamesItem() && s.Kind != document.Object && s.Kind != document.Invalid {
		c.errs = append(c.errs, field.Invalid(fldPath.Child("field"), d.Field, "must not name an item of a list: `value` is no object"))
	}
	c.policy.settings = append(c.policy.settings, s)
}

// kindOf is the kind of a JSON value.
func kindOf(raw []byte) document.Kind {
	d, err := document.Parse(raw, document.Limits{})
	if err != nil {
		return document.Invalid
	}
	defer d.Release()
	return d.Root().Kind()
}

func (c *defaultingCompiler) program(compile func(string) (*cel.Program, error), expression string, fldPath *field.Path) *cel.Program {
	p, err := compile(expression)
	if err != nil {
		c.errs = append(c.errs, field.Invalid(fldPath, expression, err.Error()))
		return nil
	}
	c.policy.needs.use(p)
	return p
}

// Programs are all expressions of the policy.
func (p *Defaulting) Programs() []*cel.Program {
	all := append([]*cel.Program{}, p.conditions...)
	for i := range p.settings {
		for _, program := range []*cel.Program{p.settings[i].when, p.settings[i].expression} {
			if program != nil {
				all = append(all, program)
			}
		}
	}
	return all
}

// Name implements admission.Policy.
func (p *Defaulting) Name() string { return p.name }

// Rules implements admission.Policy.
func (p *Defaulting) Rules() []admission.Rule { return p.rules }

// FailurePolicy implements admission.Policy.
func (p *Defaulting) FailurePolicy() admission.FailurePolicy { return p.failure }

// NeedsOld implements admission.Policy.
func (p *Defaulting) NeedsOld() bool { return p.needs.old }

// Stage implements admission.Mutator.
func (p *Defaulting) Stage() admission.Stage { return admission.StageDefaults }

// denial words a failure.
func (p *Defaulting) denial(reason metav1.StatusReason, err error) admission.Denial {
	return admission.Denial{
		Policy: p.name, Reason: reason, Type: causeInternal, Failed: true,
		Message: fmt.Sprintf("policy '%s' denied request: %v", p.name, err),
	}
}
