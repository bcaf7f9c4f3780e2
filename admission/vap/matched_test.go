package vap

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/admission"
)

// TestMatchedPolicies: policies that are known to match a request report what they report if they are asked whether
// they match, and their expressions cost as much.
func TestMatchedPolicies(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 400 {
		compareMatched(t, r)
	}
}

// FuzzMatchedPolicies does the same.
func FuzzMatchedPolicies(f *testing.F) {
	for i := range uint64(8) {
		f.Add(i, i*i)
	}
	f.Fuzz(func(t *testing.T, one, other uint64) { compareMatched(t, rand.New(rand.NewPCG(one, other))) })
}

func compareMatched(t *testing.T, r *rand.Rand) {
	expressions := []string{
		"object.spec.n < 3", "object.spec.n < 3", "object.spec.n < 2", "object.spec.none < 2", "has(object.spec.n)",
		"!has(object.spec.none)",
		"object.spec.l.all(i, i < 3)", "object.spec.l.exists(i, i > 7)", "request.operation == 'CREATE'",
		"object.spec.l.map(i, i + 1).size() == 3",
	}
	var policies []admission.Validator
	for n := range 3 {
		p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", n)}}
		p.Spec.MatchConstraints = &admissionv1.MatchResources{
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{"*"},
				Rule: admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"},
					Resources: []string{"deployments"}},
			}}}}
		if r.IntN(3) == 0 {
			ignore := admissionv1.Ignore
			p.Spec.FailurePolicy = &ignore
		}
		if r.IntN(4) == 0 {
			p.Spec.MatchConditions = []admissionv1.MatchCondition{
				{Name: "c", Expression: expressions[r.IntN(len(expressions))]}}
		}
		if r.IntN(4) == 0 {
			p.Spec.Variables = []admissionv1.Variable{{Name: "n", Expression: "object.spec.n"}}
			expressions = append(expressions, "variables.n < 3", "variables.n < 2")
		}
		if r.IntN(4) == 0 {
			p.Spec.AuditAnnotations = []admissionv1.AuditAnnotation{
				{Key: "k", ValueExpression: "string(object.spec.n)"}}
		}
		for range 1 + r.IntN(4) {
			v := admissionv1.Validation{Expression: expressions[r.IntN(len(expressions))]}
			if r.IntN(3) == 0 {
				v.MessageExpression = "'n is ' + string(object.spec.n)"
			}
			p.Spec.Validations = append(p.Spec.Validations, v)
		}
		expressions = expressions[:10]
		var bindings []*Binding
		for i := range 1 + r.IntN(2) {
			b, errs := CompileBinding(&admissionv1.ValidatingAdmissionPolicyBinding{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("b", i)},
				Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: p.Name,
					ValidationActions: [][]admissionv1.ValidationAction{
						{admissionv1.Deny}, {admissionv1.Warn, admissionv1.Audit},
					}[r.IntN(2)]},
			})
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			bindings = append(bindings, b)
		}
		compiled, errs := Compile(p, bindings...)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		policies = append(policies, compiled)
	}
	a := post(t, `{"spec":{"n":2,"l":[0,1,2]}}`)
	chain := admission.NewChain(nil, policies)
	found := func(validate func(*admission.Report)) string {
		a.Frame.SetBudget(1 << 40)
		before, report := a.Frame.Spent(), &admission.Report{}
		validate(report)
		return fmt.Sprint(report.Denials(), report.Warnings(), report.IgnoredFailures(), report.AuditedFailures(),
			report.Annotations(), a.Frame.Spent()-before, a.Frame.Budget())
	}
	got := found(func(r *admission.Report) { chain.For(a.Info).Validate(context.Background(), a, r) })
	want := found(func(r *admission.Report) { chain.Validate(context.Background(), a, r) })
	if got != want {
		t.Fatalf("known to match\n%s\nasked whether they match\n%s", got, want)
	}
}
