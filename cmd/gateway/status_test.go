package main

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// volatile matches the parts of the status that differ from run to run.
var volatile = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:]+Z|gateway devel[^\n]* is|up [0-9hms]+|hash [0-9a-f]{12}|of \d+ bytes|127\.0\.0\.1:\d+`)

// TestStatusCommand: `gateway status` asks a gateway that runs, with its token, and prints what it says.
func TestStatusCommand(t *testing.T) {
	_, addr := startBackend(t)
	dir := testutil.WriteFiles(t, map[string]string{
		"token": "correct-horse\n", "wrong": "battery-staple\n", "policies/limit.yaml": limitPolicy,
		"policies/unbound.yaml": `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: unbound}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods]}]}
  validations: [{expression: "true"}]
`,
		"policies/rollout.yaml": `apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: slowly}
spec: {match: {}, requests: 1000, periodSeconds: 1, rollout: {warnUntil: "2999-01-01T00:00:00Z", percent: 10}}
---
apiVersion: admission-gateway.io/v1alpha1
kind: PolicyException
metadata: {name: legacy}
spec:
  policies: [{kind: ValidatingAdmissionPolicy, names: [unbound]}]
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods]}]}
  reason: imported
  expires: "2020-01-01T00:00:00Z"
`,
		"gateway.yaml": `apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
admin: {tokenFile: token}
policies: [policies]
drainSeconds: 600
telemetry: {audit: {log: {path: audit.log}}}
`,
	})
	p := startServe(t, addr, "--config", filepath.Join(dir, "gateway.yaml"))
	for _, authorization := range []string{"", "Bearer correct-horse"} {
		r, err := http.NewRequest(http.MethodGet, "http://"+p.admin+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", authorization)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.Body.Close() != nil {
			t.Fatal(err)
		}
		// Nothing was lost yet, and an alert will see the first loss.
		if has := strings.Contains(string(text),
			"\ngateway_audit_lost_events_total{sink=\"log\"} 0\n"); has != (authorization != "") {
			t.Errorf("/metrics with %q: the counter of lost events is there: %v", authorization, has)
		}
	}
	token := []string{"status", "--admin", p.admin, "--token-file", filepath.Join(dir, "token")}
	if got := fetch("http://" + p.listen + "/v2/orders"); got.code != 200 {
		t.Fatalf("the gateway answers %+v", got)
	}
	expect := func(got result, code int, stdout, stderr string) {
		t.Helper()
		got.stdout = strings.ReplaceAll(volatile.ReplaceAllString(got.stdout, "…"), dir, "DIR")
		if want := (result{code, stdout, stderr}); got != want {
			t.Errorf("printed with code %d\n%s%s\nwant with code %d\n%s%s", got.code, got.stdout, got.stderr, code,
				stdout, stderr)
		}
	}
	const asks = "gateway status: the admin listener answers 401 Unauthorized: the admin listener asks for the token of `admin.tokenFile`: /livez and /readyz alone need none\n"
	expect(run("status", "--admin", p.admin), 1, "", asks)
	expect(run("status", "--admin", p.admin, "--token-file", filepath.Join(dir, "wrong")), 1, "", asks)
	expect(run("status", "-o", "yaml"), 2, "", "gateway status: --output: must be 'text' or 'json', not 'yaml'\n")
	if got := run("status", "--admin", testutil.FreeAddress(t)); got.code != 1 ||
		!strings.HasPrefix(got.stderr, "gateway status: the admin listener does not answer; ") {
		t.Errorf("where nobody listens: %+v", got)
	}
	// A client has its answer before the request is over for the gateway. A connection to the backend may be open
	// still.
	connections, spaces, name := regexp.MustCompile(`Ready \d`), regexp.MustCompile(` +`),
		regexp.MustCompile(`(?m)^[a-z]+ Closed`)
	normal := func() string {
		text := strings.ReplaceAll(volatile.ReplaceAllString(run(token...).stdout, "…"), dir, "DIR")
		return connections.ReplaceAllString(name.ReplaceAllString(spaces.ReplaceAllString(text, " "), "NAME Closed"),
			"Ready N")
	}
	testutil.Becomes(t, `… ready, …

