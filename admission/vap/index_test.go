package vap

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/admission"
)

// TestBindingsAreIndexed: a chain, which finds policies by what their bindings select too, denies what each policy
// denies.
func TestBindingsAreIndexed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	denied, passed, always := 0, 0, 0
	for range 300 {
		p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
		p.Spec.MatchConstraints = &admissionv1.MatchResources{
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{"*"},
				Rule: admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"},
					Resources: []string{"deployments"}},
			}}}}
		p.Spec.Validations = []admissionv1.Validation{{Expression: "false", Message: "no"}}
		selector := func(most int, key string, values ...string) *metav1.LabelSelector {
			switch r.IntN(most) {
			case 0:
				return &metav1.LabelSelector{MatchLabels: map[string]string{key: pick(values...)}}
			case 1:
				return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
					Key: key, Operator: pick2(r, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn),
					Values: []string{pick(values...)},
				}}}
			}
			return nil
		}
		p.Spec.MatchConstraints.ObjectSelector = selector(8, "app", "web", "db")
		var bindings []*Binding
		for i := range 1 + r.IntN(3) {
			b, errs := CompileBinding(&admissionv1.ValidatingAdmissionPolicyBinding{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("b", i)},
				Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
					PolicyName: "p", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
					MatchResources: &admissionv1.MatchResources{
						NamespaceSelector: selector(3, "kubernetes.io/metadata.name", "team-a", "team-b"),
						ObjectSelector:    selector(4, "app", "web", "db"),
					},
				},
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
		for _, object := range []string{`{}`, `{"metadata":{"labels":{"app":"web"}}}`,
			`{"metadata":{"labels":{"app":"db"}}}`} {
			a := post(t, object)
			alone := &admission.Report{}
			a.Bind()
			if err := compiled.Validate(context.Background(), a, alone); err != nil {
				t.Fatal(err)
			}
			want, got := denials(alone), denials(run(t, a, compiled))
			if !slices.Equal(got, want) {
				t.Fatalf("%s by %+v: denied %v by the chain, and %v by the policy", object, compiled.Rules(), got, want)
			}
			scoped := &admission.Report{}
			admission.NewChain(nil, []admission.Validator{compiled}).For(a.Info).Validate(context.Background(), a,
				scoped)
			if got := denials(scoped); !slices.Equal(got, want) {
				t.Fatalf("%s by %+v: denied %v by the chain of the resource, and %v by the policy", object,
					compiled.Rules(), got, want)
			}
			if a.IsMatched() {
				t.Fatal("what is known of one policy is left to the next")
			}
			if compiled.AlwaysMatches(a.Info, a.Operation) {
				always++
			}
			if len(want) > 0 {
				denied++
			} else {
				passed++
			}
		}
	}
	if denied < 100 || passed < 100 || always < 20 {
		t.Errorf("the cases are poor: %d are denied, %d pass, %d are of policies that always match", denied, passed, always)
	}
}

func pick2[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }
