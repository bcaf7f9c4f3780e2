package telemetry

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSharedLimits(t *testing.T) {
	tel := newTelemetry(t)
	tel.SharedLimitDecided("Admitted", 300*time.Microsecond)
	tel.SharedLimitDecided("Admitted", 2*time.Millisecond)
	tel.SharedLimitDecided("Timeout", 10*time.Millisecond)
	tel.SharedLimitStore(1)
	var got []string
	for _, line := range scrape(t, tel) {
		if strings.HasPrefix(line, "gateway_shared_limit") &&
			(!strings.Contains(line, "_bucket") || strings.Contains(line, `le="0.001"`)) {
			got = append(got, line)
		}
	}
	slices.Sort(got)
	equalLines(t, got, []string{
		`gateway_shared_limit_decision_duration_seconds_bucket{outcome="Admitted",le="0.001"} 1`,
		`gateway_shared_limit_decision_duration_seconds_bucket{outcome="Timeout",le="0.001"} 0`,
		`gateway_shared_limit_decision_duration_seconds_count{outcome="Admitted"} 2`,
		`gateway_shared_limit_decision_duration_seconds_count{outcome="Timeout"} 1`,
		`gateway_shared_limit_decision_duration_seconds_sum{outcome="Admitted"} 0.0023`,
		`gateway_shared_limit_decision_duration_seconds_sum{outcome="Timeout"} 0.01`,
		`gateway_shared_limit_unavailable_servers 1`,
	})
}
