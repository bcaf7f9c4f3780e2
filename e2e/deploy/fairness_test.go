package deploy

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

var wholeSeconds = regexp.MustCompile(`^\[\d+\]$`)

// full is a priority level that has next to no room, and free one that has. They take a user's requests about Leases,
// and the user's other requests.
const full = `
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: full}
spec: {type: Limited, limited: {nominalConcurrencyShares: 0, lendablePercent: 0, borrowingLimitPercent: 0, limitResponse: {type: Reject}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: full}
spec:
  priorityLevelConfiguration: {name: full}
  matchingPrecedence: 10
  rules:
  - subjects: [{kind: User, user: {name: crowd}}]
    resourceRules: [{verbs: ["*"], apiGroups: [coordination.k8s.io], resources: [leases], namespaces: ["*"]}]
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: free}
spec: {type: Limited, limited: {nominalConcurrencyShares: 30, limitResponse: {type: Reject}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: free}
spec:
  priorityLevelConfiguration: {name: free}
  matchingPrecedence: 20
  rules:
  - subjects: [{kind: User, user: {name: crowd}}]
    resourceRules: [{verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true}]
    nonResourceRules: [{verbs: ["*"], nonResourceURLs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: crowd}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: crowd}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c1, namespace: default}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: l1, namespace: default}
`

// reading is a policy that reads what is deleted, and holds.
const reading = `
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: reading}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [DELETE], resources: ["*"]}]
  validations: [{expression: "oldObject.metadata.name != 'kept'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: reading}
spec: {policyName: reading, validationActions: [Deny]}
`

// API Priority and Fairness is the server's: what it says of a request, and that it has no room for it, reaches the
// client as it does natively, whether the gateway has policies about it or not. Only the server's text becomes a Status
// (ERR-1).
func TestFairness(t *testing.T) {
	c := commonCluster(t)
	c.must(t, full, "create", "-f", "-")
	const leases, maps, plain, merge = "/apis/coordination.k8s.io/v1/namespaces/default/leases",
		"/api/v1/namespaces/default/configmaps", "application/json", "application/merge-patch+json"
	gateways := map[string]string{"policies about something else": c.startBefore(t,
		strings.ReplaceAll(reading, `resources: ["*"]`, "resources: [secrets]")),
		"policies": c.startBefore(t, comparing+reading)}
	requests := []struct {
		method, path, contentType, body string
		code                            int
	}{
		{"GET", leases + "/l1", "", "", 429},
		{"GET", leases, "", "", 429},
		{"GET", leases + "?watch=true", "", "", 429},
		{"POST", leases, plain, `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"new"}}`, 429},
		{"PUT", leases + "/l1", plain, `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l1"}}`, 429},
		{"PATCH", leases + "/l1", merge, `{"metadata":{"labels":{"a":"b"}}}`, 429},
		{"PATCH", leases + "/l2?fieldManager=m", "application/apply-patch+yaml", `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l2"}}`, 429},
		{"DELETE", leases + "/l1", "", "", 429},
		{"DELETE", leases, "", "", 429},
		{"GET", maps + "/c1", "", "", 200},
		{"GET", maps, "", "", 200},
		{"GET", "/version", "", "", 200},
		{"POST", maps, plain, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c1"}}`, 409},
		{"PUT", maps + "/c1", plain, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c1"}}`, 200},
		{"PATCH", maps + "/c1", merge, `{"metadata":{"labels":{"a":"b"}}}`, 200},
		{"GET", maps + "/nothing", "", "", 404},
	}
	uid := func(flow string) string {
		return c.must(t, "", "get", "flowschema", flow, "-o", "jsonpath={.metadata.uid}")
	}
	said := func(t *testing.T, base, method, path, contentType, body string) (code int, told string) {
		t.Helper()
		r, err := http.NewRequest(method, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer of-crowd")
		if contentType != "" {
			r.Header.Set("Content-Type", contentType)
		}
		answer, err := insecure.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		// How many seconds the server asks for depends on how much it refused of late.
		retry := wholeSeconds.ReplaceAllString(fmt.Sprint(answer.Header["Retry-After"]), "[N]")
		told = fmt.Sprint(answer.StatusCode, " retry=", retry, " schema=",
			answer.Header["X-Kubernetes-Pf-Flowschema-Uid"], " level=",
			answer.Header["X-Kubernetes-Pf-Prioritylevel-Uid"])
		if answer.StatusCode == http.StatusTooManyRequests &&
			!strings.Contains(string(text), "Too many requests, please try again later.") {
			t.Errorf("%s %s is answered %s", method, path, text)
		}
		return answer.StatusCode, told
	}
	eventually(t, "the flow schemas are in force", func() bool {
		_, full := said(t, c.url, "GET", leases, "", "")
		_, free := said(t, c.url, "GET", maps, "", "")
		return strings.Contains(full, uid("full")) && strings.Contains(free, uid("free"))
	})
	// Requests whose bodies do not end take up all the room.
	hold := func() {
		body, end := io.Pipe()
		t.Cleanup(func() { _ = end.Close() })
		r, err := http.NewRequest("POST", c.url+leases, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer of-crowd")
		r.Header.Set("Content-Type", plain)
		go func() {
			if answer, err := insecure.Do(r); err == nil {
				_ = answer.Body.Close()
			}
		}()
	}
	eventually(t, "there is no room", func() bool {
		code, _ := said(t, c.url, "GET", leases, "", "")
		if code != 429 {
			hold()
		}
		return code == 429
	})
	for name, through := range gateways {
		t.Run(name, func(t *testing.T) {
			for _, r := range requests {
				code, native := said(t, c.url, r.method, r.path, r.contentType, r.body)
				if code != r.code || strings.Contains(native, "=[]") != (code != 429) {
					t.Errorf("%s %s is natively answered %s, want %d", r.method, r.path, native, r.code)
				}
				if _, got := said(t, through, r.method, r.path, r.contentType, r.body); got != native {
					t.Errorf("%s %s is answered\n%s\nand natively\n%s", r.method, r.path, got, native)
				}
			}
		})
	}
}
