package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/explanation"
	"github.com/admission-gateway/gateway/internal/policytest"
	"github.com/admission-gateway/gateway/internal/scan"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/testcase"
)

// onewayPolicies describe resources of ordinary upstreams, by files of each kind, and judge them and Kubernetes' own.
var onewayPolicies = map[string]string{
	"policies/orders.yaml": `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: orders.shop.example.com}
spec:
  group: shop.example.com
  version: v1
  names: {plural: orders, kind: Order}
  paths: {collection: /orders, item: "/orders/{name}"}
  fields: {name: id, items: items}
  schema:
    openAPIV3Schema:
      type: object
      required: [id]
      properties:
        id: {type: string}
        amount: {type: integer, minimum: 1, default: 1}
`,
	"policies/desks.yaml": `openapi: 3.0.3
info: {title: desks, version: "1"}
paths:
  /v9/api/reservations:
    post:
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Reservation'}}}}
      responses: {201: {description: made, content: {application/json: {schema: {$ref: '#/components/schemas/Reservation'}}}}}
    get: {responses: {200: {description: all, content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/Reservation'}}}}}}}
  /v9/api/reservations/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    get: {responses: {200: {description: one, content: {application/json: {schema: {$ref: '#/components/schemas/Reservation'}}}}}}
    put:
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Reservation'}}}}
      responses: {200: {description: one, content: {application/json: {schema: {$ref: '#/components/schemas/Reservation'}}}}}
  /v9/api/reservations/{id}/confirm:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    post:
      requestBody: {required: true, content: {application/json: {schema: {type: object, required: [amount], properties: {amount: {type: integer, minimum: 1}}}}}}
      responses: {202: {description: confirmed}}
components:
  schemas:
    Reservation:
      type: object
      properties:
        id: {type: string, readOnly: true}
        amount: {type: integer, minimum: 1}
`,
	"policies/widgets.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {amount: {type: integer, minimum: 1}}}}
`,
	"policies/rules.yaml": `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-mallory}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [orders, reservations, deployments]}]
  validations: [{expression: "request.userInfo.username != 'mallory'", message: must not be mallory}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-mallory}
spec: {policyName: no-mallory, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: amounts}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]
  validations: [{expression: "object.spec.replicas > 0"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: amounts}
spec: {policyName: amounts, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: small}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]
  validations: [{expression: "object.spec.replicas < 1", message: must be small}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: small, annotations: {admission-gateway.io/rollout: '{"namespaces": ["b"]}'}}
spec: {policyName: small, validationActions: [Deny]}
---
apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: greedy}
spec:
  match: {verbs: ["*"]}
  key: User
  requests: 100000
  periodSeconds: 3600
---
apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: orders}
spec:
  match: {apiGroups: [shop.example.com], resources: [orders], verbs: [create]}
  hosts: [shop.example.com]
  key: User
  requests: 2
  periodSeconds: 86400
  exemptions: {usernames: [alice, mallory, "system:anonymous"]}
`,
}

// onewayConfig leads to three upstreams, two of them ordinary APIs, by hosts and prefixes that are kept, stripped and
// added.
const onewayConfig = `apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
upstreams:
- {name: shop, endpoints: ["http://SHOP"], dialect: Plain}
- {name: desks, endpoints: ["http://DESKS/v9"], dialect: Plain}
- {name: cluster, endpoints: ["http://CLUSTER"], dialect: Kubernetes}
routes:
- {upstream: shop, pathPrefix: /shop, stripPrefix: true}
- {upstream: desks, pathPrefix: /desks, stripPrefix: true, addPrefix: /api}
- {upstream: desks, pathPrefix: /api, undescribed: DenyWrites}
- {upstream: cluster, host: k8s.example.com}
- {upstream: shop, host: shop.example.com, backendHost: Replace, bodyBytes: 200}
- {upstream: desks, host: shop.example.com, pathPrefix: /v9, stripPrefix: true, undescribed: Deny}
identity: {authenticators: [{requestHeader: {addresses: [127.0.0.1]}}]}
policies: [policies]
`

// A sink is a backend that stores nothing, and takes every request.
type sink struct {
	mu  sync.Mutex
	got []string
}

// ServeHTTP implements http.Handler.
func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what cannot be read is empty
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasPrefix(r.URL.Path, "/apis/authorization.k8s.io/"):
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`)
		return
	case r.URL.Path == "/version":
		_, _ = io.WriteString(w, `{"major":"1","minor":"36","gitVersion":"v1.36.0"}`)
		return
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "s") &&
		r.Header.Get("X-Sent") == http.MethodDelete:
		// it deletes one by one
		_, _ = io.WriteString(w, `{"items":[]}`)
		return
	case r.Header.Get("X-Sent") != r.Method || r.URL.Query().Has("dryRun"): // the gateway asks for itself
		s.refuse(w)
		return
	}
	s.mu.Lock()
	s.got = append(s.got, r.Method+" "+r.RequestURI)
	s.mu.Unlock()
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
		return
	}
	s.refuse(w)
}

