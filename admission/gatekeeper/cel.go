package gatekeeper

import (
	"context"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/admission/vap"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// celEngine checks constraints by the expressions of their template.
type celEngine struct {
	policy *vap.Policy
	old    bool // an expression of the template's reads oldObject
}

// reservedPrefix begins names that Gatekeeper keeps for itself.
const reservedPrefix = "gatekeeper_internal_"

// The variables that every template has.
const (
	anyObjectVariable = "anyObject"
	paramsVariable    = "params"
)

// given are the variables that Gatekeeper declares: the object, or the one that is deleted, and the
// parameters of the constraint.
var given = []admissionv1.Variable{
	{Name: anyObjectVariable, Expression: `has(request.operation) && request.operation == "DELETE" && object == null ? oldObject : object`},
	{Name: paramsVariable, Expression: "!has(params.spec) ? null : !has(params.spec.parameters) ? null: params.spec.parameters"},
}

// compileCEL compiles the source of the engine K8sNativeValidation.
func compileCEL(kind string, s *CELSource, path *field.Path) (*celEngine, field.ErrorList) {
	errs := checkNames(s, path)
	p := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(kind)},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: (*admissionv1.FailurePolicyType)(s.FailurePolicy),
			ParamKind:     &admissionv1.ParamKind{APIVersion: Group + "/" + Version, Kind: kind},
			MatchConstraints: &admissionv1.MatchResources{
				ResourceRules: []admissionv1.NamedRuleWithOperations{
					{RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{admissionv1.OperationAll},
						Rule: admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"},
							Resources: []string{"*/*"}, Scope: ptr.To(admissionv1.AllScopes)},
					}}}},
			Variables: append([]admissionv1.Variable{}, given...),
		},
	}
	for _, c := range s.MatchConditions {
		p.Spec.MatchConditions = append(p.Spec.MatchConditions,
			admissionv1.MatchCondition{Name: c.Name, Expression: c.Expression})
	}
	for _, v := range s.Variables {
		p.Spec.Variables = append(p.Spec.Variables, admissionv1.Variable{Name: v.Name, Expression: v.Expression})
	}
	for _, v := range s.Validations {
		p.Spec.Validations = append(p.Spec.Validations,
			admissionv1.Validation{Expression: v.Expression, Message: v.Message,
				MessageExpression: v.MessageExpression})
	}
	compiled, found := vap.Compiler{ComposedConditions: true}.Compile(p)
	for _, err := range found {
		err.Field = inSource(err.Field, path)
	}
	if errs = append(errs, found...); len(errs) > 0 {
		return nil, errs
	}
	if errs := s.checkParams(compiled, path); len(errs) > 0 {
		return nil, errs
	}
	return &celEngine{compiled, s.readsOld()}, nil
}

// checkParams refuses expressions that read the whole constraint as params. In Gatekeeper only variables
// see it; what else reads it fails there for every request.
func (s *CELSource) checkParams(compiled *vap.Policy, path *field.Path) (errs field.ErrorList) {
	reads := map[string]bool{}
	for _, p := range compiled.Programs() {
		reads[p.Source()] = reads[p.Source()] || p.Uses(value.Params)
	}
	refuse := func(path *field.Path, expression string) {
		if reads[expression] {
			errs = append(errs, field.Invalid(path, expression, "must not read `params`, which only variables see: `variables.params` has the parameters"))
		}
	}
	for i, c := range s.MatchConditions {
		refuse(path.Child("matchCondition").Index(i).Child("expression"), c.Expression)
	}
	for i, v := range s.Validations {
		refuse(path.Child("validations").Index(i).Child("expression"), v.Expression)
		refuse(path.Child("validations").Index(i).Child("messageExpression"), v.MessageExpression)
	}
	return errs
}

func checkNames(s *CELSource, path *field.Path) (errs field.ErrorList) {
	refuse := func(list string, i int, name string, isTaken bool) {
		if isTaken || strings.HasPrefix(name, reservedPrefix) {
			errs = append(errs, field.Invalid(path.Child(list).Index(i).Child("name"), name,
				"must not be a name that Gatekeeper keeps for itself"))
		}
	}
	for i, c := range s.MatchConditions {
		refuse("matchCondition", i, c.Name, false)
	}
	for i, v := range s.Variables {
		refuse("variables", i, v.Name, v.Name == anyObjectVariable || v.Name == paramsVariable)
	}
	return errs
}

// inSource gives a finding about a policy the path in the template's source.
func inSource(of string, path *field.Path) string {
	rest := strings.TrimPrefix(of, "spec.")
	rest = strings.Replace(rest, "matchConditions[", "matchCondition[", 1)
	if after, ok := strings.CutPrefix(rest, "variables["); ok {
		index, tail, _ := strings.Cut(after, "]")
		n := 0
		for _, digit := range index {
			n = 10*n + int(digit-'0')
		}
		return path.Child("variables").Index(max(n-len(given), 0)).String() + tail
	}
	return path.String() + "." + rest
}

// readsOld reports whether an expression names the stored object. That anyObject does matters for
// deletions alone.
func (s *CELSource) readsOld() bool {
	reads := false
	look := func(expression string) { reads = reads || strings.Contains(expression, oldObject) }
	for _, v := range s.Validations {
		look(v.Expression)
		look(v.MessageExpression)
	}
	for _, n := range append(append([]CELNamed{}, s.MatchConditions...), s.Variables...) {
		look(n.Expression)
	}
	return reads
}

func (e *celEngine) readsOld() bool       { return e.old }
func (e *celEngine) readsCarried() bool   { return e.policy.ReadsCarried() }
func (e *celEngine) readsNamespace() bool { return e.policy.NeedsNamespace() }
func (e *celEngine) readsInventory() bool { return false }

func (e *celEngine) language() string         { return celEngineName }
func (e *celEngine) programs() []*cel.Program { return e.policy.Programs() }
func (e *celEngine) modules() *rego.Program   { return nil }
func (e *celEngine) rule() *rego.Query        { return nil }

func (e *celEngine) find(ctx context.Context, q *request, c *Constraint) ([]violation, error) {
	unmet, err := e.policy.Find(ctx, q.attributes, c.object.Root(), q.report)
	if err != nil {
		return nil, err
	}
	found := make([]violation, len(unmet))
	for i, j := range unmet {
		found[i] = violation{message: strings.Clone(j.Message), field: j.Field, failed: j.Failed}
	}
	return found, nil
}
