package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

const annotatingPolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: annotating}
spec:
  matchConstraints: {resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}]}
  auditAnnotations: [{key: size, valueExpression: "'small'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: annotating}
spec: {policyName: annotating, validationActions: [Deny]}
`

// TestAnnotationsOnce: annotations that policies make of a request are in the audit log, or in the log if there is
// none.
func TestAnnotationsOnce(t *testing.T) {
	t.Parallel()
	for name, isAudited := range map[string]bool{"with an audit log": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			dir, sink := t.TempDir(), "{}"
			events := filepath.Join(dir, "events")
			if isAudited {
				sink = "{audit: {log: {path: " + events + "}}}"
			}
			p := startLogging(t, dir, sink, func(p *process) {
				p.Args = append(p.Args, "--policies", filepath.Join(dir, "policies.yaml"), "--policies",
					write(t, "annotating.yaml", annotatingPolicy))
			})
			if code := p.try(t); code != http.StatusCreated {
				t.Fatalf("the answer is %d", code)
			}
			const annotation = "annotating/size"
			if isAudited {
				testutil.Eventually(t, "the event has the annotation", func() bool {
					text, err := os.ReadFile(events)
					return err == nil && strings.Contains(string(text), annotation)
				})
			} else {
				testutil.Eventually(t, "the log has the annotation",
					func() bool { return strings.Contains(p.log.String(), `msg="audit annotations"`) })
			}
			if has := strings.Contains(p.log.String(), `msg="audit annotations"`); has == isAudited {
				t.Errorf("the log has the annotation: %t", has)
			}
			for line := range strings.Lines(p.log.String()) {
				if strings.Contains(line, `msg="policy file"`) && strings.Contains(line, ": note: ") &&
					!strings.Contains(line, "level=INFO") {
					t.Errorf("a note is no warning: %s", line)
				}
			}
		})
	}
}

// TestRedisAwayIsShown: a Redis that does not answer is shown where an operator looks first, and fails no check.
func TestRedisAwayIsShown(t *testing.T) {
	t.Parallel()
	_, addr := startBackend(t)
	config := write(t, "gateway.yaml", "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\ndrainSeconds: 0\nredis: {addresses: ['"+testutil.FreeAddress(t)+"']}\n")
	p := startServe(t, addr, "--config", config, "--policies", write(t, "policies.yaml", sharedPolicies))
	var ready reply
	testutil.Eventually(t, "/readyz?verbose says so", func() bool {
		fetch("http://" + p.listen + "/v2/orders/o1")
		ready = p.get("/readyz?verbose")
		return strings.Contains(ready.body, "[+]redis ok, but: ")
	})
	if ready.code != http.StatusOK {
		t.Errorf("/readyz is %+v", ready)
	}
	if status := run("status", "--admin", p.admin); !strings.Contains(status.stdout, "of Redis") {
		t.Errorf("gateway status says\n%s%s", status.stdout, status.stderr)
	}
}