// refuse answers as the backend in memory does that stores nothing.
func (s *sink) refuse(w http.ResponseWriter) {
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}`)
}

// take returns what has arrived since it was called last.
func (s *sink) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.got
	s.got = nil
	return got
}

// A onewayRequest is a request, and what came of it in service.
type onewayRequest struct {
	method, host, path, body, user string
	code                           int
	isWarned                       bool
	status                         onewayStatus
	got                            []string // by the backends
}

// A onewayStatus is what is compared of a Status.
type onewayStatus struct {
	Message string
	Reason  string
	Details struct {
		Causes []struct{ Reason, Message, Field string }
	}
}

func (r *onewayRequest) url() string { return "http://" + r.host + r.path }

// isRefused reports whether the gateway itself refused it.
func (r *onewayRequest) isRefused() bool { return len(r.got) == 0 }

// onewayRequests are all that paths, hosts, methods, bodies and users make.
func onewayRequests() (all []*onewayRequest) {
	bodies := map[string][]string{
		http.MethodGet: {""}, http.MethodDelete: {""},
		http.MethodPost:  {`{"id":"o1","amount":2}`, `{"id":"o1","amount":0}`},
		http.MethodPut:   {`{"id":"o1","amount":2}`, `{"id":"o1","amount":"many"}`},
		http.MethodPatch: {`{"amount":0}`},
	}
	typed := map[string]string{
		"deployments": `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":%d}}`,
		"widgets":     `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"web"},"amount":%d}`,
	}
	for _, host := range []string{"any.example.com", "shop.example.com:8080", "k8s.example.com"} {
		for _, path := range []string{
			"/shop/orders", "/shop/orders/o1", "/orders", "/orders/o1", "/orders?limit=1", "/shop", "/shop/other",
			"/shop/orders/", "/shop//orders", "/shop/%6frders",
			"/desks/reservations", "/desks/reservations/o1", "/desks/reservations/o1/confirm", "/desks/other",
			"/desks/../orders",
			"/shop/orders/o1/status", "/shop/orders?x=http://other", "/desks/reservations/a%2fb", "/DESKS/reservations",
			"/shop/orders/o1/",
			"/api/reservations", "/api/reservations/o1", "/api/other", "/v9/api/reservations",
			"/v9/api/reservations/o1", "/v9/other",
			"/apis/apps/v1/namespaces/a/deployments", "/apis/apps/v1/namespaces/a/deployments/web",
			"/apis/apps/v1/namespaces/b/deployments",
			"/apis/example.com/v1/namespaces/a/widgets", "/apis/example.com/v1/namespaces/a/widgets/web", "/nowhere",
			"/",
		} {
			for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
				http.MethodDelete} {
				for i, body := range bodies[method] {
					for word, form := range typed {
						if strings.Contains(path, word) && body != "" && method != http.MethodPatch {
							body = fmt.Sprintf(form, 1-i)
						}
					}
					for _, user := range []string{"alice", "mallory", "system:anonymous"} {
						if user == "alice" || i == 0 && (method == http.MethodPost || method == http.MethodPut) {
							all = append(all, &onewayRequest{method: method, host: host, path: path, body: body,
								user: user})
						}
					}
				}
			}
		}
	}
	return all
}

