package match

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/internal/resource"
)

// TestApplicability: a policy that is said to match no request matches none, whatever the object is, and
// one that is said to match all matches each.
func TestApplicability(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	some := func(from ...string) (some []string) {
		for _, s := range from {
			if r.IntN(2) == 0 {
				some = append(some, s)
			}
		}
		return append(some, pick(from...))
	}
	rules := func(most int) (all []admissionv1.NamedRuleWithOperations) {
		for range r.IntN(most + 1) {
			one := admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
				Rule: admissionv1.Rule{
					APIGroups: some("*", "", "apps", "extensions"), APIVersions: some("*", "v1", "v1beta1"),
					Resources: some("*", "deployments", "deployments/status", "deployments/*", "pods"),
				},
			}}
			for _, o := range some("CREATE", "UPDATE", "DELETE") {
				one.Operations = append(one.Operations, admissionv1.OperationType(o))
			}
			scope := admissionv1.ScopeType(pick("*", "*", "Namespaced", "Cluster"))
			if one.Scope = &scope; r.IntN(3) == 0 {
				one.ResourceNames = []string{"web"}
			}
			all = append(all, one)
		}
		return all
	}
	selector := func(keys ...string) *metav1.LabelSelector {
		if r.IntN(2) == 0 {
			return nil
		}
		return &metav1.LabelSelector{MatchLabels: map[string]string{pick(keys...): pick("team-a", "team-b", "prod")}}
	}
	lookup := (&admissiontest.Lookup{}).Add("apiVersion: v1\nkind: Namespace\nmetadata: {name: team-a, labels: {tier: prod, kubernetes.io/metadata.name: team-a}}")
	seen := map[resource.Applies]int{}
	for range 6_000 {
		policy := admissionv1.MatchPolicyType(pick("Exact", "Equivalent"))
		constraints := &admissionv1.MatchResources{
			MatchPolicy: &policy, ResourceRules: rules(2), ExcludeResourceRules: rules(1),
			NamespaceSelector: selector("tier", "kubernetes.io/metadata.name"), ObjectSelector: selector("tier"),
		}
		m, errs := New(constraints, nil, nil)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		info := &resource.Info{
			IsResource: true, Group: pick("apps", "extensions", ""), Version: pick("v1", "v1beta1"),
			Resource:    pick("deployments", "pods"),
			Subresource: pick("", "", "status"), Namespace: pick("team-a", "team-a", ""), Name: pick("web", "api", ""),
		}
		operation := []admission.Operation{admission.Create, admission.Update, admission.Delete}[r.IntN(3)]
		collection := operation == admission.Delete && info.Name == ""
		if collection {
			info.Verb = resource.VerbDeleteCollection
		}
		o := m.Applicability(&admission.Attributes{Info: info, Operation: operation},
			resource.Applicability{Applies: resource.Always})
		seen[o.Applies]++
		if excluded := m.Excludes(info, operation); excluded != (o.Applies == resource.Never) {
			t.Fatalf("%s of %+v: excluded %v, and the applicability is %+v of %+v", operation, info, excluded, o,
				constraints)
		}
		if (o.Because == "") != (o.Applies == resource.Always) ||
			strings.HasPrefix(o.Because, "if ") != (o.Applies == resource.Sometimes) {
			t.Fatalf("the applicability is %+v", o)
		}
		for _, object := range []string{"{metadata: {name: web, labels: {tier: prod}}}",
			"{metadata: {name: api, labels: {tier: team-a}}}", "{}"} {
			info := *info
			if collection { // whose objects are judged one by one
				if info.Verb = resource.VerbDelete; m.namespaces.Empty() {
					info.Namespace = pick(info.Namespace, "team-a")
				}
			}
			a := &admission.Attributes{Info: &info, Operation: operation, Object: admissiontest.Parse(object),
				Lookup: lookup}
			_, matches, err := m.Matches(context.Background(), a)
			if err != nil {
				t.Fatal(err)
			}
			if field, because := m.Why(context.Background(), a); matches != (because == "") ||
				(because == "") != (field == "") {
				t.Fatalf("%s of %+v with %s: matches %v, because %q is so: %q", operation, info, object, matches, field,
					because)
			}
			if o.Applies == resource.Always && !matches || o.Applies == resource.Never && matches {
				t.Fatalf("%s of %+v with %s: matches %v, and the applicability is %+v of %+v", operation, info, object,
					matches, o, constraints)
			}
		}
	}
	for _, applies := range []resource.Applies{resource.Always, resource.Sometimes, resource.Never} {
		if seen[applies] < 150 {
			t.Errorf("only %d applicabilities are %s", seen[applies], applies)
		}
	}
}
