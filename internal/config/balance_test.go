package config

import (
	"reflect"
	"strings"
	"testing"
)

const balanced = head + "upstreams:\n- name: orders\n  endpoints: ['http://orders.example.com']\n"

func TestBalance(t *testing.T) {
	for name, c := range map[string]struct {
		lines string
		want  func(b *Balance)
	}{
		"defaults": {"", func(*Balance) {}},
		"everything off": {`
  resolvePeriodSeconds: 0
  ejection: {consecutiveFailures: 0}
  healthCheck: null
  retries: {budgetPercent: 0, minPerSecond: 0}
  circuitBreaker: null
`, func(b *Balance) {
			b.ResolvePeriodSeconds, b.Ejection.ConsecutiveFailures, b.Retries = 0, 0, Retries{}
		}},
		"everything on, with its defaults": {`
  healthCheck: {path: /readyz}
  circuitBreaker: {}
`, func(b *Balance) {
			b.HealthCheck = &HealthCheck{Path: "/readyz", PeriodSeconds: 10, TimeoutSeconds: 2, UnhealthyThreshold: 3,
				HealthyThreshold: 2}
			b.CircuitBreaker = &CircuitBreaker{ConsecutiveFailures: 20, OpenSeconds: 5, MaxOpenSeconds: 60}
		}},
		"everything": {`
  resolvePeriodSeconds: 5
  maxConnectionsPerEndpoint: 100
  maxPendingRequests: 10
  ejection: {consecutiveFailures: 3, baseSeconds: 20, maxSeconds: 60, maxEjectedPercent: 100}
  healthCheck: {path: "/healthz?verbose", periodSeconds: 5, timeoutSeconds: 5, unhealthyThreshold: 1, healthyThreshold: 1, expectedStatus: 204}
  retries: {budgetPercent: 10, minPerSecond: 1}
  slowStartSeconds: 30
  circuitBreaker: {consecutiveFailures: 2, openSeconds: 90}
`, func(b *Balance) {
			*b = Balance{
				ResolvePeriodSeconds: 5, MaxConnectionsPerEndpoint: 100, MaxPendingRequests: 10,
				Ejection: Ejection{ConsecutiveFailures: 3, BaseSeconds: 20, MaxSeconds: 60, MaxEjectedPercent: 100},
				HealthCheck: &HealthCheck{Path: "/healthz?verbose", PeriodSeconds: 5, TimeoutSeconds: 5,
					UnhealthyThreshold: 1, HealthyThreshold: 1, ExpectedStatus: 204},
				Retries:          Retries{BudgetPercent: 10, MinPerSecond: 1},
				SlowStartSeconds: 30,
				CircuitBreaker:   &CircuitBreaker{ConsecutiveFailures: 2, OpenSeconds: 90, MaxOpenSeconds: 90},
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, problem, _ := load(t, balanced+c.lines, Flags{})
			if problem != "" {
				t.Fatal(problem)
			}
			want := defaultBalance()
			c.want(&want)
			if !reflect.DeepEqual(got.Upstreams[0].Balance, want) {
				t.Errorf("got\n%+v\nwant\n%+v", got.Upstreams[0].Balance, want)
			}
		})
	}
}

// VAL-3
func TestBalanceProblems(t *testing.T) {
	for lines, want := range map[string]string{
		"resolvePeriodSeconds: -1":      "upstreams[0].resolvePeriodSeconds: must be between 0 and 86400, inclusive, not -1",
		"maxConnectionsPerEndpoint: -1": "upstreams[0].maxConnectionsPerEndpoint: must be between 0 and 1048576, inclusive, not -1",
		"maxPendingRequests: 0":         "upstreams[0].maxPendingRequests: must be between 1 and 1048576, inclusive, not 0",
		"ejection: {consecutiveFailures: 1001, maxEjectedPercent: 101}": "upstreams[0].ejection.consecutiveFailures: must be between 0 and 1000, inclusive, not 1001\n" +
			"upstreams[0].ejection.maxEjectedPercent: must be between 1 and 100, inclusive, not 101",
		"ejection: {baseSeconds: 400}":                        "upstreams[0].ejection.maxSeconds: must be greater than or equal to `baseSeconds`, which is 400",
		"ejection: {baseSeconds: 0}":                          "upstreams[0].ejection.baseSeconds: must be between 1 and 86400, inclusive, not 0",
		"retries: {budgetPercent: 101, minPerSecond: -1}":     "upstreams[0].retries.budgetPercent: must be between 0 and 100, inclusive, not 101\nupstreams[0].retries.minPerSecond: must be between 0 and 10000, inclusive, not -1",
		"slowStartSeconds: 86401":                             "upstreams[0].slowStartSeconds: must be between 0 and 86400, inclusive, not 86401",
		"healthCheck: {}":                                     "upstreams[0].healthCheck.path: Required value: must be a path such as '/readyz'",
		"healthCheck: {path: readyz}":                         "upstreams[0].healthCheck.path: must begin with '/', not 'readyz'",
		`healthCheck: {path: "/a b"}`:                         "upstreams[0].healthCheck.path: must have only printable ASCII characters, without spaces and '#'",
		`healthCheck: {path: "/a\r\nX: b"}`:                   "upstreams[0].healthCheck.path: must have only printable ASCII characters, without spaces and '#'",
		"healthCheck: {path: /, timeoutSeconds: 11}":          "upstreams[0].healthCheck.periodSeconds: must be greater than or equal to `timeoutSeconds`, which is 11",
		"healthCheck: {path: /, expectedStatus: 99}":          "upstreams[0].healthCheck.expectedStatus: must be between 200 and 599, inclusive, not 99",
		"healthCheck: {path: /, unhealthyThreshold: -1}":      "upstreams[0].healthCheck.unhealthyThreshold: must be between 1 and 100, inclusive, not -1",
		"circuitBreaker: {openSeconds: 9, maxOpenSeconds: 8}": "upstreams[0].circuitBreaker.maxOpenSeconds: must be greater than or equal to `openSeconds`, which is 9",
		"circuitBreaker: {consecutiveFailures: -1}":           "upstreams[0].circuitBreaker.consecutiveFailures: must be between 1 and 100000, inclusive, not -1",
		"healthcheck: {}":                                     "upstreams[0].healthcheck: unknown field; did you mean `healthCheck`?",
	} {
		_, problem, _ := load(t, balanced+"  "+lines+"\n", Flags{})
		var got []string
		for _, line := range strings.Split(problem, "\n") {
			_, message, _ := strings.Cut(line, ": ")
			got = append(got, message)
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("%s:\ngot  %s\nwant %s", lines, strings.Join(got, "\n"), want)
		}
	}
}

func TestHosts(t *testing.T) {
	for host, want := range map[string]bool{
		"a": true, "A.example.com.": true, "my_service": true, "127.0.0.1": true, "::1": true, "fe80::1%eth0": true,
		"1a-b.c": true, strings.Repeat("a", 63): true,
		"": false, ".": false, "a..b": false, "]": false, "a b": false, "a:b": false, "a~": false, "ä": false,
		strings.Repeat("a", 64):         false,
		strings.Repeat("a.", 127) + "a": false,
	} {
		if got := isHost(host); got != want {
			t.Errorf("%q: got %v", host, got)
		}
	}
}
