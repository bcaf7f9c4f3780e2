package telemetry

import (
	"strconv"
	"strings"
	"testing"
)

func TestUpstreams(t *testing.T) {
	tel := newTelemetry(t)
	tel.ObserveUpstreams(func() []Upstream {
		return []Upstream{{
			Name: "orders", Endpoints: map[string]int{"Ready": 2, "Ejected": 1, "Unhealthy": 0},
			Circuits: map[string]int{"Closed": 1, "Open": 0, "HalfOpen": 0},
			Active:   3, Idle: 2, Pending: 1, Retries: 4, Ejections: 5, Surplus: 6, Unended: 7,
			Varying: []string{"carts.example.com", "notes"},
		}}
	})
	var got []string
	for _, line := range scrape(t, tel) {
		if strings.HasPrefix(line, "gateway_upstream") {
			got = append(got, line)
		}
	}
	equalLines(t, got, []string{
		`gateway_upstream_circuit{state="Closed",upstream="orders"} 1`,
		`gateway_upstream_circuit{state="HalfOpen",upstream="orders"} 0`,
		`gateway_upstream_circuit{state="Open",upstream="orders"} 0`,
		`gateway_upstream_connections{state="Active",upstream="orders"} 3`,
		`gateway_upstream_connections{state="Idle",upstream="orders"} 2`,
		`gateway_upstream_ejections_total{upstream="orders"} 5`,
		`gateway_upstream_endpoints{status="Ejected",upstream="orders"} 1`,
		`gateway_upstream_endpoints{status="Ready",upstream="orders"} 2`,
		`gateway_upstream_endpoints{status="Unhealthy",upstream="orders"} 0`,
		`gateway_upstream_pending_requests{upstream="orders"} 1`,
		`gateway_upstream_retries_total{upstream="orders"} 4`,
		`gateway_upstream_surplus_total{upstream="orders"} 6`,
		`gateway_upstream_unended_writes_total{upstream="orders"} 7`,
		`gateway_upstream_varying_reads{resource="carts.example.com",upstream="orders"} 1`,
		`gateway_upstream_varying_reads{resource="notes",upstream="orders"} 1`,
	})
}

// TestManyUpstreams: however many backends there are, few have series of their own, and none is left out of the sums.
func TestManyUpstreams(t *testing.T) {
	tel := newTelemetry(t)
	tel.ObserveUpstreams(func() []Upstream {
		all := make([]Upstream, maxUpstreams+50)
		for i := range all {
			all[i] = Upstream{Name: strconv.Itoa(i), Endpoints: map[string]int{"Ready": 2},
				Circuits: map[string]int{"Closed": 1}, Active: 1, Retries: 3}
		}
		return all
	})
	named, rest := 0, []string{}
	for _, line := range scrape(t, tel) {
		switch {
		case strings.Contains(line, `upstream="other"`) && !strings.HasSuffix(line, " 0"):
			rest = append(rest, line)
		case strings.HasPrefix(line, `gateway_upstream_endpoints{`):
			named++
		}
	}
	if named != maxUpstreams {
		t.Errorf("%d backends have series of their own, want %d", named, maxUpstreams)
	}
	equalLines(t, rest, []string{
		`gateway_upstream_circuit{state="Closed",upstream="other"} 50`,
		`gateway_upstream_connections{state="Active",upstream="other"} 50`,
		`gateway_upstream_endpoints{status="Ready",upstream="other"} 100`,
		`gateway_upstream_retries_total{upstream="other"} 150`,
	})
}
