package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil/scenario"
)

// TestDeleteOptionsInQuery holds what policies see of a deletion, and what a Kubernetes API server is sent, to what
// that server reads: the options in the body, else those in the query.
func TestDeleteOptionsInQuery(t *testing.T) {
	const policy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: deletions}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [pods]}]}
  validations:
  - {expression: "%s", message: "no"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: deletions}
spec: {policyName: deletions, validationActions: [Deny]}
`
	const pods, body = "/api/v1/namespaces/team-a/pods", `{"kind":"DeleteOptions","apiVersion":"v1"}`
	for _, test := range []struct {
		name, expression, target, body string
		want                           int
		sent                           string // the last request to the backend, with its body
	}{
		{"force", "!has(request.options.gracePeriodSeconds) || request.options.gracePeriodSeconds > 0", pods + "/web?gracePeriodSeconds=0", "", 422, ""},
		{"force of a collection", "!has(request.options.gracePeriodSeconds) || request.options.gracePeriodSeconds > 0", pods + "?gracePeriodSeconds=0", "", 422, ""},
		{"dry run beside options", "request.dryRun", pods + "/web?dryRun=All", body, 422, ""},
		{"dry run in options", "request.dryRun", pods + "/web",
			`{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}`, 200, ""},
		{"dry run that is pinned", "oldObject != null", pods + "/web?dryRun=All", "", 200, `application/json {"kind":"DeleteOptions","apiVersion":"meta.k8s.io/v1","dryRun":["All"]`},
		{"propagation that is pinned", "oldObject != null", pods + "/web?propagationPolicy=Orphan", "", 200,
			`"propagationPolicy":"Orphan"`},
		// A Pod that runs nowhere gets no grace, whatever is asked for: the policy sees so of the stored one, to which
		// the deletion is pinned. What is not stored is not found, whatever a policy would say.
		{"grace that is known", "request.options.gracePeriodSeconds == 0", pods + "/web?gracePeriodSeconds=3", "",
			200, `"gracePeriodSeconds":3,"preconditions":{"resourceVersion":"7"`},
		{"grace of a collection is not", "request.options.gracePeriodSeconds == 3", pods + "?gracePeriodSeconds=3", "",
			200, "?gracePeriodSeconds=3"},
		{"grace of what is gone", "request.options.gracePeriodSeconds == 1", pods + "/gone", "", 404,
			"GET " + pods + "/gone"},
		{"dry run of a collection", "oldObject != null", pods + "?dryRun=All", "", 200, `application/json {"kind":"DeleteOptions","apiVersion":"meta.k8s.io/v1","dryRun":["All"]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			seen := make(chan string, 8)
			_, address := upgradeGateway(t, nil, fmt.Sprintf(policy, test.expression), func(c net.Conn) {
				r := bufio.NewReader(c)
				for {
					q, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					sent, _ := io.ReadAll(q.Body)
					seen <- q.Method + " " + q.RequestURI + " " + q.Header.Get("Content-Type") + " " + string(sent)
					if q.URL.Path == "/version" {
						_, _ = io.WriteString(c, scenario.KubernetesVersion)
						continue
					}
					answer := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"team-a","resourceVersion":"7","uid":"u1"}}`
					if strings.Contains(q.RequestURI, "/gone") {
						answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"it is gone","reason":"NotFound","code":404}`
						_, _ = fmt.Fprintf(c, "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
						continue
					}
					if q.Method == "GET" && !strings.Contains(q.RequestURI, "/web") {
						answer = `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[` + answer + `]}`
					}
					_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
				}
			})
			q, err := http.NewRequest(http.MethodDelete, "http://"+address+test.target, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			q.Header.Set("Content-Type", "application/yaml") // which JSON is
			answer, err := http.DefaultClient.Do(q)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			last := ""
			for len(seen) > 0 {
				last = <-seen
			}
			if answer.StatusCode != test.want {
				t.Errorf("the client got %d %s\nwant %d; the backend got %s", answer.StatusCode, text, test.want, last)
			}
			if test.sent != "" && !strings.Contains(last, test.sent) {
				t.Errorf("the backend got %s\nwant %s in it", last, test.sent)
			}
		})
	}
}

// TestDryRunOfTheQueryAlone: a deletion whose body has options is no dry run for what its query
// says, as API servers read it: a policy that does not match dry runs matches it.
func TestDryRunOfTheQueryAlone(t *testing.T) {
	a := newAuthority(t)
	url := guarded(t, a, policy("kept", rule("DELETE", "deployments")+
		"  matchConditions: [{name: real, expression: '!request.dryRun'}]\n  validations: [{expression: 'false', message: kept}]", deny), "OWN", "")
	const options, dry = `{"kind":"DeleteOptions","apiVersion":"v1"}`,
		`{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}`
	for _, c := range []struct{ path, body, want string }{
		{"/web", "", "422 "},
		{"/web", dry, "200"},
		{"/web?dryRun=All", "", "200"},
		{"/web?dryRun=All", options, "422 "},
		{"?dryRun=All", options, "422 "},
	} {
		if got := said(t, "DELETE", url+inTeamA+c.path, "application/json", c.body,
			"Authorization: Bearer boss"); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s with %s: got %s, want %s", c.path, c.body, got, c.want)
		}
	}
}
