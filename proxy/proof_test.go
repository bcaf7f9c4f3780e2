package proxy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// ordinaryAPI is an API that knows no dry run: whatever it is asked to write, it writes.
type ordinaryAPI struct {
	*httptest.Server
	mu      sync.Mutex
	written []string
	asked   int                                          // how often for its version
	version func(w http.ResponseWriter, r *http.Request) // nil answers 404
}

func newOrdinaryAPI(t *testing.T) *ordinaryAPI {
	t.Helper()
	a := &ordinaryAPI{}
	a.Server = httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(a.Close)
	return a
}

func (a *ordinaryAPI) serve(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	a.mu.Lock()
	version := a.version
	switch {
	case r.URL.Path == "/version":
		a.asked++
	case r.Method != http.MethodGet:
		a.written = append(a.written, r.Method+" "+r.RequestURI)
	}
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/version" && version != nil:
		version(w, r)
	case r.URL.Path == "/version":
		http.NotFound(w, r)
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/widgets"):
		_, _ = io.WriteString(w, `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{},"items":[`+widgetW1+
			`]}`)
	default:
		_, _ = io.WriteString(w, widgetW1)
	}
}

func (a *ordinaryAPI) counts() (asked int, written []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked, a.written
}

const widgetW1 = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w1","namespace":"team-a","resourceVersion":"7","uid":"u1"},"spec":{"size":3,"max":9,"mode":"Open"}}`

// aboutWidgets is a policy that has to see stored widgets, new ones and deleted ones.
const aboutWidgets = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: widgets}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE, UPDATE, DELETE], resources: [widgets]}]}
  validations: [{expression: "request.operation != 'DELETE' || oldObject.spec.size > 0"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: widgets}
spec: {policyName: widgets, validationActions: [Deny]}
`

// gatewayBefore is the address of a gateway that takes the API for a Kubernetes API server.
func (a *ordinaryAPI) gatewayBefore(t *testing.T, policies string, words ...string) string {
	t.Helper()
	return startGateway(t, gatewayFor(t, policiestest.Write(t, policies), strings.TrimPrefix(a.URL, "http://"),
		append(words, "kubernetes", "policies=widgets")))
}

// asks sends a request and returns the code and body of its answer.
func asks(t *testing.T, method, url, contentType, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	r.Header.Set("Content-Type", contentType)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Error(err)
	}
	return answer.StatusCode, string(text)
}

// A plain API that was configured as an API server gets none of the dry runs.
func TestOrdinaryAPIGetsNoDryRun(t *testing.T) {
	const merge, jsonBody = "application/merge-patch+json", "application/json"
	const item = widgetsPath + "/w1"
	for _, c := range []struct {
		name                              string
		policies                          string
		words                             []string
		method, target, contentType, body string
	}{
		{"merge patch", "", nil, "PATCH", item, merge, `{"spec":{"size":4}}`},
		{"JSON patch", "", nil, "PATCH", item, "application/json-patch+json",
			`[{"op":"replace","path":"/spec/size","value":4}]`},
		{"apply", "", nil, "PATCH", item + "?fieldManager=cli", "application/apply-patch+yaml", "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w1}\nspec: {size: 4}\n"},
		{"patch as a dry run", "", nil, "PATCH", item + "?dryRun=All", merge, `{"spec":{"size":4}}`},
		{"create on its result", aboutWidgets, []string{"judge-results"}, "POST", widgetsPath, jsonBody, widgetW1},
		{"update on its result", aboutWidgets, []string{"judge-results"}, "PUT", item, jsonBody, widgetW1},
		{"create as a dry run", "", nil, "POST", widgetsPath + "?dryRun=All", jsonBody,
			`{"metadata":{"name":"w2"},"spec":{"size":3}}`},
		{"update as a dry run", "", nil, "PUT", item + "?dryRun=All", jsonBody, widgetW1},
		{"create of what no file describes as a dry run", "", nil, "POST", "/api/v1/namespaces/team-a/pods?dryRun=All",
			jsonBody, `{"metadata":{"name":"p"}}`},
		{"deletion as a dry run", "", nil, "DELETE", item + "?dryRun=All", jsonBody, ""},
		{"deletion as a dry run in its options", "", nil, "DELETE", item, jsonBody, `{"dryRun":["All"]}`},
		{"deletion of what no file describes as a dry run in its options", "", nil, "DELETE",
			"/api/v1/namespaces/team-a/pods/p", jsonBody, `{"dryRun":["All"]}`},
		{"deletion of a collection as a dry run", "", nil, "DELETE", widgetsPath + "?dryRun=All", jsonBody, ""},
		{"deletion of a collection as a dry run in its options", "", nil, "DELETE", widgetsPath, jsonBody,
			`{"dryRun":["All"]}`},
		{"judged deletion as a dry run", aboutWidgets, nil, "DELETE", item + "?dryRun=All", jsonBody, ""},
		{"judged deletion as a dry run in its options", aboutWidgets, nil, "DELETE", item, jsonBody,
			`{"dryRun":["All"]}`},
		{"judged deletion of a collection as a dry run", aboutWidgets, nil, "DELETE", widgetsPath + "?dryRun=All",
			jsonBody, ""},
		{"judged deletion of a collection as a dry run in its options", aboutWidgets, nil, "DELETE", widgetsPath,
			jsonBody, `{"dryRun":["All"]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := newOrdinaryAPI(t)
			address := api.gatewayBefore(t, c.policies, c.words...)
			const want = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the backend has not proved to be a Kubernetes API server, ` +
				"so that it could carry out what a dry run only asks about; nothing was sent. GET /version was answered with the code 404 and no version of Kubernetes. " +
				"Before an ordinary API the upstream must have `dialect: Plain` (--dialect Plain)" + `","reason":"InternalError","code":502}`
			if code, body := asks(t, c.method, "http://"+address+c.target, c.contentType, c.body); code != 502 ||
				body != want {
				t.Errorf("answered %d %s", code, body)
			}
			if asked, written := api.counts(); asked != 1 || len(written) > 0 {
				t.Errorf("asked for the version %d times, and the API was sent %q", asked, written)
			}
		})
	}
}

