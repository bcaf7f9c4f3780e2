package terms

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/admission"
)

// TestIndex: the exception that is found is the first of those that a look at each finds.
func TestIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		compareIndex(t, r)
	}
}

// FuzzIndex does the same.
func FuzzIndex(f *testing.F) {
	for i := range uint64(20) {
		f.Add(i, i*i)
	}
	f.Fuzz(func(t *testing.T, one, other uint64) { compareIndex(t, rand.New(rand.NewPCG(one, other))) })
}

func compareIndex(t *testing.T, r *rand.Rand) {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	var all []*Exception
	for i := range r.IntN(12) {
		p := &PolicyException{Spec: PolicyExceptionSpec{Reason: "legacy",
			MatchConstraints: &admissionv1.MatchResources{}}}
		p.Name = fmt.Sprintf("e%d", 20-i)
		for range r.IntN(3) {
			p.Spec.MatchConstraints.ResourceRules = append(p.Spec.MatchConstraints.ResourceRules,
				admissionv1.NamedRuleWithOperations{
					RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{
							admissionv1.OperationType(pick("*", "CREATE", "UPDATE", "DELETE"))},
						Rule: admissionv1.Rule{
							APIGroups: []string{pick("", "*", "apps")}, APIVersions: []string{pick("v1", "*", "v2")},
							Resources: []string{pick("pods", "*", "pods/status", "*/*", "jobs")},
						},
					},
				})
		}
		switch r.IntN(4) {
		case 0:
			p.Spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{
				MatchLabels: map[string]string{"kubernetes.io/metadata.name": pick("team-a", "team-b")}}
		case 1:
			p.Spec.MatchConstraints.ObjectSelector = &metav1.LabelSelector{
				MatchLabels: map[string]string{"legacy": pick("true", "false")}}
		}
		e, errs := Compile(p)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		all = append(all, e)
	}
	for range 10 {
		object := pick("", "{metadata: {name: web, labels: {legacy: 'true'}}, spec: {}}",
			"{metadata: {name: web}, spec: {}}")
		a := request(t, object, pick("{metadata: {name: web, labels: {legacy: 'false'}}, spec: {}}",
			"{metadata: {name: web}}"))
		a.Info.Resource, a.Info.Subresource, a.Info.Namespace = pick("pods", "jobs"), pick("", "", "status"),
			pick("team-a", "")
		a.Operation = []admission.Operation{admission.Create, admission.Update, admission.Delete}[r.IntN(3)]
		want := ""
		for _, e := range all {
			if want == "" && e.excepts(context.Background(), a) {
				want = e.name
			}
		}
		got := ""
		if terms := New(nil, all); terms != nil {
			got = terms.Stand(context.Background(), a).Exception
		}
		if got != want {
			t.Fatalf("%s of %+v: excepted by %q, want %q", a.Operation, a.Info, got, want)
		}
	}
}
