package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// A policy that is bound elsewhere costs nothing at the backend: each write is one request, as without the policy. Where it is
// bound the stored object is read, and a patch is tried, before that.
func TestBoundElsewhere(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/version" { // once, before the first dry run
			_, _ = io.WriteString(w, `{"major":"1","minor":"37","gitVersion":"v1.37.2"}`)
			return
		}
		mu.Lock()
		asked = append(asked, strings.TrimSuffix(r.Method+" "+r.URL.RawQuery, " "))
		mu.Unlock()
		_, namespace, _ := strings.Cut(r.URL.Path, "/namespaces/")
		namespace, _, _ = strings.Cut(namespace, "/")
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"`+namespace+`","resourceVersion":"1","uid":"u"},"data":{"a":"b"}}`)
	}))
	defer backend.Close()
	policy := func(binding string) string {
		return `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: kept}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE, DELETE], resources: [configmaps]}]}
  validations: [{expression: "oldObject.data.a == 'b'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: kept}
spec: {policyName: kept, validationActions: [Deny], matchResources: ` + binding + `}
`
	}
	none := map[string][]string{"PUT": {"PUT"}, "PATCH": {"PATCH"}, "DELETE": {"DELETE"}}
	judged := map[string][]string{"PUT": {"GET", "PUT"}, "PATCH": {"PATCH dryRun=All", "GET", "PATCH"}, "DELETE": {"GET", "DELETE"}}
	for name, c := range map[string]struct {
		binding string
		want    map[string][]string
	}{
		"everywhere":        {`{}`, judged},
		"this namespace":    {`{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: team-a}}}`, judged},
		"another namespace": {`{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: team-b}}}`, none},
		"other namespaces":  {`{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, team-a]}]}}`, none},
		"another object":    {`{resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [configmaps], resourceNames: [b]}]}`, none},
		"another resource":  {`{resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [secrets]}]}`, none},
		"another operation": {`{resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CONNECT, CREATE], resources: [configmaps]}]}`, none},
		"not this object":   {`{excludeResourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [configmaps], resourceNames: [a]}]}`, none},
		"not other objects": {`{excludeResourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [configmaps], resourceNames: [b]}]}`, judged},
	} {
		t.Run(name, func(t *testing.T) {
			dir := testutil.WriteFiles(t, map[string]string{"policy.yaml": policy(c.binding)})
			address := startGateway(t, gatewayFor(t, dir, strings.TrimPrefix(backend.URL, "http://"), []string{"kubernetes"}))
			for method, want := range c.want {
				body, contentType := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"team-a","uid":"u","resourceVersion":"1"},"data":{"a":"b"}}`, "application/json"
				switch method {
				case "PATCH":
					body, contentType = `{"data":{"c":"d"}}`, "application/merge-patch+json"
				case "DELETE":
					body = ""
				}
				r, err := http.NewRequest(method, "http://"+address+"/api/v1/namespaces/team-a/configmaps/a", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Content-Type", contentType)
				mu.Lock()
				asked = nil
				mu.Unlock()
				answer, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				if err != nil || answer.StatusCode != http.StatusOK {
					t.Errorf("%s is answered %s %s (%v)", method, answer.Status, text, err)
				}
				mu.Lock()
				if !slices.Equal(asked, want) {
					t.Errorf("the backend is asked %q for a %s, want %q", asked, method, want)
				}
				mu.Unlock()
			}
		})
	}
}