// serveIt sends the request to a gateway that runs.
func (r *onewayRequest) serveIt(t *testing.T, address string, behind *sink) {
	t.Helper()
	req, err := http.NewRequest(r.method, "http://"+address, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	req.URL.Opaque, req.Host = "//"+r.host+r.path, r.host
	if r.user != "system:anonymous" {
		req.Header.Set("X-Remote-User", r.user)
	}
	req.Header.Set("X-Sent", r.method)
	if r.body != "" {
		req.Header.Set("Content-Type", r.contentType())
	}
	answer, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.Body.Close() != nil {
		t.Fatal(err)
	}
	r.code, r.isWarned, r.got = answer.StatusCode, answer.Header.Get("Warning") != "", behind.take()
	_ = json.Unmarshal(body, &r.status) // what is no Status has no message
}

func (r *onewayRequest) contentType() string {
	if r.method == http.MethodPatch {
		return "application/merge-patch+json"
	}
	return "application/json"
}

func (r *onewayRequest) testcase() testcase.Case {
	c := testcase.Case{
		Request: &testcase.Request{Method: r.method, Path: r.url(), ContentType: r.contentType()},
		User:    &testcase.User{Name: r.user},
	}
	if r.body != "" {
		c.Request.Body = json.RawMessage(r.body)
	}
	return c
}

// TestOneWay: explain, test, scan and status say of a thousand requests what a gateway in service makes of them.
func TestOneWay(t *testing.T) {
	behind := &sink{}
	api := httptest.NewServer(behind)
	t.Cleanup(api.Close)
	dir := testutil.WriteFiles(t, onewayPolicies)
	address := api.Listener.Addr().String()
	text := strings.NewReplacer("SHOP", address, "DESKS", address, "CLUSTER", address, "[policies]",
		"["+filepath.Join(dir, "policies")+"]").Replace(onewayConfig)
	file := testutil.WriteFile(t, filepath.Join(dir, "gateway.yaml"), text)
	serving := startServe(t, "", "--config", file)
	all := onewayRequests()
	refused := 0
	for _, r := range all {
		if r.serveIt(t, serving.listen, behind); r.isRefused() {
			refused++
		}
	}
	t.Logf("%d requests, %d refused", len(all), refused)
	if len(all) < 1000 || refused < 100 || len(all)-refused < 100 {
		t.Errorf("%d requests of which %d are refused prove nothing", len(all), refused)
	}
	t.Run("explain", func(t *testing.T) { explainAll(t, all, file, filepath.Join(dir, "policies")) })
	t.Run("status", func(t *testing.T) { forecastAll(t, all, serving.admin) })
	t.Run("test", func(t *testing.T) { testAll(t, all, dir, file) })
	t.Run("limits", func(t *testing.T) { limitsAll(t, dir, file, serving.listen, behind) })
	t.Run("scan", func(t *testing.T) { scanAll(t, all, dir, file) })
}

// explainAll compares what `gateway explain` says.
func explainAll(t *testing.T, all []*onewayRequest, file, policies string) {
	c, err := loadForCheck(file)
	if err != nil {
		t.Fatal(err)
	}
	service, err := serviceOf(c)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range all {
		if testing.Short() && i%10 != 0 {
			continue
		}
		s, err := policytest.Explain(t.Context(),
			&policytest.ExplainRequest{Policies: []string{policies}, Service: service, Case: r.testcase()})
		if err != nil {
			t.Fatal(r, err)
		}
		var says onewayStatus
		_ = json.Unmarshal(s.Answer.Status, &says) // there is none of what is admitted
		isRefused := s.Answer.Decision == explanation.Refused || s.Answer.Decision == explanation.Answered &&
			r.isRefused() &&
			s.Answer.Code == r.code
		if isRefused != r.isRefused() || r.isRefused() &&
			(s.Answer.Code != r.code || r.status.Message != "" && !reflect.DeepEqual(says, r.status)) {
			t.Errorf("%s %s of %s with %s is explained as %s %d %+v, and served with %d %+v", r.method, r.url(), r.user,
				r.body,
				s.Answer.Decision, s.Answer.Code, says, r.code, r.status)
		}
		if isWarned := len(s.Answer.Warnings) > 0; isWarned != r.isWarned {
			t.Errorf("%s %s of %s with %s is explained with the warnings %q, and served with some: %v", r.method, r.url(), r.user, r.body, s.Answer.Warnings, r.isWarned)
		}
	}
}

// forecastAll compares what `gateway status --request` says: the method and path alone decide it.
func forecastAll(t *testing.T, all []*onewayRequest, address string) {
	seen, always := map[string]bool{}, onewayAlways(all)
	forecasts := 0
	for _, r := range all {
		line := r.method + " " + r.url()
		if r.user != "alice" || seen[line] {
			continue
		}
		seen[line] = true
		said := run("status", "--admin", address, "-o", "json", "--request", line)
		var f admin.Forecast
		if err := json.Unmarshal([]byte(said.stdout), &f); err != nil {
			t.Fatal(said, err)
		}
		// What the body breaks no forecast knows.
		if f.Refusal != "" {
			forecasts++
		}
		if f.Refusal != always[line] {
			t.Errorf("%s: the forecast is %q, and it is served with %d %q", line, f.Refusal, r.code, r.status.Message)
		}
	}
	if forecasts < 50 {
		t.Errorf("%d refusals are forecast", forecasts)
	}
}

// onewayAlways returns the refusals of known users that the method and the path of a request alone decide: whatever the
// body, it is the same one, and none by a policy, a schema or what is stored.
func onewayAlways(all []*onewayRequest) map[string]string {
	always := map[string]string{}
	for _, r := range all {
		if r.user == "system:anonymous" {
			continue
		}
		line := r.method + " " + r.url()
		message := ""
		isByPath := r.code == http.StatusNotFound || r.code == http.StatusMethodNotAllowed ||
			r.code == http.StatusBadRequest
		if r.isRefused() && isByPath && !strings.HasSuffix(r.status.Message, " not found") &&
			!strings.HasPrefix(r.status.Message, "the name of the object ") {
			message = r.status.Message
		}
		if was, found := always[line]; found && was != message {
			message = ""
		}
		always[line] = message
	}
	return always
}

// testAll plays the requests as cases that expect the answers of the service.
func testAll(t *testing.T, all []*onewayRequest, dir, file string) {
	test := testcase.Test{APIVersion: "admission-gateway.io/v1alpha1", Kind: "PolicyTest",
		Metadata: json.RawMessage(`{"name":"served"}`)}
	test.Spec.Policies = []string{"policies"}
	for i, r := range all {
		c := r.testcase()
		c.Name = fmt.Sprint(i, " ", r.method, " ", r.url(), " ", r.user, " ", r.body)
		switch {
		case r.isRefused() && r.code >= http.StatusBadRequest && r.status.Message != "":
			c.Expect.Code, c.Expect.Message = int32(r.code), r.status.Message
			for _, cause := range r.status.Details.Causes {
				c.Expect.Causes = append(c.Expect.Causes,
					testcase.Cause{Field: cause.Field, Message: cause.Message, Reason: cause.Reason})
			}
		case r.code == http.StatusCreated:
			if c.Expect.Decision = "Allowed"; r.isWarned {
				c.Expect.Decision = "Warned"
			}
		default:
			continue // the backend in memory answers by what is stored
		}
		test.Spec.Cases = append(test.Spec.Cases, c)
	}
	passed := 0
	cases := test.Spec.Cases
	for part := range slices.Chunk(cases, 1000) { // a test has no more
		test.Spec.Cases = part
		played := writeTest(t, filepath.Join(dir, "served_test.json"), &test)
		var s policytest.Summary
		said := run("test", "--config", file, "-o", "json", played)
		if err := json.Unmarshal([]byte(said.stdout), &s); err != nil {
			t.Fatal(said, err)
		}
		for _, one := range s.Results {
			if one.Outcome != policytest.Passed {
				t.Errorf("%s: %s", one.ID, one.Problems)
			}
		}
		passed += s.Passed
	}
	if passed < 700 {
		t.Errorf("%d of %d cases pass", passed, len(cases))
	}
}

// writeTest writes a test without the members that are empty.
func writeTest(t *testing.T, name string, test *testcase.Test) string {
	t.Helper()
	var cases []any
	for i := range test.Spec.Cases {
		c := &test.Spec.Cases[i]
		request := map[string]any{"method": c.Request.Method, "path": c.Request.Path}
		if c.Request.Times > 1 {
			request["times"] = c.Request.Times
		}
		if c.Request.Body != nil {
			request["body"], request["contentType"] = c.Request.Body, c.Request.ContentType
		}
		expect := map[string]any{}
		if c.Expect.Decision != "" {
			expect["decision"] = c.Expect.Decision
		} else {
			expect["decision"], expect["code"] = "Denied", c.Expect.Code
			if c.Expect.Message != "" {
				expect["message"] = c.Expect.Message
			}
			if causes := causesOf(c); causes != nil {
				expect["causes"] = causes
			}
		}
		cases = append(cases, map[string]any{"name": c.Name, "request": request,
			"user": map[string]any{"name": c.User.Name}, "expect": expect})
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": test.APIVersion, "kind": test.Kind, "metadata": test.Metadata,
		"spec": map[string]any{"policies": test.Spec.Policies, "cases": cases},
	})
	if err != nil {
		t.Fatal(err)
	}
	return testutil.WriteFile(t, name, string(text))
}

