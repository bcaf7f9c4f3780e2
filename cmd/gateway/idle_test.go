package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// apiServer is an API server of one more resource than the core group, which may be defined later, and of Namespaces.
type apiServer struct {
	mu         sync.Mutex
	hasWidgets bool
	namespaces []string
	watch      chan string // names of new Namespaces
}

func (s *apiServer) defineWidgets() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hasWidgets = true
}

// ServeHTTP implements http.Handler.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const (
		list     = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[%s]}`
		group    = `{"metadata":{"name":"%s"},"versions":[{"version":"v1","resources":[%s]}]}`
		resource = `{"resource":"%s","responseKind":{"group":"%s","version":"v1","kind":"%s"},"scope":"Namespaced","singularResource":"","verbs":["create","get","list"]}`
	)
	namespace := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q,"resourceVersion":"2","labels":{"tier":%q}}}`, name, strings.TrimPrefix(name, "team-"))
	}
	s.mu.Lock()
	hasWidgets, names := s.hasWidgets, slices.Clone(s.namespaces)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	switch r.URL.Path {
	case "/version":
		_, _ = io.WriteString(w, `{"major":"1","minor":"36","gitVersion":"v1.36.0"}`)
	case "/api":
		_, _ = fmt.Fprintf(w, list, fmt.Sprintf(group, "", fmt.Sprintf(resource, "configmaps", "", "ConfigMap")+","+
			fmt.Sprintf(resource, "namespaces", "", "Namespace")))
	case "/apis":
		if !hasWidgets {
			_, _ = fmt.Fprintf(w, list, "")
			return
		}
		_, _ = fmt.Fprintf(w, list,
			fmt.Sprintf(group, "example.com", fmt.Sprintf(resource, "widgets", "example.com", "Widget")))
	case "/api/v1/namespaces":
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Has("watch") {
			w.(http.Flusher).Flush()
			select {
			case name := <-s.watch:
				_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", namespace(name))
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			case <-r.Context().Done():
			}
			return
		}
		items := make([]string, len(names))
		for i, name := range names {
			items[i] = namespace(name)
		}
		_, _ = fmt.Fprintf(w, `{"kind":"NamespaceList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[%s]}`, strings.Join(items, ","))
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}
}

const idlePolicies = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: sizes}
spec:
  paramKind: {apiVersion: example.com/v1, kind: Widget}
  matchConstraints:
    namespaceSelector: {matchLabels: {tier: b}}
    resourceRules:
    - {apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
  validations: [{expression: "params == null || object.metadata.name != ''"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: sizes}
spec: {policyName: sizes, validationActions: [Deny], paramRef: {name: none, namespace: team-a, parameterNotFoundAction: Allow}}
---
apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: creates}
spec:
  match: {apiGroups: [example.com], resources: [widgets], verbs: [create], namespaces: [team-a, team-b]}
  key: Namespace
  requests: 100
  periodSeconds: 1
---
apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: shared, annotations: {admission-gateway.io/unused: Allow}}
spec:
  match: {apiGroups: [""], resources: [configmap], verbs: [create]}
  key: ClientAddress
  requests: 100
  periodSeconds: 1
---
apiVersion: admission-gateway.io/v1alpha1
kind: StateSource
metadata: {name: namespaces}
spec: {resource: {apiVersion: v1, resource: namespaces, kind: Namespace}}
`

// TestIdle: what the policy files name and the API server does not have yet is logged, in the metrics, in gateway
// status and on the status page, for as long as that is so. The gateway starts all the same. What can never apply and
// is meant is shown too.
func TestIdle(t *testing.T) {
	api := &apiServer{namespaces: []string{"team-a"}, watch: make(chan string)}
	backend := httptest.NewServer(api)
	t.Cleanup(backend.CloseClientConnections)
	t.Cleanup(backend.Close)
	files := write(t, "policies.yaml", idlePolicies)
	file := write(t, "gateway.yaml", fmt.Sprintf(`apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
