package main

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/backend"
	"github.com/admission-gateway/gateway/internal/explanation"
	"github.com/admission-gateway/gateway/internal/testutil"
)

const played = `apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: tickets}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [shop.example.com], apiVersions: [v2], operations: [CREATE], resources: [orders]}]}
  rollout: {percent: 0}
  rego: |
    package tickets
    deny contains {"msg": "must not be tried", "field": "customer"} if input.review.object.customer == "tried"
---
apiVersion: admission-gateway.io/v1alpha1
kind: PolicyException
metadata: {name: imported}
spec:
  policies: [{kind: RegoPolicy, names: [tickets]}]
  matchConstraints: {resourceRules: [{apiGroups: [shop.example.com], apiVersions: [v2], operations: [CREATE], resources: [orders]}]}
  matchConditions: [{name: imported, expression: "object.customer == 'imported'"}]
  reason: it is old
---
apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: one}
spec: {key: ClientAddress, requests: 1, periodSeconds: 3600}
`

// TestPlaygroundOfGateway: a running gateway explains requests by its policies in force. Nothing of them reaches its
// backend, no limit counts them, and nothing that operators are shown changes.
func TestPlaygroundOfGateway(t *testing.T) {
	api, addr := startBackend(t)
	var asked atomic.Int64
	api.SetFault(func(r *backend.Request) backend.Fault {
		if r.Target != "/version" { // by which the gateway warns of API servers
			asked.Add(1)
		}
		return backend.Fault{}
	})
	p := startServe(t, addr, "--policies", "../../policies/library/demo/orders.yaml", "--policies",
		write(t, "played.yaml", played))
	asked.Store(0)
	before := activityOf(t, p)
	for _, c := range []struct {
		customer string
		want     explanation.Decision
	}{{"team-a", explanation.Admitted}, {"tried", explanation.Admitted}, {"imported", explanation.Admitted},
		{"", explanation.Refused},
		{"team-a", explanation.Admitted}} {
		body, err := json.Marshal(map[string]any{"id": "o1", "customer": c.customer,
			"lines": []any{map[string]any{"sku": "tea", "unitPriceCents": 4}}})
		if err != nil {
			t.Fatal(err)
		}
		question, err := json.Marshal(map[string]any{"inForce": true, "method": "POST", "path": "/v2/orders",
			"body": string(body)})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.Post("http://"+p.admin+"/playground/ask", "application/json",
			strings.NewReader(string(question)))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		var told explanation.Explanation
		if err != nil || answer.StatusCode != 200 || json.Unmarshal(text, &told) != nil ||
			told.Answer.Decision != c.want {
			t.Errorf("the order of '%s' is answered with %d %s, want it %s", c.customer, answer.StatusCode, text,
				c.want)
		}
	}
	if n := asked.Load(); n != 0 || api.Len() != 0 {
		t.Errorf("the backend got %d requests, and has %d objects", n, api.Len())
	}
	if after := activityOf(t, p); !reflect.DeepEqual(after, before) {
		t.Errorf("operators are shown %+v, before it was %+v", after, before)
	}
	testutil.Eventually(t, "page", func() bool { return strings.Contains(p.get("/").body, `href="/playground#`) })
}

// activityOf returns what the status says of requests.
func activityOf(t *testing.T, p *process) admin.Status {
	t.Helper()
	var s admin.Status
	if err := json.Unmarshal([]byte(p.get("/status").body), &s); err != nil {
		t.Fatal(err)
	}
	return admin.Status{Verdicts: s.Verdicts, Limits: s.Limits, Rollouts: s.Rollouts, Exceptions: s.Exceptions,
		Refusals: s.Refusals, Answers: s.Answers}
}
