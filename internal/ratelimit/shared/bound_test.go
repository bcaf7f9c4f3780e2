package shared

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/ratelimit/redistest"
)

// admitted is a request that passed: at some time between two.
type admitted struct{ from, to int64 }

// load has many clients of several gateways ask for one limit until so many requests passed, and returns those.
func load(t *testing.T, stores []*Store, l Limit, clients, requests int,
	when func(d []Demand, from, to int64) admitted) []admitted {
	t.Helper()
	return loadWith(t, stores, clients, requests, func() []Demand { return []Demand{demand("load", l)} }, when)
}

// loadWith does so with other demands.
func loadWith(t *testing.T, stores []*Store, clients, requests int, demands func() []Demand,
	when func(d []Demand, from, to int64) admitted) []admitted {
	t.Helper()
	var mu sync.Mutex
	var all []admitted
	var wg sync.WaitGroup
	start := time.Now()
	for _, s := range stores {
		for range clients {
			wg.Go(func() {
				for {
					from := int64(time.Since(start))
					d := demands()
					passes, err := s.Take(d)
					to := int64(time.Since(start))
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					if passes {
						all = append(all, when(d, from, to))
					}
					enough := len(all) >= requests
					mu.Unlock()
					if enough {
						return
					}
				}
			})
		}
	}
	wg.Wait()
	return all
}

// most finds the span in which most passed beyond what GCRA would let pass, and returns by how many.
func most(all []admitted, l Limit) (over int64, span string) {
	slices.SortFunc(all, func(a, b admitted) int { return int(a.to - b.to) })
	over = -1 << 62
	for _, first := range all {
		n := int64(0)
		for _, a := range all {
			if a.from < first.from {
				continue
			}
			n++
			d := a.to - first.from
			if o := n - int64(l.Depth/l.Interval) - d/int64(l.Interval); o > over {
				over, span = o, fmt.Sprintf("%d in %v", n, time.Duration(d))
			}
		}
	}
	return over, span
}

// TestBound: several gateways on one Redis never let more pass than burst + Δt/interval, in any span of time by the
// clock of Redis.
func TestBound(t *testing.T) {
	for _, gateways := range []int{2, 4} {
		t.Run(fmt.Sprint(gateways), func(t *testing.T) {
			server := redistest.Start(t)
			var stores []*Store
			for range gateways {
				s, _ := open(t, server.Address, nil)
				stores = append(stores, s)
			}
			l := Limit{Interval: time.Millisecond, Depth: 50 * time.Millisecond}
			all := load(t, stores, l, 4, 1000, func(d []Demand, _, _ int64) admitted {
				at := d[0].taken.seconds*1e9 + d[0].taken.nanos
				return admitted{at, at}
			})
			over, span := most(all, l)
			if over > 0 {
				t.Errorf("%d more passed than may: %s", over, span)
			}
			if over < -int64(l.Depth/l.Interval) {
				t.Errorf("the burst was never used: %d", over)
			}
		})
	}
}

// TestBoundWithLeases: with leases it is at most one batch for each gateway more.
func TestBoundWithLeases(t *testing.T) {
	for _, gateways := range []int64{2, 4} {
		t.Run(fmt.Sprint(gateways), func(t *testing.T) {
			server := redistest.Start(t)
			var stores []*Store
			var recorders []*recorder
			for range gateways {
				s, r := open(t, server.Address, nil)
				stores, recorders = append(stores, s), append(recorders, r)
			}
			l := Limit{Interval: time.Millisecond, Depth: 100 * time.Millisecond, Lease: 20}
			all := load(t, stores, l, 4, 1500, func(_ []Demand, from, to int64) admitted { return admitted{from, to} })
			// One more, because the clocks of gateways and Redis may run apart by so much.
			if over, span := most(all, l); over > gateways*l.Lease+1 {
				t.Errorf("%d more passed than without leases: %s", over, span)
			}
			asked := 0
			for _, r := range recorders {
				for _, o := range r.drain() {
					if o == OutcomeAdmitted || o == OutcomeRefused {
						asked++
					}
				}
			}
			// How often depends on how evenly the gateways run: a batch that is not used in time is asked for again.
			if asked >= len(all) {
				t.Errorf("Redis was asked %d times for %d requests that passed", asked, len(all))
			}
		})
	}
}
