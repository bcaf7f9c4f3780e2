package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// hasNoDiscovery answers requests of the discovery API as a server without it does, and reports
// whether the request was one.
func hasNoDiscovery(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != "/api" && r.URL.Path != "/apis" {
		return false
	}
	w.WriteHeader(http.StatusNotFound)
	return true
}

const (
	servedCore = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":""},"versions":[{"version":"v1","resources":[
		{"resource":"pods","responseKind":{"group":"","version":"v1","kind":"Pod"},"scope":"Namespaced","subresources":[
			{"subresource":"eviction","responseKind":{"group":"policy","version":"v1","kind":"Eviction"}},
			{"subresource":"exec","responseKind":{"group":"","version":"v1","kind":"PodExecOptions"}}]},
		{"resource":"serviceaccounts","responseKind":{"group":"","version":"v1","kind":"ServiceAccount"},"scope":"Namespaced","subresources":[
			{"subresource":"token","responseKind":{"group":"authentication.k8s.io","version":"v1","kind":"TokenRequest"}}]}]}]}]}`
	servedGroups = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[
		{"resource":"deployments","responseKind":{"group":"apps","version":"v1","kind":"Deployment"},"scope":"Namespaced","subresources":[
			{"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"}}]}]}]}%s]}`
	servedWidgets = `,{"metadata":{"name":"example.com"},"versions":[{"version":"v1","resources":[
		{"resource":"widgets","responseKind":{"group":"example.com","version":"v1","kind":"Widget"},"scope":"Namespaced"}]}]}`
)

