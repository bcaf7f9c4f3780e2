package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const uniqueImages = `
apiVersion: admission-gateway.io/v1alpha1
kind: StateSource
metadata: {name: widgets}
spec: {resource: {apiVersion: e2e.example.com/v1, resource: widgets, kind: Widget, namespace: state}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: unique}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [e2e.example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]
  matchConditions: [{name: here, expression: "request.namespace == 'state' && has(object.spec.image)"}]
  validations: [{expression: "!state.widgets.exists(w, w.kind == 'Widget' && w.spec.image == object.spec.image)", message: must not be the image of another widget}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: unique}
spec: {policyName: unique, validationActions: [Deny]}
`

const boundedReplicas = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: bounded}
spec:
  paramKind: {apiVersion: e2e.example.com/v1, kind: Widget}
  matchConstraints:
    resourceRules: [{apiGroups: [e2e.example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [widgets, widgets/scale]}]
  matchConditions: [{name: here, expression: "request.namespace == 'bounded' && request.name != 'limit'"}]
  validations: [{expression: "object.spec.replicas <= params.spec.replicas", messageExpression: "'must be at most ' + string(params.spec.replicas)"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: bounded}
spec:
  policyName: bounded
  validationActions: [Deny]
  paramRef: {name: limit, parameterNotFoundAction: Deny}
  matchResources: {excludeResourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"], resourceNames: [limit]}]}
`

const keptWidgets = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: keep}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [e2e.example.com], apiVersions: [v1], operations: [DELETE], resources: [widgets]}]
  validations: [{expression: "!has(oldObject.metadata.labels) || !('keep' in oldObject.metadata.labels)", message: must be kept}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: keep}
spec: {policyName: keep, validationActions: [Deny]}
`

// gatewayWith runs the gateway with the text of a policy file.
func gatewayWith(t *testing.T, policies string) *node {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policies.yaml")
	if err := os.WriteFile(file, []byte(policies), 0o600); err != nil {
		t.Fatal(err)
	}
	return startGateway(t, file)
}

// widget writes a widget, or only tries to, and returns the code and the message of the answer.
func widget(t *testing.T, method, base, namespace, name, metadata, spec string) string {
	t.Helper()
	path := "/apis/e2e.example.com/v1/namespaces/" + namespace + "/widgets"
	switch method {
	case "POST":
	case "TRY":
		method, path = "POST", path+"?dryRun=All"
	default:
		path += "/" + name
	}
	contentType, body := "application/json", fmt.Sprintf(`{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":%q%s},"spec":%s}`, name, metadata, spec)
	switch method {
	case "DELETE":
		contentType, body = "", ""
	case "PATCH":
		contentType = mergePatch
	}
	a := ask(t, method, base+path, contentType, body)
	_, message, _ := strings.Cut(a.body, "denied request: ")
	message, _, _ = strings.Cut(message, `"`)
	return strings.TrimSpace(fmt.Sprint(a.code, " ", message))
}

// becomes waits until got returns want.
func becomes(t *testing.T, want string, got func() string) {
	t.Helper()
	last := ""
	defer func() {
		if last != want {
			t.Logf("is %q, want %q", last, want)
		}
	}()
	eventually(t, want, func() bool { last = got(); return last == want })
}

// A collection is listed and watched at the real server (DEF-4).
func TestStateIsWatched(t *testing.T) {
	g := gatewayWith(t, uniqueImages)
	for _, image := range []string{"a", "b"} {
		if got := widget(t, "POST", server.HTTP, "state", "direct-"+image, "", `{"image":"`+image+`"}`); got != "201" {
			t.Fatal(got)
		}
		becomes(t, "422 must not be the image of another widget", func() string {
			return widget(t, "TRY", g.url, "state", "through-"+image, "", `{"image":"`+image+`"}`)
		})
		if got := widget(t, "DELETE", server.HTTP, "state", "direct-"+image, "", ""); got != "200" {
			t.Fatal(got)
		}
		becomes(t, "201",
			func() string { return widget(t, "TRY", g.url, "state", "through-"+image, "", `{"image":"`+image+`"}`) })
	}
}

// Parameters of a kind that no policy file describes are found by discovery, and read with the policies that need them.
func TestLiveParams(t *testing.T) {
	g := gatewayWith(t, boundedReplicas)
	const missing = "422 failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
	if got := widget(t, "POST", g.url, "bounded", "w", "", `{"replicas":3}`); got != missing {
		t.Errorf("without parameters: %s", got)
	}
	if got := widget(t, "POST", g.url, "bounded", "limit", "", `{"replicas":3}`); got != "201" {
		t.Fatal(got)
	}
	if got := widget(t, "POST", g.url, "bounded", "w", "", `{"replicas":4}`); got != "422 must be at most 3" {
		t.Errorf("over the limit: %s", got)
	}
	if got := widget(t, "POST", g.url, "bounded", "w", "", `{"replicas":3}`); got != "201" {
		t.Errorf("within the limit: %s", got)
	}
	scale := ask(t, "GET", g.url+"/apis/e2e.example.com/v1/namespaces/bounded/widgets/w/scale", "", "")
	grown := strings.Replace(scale.body, `"replicas":3`, `"replicas":7`, 1)
	if a := ask(t, "PUT", g.url+"/apis/e2e.example.com/v1/namespaces/bounded/widgets/w/scale", "application/json",
		grown); a.code != 422 {
		t.Errorf("scaled over the limit: %d %s", a.code, a.body)
	}
	if got := widget(t, "PATCH", server.HTTP, "bounded", "limit", "", `{"replicas":9}`); got != "200" {
		t.Fatal(got)
	}
	becomes(t, "201", func() string { return widget(t, "POST", g.url, "bounded", "w9", "", `{"replicas":9}`) })
}

// The deletion of a collection is judged object by object, and nothing of it happens if one may not be deleted.
func TestDeleteCollectionIsAdmitted(t *testing.T) {
	g := gatewayWith(t, keptWidgets)
	const collection = "/apis/e2e.example.com/v1/namespaces/kept/widgets"
	for name, metadata := range map[string]string{"a": `,"labels":{"in":"it"}`, "b": `,"labels":{"in":"it","keep":"y"}`,
		"c": ``} {
		if got := widget(t, "POST", g.url, "kept", name, metadata, `{}`); got != "201" {
			t.Fatal(got)
		}
	}
	left := func() string {
		var names []string
		for _, name := range []string{"a", "b", "c"} {
			if a := ask(t, "GET", server.HTTP+collection+"/"+name, "", ""); a.code == 200 {
				names = append(names, name)
			}
		}
		return strings.Join(names, " ")
	}
	if a := ask(t, "DELETE", g.url+collection+"?labelSelector=in%3Dit", "", ""); a.code != 422 || left() != "a b c" {
		t.Errorf("answered %d %s, left %s", a.code, a.body, left())
	}
	if a := ask(t, "DELETE", g.url+collection+"?labelSelector=in%3Dit,keep%21%3Dy", "", ""); a.code != 200 ||
		left() != "b c" {
		t.Errorf("answered %d %s, left %s", a.code, a.body, left())
	}
	if out, ok := kubectl(t, g.url, "", "delete", "widgets", "--all", "-n", "kept"); ok ||
		!strings.Contains(out, "must be kept") || left() != "b" {
		t.Errorf("kubectl printed %s, left %s", out, left())
	}
}