configuration: …, in force since …
policies: generation 1, …, in force since …
last read at …: Loaded, 3 findings
 DIR/policies/rollout.yaml:13:3: spec.expires: warning: the exception ended at …, and has no effect
 DIR/policies/unbound.yaml:3:12: metadata.name: warning: no ValidatingAdmissionPolicyBinding names the policy 'unbound', so that it never runs
 the configuration: telemetry.audit: warning: no request is recorded: there is no audit Policy (audit.k8s.io/v1) among the policy files
 DIR/policies/limit.yaml RateLimitPolicy per-client
 DIR/policies/rollout.yaml RateLimitPolicy slowly
 DIR/policies/rollout.yaml PolicyException legacy
 DIR/policies/unbound.yaml ValidatingAdmissionPolicy unbound

POLICY VERDICT REQUESTS
per-client Admit 1
slowly Admit 1

ROLLOUT ENFORCED OTHERWISE
RateLimitPolicy/slowly from … on, for 10 % would have refused or changed 0 of 1 requests since …

EXCEPTION POLICIES ENDS USED REASON
legacy ValidatingAdmissionPolicy/unbound … (expired) 0 imported

LIMIT REQUESTS BY OVER TIME AT A TIME SCOPE MODE
per-client all ClientAddress 50 in 1s, 50 at once - Local Enforce
slowly all ClientAddress 1000 in 1s, 1000 at once - Local Enforce

LISTENER ADDRESSES PROTOCOL HOSTS ROUTES STATE
listen … HTTP * 1 Serving

UPSTREAM CIRCUIT ENDPOINT STATUS CONNECTIONS IN FLIGHT
NAME Closed … Ready N 0

0 requests in flight hold 0 …
lost: 0 lines of the log, 0 events of the audit log for its log
`, normal)

	var s admin.Status
	if got := run(append(token, "-o", "json")...); got.code != 0 || json.Unmarshal([]byte(got.stdout), &s) != nil ||
		s.Policies.Generation != 1 || len(s.Verdicts) != 0 ||
		len(s.Limits) != 2 || s.Limits[0] != (admin.Tally{Policy: "per-client", Verdict: "Admit", Count: 1}) ||
		s.Requests.BodyBytesLimit == 0 ||
		len(s.RateLimits) != 2 || s.RateLimits[0].Requests != 50 || s.RateLimits[0].Burst != 50 ||
		s.RequestLimits.BodyBytes != config.Default().Limits.BodyBytes || s.RequestLimits.HeavyRequests == 0 {
		t.Errorf("as JSON: %+v", got)
	}
	expect(run(append(token, "--request", "POST /api/v1/namespaces/team-a/pods")...), 0, `POST /api/v1/namespaces/team-a/pods
  route / to the upstream default
  post /api/v1/namespaces/team-a/pods
  stages: identify, limit, pass

APPLIES  PHASE  KIND                       NAME        BECAUSE
No       None   ValidatingAdmissionPolicy  unbound     no binding names it
Yes             RateLimitPolicy            per-client
Yes             RateLimitPolicy            slowly      enforced from … on, for 10 %, and only tried otherwise
`, "")
	expect(run(append(token, "--request", "BREW")...), 0, `BREW
  refused: the request line must be a method, a target and a version, each divided by one space
`, "")
	p.signal(t, syscall.SIGTERM)
	testutil.Eventually(t, "draining", func() bool { return p.get("/readyz").code == 503 })
	if got := run(token...); got.code != 1 || got.stderr != "" || !strings.Contains(got.stdout, "is NOT READY, up ") ||
		!strings.Contains(got.stdout, "\n  draining: the gateway is shutting down\n") {
		t.Errorf("while it drains: %+v", got)
	}
}
