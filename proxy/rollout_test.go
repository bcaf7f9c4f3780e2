package proxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/rollout"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// TestFailMatrixTried: each fault by which a policy refuses requests lets them pass while it is
// only tried, whatever its failure policy, and a counter counts it. An exception leaves no fault at
// all.
func TestFailMatrixTried(t *testing.T) {
	const exception = `---
apiVersion: admission-gateway.io/v1alpha1
kind: PolicyException
metadata: {name: e}
spec:
  policies: [{kind: ValidatingAdmissionPolicy, names: [p]}]
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods]}]}
  reason: legacy
`
	cells := matrix()
	// the policy is not to blame
	cells = slices.DeleteFunc(cells, func(c cell) bool { return c.fail.code != http.StatusUnprocessableEntity })
	if len(cells) < 8 {
		t.Errorf("only %d cells are about policies", len(cells))
	}
	for _, c := range testutil.Sampled(3, cells) {
		spec := c.spec
		if inner, ok := strings.CutPrefix(spec, "{"); ok {
			spec = strings.NewReplacer("], validations:", "]\n  validations:", "}, validations:",
				"}\n  validations:").Replace(strings.TrimSuffix(inner, "}"))
		}
		enforced := fmt.Sprintf(undecidable, "Fail", c.selector, spec, c.binding) + c.also
		for _, one := range []struct {
			name, policies, counter string
			errors                  int
		}{
			{"tried", strings.Replace(enforced, "metadata: {name: p}", `metadata: {name: p, annotations: {admission-gateway.io/rollout: '{"percent": 0}'}}`, 1), "gateway_admission_errors", 1},
			{"excepted", enforced + exception, "gateway_admission_exceptions", 0},
		} {
			t.Run(c.name+"/"+one.name, func(t *testing.T) {
				t.Parallel()
				backend := newMatrixBackend(t, c.reads)
				cfg, err := config.Load("", config.Flags{Upstream: "http://" + backend.address, Dialect: "Kubernetes"})
				if err != nil {
					t.Fatal(err)
				}
				set := policiestest.Load(t, one.policies)
				g := newTestGateway(t, cfg, func() *policies.Set { return set })
				checkCell(t, g, startGateway(t, g), &c, backend,
					want{code: c.pass.code, written: 1, denied: one.errors})
				testutil.Becomes(t, 1, func() int { return counted(t, g, one.counter) })
				if n := counted(t, g, "gateway_admission_would_deny"); n != 0 {
					t.Errorf("a policy that fails would have denied %d requests", n)
				}
			})
		}
	}
}

const triedPolicies = auditPolicy + `---
apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: owners}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: ["*"], operations: [CREATE], resources: [widgets]}]}
  rollout: {warnUntil: "2026-06-30T12:00:00Z"}
  rego: |
    package owners
    deny contains {"msg": "must be 1", "field": "spec.size"} if input.review.object.spec.size != 1
---
apiVersion: admission-gateway.io/v1alpha1
kind: PolicyException
metadata: {name: large}
spec:
  policies: [{kind: ValidatingAdmissionPolicy, names: [small]}]
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: ["*"], operations: [CREATE], resources: [widgets]}]}
  matchConditions: [{name: large, expression: object.spec.size == 70}]
  reason: agreed with team-a
`