// What proves that a backend is an API server, and what does not.
func TestServersVersion(t *testing.T) {
	const denied = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no","reason":"Forbidden","code":403}`
	for _, c := range []struct {
		name, contentType, body string
		code, want              int
	}{
		{"a release", "application/json", `{"major":"1","minor":"37","gitVersion":"v1.37.2","platform":"linux/amd64"}`,
			200, 200},
		{"no release", "application/json; charset=utf-8", `{"major":"","minor":"","gitVersion":"v0.0.0-master"}`, 200,
			200},
		{"may not read it", "application/json", denied, 403, 200},
		{"is not known", "application/json", strings.ReplaceAll(denied, "403", "401"), 401, 200},
		{"numbers", "application/json", `{"major":1,"minor":37,"gitVersion":"v1.37.2"}`, 200, 502},
		{"no gitVersion", "application/json", `{"major":"1","minor":"37"}`, 200, 502},
		{"an empty gitVersion", "application/json", `{"major":"1","minor":"37","gitVersion":""}`, 200, 502},
		{"a list", "application/json", `[{"major":"1","minor":"37","gitVersion":"v1"}]`, 200, 502},
		{"no JSON", "application/json", `1.37`, 200, 502},
		{"two documents", "application/json", `{"major":"1","minor":"37","gitVersion":"v1"}{}`, 200, 502},
		{"another type", "text/plain", `{"major":"1","minor":"37","gitVersion":"v1"}`, 200, 502},
		{"another code", "application/json", `{"major":"1","minor":"37","gitVersion":"v1"}`, 201, 502},
		{"etcd", "application/json", `{"etcdserver":"3.4.23","etcdcluster":"3.4.0"}`, 200, 502},
		{"refused by something else", "application/json", `{"error":"token expired"}`, 401, 502},
		{"forbidden by something else", "text/plain", denied, 403, 502},
		{"a Status of another code", "application/json", denied, 404, 502},
		{"elsewhere", "application/json", ``, 302, 502},
		{"an error", "application/json", `{}`, 500, 502},
		{"too large", "application/json", `{"major":"1","minor":"37","gitVersion":"v1","x":"` +
			strings.Repeat("x", 70<<10) + `"}`, 200, 502},
		{"too busy", "text/plain", "Too many requests, please try again later.", 429, 429},
		{"not ready", "text/plain", "shutting down", 503, 503},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := newOrdinaryAPI(t)
			api.version = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.contentType)
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.body)
			}
			url := "http://" + api.gatewayBefore(t, "") + widgetsPath + "/w1"
			code, body := asks(t, "PATCH", url, "application/merge-patch+json", `{"spec":{"size":3}}`)
			if code != c.want {
				t.Errorf("answered %d %s, want %d", code, body, c.want)
			}
			if _, written := api.counts(); (len(written) == 0) != (c.want != 200) {
				t.Errorf("answered %d, and the backend was sent %q", code, written)
			}
		})
	}
}

