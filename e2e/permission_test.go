package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestForbiddenAsByTheServer: users without permission are refused in the server's own words, byte for byte but for the
// end of the line, where a policy would deny it; and users with permission get the policy's message. What is asked of
// the server for that is in no other words than the request's own.
func TestForbiddenAsByTheServer(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("the-gateway"), 0o600); err != nil {
		t.Fatal(err)
	}
	through := startGatewayWith(t, "upstreams: [{name: main, endpoints: ['"+server.Guarded+
		"'], dialect: Kubernetes, tokenFile: "+token+"}]\n", nil, "testdata/denying.yaml")
	server.Allow("the-gateway", "create subjectaccessreviews")
	server.Allow("boss", "*")
	server.Reason("bob", `RBAC: clusterrole.rbac.authorization.k8s.io "<writers>" not found`)
	const (
		deployments = "/apis/apps/v1/namespaces/team-a/deployments"
		deployment  = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":1}}`
		leases      = "/apis/coordination.k8s.io/v1/namespaces/team-a/leases"
		lease       = `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l"}}`
		node        = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}`
		namespace   = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team-a"}}`
		scale       = `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web"},"spec":{"replicas":2}}`
		binding     = `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"p"},"target":{"name":"n"}}`
		eviction    = `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"}}`
		pods        = "/api/v1/namespaces/team-a/pods"
	)
	requests := 0
	for _, c := range []struct{ method, path, contentType, body string }{
		{"POST", deployments, "application/json", deployment},
		{"POST", deployments + "?dryRun=All&fieldManager=m", "application/json", deployment},
		{"POST", deployments + "?timeout=5s", "application/json", deployment},
		{"PUT", deployments + "/web", "application/json", deployment},
		{"PATCH", deployments + "/web", mergePatch, `{"spec":{"replicas":2}}`},
		{"PATCH", deployments + "/web", jsonPatch, `[{"op":"add","path":"/spec/replicas","value":2}]`},
		{"PATCH", deployments + "/web?fieldManager=m", applyPatch, deployment},
		{"PATCH", deployments + "/web?fieldManager=m&force=true", applyPatch, deployment},
		{"DELETE", deployments + "/web", "", ""},
		{"DELETE", deployments + "/web", "application/json",
			`{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}`},
		{"DELETE", deployments, "", ""},
		{"DELETE", deployments + "?labelSelector=app%3Da&fieldSelector=metadata.name%3Dweb", "", ""},
		{"PUT", deployments + "/web/scale", "application/json", scale},
		{"PATCH", deployments + "/web/scale", mergePatch, `{"spec":{"replicas":2}}`},
		{"PUT", deployments + "/web/status", "application/json", deployment},
		{"PATCH", deployments + "/web/status", mergePatch, `{"status":{}}`},
		{"POST", leases, "application/json", lease},
		{"PUT", leases + "/l", "application/json", lease},
		{"POST", widgets, "application/json",
			`{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":"w"}}`},
		{"POST", "/api/v1/nodes", "application/json", node},
		{"PUT", "/api/v1/nodes/n", "application/json", node},
		{"PATCH", "/api/v1/nodes/n/status", mergePatch, `{"status":{}}`},
		{"DELETE", "/api/v1/nodes/n", "", ""},
		{"DELETE", "/api/v1/nodes", "", ""},
		{"POST", "/api/v1/namespaces", "application/json", namespace},
		{"PUT", "/api/v1/namespaces/team-a", "application/json", namespace},
		{"PUT", "/api/v1/namespaces/team-a/finalize", "application/json", namespace},
		{"DELETE", "/api/v1/namespaces/team-a", "", ""},
		{"POST", pods + "/p/binding", "application/json", binding},
		{"POST", pods + "/p/eviction", "application/json", eviction},
		{"POST", pods + "/p/exec?command=sh", "", ""},
		{"GET", pods + "/p/exec?command=sh", "", ""},
		{"POST", pods + "/p/attach", "", ""},
		{"GET", pods + "/p/portforward?ports=80", "", ""},
		{"GET", pods + "/p/proxy/a/b", "", ""},
		{"PUT", "/api/v1/nodes/n/proxy/a/b", "application/json", "{}"},
		{"DELETE", "/api/v1/namespaces/team-a/services/s/proxy/a", "", ""},
	} {
		for _, as := range []string{"alice", "bob", "<eve&>", "", "nobody"} {
			var header []string
			if as != "" {
				header = []string{"Authorization", "Bearer " + as}
			}
			want := ask(t, c.method, server.Guarded+c.path, c.contentType, c.body, header...)
			got := ask(t, c.method, through.url+c.path, c.contentType, c.body, header...)
			if got.code != want.code || strings.TrimSpace(got.body) != strings.TrimSpace(want.body) {
				t.Errorf("%s %s as %q:\ngot  %d %s\nwant %d %s", c.method, c.path, as, got.code, got.body, want.code,
					want.body)
			}
			if want.code != 403 && want.code != 401 {
				t.Errorf("%s %s as %q: the server lets it pass: %d", c.method, c.path, as, want.code)
			}
			requests++
		}
	}
	if asked := server.Reviews(); len(asked) < 60 || len(asked) > requests {
		t.Errorf("%d reviews of %d requests", len(asked), requests)
	}
	for range 2 {
		got := ask(t, "POST", through.url+deployments, "application/json", deployment, "Authorization", "Bearer boss")
		if got.code != 422 || !strings.Contains(got.body, "secret") {
			t.Errorf("who may is told %d %s", got.code, got.body)
		}
	}
	if asked := server.Reviews(); len(asked) != 1 || asked[0] != "boss create deployments" {
		t.Errorf("asked %q", asked)
	}
	if got := ask(t, "GET", through.url+widgets, "", "", "Authorization", "Bearer alice"); got.code != 403 ||
		len(server.Reviews()) > 0 {
		t.Errorf("a list is answered %d %s", got.code, got.body)
	}
}
