package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/policies/policiestest"
)

// TestEqualAnswers: 60 equal requests with several faults each get one answer: wrong labels, annotations, finalizers
// and owners, fields that no schema knows, expressions over maps, and violations in Rego.
func TestEqualAnswers(t *testing.T) {
	const policies = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: carts.shop.example.com}
spec:
  group: shop.example.com
  scope: Cluster
  names: {plural: carts, singular: cart, kind: Cart, listKind: CartList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [names, sizes]
            properties:
              sizes: {type: object, additionalProperties: {type: integer, maximum: 3}}
              names: {type: array, x-kubernetes-list-type: set, items: {type: string}}
            x-kubernetes-validations:
            - {rule: "self.sizes.all(k, self.sizes[k] > 5)"}
            - {rule: "!has(self.sizes)", messageExpression: "{'d': 1, 'c': 2, 'b': 3, 'a': 4}.map(k, k).join(',')"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [shop.example.com], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}]}
  validations:
  - {expression: "object.metadata.labels.all(k, k == 'x')", messageExpression: "{'d': 1, 'c': 2, 'b': 3, 'a': 4}.map(k, k).join(',')"}
  - {expression: "has(object.kind) && {'x': 'y', 'w': 'z', 'v': 'y'}.transformMapEntry(k, v, {v: k}) == {}"}
  - {expression: "{'f': 1, 'e': 2, 'd': 3}.all(k, object.missing[k])"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: p}
spec: {policyName: p, validationActions: [Deny, Audit]}
---
apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: r}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [shop.example.com], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}]}
  rego: |
    package r
    deny contains msg if { some k, v in input.review.object.metadata.labels; msg := sprintf("%v %v %v", [k, v, input.review.object.spec]) }
    warn contains msg if { some k in object.keys(input.review.object.metadata.labels); msg := k }
---
apiVersion: admission-gateway.io/v1alpha1
kind: ConventionPolicy
metadata: {name: c}
spec:
  checks: {reservedKeys: Deny, unsafeIntegers: Deny}
`
	backend := httptest.NewServer(http.NotFoundHandler())
	defer backend.Close()
	for name, c := range map[string]struct {
		path, body string
		want       []string // parts of the answer
	}{
		"metadata": {"/apis/shop.example.com/v1/carts", `{"apiVersion":"shop.example.com/v1","kind":"Cart","metadata":{"name":"n","x":1,"y":2,"labels":{"a b":"-","c d":"-","e f":"-","g":"-","k8s.io/a":"b","k8s.io/b":"c"},` +
			`"annotations":{"h i":"1","j k":"2","l m":"3"},"finalizers":["n o","p q"],"ownerReferences":[{"apiVersion":"v1"},{"kind":"K"}]},"spec":{"a":1}}`, []string{`a b`, `h i`}},
		"schema": {"/apis/shop.example.com/v1/carts", `{"apiVersion":"shop.example.com/v1","kind":"Cart","metadata":{"name":"n"},"q":1,"r":2,"spec":{"x":1,"z":2,"sizes":{"a":9,"b":8,"c":7,"d":9007199254740993},"names":["a","a","b","b"]}}`,
			[]string{"spec.sizes[a]", "spec.names[3]"}},
		"rules": {"/apis/shop.example.com/v1/carts", `{"apiVersion":"shop.example.com/v1","kind":"Cart","metadata":{"name":"n"},"spec":{"names":[],"sizes":{"d":1,"c":2,"b":3,"a":1}}}`,
			[]string{"spec.sizes[d]", "a,b,c,d"}},
		"policies": {"/apis/shop.example.com/v1/others", `{"apiVersion":"shop.example.com/v1","kind":"Other","metadata":{"name":"n","labels":{"e":"1","d":"2","c":"3","b":"4"}},"spec":{"c":1,"b":2,"a":3}}`, []string{"a,b,c,d", "e 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			address := startGateway(t,
				gatewayFor(t, policiestest.Write(t, policies), strings.TrimPrefix(backend.URL, "http://"), nil))
			first := ""
			for n := range 60 {
				r, _ := http.NewRequest("POST", "http://"+address+c.path, strings.NewReader(c.body))
				r.Header.Set("Content-Type", "application/json")
				answer, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				got := answer.Status + "\n" + strings.Join(answer.Header["Warning"], "\n") + "\n" + string(body)
				if n == 0 {
					for _, part := range c.want {
						if !strings.Contains(got, part) {
							t.Fatalf("%q is not in %s", part, got)
						}
					}
					first = got
				}
				if got != first {
					t.Fatalf("the answer is\n%s\nand then\n%s", first, got)
				}
			}
		})
	}
}
