package balance

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-gateway/gateway/internal/circuit"
)

// none stands for the connections to an endpoint.
type none struct{}

// newTestSet is a set of endpoints, each of an origin of its own, that always have room.
func newTestSet(policy Policy, addrs ...string) *Set[none] {
	s := New(policy, func(*Endpoint[none]) bool { return true })
	for i, addr := range addrs {
		s.Replace(&Origin{Position: i, Authority: addr, IsFixed: true}, []string{addr}, time.Now())
	}
	return s
}

// The choice sends less to an endpoint that is slow, and as much to one as to another of the others.
func TestChoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		s := newTestSet(Policy{}, "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")
		counts := make(map[*Endpoint[none]]*atomic.Int64)
		for _, e := range s.All() {
			counts[e] = new(atomic.Int64)
		}
		slow := s.All()[0]
		done := make(chan bool)
		const clients, requests = 40, 500
		for range clients {
			go func() {
				for range requests {
					mu.Lock()
					e := s.Choose(&FailedEndpoints[none]{})
					e.Busy++
					mu.Unlock()
					counts[e].Add(1)
					took := 10 * time.Millisecond
					if e == slow {
						took *= 10
					}
					time.Sleep(took)
					mu.Lock()
					e.Busy--
					mu.Unlock()
				}
				done <- true
			}()
		}
		for range clients {
			<-done
		}
		for i, e := range s.All() {
			share := float64(counts[e].Load()) / (clients * requests)
			if low, high := 0.25, 0.38; i == 0 && share > 0.12 || i > 0 && (share < low || share > high) {
				t.Errorf("%s got %.3f of the requests", e.Addr, share)
			}
		}
	})
}

// Two of two are compared, so the busier one is never chosen.
func TestChoiceOfTwo(t *testing.T) {
	s := newTestSet(Policy{}, "10.0.0.1", "10.0.0.2")
	for range 100 {
		s.Choose(&FailedEndpoints[none]{}).Busy++
		if one, other := s.all[0].Busy, s.all[1].Busy; one-other > 1 || other-one > 1 {
			t.Fatalf("one endpoint has %d exchanges, the other one %d", one, other)
		}
	}
}

// An endpoint without room is not chosen, however idle it is.
func TestChoiceNeedsRoom(t *testing.T) {
	full := map[string]bool{}
	s := New(Policy{}, func(e *Endpoint[none]) bool { return !full[e.Addr] })
	s.Replace(&Origin{}, []string{"a", "b", "c"}, time.Now())
	for _, c := range []struct{ full, want string }{{"", "abc"}, {"a", "bc"}, {"bc", "a"}, {"abc", ""}} {
		clear(full)
		for _, name := range c.full {
			full[string(name)] = true
		}
		for range 20 {
			e := s.Choose(&FailedEndpoints[none]{})
			if e == nil != (c.want == "") || e != nil && !strings.Contains(c.want, e.Addr) {
				t.Fatalf("with %q full, %v was chosen", c.full, e)
			}
		}
	}
}

// When an endpoint answered last, and whether its last health check was passed.
func TestHeard(t *testing.T) {
	s := newTestSet(Policy{Health: Thresholds{Unhealthy: 3, Healthy: 1}}, "a")
	e := s.All()[0]
	s.Check(e, nil, time.Time{}) // the first one decides at once
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	for i, step := range []struct {
		do     func(now time.Time)
		heard  int // 0 is never
		isWell bool
	}{
		{func(now time.Time) { s.Observe(e, Failed, now) }, 0, true},
		{func(now time.Time) { s.Observe(e, Inconclusive, now) }, 0, true},
		{func(now time.Time) { s.Observe(e, Answered, now) }, 3, true},
		{func(now time.Time) { s.Observe(e, Unavailable, now) }, 4, true},
		{func(now time.Time) { s.Check(e, nil, now) }, 5, true},
		{func(now time.Time) { s.Check(e, errors.New("refused"), now) }, 5, false},
		{func(now time.Time) { s.Check(e, nil, now) }, 7, true},
	} {
		step.do(at(i + 1))
		if got := e.Heard(); (step.heard == 0) != got.IsZero() || step.heard != 0 && !got.Equal(at(step.heard)) ||
			e.IsWell() != step.isWell {
			t.Errorf("step %d: heard at %v, well %v; want %d, %v", i+1, got, e.IsWell(), step.heard, step.isWell)
		}
	}
}

