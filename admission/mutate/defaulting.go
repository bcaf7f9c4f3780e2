package mutate

import (
	"bytes"
	"encoding/json"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/policy"
	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/rollout"
	"github.com/admission-gateway/gateway/internal/status"
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
	TargetRefs       []resource.TargetRef          `json:"targetRefs"`
	Rollout          *rollout.Spec                 `json:"rollout"`
}

// A Default is one field with its value.
type Default struct {
	Field           string          `json:"field"`
	Value           json.RawMessage `json:"value"`
	ValueExpression string          `json:"valueExpression"`
	When            string          `json:"when"`
}

// Enabled reports whether the policy runs.
func (p *DefaultingPolicy) Enabled() bool { return p.Spec.Mode != "Disabled" }

// spec is the part of a policy that all kinds of policies have.
func (p *DefaultingPolicy) spec() *policy.Spec {
	s := &policy.Spec{Name: p.Name, MatchConstraints: p.Spec.MatchConstraints, MatchConditions: p.Spec.MatchConditions,
		TargetRefs: p.Spec.TargetRefs}
	if p.Spec.FailurePolicy != "" {
		s.FailurePolicy = &p.Spec.FailurePolicy
	}
	return s
}

// defaultingKind is the kind of the policies. They have no bindings.
var defaultingKind = policy.Kind{
	Name:          "DefaultingPolicy",
	Denied:        func(name, _ string) string { return status.DeniedByPolicy(name) },
	Misconfigured: metav1.StatusReasonForbidden,
	Operations:    kind.Operations,
	ValidateMatch: validateMatch,
}

// A Defaulting is a compiled DefaultingPolicy. It is immutable and safe for
// concurrent use.
type Defaulting struct {
	policy.Policy
	settings []Setting
}

// A Setting is a compiled Default.
type Setting struct {
	// Path names the field.
	Path *defaults.Path
	// Value is the value to set; nil if an expression says it.
	Value []byte
	// Kind is the kind of the expression's value if it is known when the policy is loaded, else
	// document.Invalid.
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
	c := defaultingCompiler{cel: cel.NewDefaultingCompiler(), policy: new(Defaulting)}
	spec := p.spec()
	c.Compiler = policy.NewCompiler(&defaultingKind, &c.policy.Policy, spec, c.cel, set.States)
	if c.Errs = defaultingKind.Validate(spec); len(c.Errs) == 0 {
		c.Constraints()
	}
	c.Conditions()
	for i := range p.Spec.Defaults {
		c.compile(&p.Spec.Defaults[i], field.NewPath("spec", "defaults").Index(i))
	}
	if len(c.Errs) > 0 {
		return nil, c.Errs
	}
	return c.policy, nil
}

// Governed returns the policy with terms, which shares with it all that is compiled.
func (p *Defaulting) Governed(t admission.Terms) *Defaulting {
	governed := *p
	governed.Policy = p.Policy.Governed(t)
	return &governed
}

type defaultingCompiler struct {
	policy.Compiler
	cel    *cel.DefaultingCompiler
	policy *Defaulting
}

func (c *defaultingCompiler) compile(d *Default, fldPath *field.Path) {
	s := Setting{path: fldPath.String()}
	var err error
	if s.Path, err = defaults.ParsePath(d.Field); err != nil {
		c.Errs = append(c.Errs, field.Invalid(fldPath.Child("field"), d.Field, err.Error()))
	}
	s.Value = bytes.TrimSpace(d.Value)
	if len(s.Value) == 0 || string(s.Value) == "null" {
		s.Value = nil
	}
	expression := strings.TrimSpace(d.ValueExpression) != ""
	switch {
	case expression && s.Value != nil:
		c.Errs = append(c.Errs, field.Forbidden(fldPath.Child("valueExpression"), "must not be set beside `value`"))
	case expression:
		s.expression = c.Program(func(text string) (p *cel.Program, err error) {
			p, s.Kind, err = c.cel.Value(text)
			return p, err
		}, d.ValueExpression, fldPath.Child("valueExpression"))
	case s.Value == nil:
		c.Errs = append(c.Errs, field.Required(fldPath.Child("value"),
			"must be set, other than to null, unless there is a `valueExpression`"))
	default:
		s.Kind = kindOf(s.Value)
	}
	if strings.TrimSpace(d.When) != "" {
		s.when = c.Program(c.cel.When, d.When, fldPath.Child("when"))
	}
	if s.Path != nil && s.Path.NamesItem() && s.Kind != document.Object && s.Kind != document.Invalid {
		c.Errs = append(c.Errs, field.Invalid(fldPath.Child("field"), d.Field,
			"must not name an item of a list: `value` is no object"))
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

// Programs are all expressions of the policy.
func (p *Defaulting) Programs() []*cel.Program {
	all := p.Policy.Programs()
	for i := range p.settings {
		for _, program := range []*cel.Program{p.settings[i].when, p.settings[i].expression} {
			if program != nil {
				all = append(all, program)
			}
		}
	}
	return all
}

// Stage implements admission.Mutator.
func (p *Defaulting) Stage() admission.Stage { return admission.StageDefaults }