// limitsAll reaches a limit for each user of one host.
func limitsAll(t *testing.T, dir, file, address string, behind *sink) {
	test := testcase.Test{APIVersion: "admission-gateway.io/v1alpha1", Kind: "PolicyTest",
		Metadata: json.RawMessage(`{"name":"limited"}`)}
	test.Spec.Policies = []string{"policies"}
	for _, c := range []struct {
		host, path, user string
		limited          bool
	}{
		{"shop.example.com:8080", "/orders", "greedy", true}, {"any.example.com", "/shop/orders", "greedy", false},
		{"any.example.com", "/shop/orders", "alice", false},
		{"any.example.com", "/desks/reservations", "greedy", false},
		{"other.example.com", "/shop/orders", "gree", false},
	} {
		var r *onewayRequest
		for i := range 3 {
			r = &onewayRequest{method: http.MethodPost, host: c.host, path: c.path, user: c.user,
				body: `{"id":"o1","amount":2}`}
			if r.serveIt(t, address, behind); r.code != http.StatusCreated &&
				(i < 2 || !c.limited || r.code != http.StatusTooManyRequests) {
				t.Errorf("%s of %s is answered with %d %q", r.url(), r.user, r.code, r.status.Message)
			}
		}
		one := r.testcase()
		one.Name, one.Request.Times = r.url()+" "+r.user, 3
		if one.Expect.Decision = "Allowed"; r.isWarned {
			one.Expect.Decision = "Warned"
		}
		if r.isRefused() {
			one.Expect.Decision, one.Expect.Code, one.Expect.Message = "", int32(r.code), r.status.Message
		}
		test.Spec.Cases = append(test.Spec.Cases, one)
	}
	said := run("test", "--config", file, "-o", "json", writeTest(t, filepath.Join(dir, "limited_test.json"), &test))
	var s policytest.Summary
	if err := json.Unmarshal([]byte(said.stdout), &s); err != nil || s.Passed != len(test.Spec.Cases) {
		t.Error(said)
	}
}

