package policies

import (
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// What a RateLimitPolicy may not say, and what it cannot mean, with the place (VAL-3).
func TestRateLimitPolicyFindings(t *testing.T) {
	const head = "apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: l}\nspec:\n"
	const paced = "  requests: 10\n  periodSeconds: 60\n"
	tests := []struct{ name, spec, want string }{
		{"everything at once", paced + `  burst: 20
  mode: Warn
  key: User
  cost: "request.verb == 'list' ? 5 : 1"
  maxInFlight: 4
  maxInFlightTotal: 100
  headers: Never
  exemptions: {usernames: [a], groups: [system:masters], namespaces: [kube-system], clientAddresses: [192.0.2.1, 10.0.0.0/8, 'fd00::/8']}
`, ""},
		{"requests in flight alone", "  maxInFlight: 4\n  queueLength: 10\n  queueTimeoutSeconds: 5\n", ""},
		{"requests without a period", "  requests: 1\n", "a.yaml:4: spec.periodSeconds: Required value: must be set when `requests` is set\n"},
		{"the terms of a limit over time without one",
			"  maxInFlightTotal: 1\n  periodSeconds: 1\n  burst: 1\n  cost: '1'\n", "" +
				"a.yaml:6: spec.periodSeconds: Forbidden: may not be set unless `requests` is set\n" +
				"a.yaml:7: spec.burst: Forbidden: may not be set unless `requests` is set\n" +
				"a.yaml:8: spec.cost: Forbidden: may not be set unless `requests` is set\n"},
		{"a queue for nothing", paced + "  queueLength: 1\n", "a.yaml:7: spec.queueLength: Forbidden: may not be set unless `maxInFlight` or `maxInFlightTotal` is set\n"},
		{"the time in no queue", "  maxInFlight: 1\n  queueTimeoutSeconds: 1\n", "a.yaml:6: spec.queueTimeoutSeconds: Forbidden: may not be set unless `queueLength` is set\n"},
		{"more of each key than in all", "  maxInFlight: 5\n  maxInFlightTotal: 4\n", "a.yaml:5: spec.maxInFlight: Invalid value: must be less than or equal to `maxInFlightTotal`\n"},
		{"out of bounds", "  maxInFlight: 0\n  maxInFlightTotal: 1000001\n  queueLength: 10001\n  queueTimeoutSeconds: 61\n", "" +
			"a.yaml:5: spec.maxInFlight: Invalid value: 0: must be greater than or equal to 1\n" +
			"a.yaml:6: spec.maxInFlightTotal: Invalid value: 1000001: must be less than or equal to 1000000\n" +
			"a.yaml:7: spec.queueLength: Invalid value: 10001: must be less than or equal to 10000\n" +
			"a.yaml:8: spec.queueTimeoutSeconds: Invalid value: 61: must be less than or equal to 60\n"},
		{"values that there are not", paced + "  mode: Audit\n  headers: Sometimes\n", "" +
			"a.yaml:7: spec.mode: Unsupported value: \"Audit\": supported values: \"Enforce\", \"Warn\"\n" +
			"a.yaml:8: spec.headers: Unsupported value: \"Sometimes\": supported values: \"Always\", \"Never\"\n"},
		{"addresses that are none", paced + "  exemptions: {clientAddresses: [10.0.0.0/33]}\n", "" +
			"a.yaml:7: spec.exemptions.clientAddresses[0]: Invalid value: \"10.0.0.0/33\": must be an IP address, or a network such as '10.0.0.0/8'\n"},
		{"a cost that is no integer", paced + "  cost: request.verb\n", "a.yaml:7: spec.cost: Invalid value: \"request.verb\": must evaluate to int but got string\n"},
		{"a cost beyond the burst", paced + "  burst: 5\n  cost: \"request.verb == 'list' ? 6 : 1\"\n",
			"a.yaml:8: spec.cost: warning: comes to 6 for the verb 'list', which must be less than or equal to the burst, 5, to count in full: it counts as 5, and passes only when nothing else came\n"},
		{"a cost beyond the burst of verbs that do not count",
			paced + "  cost: \"request.verb == 'list' ? 60 : 1\"\n  match: {verbs: [get]}\n", ""},
		{"a cost of nothing", paced + "  cost: \"request.verb == 'get' ? 0 : 1\"\n",
			"a.yaml:7: spec.cost: warning: comes to 0 for the verb 'get', which counts as 1: requests that are to cost nothing may be left out by `spec.match` or `spec.exemptions`\n"},
		{"a cost that depends on more", paced + "  cost: int(request.query['limit']) / 100\n", ""},
		{"everybody is exempt", paced + "  exemptions: {clientAddresses: ['0.0.0.0/0']}\n",
			"a.yaml:7: spec.exemptions.clientAddresses[0]: warning: exempts every client: a policy that nobody is held to may be left out\n"},
		{"a queue where nobody is refused", "  maxInFlight: 1\n  queueLength: 1\n  mode: Warn\n",
			"a.yaml:6: spec.queueLength: warning: has no effect while `spec.mode` is 'Warn': nobody waits where nobody is refused\n"},
		{"updates without patches", paced + "  match: {verbs: [create, update]}\n",
			"a.yaml:7: spec.match.verbs[1]: warning: names 'update' and not 'patch': who sends PATCH in place of PUT is not counted; name both\n"},
		{"updates and patches", paced + "  match: {verbs: [update, patch]}\n", ""},
		{"creates alone", paced + "  match: {verbs: [create]}\n", ""},
		{"watches in flight", "  maxInFlightTotal: 1\n  match: {verbs: [watch]}\n",
			"a.yaml:5: spec.maxInFlightTotal: warning: counts a watch only until its answer begins, so that it does not bound how many there are\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := testutil.WriteFiles(t, map[string]string{"a.yaml": head + test.spec})
			_, found := Load([]string{dir})
			if got := strings.ReplaceAll(text(dir, found), dir, "DIR"); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// The ready-made limits are without findings.
func TestLibraryOfRateLimits(t *testing.T) {
	set, found := Load([]string{"library/ratelimits"})
	if set == nil || len(found) > 0 {
		t.Error(found)
	}
}