// When health checks change the status of an endpoint.
func TestHealthThresholds(t *testing.T) {
	s := newTestSet(Policy{Health: Thresholds{Unhealthy: 3, Healthy: 2}}, "10.0.0.1", "10.0.0.2")
	bad := errors.New("no answer")
	for i, c := range []struct {
		err       error
		unhealthy bool
	}{
		{bad, true}, // the first decides alone
		{nil, true}, {bad, true}, {nil, true}, {nil, false},
		{bad, false}, {bad, false}, {nil, false},
		{bad, false}, {bad, false}, {bad, true},
		{nil, true}, {nil, false},
	} {
		e := s.All()[0]
		s.Check(e, c.err, time.Now())
		ready := 2
		if c.unhealthy {
			ready = 1
		}
		if status, _ := e.Status(); (status == EndpointUnhealthy) != c.unhealthy || len(s.ready) != ready {
			t.Errorf("check %d: the status is %v, %d endpoints are ready", i, status, len(s.ready))
		}
	}
	const one, other = "Unhealthy 10.0.0.1 no answer", "Healthy 10.0.0.1 "
	if got := reported(s); got != strings.Join([]string{one, other, one, other}, "; ") {
		t.Errorf("reported: %s", got)
	}
}

// reported returns the changes since the last call.
func reported(s *Set[none]) string {
	var all []string
	for _, c := range s.TakeChanges() {
		all = append(all, fmt.Sprint(c.Event, " ", c.Endpoint, " ", c.Cause))
	}
	return strings.Join(all, "; ")
}

// The exchanges with all endpoints together open and close the circuit.
func TestCircuit(t *testing.T) {
	s := newTestSet(Policy{Breaker: circuit.Policy{Failures: 3, Open: 5 * time.Second, MaxOpen: 15 * time.Second}},
		"10.0.0.1", "10.0.0.2")
	start := time.Unix(1_700_000_000, 0)
	for i, c := range []struct {
		at        int // seconds
		outcome   Outcome
		isRefused bool
		state     circuit.State
		events    string
	}{
		{at: 0, outcome: Failed},
		{at: 0, outcome: Failed},
		{at: 0, outcome: Unavailable}, // an answer
		{at: 0, outcome: Failed},
		{at: 0, outcome: Failed},
		{at: 1, outcome: Inconclusive},
		{at: 1, outcome: Failed, state: circuit.Open, events: "CircuitOpened"},
		{at: 5, isRefused: true, state: circuit.Open},
		{at: 6, outcome: Inconclusive, state: circuit.HalfOpen, events: "CircuitProbed"},
		{at: 6, outcome: Failed, state: circuit.Open, events: "CircuitOpened"},
		{at: 16, outcome: Failed, state: circuit.Open, events: "CircuitProbed CircuitOpened"},
		{at: 31, outcome: Answered, events: "CircuitProbed CircuitClosed"},
	} {
		now := start.Add(time.Duration(c.at) * time.Second)
		probe, err := s.Admit(now)
		if (err != nil) != c.isRefused {
			t.Fatalf("%d: got %v", i, err)
		}
		if err == nil {
			s.Observe(s.Choose(&FailedEndpoints[none]{}), c.outcome, now)
			s.EndProbe(probe)
		}
		var events []string
		for _, change := range s.TakeChanges() {
			events = append(events, change.Event.String())
		}
		if s.Circuit() != c.state || strings.Join(events, " ") != c.events {
			t.Errorf("%d: the circuit is %v after %v", i, s.Circuit(), events)
		}
	}
}

// Replacing the addresses of an origin leaves the endpoints of others, and the history of the ones that stay.
func TestReplace(t *testing.T) {
	s := newTestSet(Policy{}, "10.0.0.1")
	name := &Origin{Position: -1, Authority: "name:80"}
	for i, c := range []struct{ addrs, all, report string }{
		{"a b", "a b 10.0.0.1", "AddressesChanged name:80 2 added, 0 removed, 2 in all"},
		{"a b", "a b 10.0.0.1", ""},
		{"b c d", "b c d 10.0.0.1", "AddressesChanged name:80 2 added, 1 removed, 3 in all"},
		{"", "10.0.0.1", "AddressesChanged name:80 0 added, 3 removed, 0 in all"},
	} {
		before := s.All()
		added, removed := s.Replace(name, strings.Fields(c.addrs), time.Now())
		var all []string
		for _, e := range s.All() {
			all = append(all, e.Addr)
		}
		if got := strings.Join(all, " "); got != c.all || len(before)+len(added)-len(removed) != len(all) {
			t.Errorf("%d: the endpoints are %s; %d were added and %d removed", i, got, len(added), len(removed))
		}
		for _, e := range removed {
			if !e.IsRemoved() {
				t.Errorf("%d: %s does not know that it was removed", i, e.Addr)
			}
		}
		if got := reported(s); got != c.report {
			t.Errorf("%d: reported %q", i, got)
		}
	}
}