// TestTermsObserved: what is tried, and what is excepted, is in the counts of the rollout, in metrics, in
// the access log and in the annotations of the audit log.
func TestTermsObserved(t *testing.T) {
	backend, to := newRecorder(t), &keptEvents{}
	w := audited(t, backend.Addr().String(), to, audit.Batch, triedPolicies)
	w.clock = func() time.Time { return time.Date(2026, 6, 30, 11, 59, 0, 0, time.UTC) }
	sized := func(size string) string { return strings.Replace(widget(""), `"size":5`, `"size":`+size, 1) }
	for _, c := range []struct {
		body string
		code int
	}{
		{sized("5"), 201}, {sized("1"), 201}, {sized("70"), 201}, {sized("60"), 422},
	} {
		if got := w.ask(t, "POST", widgetsPath, c.body); got.StatusCode != c.code {
			t.Errorf("%s is answered with %d, want %d", c.body, got.StatusCode, c.code)
		}
	}
	events := w.events(t, to) // after the last request
	noted := regexp.MustCompile(`"annotations":\{[^}]*\}[^}]*\}`).FindAllString(events, -1)
	slices.Sort(noted)
	const (
		tried    = `"rollout.admission-gateway.io/would_deny":"[{\"message\":\"policy 'owners' denied request: must be 1\",\"policy\":\"owners\"}]"`
		excepted = `"rollout.admission-gateway.io/excepted":"[{\"policy\":\"small\",\"exception\":\"large\",\"reason\":\"agreed with team-a\"}]"`
	)
	for part, times := range map[string]int{tried: 3, excepted: 1, `"admission-gateway.io/denied-by":"small"`: 1} {
		if got := strings.Count(events, part); got != times {
			t.Errorf("%s is there %d times, want %d, in\n%s", part, got, times, strings.Join(noted, "\n"))
		}
	}
	metrics := httptest.NewRecorder()
	w.metrics.Handler().ServeHTTP(metrics, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, line := range []string{
		`gateway_admission_would_deny_total{policy="owners"} 3`,
		`gateway_admission_exceptions_total{exception="large",policy="small"} 1`,
		`gateway_policy_verdicts_total{policy="owners",verdict="WouldDeny"} 3`,
		`gateway_policy_verdicts_total{policy="owners",verdict="Allow"} 1`,
		`gateway_policy_verdicts_total{policy="small",verdict="Except"} 1`,
		`gateway_policy_verdicts_total{policy="small",verdict="Deny"} 1`,
	} {
		if !strings.Contains(metrics.Body.String(), "\n"+line+"\n") {
			t.Errorf("no line %s in the metrics", line)
		}
	}
	terms := w.policies().Terms()
	if got, want := terms.Rollouts[0].Count().Numbers(), (rollout.Numbers{Would: 3, Tried: 4}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if got := terms.Exceptions[0].Used(); got != 1 {
		t.Errorf("the exception was used %d times", got)
	}
}

// TestTermsInAccessLog: the lines name policies that would have refused, and exceptions.
func TestTermsInAccessLog(t *testing.T) {
	w := watch(t, newRecorder(t), policiestest.Write(t, observedPolicies+"---\n"+triedPolicies), "policies=widgets")
	w.clock = func() time.Time { return time.Date(2026, 6, 30, 11, 59, 0, 0, time.UTC) }
	w.ask(t, "POST", widgetsPath, strings.Replace(widget(""), `"size":5`, `"size":70`, 1))
	got := w.lines(t)
	if want := " gateway.would_deny=owners gateway.exceptions=large "; strings.Count(got, want) != 1 {
		t.Errorf("no%sin\n%s", want, got)
	}
}

// TestForecastTerms: the applicability of a request says how far policies are enforced, and what excepts it.
func TestForecastTerms(t *testing.T) {
	g := gatewayFor(t, policiestest.Write(t, observedPolicies+"---\n"+strings.Replace(triedPolicies, "2026-06-30",
		"2999-06-30", 1)), newRecorder(t).Addr().String(), []string{"policies=widgets"})
	found := map[string]string{}
	for _, o := range g.Forecast("POST " + widgetsPath).Applicability.Validating {
		found[o.Name] = string(o.Applies) + ": " + o.Because
	}
	for name, want := range map[string]string{
		"small":  "Maybe: if the PolicyException 'large' does not except the object",
		"owners": "Yes: enforced from 2999-06-30T12:00:00Z on, and only tried otherwise",
	} {
		if found[name] != want {
			t.Errorf("%s: got %q, want %q", name, found[name], want)
		}
	}
}
