package main

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// originPolicies are a policy, a limit and an exception of a team.
const originPolicies = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: short}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [notes]}]}
  validations: [{expression: "size(object.id) < 9"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: short}
spec: {policyName: short, validationActions: [Deny]}
---
apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: some}
spec: {key: Global, requests: 1000, periodSeconds: 1, match: {apiGroups: [example.com]}}
---
apiVersion: admission-gateway.io/v1alpha1
kind: PolicyException
metadata: {name: old-ones}
spec:
  policies: [{kind: RegoPolicy, names: [notes]}]
  reason: the old ones stay
  expires: "2099-01-01T00:00:00Z"
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [notes]}]}
`

// TestOrigins: explain, status and check say from which folder and owner a policy, a limit and an exception come, and
// nothing of files without an owner.
func TestOrigins(t *testing.T) {
	_, backend := startBackend(t)
	dir := testutil.WriteFiles(t, map[string]string{
		"common/notes.yaml": loggedPolicies, "team/p.yaml": originPolicies,
		"gateway.yaml": `apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
upstreams: [{name: api, endpoints: ["http://` + backend + `"], dialect: Plain}]
policies: {paths: [common, {path: team, owner: team-orders}]}
identity: {anonymous: Allow, authenticators: [{requestHeader: {addresses: [127.0.0.1]}}]}
telemetry: {explanations: {users: [ann], values: Shown}, audit: {log: {path: audit.log}}}
`,
	})
	file := filepath.Join(dir, "gateway.yaml")
	if checked := run("check", "--config", file); checked.code != 0 {
		t.Fatalf("the files are not as they should be: %+v", checked)
	}
	p := startServe(t, "", "--config", file)
	from := fmt.Sprintf("from '%s' of 'team-orders'", filepath.Join(dir, "team"))
	const about = "POST /v1/notes"
	outputs := map[string]string{}
	r, err := http.NewRequest(http.MethodPost, "http://"+p.listen+"/v1/notes", strings.NewReader(`{"id":"n1"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Admission-Explain", "text")
	r.Header.Set("X-Remote-User", "ann")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	outputs["the header's answer"] = string(body)
	outputs["explain"] = run("explain", "--config", file, "--request", about, "-d", `{"id":"n1"}`).stdout
	outputs["status --request"] = run("status", "--admin", p.admin, "--request", about).stdout
	for what, text := range outputs {
		for name, isOwned := range map[string]bool{"short": true, "some": true, "notes": false} {
			isFound := false
			for line := range strings.Lines(text) {
				if words := strings.Fields(line); len(words) > 1 && strings.Contains(line, name) &&
					!strings.Contains(line, "PolicyException") {
					isFound = isFound || strings.Contains(line, from)
				}
			}
			if isFound != isOwned {
				t.Errorf("%s: whether %s is %s is %v in\n%s", what, name, from, isFound, text)
			}
		}
	}
	if text := outputs["status --request"]; !strings.Contains(text, "the PolicyException 'old-ones' "+from) {
		t.Errorf("status --request does not say where the exception is from:\n%s", text)
	}
	if text := run("status", "--admin", p.admin).stdout; !strings.Contains(text, "the old ones stay; "+from) {
		t.Errorf("status says\n%s", text)
	}
	listed := run("check", "--list", "--config", file).stdout
	for _, want := range []string{"ValidatingAdmissionPolicy", "RateLimitPolicy", "PolicyException"} {
		if !strings.Contains(listed, "team-orders  "+want) {
			t.Errorf("check --list lacks %s of team-orders:\n%s", want, listed)
		}
	}
}