// causesOf returns the expected causes of a case.
func causesOf(c *testcase.Case) (causes []any) {
	for _, one := range c.Expect.Causes {
		cause := map[string]any{"message": one.Message, "reason": one.Reason}
		if one.Field != "" {
			cause["field"] = one.Field
		}
		causes = append(causes, cause)
	}
	return causes
}

// scanAll replays the creations of one user.
func scanAll(t *testing.T, all []*onewayRequest, dir, file string) {
	byFile := map[string]*onewayRequest{}
	args := []string{"scan", "--config", file, "--upstream", "shop", "--user", "alice", "-o", "json",
		filepath.Join(dir, "policies")}
	for _, r := range all {
		if r.user != "alice" || r.method != http.MethodPost || strings.HasSuffix(r.path, "/confirm") {
			// which creates no object
			continue
		}
		text, err := json.Marshal(
			map[string]any{"log": map[string]any{"entries": []any{map[string]any{"request": map[string]any{
				"method": r.method, "url": r.url(),
				"postData": map[string]any{"mimeType": "application/json", "text": r.body},
			}}}}})
		if err != nil {
			t.Fatal(err)
		}
		name := testutil.WriteFile(t, filepath.Join(dir, fmt.Sprintf("%d.har", len(byFile))), string(text))
		byFile[name], args = r, append(args, "--har", name)
	}
	said := run(args...)
	var report scan.Report
	if err := json.Unmarshal([]byte(said.stdout), &report); err != nil {
		t.Fatal(said, err)
	}
	denied := map[string]string{}
	for _, f := range report.Listed {
		if f.Effect == scan.Deny {
			denied[f.Source] = f.Message
		}
	}
	for name, r := range byFile {
		message, isDenied := denied[name]
		isJudged := r.isRefused() && (r.code == http.StatusUnprocessableEntity || r.code == http.StatusForbidden)
		if isDenied && !r.isRefused() || !isDenied && isJudged || isDenied && isJudged &&
			!strings.Contains(r.status.Message, message) {
			t.Errorf("POST %s with %s is scanned with %q, and served with %d %q", r.url(), r.body, message, r.code,
				r.status.Message)
		}
	}
	if len(denied) < 10 {
		t.Errorf("%d objects are denied: %v", len(denied), report.Skipped)
	}
}
