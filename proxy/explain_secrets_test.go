package proxy

import (
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// withheldPolicies compute with a Secret that they have for parameters, with one that another
// policy has put into the object, and with a collection, and reveal it in every way that there is.
const withheldPolicies = `
apiVersion: v1
kind: Secret
metadata: {name: keys, namespace: team-a}
data: {key: aHVudGVy}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: a-split}
spec:
  paramKind: {apiVersion: v1, kind: Secret}
  matchConstraints:
    resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [gadgets]}]
  matchConditions:
  - {name: named, expression: "object.metadata.name != ''"}
  variables:
  - {name: split, expression: "params.data.key.split('')"}
  - {name: first, expression: "variables.split[0]"}
  - {name: short, expression: "params.data.key.size() < 100"}
  - {name: own, expression: "object.spec.owner"}
  validations:
  - expression: "variables.own.contains(variables.first) && variables.short && params.data.key.upperAscii() == ''"
    messageExpression: "params.data.key.split('').join('|')"
  - expression: "variables.own == 'x'"
    message: "the owner must be x"
  auditAnnotations:
  - {key: upper, valueExpression: "string(params.data.key).upperAscii()"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: a-split}
spec: {policyName: a-split, validationActions: [ACTION, Audit], paramRef: {name: keys, namespace: team-a, parameterNotFoundAction: Deny}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: b-copied}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [gadgets]}]}
  variables:
  - {name: copied, expression: "object.metadata.annotations['copied']"}
  validations:
  - expression: "variables.copied.upperAscii() == ''"
    messageExpression: "variables.copied.upperAscii()"
  - expression: "object.metadata.annotations.size() == 7"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b-copied}
spec: {policyName: b-copied, validationActions: [Warn]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: copy}
spec:
  paramKind: {apiVersion: v1, kind: Secret}
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [gadgets]}]}
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{metadata: Object.metadata{annotations: {'copied': params.data.key.split('').join('-')}}}"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: copy}
spec: {policyName: copy, paramRef: {name: keys, namespace: team-a, parameterNotFoundAction: Deny}}
---
apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: c-rego}
spec:
  paramKind: {apiVersion: v1, kind: Secret}
  paramRef: {name: keys, namespace: team-a, parameterNotFoundAction: Deny}
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [gadgets]}]}
  rego: |
    package team
    deny contains concat("/", split(input.parameters.data.key, ""))
    warn contains upper(input.parameters.data.key)
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: d-own}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [secrets]}]
  variables:
  - {name: split, expression: "object.data.key.split('')"}
  validations:
  - expression: "variables.split.size() > 100"
    messageExpression: "variables.split.join('+')"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: d-own}
spec: {policyName: d-own, validationActions: [Deny]}
`

// TestExplanationsWithholdSecrets: what a policy has computed of a Secret is not in the explanation, however it was
// computed, and whatever the configuration shows: values, their parts, messages, warnings, edits, bodies and the
// answer.
func TestExplanationsWithholdSecrets(t *testing.T) {
	for _, values := range []string{"Digests", "Shown"} {
		for _, action := range []string{"Deny", "Warn"} {
			backend := serveBackend(t,
				func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
			dir := t.TempDir()
			policies := strings.ReplaceAll(withheldPolicies, "ACTION", action)
			if action == "Warn" {
				policies = strings.Replace(policies,
					`    deny contains concat("/", split(input.parameters.data.key, ""))`+"\n", "", 1)
			}
			testutil.WriteFile(t, dir+"/secret.yaml", policies)
			address := startGateway(t,
				gatewayFor(t, dir, backend, []string{"kubernetes", "identity=Allow", "explain=" + values}))
			for path, body := range map[string]string{
				"/apis/example.com/v1/namespaces/team-a/gadgets": `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"g1"},"spec":{"owner":"nobody"}}`,
				"/api/v1/namespaces/team-a/secrets":              `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s1"},"data":{"key":"aHVudGVy"}}`,
			} {
				for _, form := range []string{"json", "text", "html"} {
					text := explainAs(t, address, form, "POST", path, body)
					if !strings.Contains(text, "withheld: it may show a Secret") {
						t.Errorf("%s, %s, %s, %s: nothing is withheld", values, action, path, form)
					}
					for _, between := range []string{"", "|", "-", "/", "+", `", "`, `","`, "&#34;,&#34;", " "} {
						for _, of := range []string{"aHVudGVy", "hunter", "yVGduVHa", "AHVUDGVY"} {
							if joined := strings.Join(strings.Split(of, ""), between); strings.Contains(text, joined) {
								t.Errorf("%s, %s, %s, %s: the story has %s\n%s", values, action, path, form, joined,
									text)
							}
						}
					}
				}
			}
			if values == "Shown" && action == "Deny" {
				got := explainAs(t, address, "text", "POST", "/apis/example.com/v1/namespaces/team-a/gadgets",
					`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"g1"},"spec":{"owner":"nobody"}}`)
				compareText(t, "testdata/explained-secret.txt", strings.ReplaceAll(got, dir, "DIR"))
			}
		}
	}
}

// compareText compares a text with a golden file.
func compareText(t *testing.T, name, got string) {
	t.Helper()
	if *isUpdate {
		testutil.WriteFile(t, name, got)
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the story is\n%s\nwant\n%s", got, want)
	}
}

// explainAs asks for an explanation in a form.
func explainAs(t *testing.T, address, form, method, path, body string) (text string) {
	t.Helper()
	answer := exchangeRaw(t, address, []byte(method+" "+path+" HTTP/1.1\r\nHost: a\r\nX-Remote-User: kim\r\nX-Remote-Group: team-a\r\nX-Admission-Explain: "+form+"\r\n"+
		"Connection: close\r\nContent-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+
		body))
	_, text, _ = strings.Cut(string(answer), "\r\n\r\n")
	return text
}
