package policy

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/match"
	"github.com/admission-gateway/gateway/admission/params"
	"github.com/admission-gateway/gateway/admission/typecheck"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/resource"
)

// A Spec is the part of a definition that all kinds of policies have.
type Spec struct {
	Name             string
	FailurePolicy    *admissionv1.FailurePolicyType
	ParamKind        *admissionv1.ParamKind
	FindsKind        bool // no file provides the kind of the parameters
	MatchConstraints *admissionv1.MatchResources
	MatchConditions  []admissionv1.MatchCondition
	Variables        []admissionv1.Variable
	// TargetRefs are the field of the gateway's own kinds, Annotations have it of Kubernetes' kinds.
	TargetRefs  []resource.TargetRef
	Annotations map[string]string
}

// Review begins the check of a policy's expressions against the schemas of the
// resources that it matches. The expressions of the kind are to be added.
func (s *Spec) Review(states []string) *typecheck.Policy {
	return &typecheck.Policy{
		Match: s.MatchConstraints, ParamKind: s.ParamKind, Conditions: s.MatchConditions, Variables: s.Variables,
		States:  states,
		Ignores: s.FailurePolicy != nil && *s.FailurePolicy == admissionv1.Ignore,
	}
}

// Expressions compiles expressions that all kinds of policies have.
type Expressions interface {
	DeclareState(names []string)
	MatchCondition(expression string) (*cel.Program, error)
	Variable(name, expression string) error
	Variables() *cel.Variables
}

// A Compiler compiles a policy, all of its expressions, so that every finding is
// reported.
type Compiler struct {
	Errs   field.ErrorList
	policy *Policy
	spec   *Spec
	cel    Expressions
}

// NewCompiler begins the compilation of a policy into p. Expressions see the
// states, which are the names of the collections in the variable state.
func NewCompiler(k *Kind, p *Policy, s *Spec, expressions Expressions, states []string) Compiler {
	*p = Policy{kind: k, name: s.Name}
	if s.FailurePolicy != nil && *s.FailurePolicy == admissionv1.Ignore {
		p.failure = admission.Ignore
	}
	p.params, _ = params.Kind(s.ParamKind)
	p.findsKind = s.FindsKind && !p.params.Empty()
	expressions.DeclareState(states)
	return Compiler{policy: p, spec: s, cel: expressions}
}

// Constraints compiles the matchConstraints.
func (c *Compiler) Constraints() {
	path := field.NewPath("spec", "matchConstraints")
	targets, errs := targetsOf(c.spec.TargetRefs, c.spec.Annotations)
	c.Errs = append(c.Errs, errs...)
	matcher, errs := match.New(c.spec.MatchConstraints, targets, path)
	c.Errs = append(c.Errs, errs...)
	c.policy.match, c.policy.needs.old = matcher, matcher.SelectsObjects()
	c.policy.rules = match.IndexRules(c.spec.MatchConstraints)
	for i := range c.policy.rules {
		c.policy.rules[i].Operations &= c.policy.kind.Operations
	}
}

// targetsOf are the objects of Gateway API that a policy or binding names.
func targetsOf(refs []resource.TargetRef, annotations map[string]string) ([]resource.Target, field.ErrorList) {
	if len(refs) > 0 {
		return resource.TargetsOf(refs), nil
	}
	return match.TargetsIn(annotations)
}

// Conditions compiles the match conditions, which do not see namespaceObject.
func (c *Compiler) Conditions() {
	path, namespace := field.NewPath("spec", "matchConditions"), c.policy.needs.namespace
	for i, condition := range c.spec.MatchConditions {
		p := c.Program(c.cel.MatchCondition, condition.Expression, path.Index(i).Child("expression"))
		c.policy.conditions = append(c.policy.conditions, p)
	}
	c.policy.needs.namespace = namespace
}

// Variables compiles the variables.
func (c *Compiler) Variables() {
	path := field.NewPath("spec", "variables")
	for i, variable := range c.spec.Variables {
		if strings.TrimSpace(variable.Expression) == "" {
			continue
		}
		if err := c.cel.Variable(variable.Name, variable.Expression); err != nil {
			c.refuse(path.Index(i).Child("expression"), variable.Expression, err)
		}
	}
	if c.policy.variables = c.cel.Variables(); c.policy.variables == nil {
		return
	}
	for _, p := range c.policy.variables.Programs() {
		c.use(p)
	}
}

// Program compiles an expression. Validation has reported one that is not there,
// for which it returns nil.
func (c *Compiler) Program(compile func(string) (*cel.Program, error), expression string,
	fldPath *field.Path) *cel.Program {
	if strings.TrimSpace(expression) == "" {
		return nil
	}
	p, err := compile(expression)
	if err != nil {
		c.refuse(fldPath, expression, err)
		return nil
	}
	c.use(p)
	return p
}

func (c *Compiler) refuse(fldPath *field.Path, expression string, err error) {
	c.Errs = append(c.Errs, field.Invalid(fldPath, expression, err.Error()))
}

// use notes what a compiled expression reads.
func (c *Compiler) use(p *cel.Program) {
	c.policy.needs.old = c.policy.needs.old || p.Uses(value.OldObject)
	c.policy.needs.namespace = c.policy.needs.namespace || p.Uses(value.NamespaceObject)
	c.policy.needs.carried = c.policy.needs.carried || p.ReadsCarried()
}

// A BindingSpec is the part of a definition that all kinds of bindings have.
type BindingSpec struct {
	Name           string
	PolicyName     string
	ParamRef       *admissionv1.ParamRef
	MatchResources *admissionv1.MatchResources
	Annotations    map[string]string
}

// CompileBinding compiles a binding that was validated: errs were found then. With findings it
// returns nil.
func CompileBinding(s *BindingSpec, errs field.ErrorList) (*Binding, field.ErrorList) {
	spec := field.NewPath("spec")
	targets, targetErrs := targetsOf(nil, s.Annotations)
	matcher, matchErrs := match.New(s.MatchResources, targets, spec.Child("matchResources"))
	ref, refErrs := params.Compile(s.ParamRef, spec.Child("paramRef"))
	if errs = slices.Concat(errs, targetErrs, matchErrs, refErrs); len(errs) > 0 {
		return nil, errs
	}
	b := &Binding{name: s.Name, policy: s.PolicyName, match: matcher, params: ref}
	if s.MatchResources != nil {
		b.namespaces, b.labels = match.NamesOf(s.MatchResources.NamespaceSelector),
			match.LabelsOf(s.MatchResources.ObjectSelector)
	}
	return b, nil
}
