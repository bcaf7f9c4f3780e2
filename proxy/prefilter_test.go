package proxy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// TestPrefilter: the forecast of a request says which policies and limits it matches, and why it does
// not match the others.
func TestPrefilter(t *testing.T) {
	set := policiestest.Load(t, prefilteredPolicies)
	file := testutil.WriteFiles(t, map[string]string{"gateway.yaml": `
apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
upstreams:
- {name: cluster, endpoints: [http://127.0.0.1:1], dialect: Kubernetes}
- {name: shop, endpoints: [http://127.0.0.1:1/v2], dialect: Plain, undescribed: DenyWrites}
routes:
- {name: cluster, host: "", pathPrefix: /, upstream: cluster}
- {name: shop, host: shop.example.com, pathPrefix: /shop, stripPrefix: true, upstream: shop}
`}) + "/gateway.yaml"
	c, err := config.Load(file, config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	g := newTestGateway(t, c, func() *policies.Set { return set })
	for _, test := range []struct{ request, want string }{
		{"POST /apis/example.com/v1/namespaces/team-a/widgets", `
route cluster to cluster: create widgets.example.com
mutating DefaultingPolicy colour: Yes
validating ValidatingAdmissionPolicy deletions: No, no rule for the resource names the operation CREATE
validating ValidatingAdmissionPolicy sizes: Maybe, if its matchConditions hold
  binding everywhere: Yes
  binding team-b: No, namespaceSelector does not select the namespace 'team-a'
convention ConventionPolicy reserved: Yes
limit RateLimitPolicy per-client: Maybe, if the client is not exempt
limit RateLimitPolicy reads: No, it is not about the verb 'create'
idle ValidatingAdmissionPolicy unbound: No, no binding names it
idle DefaultingPolicy off: No, its mode is Disabled`},
		{"PUT /apis/example.com/v1/namespaces/team-a/widgets/w1", `
route cluster to cluster: update widgets.example.com
mutating DefaultingPolicy colour: Maybe, if the request creates the object
validating ValidatingAdmissionPolicy deletions: No, no rule for the resource names the operation UPDATE
validating ValidatingAdmissionPolicy sizes: Maybe, if its matchConditions hold
  binding everywhere: Yes
  binding team-b: No, namespaceSelector does not select the namespace 'team-a'
convention ConventionPolicy reserved: Yes
limit RateLimitPolicy per-client: Maybe, if the client is not exempt
limit RateLimitPolicy reads: No, it is not about the verb 'update'
idle ValidatingAdmissionPolicy unbound: No, no binding names it
idle DefaultingPolicy off: No, its mode is Disabled`},
		{"GET http://gateway.example.com/apis/example.com/v1/namespaces/team-a/widgets/w1", `
route cluster to cluster: get widgets.example.com
mutating DefaultingPolicy colour: No, the request writes nothing, and policies judge writes
validating ValidatingAdmissionPolicy deletions: No, the request writes nothing, and policies judge writes
validating ValidatingAdmissionPolicy sizes: No, the request writes nothing, and policies judge writes
convention ConventionPolicy reserved: No, the request writes nothing, and policies judge writes
limit RateLimitPolicy per-client: Maybe, if the client is not exempt
limit RateLimitPolicy reads: Yes
idle ValidatingAdmissionPolicy unbound: No, no binding names it
idle DefaultingPolicy off: No, its mode is Disabled`},
		{"DELETE http://shop.example.com/shop/carts/c1", `
route shop to shop: delete : refused: the path '/v2/carts/c1' is not described, and what is not described may only be read here`},
		{"GET http://shop.example.com/other", `
route cluster to cluster: get
mutating DefaultingPolicy colour: No, the request writes nothing, and policies judge writes
validating ValidatingAdmissionPolicy deletions: No, the request writes nothing, and policies judge writes
validating ValidatingAdmissionPolicy sizes: No, the request writes nothing, and policies judge writes
convention ConventionPolicy reserved: No, the request writes nothing, and policies judge writes
limit RateLimitPolicy per-client: Maybe, if the client is not exempt
limit RateLimitPolicy reads: Yes
idle ValidatingAdmissionPolicy unbound: No, no binding names it
idle DefaultingPolicy off: No, its mode is Disabled`},
		{"GET", `
route  to :  : refused: the request line must be a method, a target and a version, each divided by one space`},
		{"GET / HTTP/1.1\r\nHost: x", `
route  to :  : refused: the request must be a method and a path, in one line`},
		{"GET http://shop.example.com:80@x/", `
route  to :  : refused: the request target has a host that is not a valid host with an optional port`},
		{"GET /" + strings.Repeat("x", maxForecast), `
route  to :  : refused: the request target is too long`},
	} {
		if got := "\n" + shownForecast(g.Forecast(test.request)); got != test.want {
			t.Errorf("%.100s is forecast as%s\nwant%s", test.request, got, test.want)
		}
	}
}

func shownForecast(f Forecast) string {
	var b strings.Builder
	fmt.Fprintf(&b, "route %s to %s: %s %s", f.Place.Route, f.Place.Upstream, f.Info.Verb,
		strings.TrimSuffix(f.Info.GroupResource().String(), "."))
	if f.Refusal != nil {
		fmt.Fprintf(&b, ": refused: %v", f.Refusal)
	}
	list := func(what string, all []resource.Applicability) {
		for _, o := range all {
			because := ""
			if o.Because != "" {
				because = ", " + o.Because
			}
			fmt.Fprintf(&b, "\n%s %s: %s%s", what, strings.TrimSpace(o.Kind+" "+o.Name), o.Applies, because)
			for _, binding := range o.Bindings {
				fmt.Fprintf(&b, "\n  binding %s: %s", binding.Name, binding.Applies)
				if binding.Because != "" {
					b.WriteString(", " + binding.Because)
				}
			}
		}
	}
	list("mutating", f.Applicability.Mutating)
	list("validating", f.Applicability.Validating)
	list("convention", f.Applicability.Conventions)
	list("limit", f.Applicability.Limits)
	list("idle", f.Applicability.Unbound)
	return strings.ReplaceAll(b.String(), " \n", "\n")
}

const prefilteredPolicies = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, colour: {type: string}}}}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: sizes}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [widgets]}]}
  matchConditions: [{name: sized, expression: has(object.spec.size)}]
  validations: [{expression: object.spec.size < 10}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: everywhere}
spec: {policyName: sizes, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: team-b}
spec:
  policyName: sizes
  validationActions: [Warn]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: team-b}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: deletions}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [DELETE], resources: [widgets]}]}
  validations: [{expression: "oldObject.metadata.name != 'w1'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: deletions}
spec: {policyName: deletions, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: unbound}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: ["*"], resources: [widgets]}]}
  validations: [{expression: "true"}]
---
apiVersion: admission-gateway.io/v1alpha1
kind: DefaultingPolicy
metadata: {name: colour}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]}
  defaults: [{field: spec.colour, value: red}]
---
apiVersion: admission-gateway.io/v1alpha1
kind: DefaultingPolicy
metadata: {name: "off"}
spec:
  mode: Disabled
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]}
  defaults: [{field: spec.colour, value: red}]
---
apiVersion: admission-gateway.io/v1alpha1
kind: ConventionPolicy
metadata: {name: reserved}
spec: {checks: {reservedKeys: Deny}}
---
apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: per-client}
spec: {key: ClientAddress, requests: 100, periodSeconds: 1, exemptions: {usernames: [admin]}}
---
apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: reads}
spec: {match: {verbs: [get, list]}, key: Global, requests: 100, periodSeconds: 1}
`