// kindsTold is a policy that shows the client what it sees of the kinds.
const kindsTold = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: told}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*/*"]}]
  validations:
  - expression: "false"
    messageExpression: "request.kind.group + '/' + request.kind.version + ' ' + request.kind.kind + ' ' + request.requestKind.group + '/' + request.requestKind.version + ' ' + request.requestKind.kind"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: told}
spec: {policyName: told, validationActions: [Deny]}
`

// apiServer has the discovery API, and answers everything else by an object.
type apiServer struct {
	*httptest.Server
	groups atomic.Value // what else /apis lists
	broken atomic.Int32 // the code of the discovery API's answers; 0 is its own
	asked  atomic.Int32 // how often /apis was asked for
}

func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{}
	s.groups.Store("")
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		code := int(s.broken.Load())
		switch r.URL.Path {
		case "/api", "/apis":
			if r.Header.Get("Authorization") != "Bearer gateways-own" {
				code = http.StatusUnauthorized
			}
			if code != 0 {
				w.WriteHeader(code)
				return
			}
			if r.URL.Path == "/api" {
				_, _ = io.WriteString(w, servedCore)
				return
			}
			s.asked.Add(1)
			_, _ = fmt.Fprintf(w, servedGroups, s.groups.Load())
		case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
			_, _ = io.WriteString(w, `{"kind":"SubjectAccessReview","status":{"allowed":true}}`)
		default:
			_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Nonsense","metadata":{"name":"a","namespace":"team-a","resourceVersion":"1"},"status":{"phase":"Stored"}}`)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// discoveringGateway is a gateway of a configuration.
type discoveringGateway struct {
	gateway *Gateway
	url     string
}

func discovering(t *testing.T, configuration string, files ...string) *discoveringGateway {
	g, address := configured(t, configuration, files...)
	return &discoveringGateway{g, "http://" + address}
}

// do sends a request, and returns the answer's code and body.
func (g *discoveringGateway) do(t *testing.T, method, path, body string) (int, string) {
	return asks(t, method, g.url+path, "application/json", body)
}

func (g *discoveringGateway) get(t *testing.T, path string) (int, http.Header, string) {
	r, err := http.Get(g.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	body, _ := io.ReadAll(r.Body)
	return r.StatusCode, r.Header, string(body)
}

// messageOf returns the code of an answer, and what it says of the policy's denial.
func messageOf(code int, body string) string {
	var s struct{ Message string }
	_ = json.Unmarshal([]byte(body), &s)
	if _, denial, found := strings.Cut(s.Message, "denied request: "); found {
		s.Message = denial
	}
	return fmt.Sprint(code, " ", s.Message)
}

// TestKindsOfTheServer: policies see the kinds that the server's discovery has, whatever the body
// says or leaves out.
func TestKindsOfTheServer(t *testing.T) {
	server := newAPIServer(t)
	g := discovering(t, "upstreams: [{name: main, endpoints: ['"+server.URL+
		"'], dialect: Kubernetes, credentials: Impersonate, tokenFile: "+secretFile(t, "gateways-own")+
		"}]\nidentity: {anonymous: Allow}\n", kindsTold)
	const pods = "/api/v1/namespaces/team-a/pods"
	for _, tt := range []struct{ method, path, body, want string }{
		{"POST", pods, `{"metadata":{"name":"a"}}`, "/v1 Pod"},
		{"DELETE", pods, ``, "/v1 Pod"},
		{"DELETE", pods + "/a", ``, "/v1 Pod"},
		{"POST", pods + "/a/eviction", `{}`, "policy/v1 Eviction"},
		{"POST", pods + "/a/eviction", `{"apiVersion":"v1","kind":"Pod"}`, "policy/v1 Eviction"},
		{"POST", pods + "/a/exec?command=ls", ``, "/v1 PodExecOptions"},
		{"POST", "/api/v1/namespaces/team-a/serviceaccounts/a/token", `{}`, "authentication.k8s.io/v1 TokenRequest"},
		{"PUT", "/apis/apps/v1/namespaces/team-a/deployments/a/scale", `{"metadata":{"name":"a"},"spec":{}}`,
			"autoscaling/v1 Scale"},
		{"PUT", "/apis/apps/v1/namespaces/team-a/deployments/a", `{"metadata":{"name":"a","resourceVersion":"1"}}`,
			"apps/v1 Deployment"},
	} {
		code, body := g.do(t, tt.method, tt.path, tt.body)
		if got, want := messageOf(code, body), "422 "+tt.want+" "+tt.want; got != want {
			t.Errorf("%s %s %s: %s, want %s", tt.method, tt.path, tt.body, got, want)
		}
	}
	// What the server does not list is asked for before it is judged.
	const widgets = "/apis/example.com/v1/namespaces/team-a/widgets"
	server.groups.Store(servedWidgets)
	testutil.Becomes(t, "422 example.com/v1 Widget example.com/v1 Widget", func() string {
		return messageOf(g.do(t, "DELETE", widgets+"/a", ""))
	})
	// What was known holds while the server cannot be asked, and what is not known is not guessed.
	server.broken.Store(http.StatusInternalServerError)
	if got := messageOf(g.do(t, "DELETE", widgets+"/a", "")); got != "422 example.com/v1 Widget example.com/v1 Widget" {
		t.Errorf("while the server cannot be asked: %s", got)
	}
	testutil.Becomes(t, "503 it is not known whether the API server serves the resource: the server cannot say so at the moment", func() string {
		return messageOf(g.do(t, "DELETE", "/apis/example.com/v1/namespaces/team-a/gadgets/a", ""))
	})
}

// statusTold is a policy that shows the client what it sees of the status.
const statusTold = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: told}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [UPDATE], resources: [widgets]}]
  validations: [{expression: "oldObject == null", messageExpression: "string(object.status.phase)"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: told}
spec: {policyName: told, validationActions: [Deny]}
`

// TestStatusOfTheServer: a PUT leaves the status as it is stored if the server serves it apart, and so policies see it.
func TestStatusOfTheServer(t *testing.T) {
	const widget = "/apis/example.com/v1/namespaces/team-a/widgets/a"
	for served, want := range map[string]string{
		servedWidgets: "422 Sent",
		strings.Replace(servedWidgets, `"scope":"Namespaced"`, `"scope":"Namespaced","subresources":[{"subresource":"status","responseKind":{"group":"example.com","version":"v1","kind":"Widget"}}]`, 1): "422 Stored",
	} {
		server := newAPIServer(t)
		server.groups.Store(served)
		g := discovering(t, "upstreams: [{name: main, endpoints: ['"+server.URL+
			"'], dialect: Kubernetes, credentials: Impersonate, tokenFile: "+secretFile(t, "gateways-own")+
			"}]\nidentity: {anonymous: Allow}\n", statusTold)
		body := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","namespace":"team-a","resourceVersion":"1"},"status":{"phase":"Sent"}}`
		if got := messageOf(g.do(t, "PUT", widget, body)); got != want {
			t.Errorf("policies see %s, want %s", got, want)
		}
	}
}

// TestPendingDiscovery: until a server has said what it serves, its requests are refused, and the
// gateway is not ready if it has no other.
func TestPendingDiscovery(t *testing.T) {
	server := newAPIServer(t)
	server.broken.Store(http.StatusServiceUnavailable)
	own := secretFile(t, "gateways-own")
	upstream := "{name: main, endpoints: ['" + server.URL +
		"'], dialect: Kubernetes, credentials: Impersonate, tokenFile: " + own + "}"
	g := discovering(t, "upstreams: ["+upstream+"]\nidentity: {anonymous: Allow}\n")
	for _, path := range []string{"/api/v1/namespaces/team-a/pods", "/api/v1/namespaces/team-a/pods/a",
		"/apis/apps/v1/deployments"} {
		code, header, body := g.get(t, path)
		if code != 503 || header.Get("Retry-After") != "1" ||
			!strings.Contains(body, "it is not known yet which resources the API server serves") {
			t.Errorf("GET %s before anything is known: %d, Retry-After %q, %s", path, code, header.Get("Retry-After"),
				body)
		}
	}
	if code, body := g.do(t, "GET", "/version", ""); code != 200 {
		t.Errorf("what is no resource: %d %s", code, body)
	}
	if err := g.gateway.Ready(); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("ready although its only server cannot be asked: %v", err)
	}
	both := discovering(t, "upstreams: ["+upstream+", {name: other, endpoints: ['"+server.URL+"'], dialect: Plain}]\n"+
		"routes: [{pathPrefix: /other, upstream: other}, {upstream: main}]\nidentity: {anonymous: Allow}\n")
	if err := both.gateway.Ready(); err != nil {
		t.Errorf("not ready although the other server can be served: %v", err)
	}
	server.broken.Store(0)
	testutil.Becomes(t, "200", func() string {
		code, _ := g.do(t, "GET", "/api/v1/namespaces/team-a/pods/a", "")
		return fmt.Sprint(code)
	})
	if err := g.gateway.Ready(); err != nil {
		t.Error(err)
	}
}

// TestNoAccountNoDiscovery: a gateway without an account does not ask, and takes kinds from requests.
func TestNoAccountNoDiscovery(t *testing.T) {
	server := newAPIServer(t)
	g := discovering(t, "upstreams: [{name: main, endpoints: ['"+server.URL+
		"'], dialect: Kubernetes, credentials: Pass}]\n", kindsTold)
	if got := messageOf(g.do(t, "POST", "/api/v1/namespaces/team-a/pods",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`)); got != "422 /v1 Pod /v1 Pod" {
		t.Error(got)
	}
	if n := server.asked.Load(); n != 0 {
		t.Errorf("nobody's account asked for discovery %d times", n)
	}
}
