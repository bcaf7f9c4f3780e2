package conventions

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/internal/resource"
)

// TestIndex: the policies that check a request are those that a look at each finds.
func TestIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
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
	var all []*Policy
	for i := range r.IntN(12) {
		s := &Spec{Name: fmt.Sprintf("p%02d", i)}
		if r.IntN(5) > 0 {
			s.MatchConstraints = &admissionv1.MatchResources{}
			for range r.IntN(3) {
				s.MatchConstraints.ResourceRules = append(s.MatchConstraints.ResourceRules,
					admissionv1.NamedRuleWithOperations{
						RuleWithOperations: admissionv1.RuleWithOperations{
							Operations: []admissionv1.OperationType{
								admissionv1.OperationType(pick("*", "CREATE", "UPDATE"))},
							Rule: admissionv1.Rule{
								APIGroups:   []string{pick("", "*", "apps")},
								APIVersions: []string{pick("v1", "*", "v2")},
								Resources:   []string{pick("pods", "*", "pods/status", "*/*", "jobs")},
							},
						},
					})
			}
			if r.IntN(3) == 0 {
				s.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{
					MatchLabels: map[string]string{"kubernetes.io/metadata.name": pick("team-a", "team-b")}}
			}
		}
		p, errs := Compile(s)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		all = append(all, p)
	}
	policies := New(all)
	for range 10 {
		i := &resource.Info{
			IsResource: true, Verb: resource.VerbUpdate, Version: "v1", Group: pick("", "apps"),
			Resource: pick("pods", "jobs"), Subresource: pick("", "", "status", "scale"),
			Namespace: pick("team-a", ""), Name: "web",
		}
		a := &admission.Attributes{Info: i, Operation: admission.Update,
			Object: admissiontest.Parse("{metadata: {name: web}}")}
		var want []*Policy
		for _, p := range all {
			if ok, err := p.matches(context.Background(), a); ok && err == nil && looksAt(i, a.Operation) {
				want = append(want, p)
			}
		}
		other := *i
		other.Namespace, other.Name = "team-x", "x"
		scoped := policies.For(&other)
		concerned := policies.Concern(i, a.Operation)
		if got := scoped.Concern(i, a.Operation); got != concerned || !got && len(want) > 0 {
			t.Fatalf("%+v: concerned %v, in its scope %v, and %d match", i, concerned, got, len(want))
		}
		if scoped == nil {
			continue
		}
		var found []*Policy
		for p := range scoped.selected.For(i, a.Operation) {
			if ok, err := p.matches(context.Background(), a); ok && err == nil {
				found = append(found, p)
			}
		}
		if !slices.Equal(found, want) {
			t.Fatalf("%+v: %d policies are found, and %d match", i, len(found), len(want))
		}
	}
}