identity: {anonymous: Allow}
upstreams: [{name: cluster, dialect: Kubernetes, endpoints: [%q], tokenFile: %q}]
policies: {paths: [%q]}
`, backend.URL, write(t, "token", "secret"), files))
	p := startServe(t, "", "--config", file)

	const nothing = "applies to no request at the moment: no API server has "
	idle := map[string]string{
		"5:3": "NoKind spec.paramKind: " + nothing + "the kind 'Widget' of 'example.com/v1'",
		"7:5": "NoNamespace spec.matchConstraints.namespaceSelector: " + nothing +
			"a Namespace that the selector selects",
		"9:87": "NoResource spec.matchConstraints.resourceRules[0].resources[0]: " + nothing +
			"the resource 'widgets' in the group 'example.com' and the version 'v1'",
		"22:49": "NoResource spec.match.resources[0]: " + nothing + "the resource 'widgets' in the group 'example.com'",
		"22:97": "NoNamespace spec.match.namespaces[1]: " + nothing + "the Namespace 'team-b'",
		"31:40": "Unused spec.match.resources[0]: matches nothing that the files describe: the group '' has no resource 'configmap'; did you mean `configmaps`?",
	}
	shown := func() map[string]string {
		var s struct {
			Idle []struct{ Reason, Place, Field, Message string }
		}
		if err := json.Unmarshal([]byte(p.get("/status").body), &s); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, one := range s.Idle {
			got[strings.TrimPrefix(one.Place, files+":")] = one.Reason + " " + one.Field + ": " + one.Message
		}
		return got
	}
	expect := func(left ...string) {
		t.Helper()
		want := map[string]string{}
		counts := map[string]int{"Unused": 0, "NoResource": 0, "NoKind": 0, "NoNamespace": 0}
		for _, at := range left {
			want[at] = idle[at]
			reason, _, _ := strings.Cut(idle[at], " ")
			counts[reason]++
		}
		var got map[string]string
		testutil.Becomes(t, fmt.Sprint(want), func() string { got = shown(); return fmt.Sprint(got) })
		metrics, status, page := p.get("/metrics").body, run("status", "--admin", p.admin).stdout, p.get("/").body
		for reason, n := range counts {
			if line := fmt.Sprintf("gateway_policy_idle_places{reason=%q} %d", reason, n); !strings.Contains(metrics,
				"\n"+line+"\n") {
				t.Errorf("the metrics lack %s", line)
			}
		}
		for _, at := range left {
			reason, because, _ := strings.Cut(idle[at], " ")
			row := regexp.MustCompile(regexp.QuoteMeta(files+":"+at) + ` +` + reason + ` +` +
				regexp.QuoteMeta(because+" [never-matches]") + "\n")
			if !row.MatchString(status) {
				t.Errorf("gateway status lacks %s\n%s", row, status)
			}
			if !strings.Contains(page, `<td data-head="Place">`+files+":"+at+`</td><td data-head="Reason">`+reason+
				"</td>") {
				t.Errorf("the page lacks the place %s", at)
			}
			if line := at + ": " + because + `" rule=never-matches`; reason != "Unused" &&
				!strings.Contains(p.log.String(), line) {
				t.Errorf("the log lacks %s", line)
			}
		}
	}
	expect("5:3", "7:5", "9:87", "22:49", "22:97", "31:40")
	api.watch <- "team-b"
	expect("5:3", "9:87", "22:49", "31:40")
	api.defineWidgets()
	r, err := http.Post("http://"+p.listen+"/apis/example.com/v1/namespaces/team-b/widgets", "application/json",
		strings.NewReader(`{}`))
	if err != nil || r.Body.Close() != nil {
		t.Fatal(err)
	}
	expect("31:40")
	testutil.Eventually(t, "the end of it in the log", func() bool {
		return strings.Count(p.log.String(), "applies to no request no longer") == 5
	})
}
