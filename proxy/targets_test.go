package proxy

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/routing"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// parcelRules match creates of parcels.
const parcelRules = `{resourceRules: [{apiGroups: [shop.example.com], apiVersions: [v1], operations: [CREATE], resources: [parcels]}]}`

// targetedKinds are a policy of each kind that can be about some routes alone. REFS stands for the references of the
// field, and LIST for those of the annotation.
var targetedKinds = map[string]string{
	"ValidatingAdmissionPolicy": `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p, annotations: {admission-gateway.io/target-refs: 'LIST'}}
spec: {matchConstraints: RULES, validations: [{expression: "false"}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: p}
spec: {policyName: p, validationActions: [Deny]}
`,
	"ValidatingAdmissionPolicyBinding": `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec: {matchConstraints: RULES, validations: [{expression: "false"}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: p, annotations: {admission-gateway.io/target-refs: 'LIST'}}
spec: {policyName: p, validationActions: [Deny]}
`,
	"MutatingAdmissionPolicy": `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: p, annotations: {admission-gateway.io/target-refs: 'LIST'}}
spec:
  matchConstraints: RULES
  reinvocationPolicy: Never
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: "add", path: "/spec/pieces", value: 7}]'}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: p}
spec: {policyName: p}
`,
	"MutatingAdmissionPolicyBinding": `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints: RULES
  reinvocationPolicy: Never
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: "add", path: "/spec/pieces", value: 7}]'}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: p, annotations: {admission-gateway.io/target-refs: 'LIST'}}
spec: {policyName: p}
`,
	"DefaultingPolicy": `apiVersion: admission-gateway.io/v1alpha1
kind: DefaultingPolicy
metadata: {name: p}
spec: {matchConstraints: RULES, defaults: [{field: spec.pieces, value: 7}], targetRefs: REFS}
`,
	"RegoPolicy": `apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: p}
spec:
  matchConstraints: RULES
  targetRefs: REFS
  rego: |
    package p
    deny contains "no" if true
`,
	"ConventionPolicy": `apiVersion: admission-gateway.io/v1alpha1
kind: ConventionPolicy
metadata: {name: p}
spec: {matchConstraints: RULES, checks: {reservedKeys: Deny}, targetRefs: REFS}
`,
	// The exception lets pass what the other policy refuses.
	"PolicyException": `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec: {matchConstraints: RULES, validations: [{expression: "false"}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: p}
spec: {policyName: p, validationActions: [Deny]}
---
apiVersion: admission-gateway.io/v1alpha1
kind: PolicyException
metadata: {name: e}
spec: {policies: [{kind: ValidatingAdmissionPolicy, names: [p]}], matchConstraints: RULES, reason: a test, targetRefs: REFS}
`,
}

// TestTargetedPolicies: a policy with references to objects of Gateway API is about the requests that come by them, and
// about no others: not by a route or Gateway of the same name in another namespace, another rule, or another kind of
// route.
func TestTargetedPolicies(t *testing.T) {
	parcels, err := os.ReadFile("testdata/policies/parcels.yaml")
	if err != nil {
		t.Fatal(err)
	}
	backend := serviceOf(t, "parcels", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.Copy(w, r.Body)
	})
	rule := func(kind, namespace, name, rule, path string) routing.Route {
		one := ruleOf(name, prefix(path), 0,
			routing.Filter{Rewrite: &routing.Rewrite{Path: &routing.PathEdit{IsPrefix: true, Value: "/v1"}}})
		one.Kind, one.Namespace, one.Rule = kind, namespace, rule
		return one
	}
	table := tableOf([]routing.Backend{backend},
		rule("HTTPRoute", "shop", "store", "0", "/shop"), rule("HTTPRoute", "shop", "store", "cart", "/cart"),
		rule("HTTPRoute", "other", "store", "0", "/other"), rule("GRPCRoute", "shop", "store", "0", "/grpc"))
	paths := []string{"/shop", "/cart", "/other", "/grpc"}
	const body = `{"apiVersion":"shop.example.com/v1","kind":"Parcel","metadata":{"name":"p1","labels":{"a.k8s.io/b":"c"}},"spec":{"weight":2}}`
	for kind, text := range targetedKinds {
		for _, c := range []struct{ kind, namespace, name, section, by string }{
			// by is where the policy is about requests
			{"HTTPRoute", "shop", "store", "", "/shop /cart"},
			{"HTTPRoute", "shop", "store", "cart", "/cart"},
			{"HTTPRoute", "other", "store", "", "/other"},
			{"HTTPRoute", "elsewhere", "store", "", ""},
			{"GRPCRoute", "shop", "store", "", "/grpc"},
			{"Gateway", "infra", "gateway", "", "/shop /cart /other /grpc"},
			{"Gateway", "infra", "gateway", "http", "/shop /cart /other /grpc"},
			{"Gateway", "infra", "gateway", "https", ""},
			{"Gateway", "shop", "gateway", "", ""},
		} {
			ref := fmt.Sprintf(`{"group":"gateway.networking.k8s.io","kind":%q,"namespace":%q,"name":%q`, c.kind,
				c.namespace, c.name)
			if c.section != "" {
				ref += fmt.Sprintf(`,"sectionName":%q`, c.section)
			}
			list := "[" + ref + "}]"
			set := policiestest.Load(t, string(parcels),
				strings.NewReplacer("LIST", list, "REFS", list, "RULES", parcelRules).Replace(text))
			g := newTabled(t, bare(t), table, func() *policies.Set { return set })
			address := serveTable(t, g)
			var by, forecast []string
			for _, path := range paths {
				a, err := http.Post("http://"+address+path+"/tenants/team-a/parcels", "application/json",
					strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				got, _ := io.ReadAll(a.Body)
				_ = a.Body.Close()
				isAsItCame := a.StatusCode == http.StatusCreated && !strings.Contains(string(got), `"pieces"`)
				if isAsItCame == (kind == "PolicyException") {
					by = append(by, path)
				}
				all := g.Forecast("POST " + path + "/tenants/team-a/parcels").Applicability
				for _, o := range slices.Concat(all.Validating, all.Mutating, all.Conventions) {
					if o.Applies != resource.Never {
						forecast = append(forecast, path)
					} else if kind == "PolicyException" {
						continue // the policy says which exception it is
					} else if text := fmt.Sprint(o); !strings.Contains(text,
						"no targetRef names the route or the listener") {
						t.Errorf("a %s is not about the request by %s, because of %s", kind, path, text)
					}
				}
			}
			if got := strings.Join(by, " "); got != c.by {
				t.Errorf("a %s for the %s %s/%s %s is about requests by %q, want %q", kind, c.kind, c.namespace, c.name,
					c.section, got, c.by)
			}
			if got := strings.Join(forecast, " "); kind != "PolicyException" && got != c.by {
				t.Errorf("a %s for the %s %s/%s %s is forecast for %q, want %q", kind, c.kind, c.namespace, c.name,
					c.section, got, c.by)
			}
		}
	}
}
