package proxy

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/admission-gateway/gateway/admission/decisions"
	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// keptLines is a sink in memory.
type keptLines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (k *keptLines) Name() string { return "memory" }
func (k *keptLines) Close() error { return nil }

func (k *keptLines) Write(_ context.Context, lines []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.b.Write(lines)
}

// decided gives the gateway a decision log. What it returns closes the log, and returns its lines.
func (w *watched) decided(t *testing.T) func() string {
	t.Helper()
	kept := &keptLines{}
	log := decisions.New(decisions.Options{
		Labels: map[string]string{"app": "gateway"}, NewID: telemetry.AppendRequestID, QueueBytes: 1 << 20,
		MaxEventBytes: 1 << 18,
		Dropped: func(sink string, events int, why decisions.Reason) {
			t.Errorf("%d events of %s are lost: %s", events, sink, why)
		},
	}, audit.Waiting{Sink: kept})
	w.observers.decisions = log
	return func() string {
		if err := log.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		kept.mu.Lock()
		defer kept.mu.Unlock()
		return kept.b.String()
	}
}

const decidedPolicies = `
apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: a-one}
spec:
  parameters: {most: 4}
  matchConditions: [{name: sized, expression: has(object.spec.size)}]
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]}
  rego: |
    package sizes
    deny contains msg if {
      input.review.object.spec.size > input.parameters.most
      msg := sprintf("must be at most %d", [input.parameters.most])
    }
---
apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: b-two}
spec:
  validationActions: [Warn]
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]}
  rego: |
    package team.b
    deny contains {"msg": "no", "field": "spec.size"} if input.http.query.fieldManager
    warn contains "old" if input.http.method == "POST"
---
apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: c-broken}
spec:
  failurePolicy: Ignore
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]}
  rego: |
    package c
    deny contains "no" if to_number(input.review.object.spec.mode) > 1
---
apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: d-shown}
spec:
  credentialHeaders: Shown
  validationActions: [Audit]
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]}
  rego: |
    package d
    deny contains input.http.headers.authorization[0]
---
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: k8smode}
spec:
  crd: {spec: {names: {kind: K8sMode}, validation: {openAPIV3Schema: {type: object, properties: {mode: {type: string}}}}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    rego: |
      package k8smode
      violation[{"msg": msg, "details": {"mode": mode}}] {
        mode := input.review.object.spec.mode
        mode == input.parameters.mode
        msg := sprintf("must not be %v", [mode])
      }
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: K8sMode
metadata: {name: unlocked}
spec: {enforcementAction: warn, parameters: {mode: Open}}
---
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: k8smost}
spec:
  crd: {spec: {names: {kind: K8sMost}, validation: {openAPIV3Schema: {type: object, properties: {most: {type: integer}}}}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    code:
    - engine: K8sNativeValidation
      source:
        validations: [{expression: "variables.anyObject.spec.size <= variables.params.most", message: too large}]
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: K8sMost
metadata: {name: few}
spec: {enforcementAction: dryrun, parameters: {most: 4}}
`

var volatile = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`"(uid|creationTimestamp|decision_id|timestamp|requested_by|request_id|configuration|policies)":"[^"]+"`), `"$1":"…"`},
	{regexp.MustCompile(`"host":"[^"]+"`), `"host":"…"`},
	{regexp.MustCompile(`"timer_rego_query_eval_ns":[0-9]+`), `"timer_rego_query_eval_ns":…`},
	{regexp.MustCompile(`"span_id":"[0-9a-f]{16}"`), `"span_id":"…"`},
}

// TestDecisionLog: each policy in Rego and each constraint that judges a request has an event in
// OPA's form, with its decision.
func TestDecisionLog(t *testing.T) {
	w := watch(t, newRecorder(t), policiestest.Write(t, decidedPolicies), "policies=widgets")
	w.traced(t, 0)
	decided := w.decided(t)
	w.ask(t, "POST", widgetsPath+"?fieldManager=x", widget(""),
		"Authorization", "Bearer "+planted, "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	w.ask(t, "POST", widgetsPath, strings.Replace(widget(""), `"size":5`, `"size":3`, 1), "Authorization",
		"Bearer "+planted)
	w.ask(t, "GET", widgetsPath, "")
	got := decided()
	if strings.Contains(got, planted) {
		t.Errorf("the decision log has credentials")
	}
	for _, v := range volatile {
		got = v.find.ReplaceAllString(got, v.put)
	}
	const golden = "testdata/decisions.jsonl"
	if *isUpdate {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || got != string(want) {
		t.Errorf("%v: got\n%s\nwant\n%s", err, got, want)
	}
}
