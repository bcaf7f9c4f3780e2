package config

import (
	"strings"
	"testing"
)

// TestDerivedLimits: what requests may hold, and how many do heavy work, follow from the machine if
// the file leaves it open.
func TestDerivedLimits(t *testing.T) {
	const mebi = 1 << 20
	for _, c := range []struct {
		name       string
		stated     Limits
		machine    int64
		processors int
		bytes      int64
		heavy      int32
		short      bool
	}{
		{"nobody says how much there is", Limits{}, 0, 4, 256 * mebi, 3, false},
		{"half of what there is", Limits{}, 461 * mebi, 2, 461 * mebi / 2, 1, false},
		{"one processor", Limits{}, 8192 * mebi, 1, 4096 * mebi, 1, false},
		{"many processors, little memory", Limits{}, 512 * mebi, 64, 256 * mebi, 3, false},
		{"many processors, much memory", Limits{}, 64 << 30, 64, 32 << 30, 63, false},
		{"less than the largest body takes", Limits{}, 128 * mebi, 4, 64 * mebi, 1, true},
		{"less than any body takes", Limits{}, 1 * mebi, 4, 8 * mebi, 1, true},
		{"stated", Limits{BodiesInFlightBytes: 100 * mebi, HeavyRequests: 7}, 64 << 30, 64, 100 * mebi, 7, false},
		{"stated in part", Limits{BodiesInFlightBytes: 100 * mebi}, 64 << 30, 64, 100 * mebi, 1, false},
		{"fewer values fit", Limits{JSONNodes: 100_000}, 32 * mebi, 4, 16 * mebi, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := Default().Limits
			l.BodiesInFlightBytes, l.HeavyRequests = c.stated.BodiesInFlightBytes, c.stated.HeavyRequests
			if c.stated.JSONNodes > 0 {
				l.JSONNodes = c.stated.JSONNodes
			}
			nodes := l.JSONNodes
			l.deriveFrom(c.machine, c.processors)
			if l.BodiesInFlightBytes != c.bytes || l.HeavyRequests != c.heavy || l.JSONNodes != nodes {
				t.Errorf("got %+v", l)
			}
			if got := l.Shortage(); (got != "") != c.short || c.short &&
				!strings.Contains(got, "`limits.bodiesInFlightBytes`") {
				t.Errorf("says %q", got)
			}
		})
	}
}
