package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/admission-gateway/gateway/internal/testutil"
)

const ownEventsConfiguration = `apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
drainSeconds: 0
upstreams:
- {name: shop, endpoints: ['http://127.0.0.1:1'], dialect: Plain, circuitBreaker: {consecutiveFailures: 1, openSeconds: 60, maxOpenSeconds: 60}}
- {name: cluster, endpoints: ['%s'], dialect: Kubernetes, events: Record}
routes: [{pathPrefix: /shop, upstream: shop}, {pathPrefix: /, upstream: cluster}]
bundles: [{name: rules, url: 'http://127.0.0.1:1/bundle.tar.gz'}]
policies: ['%s']
`

const readsUsers = `apiVersion: admission-gateway.io/v1alpha1
kind: StateSource
metadata: {name: users}
spec: {upstream: shop, path: /shop/users, mode: Poll, periodSeconds: 3600, whenMissing: Fail}
`

// What happens to the gateway itself is recorded as Events about its Pod, at the backend that takes Events: a backend,
// a collection and a bundle that fail, and policy files that are refused, and in force again.
func TestOwnEvents(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "gateways")
	t.Setenv("POD_NAME", "gateway-0")
	var mu sync.Mutex
	var seen []eventsv1.Event
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var e eventsv1.Event
		if r.Method == http.MethodPost && json.Unmarshal(body, &e) == nil {
			mu.Lock()
			seen = append(seen, e)
			mu.Unlock()
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}))
	t.Cleanup(cluster.Close)
	files := t.TempDir()
	policy := filepath.Join(files, "users.yaml")
	testutil.WriteFile(t, policy, readsUsers)
	p := startUnready(t, "", "--config",
		write(t, "gateway.yaml", fmt.Sprintf(ownEventsConfiguration, cluster.URL, files)))
	testutil.Eventually(t, "serving", func() bool { return strings.Contains(p.log.String(), "msg=serving") })
	recorded := func(reason, severity, about, note string) {
		t.Helper()
		testutil.Eventually(t, reason, func() bool {
			mu.Lock()
			defer mu.Unlock()
			for i := range seen {
				e := &seen[i]
				if e.Reason != reason || e.Related.Kind+" "+e.Related.Name != about {
					continue
				}
				if e.Namespace != "gateways" || e.Regarding.Kind != "Pod" || e.Regarding.Name != "gateway-0" ||
					e.Type != severity || !strings.Contains(e.Note, note) {
					t.Errorf("the event is %+v", e)
				}
				return true
			}
			return false
		})
	}
	recorded("StateUnread", "Warning", "State /shop/users", "the state /shop/users cannot be read: ")
	recorded("UpstreamFailed", "Warning", "Upstream shop",
		"upstream shop: the backend does not answer and is not asked for a while")
	recorded("BundleFailed", "Warning", "Bundle rules", "the bundle rules failed (Download): ")
	testutil.WriteFile(t, policy, strings.Replace(readsUsers, "mode:", "moda:", 1))
	recorded("PoliciesRejected", "Warning", "Policies files", "users.yaml:4:43: spec.moda: unknown field")
	testutil.WriteFile(t, policy, readsUsers+"---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")
	recorded("PoliciesInForce", "Normal", "Policies files", "the policy files are in force as generation 2")
}