// However many ask at once, one of them asks for the version; a client that gives up does not
// cancel the others.
func TestOneProof(t *testing.T) {
	api, release := newOrdinaryAPI(t), make(chan struct{})
	api.version = func(w http.ResponseWriter, _ *http.Request) {
		<-release
		_, _ = io.WriteString(w, `{"major":"1","minor":"37","gitVersion":"v1.37.2"}`)
	}
	url := "http://" + api.gatewayBefore(t, "") + widgetsPath + "/w1"
	patch := func(query string) int {
		code, _ := asks(t, "PATCH", url+query, "application/merge-patch+json", `{"spec":{"size":3}}`)
		return code
	}
	if code := patch("?timeout=30ms"); code != 504 {
		t.Errorf("a client of little patience is answered with %d", code)
	}
	var waiting sync.WaitGroup
	codes := make(chan int, 40)
	for range cap(codes) {
		waiting.Go(func() { codes <- patch("") })
	}
	time.Sleep(50 * time.Millisecond) // most of them wait by now
	close(release)
	waiting.Wait()
	close(codes)
	for code := range codes {
		if code != 200 {
			t.Errorf("answered %d", code)
		}
	}
	if asked, written := api.counts(); asked != 1 || len(written) != 2*cap(codes) {
		t.Errorf("asked for the version %d times, and sent %d requests for %d patches", asked, len(written), cap(codes))
	}
}

// A Host that the client makes up proves nothing for another one: the same address may serve both.
func TestProofOfAnotherHost(t *testing.T) {
	api := newOrdinaryAPI(t)
	api.version = func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Host, "kube.") {
			_, _ = io.WriteString(w, `{"major":"1","minor":"37","gitVersion":"v1.37.2"}`)
			return
		}
		http.NotFound(w, r)
	}
	address := api.gatewayBefore(t, "")
	for host, want := range map[string]int{"kube.example.com": 200, "shop.example.com": 502} {
		message := "PATCH " + widgetsPath + "/w1 HTTP/1.1\r\nHost: " + host + "\r\nContent-Type: application/merge-patch+json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
		if answer := string(exchangeRaw(t, address, []byte(message))); !strings.HasPrefix(answer,
			fmt.Sprintf("HTTP/1.1 %d ", want)) {
			t.Errorf("%s: %s", host, answer)
		}
	}
}

// A backend that cannot be reached has shown nothing: the next request asks again.
func TestProofOfNobody(t *testing.T) {
	c, err := config.Load("", config.Flags{Upstream: "http://127.0.0.1:1", Dialect: "Kubernetes"})
	if err != nil {
		t.Fatal(err)
	}
	set := noPolicies()
	g := newTestGateway(t, c, func() *policies.Set { return set })
	address := startGateway(t, g)
	code, body := asks(t, "POST", "http://"+address+"/api/v1/namespaces/team-a/pods?dryRun=All", "application/json",
		`{"metadata":{"name":"p"}}`)
	if code != 503 || !strings.Contains(body, "the backend cannot be reached") {
		t.Errorf("answered %d %s", code, body)
	}
	if found := g.routes.backends[0].proofs.Knows(address); found {
		t.Error("the failure is remembered")
	}
}
