package shared

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/ratelimit/redistest"
)

// patient is long enough that no decision of a server that works is late, on the slowest machine.
const patient = 10 * time.Second

// recorder keeps what a Store reports.
type recorder struct {
	mu          sync.Mutex
	outcomes    []string
	unavailable []int
}

func (r *recorder) SharedLimitDecided(outcome string, _ time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcomes = append(r.outcomes, outcome)
}

func (r *recorder) SharedLimitStore(unavailable int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unavailable = append(r.unavailable, unavailable)
}

// drain returns the outcomes since it was called last.
func (r *recorder) drain() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.outcomes
	r.outcomes = nil
	return o
}

// open returns a Store on one server, with what change changes.
func open(t testing.TB, address string, change func(*Options)) (*Store, *recorder) {
	t.Helper()
	r := &recorder{}
	o := Options{Mode: Single, Addresses: []string{address}, Prefix: "gateway:", Timeout: patient,
		ConnectTimeout: 5 * time.Second,
		Connections:    4, Metrics: r}
	if change != nil {
		change(&o)
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, r
}

// perHour is a limit that gets no token back while a test runs.
func perHour(n int64) Limit {
	return Limit{Interval: time.Hour, Depth: time.Duration(n) * time.Hour}
}

func demand(key string, l Limit) Demand {
	return Demand{Key: KeyOf(1, []byte(key)), Limit: l, Cost: 1}
}

func mustTake(t *testing.T, s *Store, want bool, demands ...Demand) []Demand {
	t.Helper()
	passes, err := s.Take(demands)
	if err != nil {
		t.Fatal(err)
	}
	if passes != want {
		t.Fatalf("passes: %v, want %v: %+v", passes, want, demands)
	}
	return demands
}

// TestTake: gateways count together, each key on its own.
func TestTake(t *testing.T) {
	server := redistest.Start(t)
	a, _ := open(t, server.Address, nil)
	b, _ := open(t, server.Address, nil)
	other, _ := open(t, server.Address, func(o *Options) { o.Prefix = "other:" })
	for i := range 3 {
		s := []*Store{a, b}[i%2]
		d := mustTake(t, s, true, demand("alice", perHour(3)))[0]
		if want := time.Duration(i+1) * time.Hour; d.Wait != 0 || d.Ahead.Round(time.Minute) != want {
			t.Errorf("request %d: wait %v, ahead %v, want 0 and %v", i, d.Wait, d.Ahead, want)
		}
	}
	for _, s := range []*Store{a, b} {
		if d := mustTake(t, s, false, demand("alice", perHour(3)))[0]; d.Wait <= 59*time.Minute || d.Wait > time.Hour {
			t.Errorf("the wait is %v, want an hour less what has passed", d.Wait)
		}
	}
	mustTake(t, b, true, demand("bob", perHour(3)))
	mustTake(t, other, true, demand("alice", perHour(3)))
}

// TestTakeAllOrNothing: a request that one limit refuses takes nothing from the others, and an advisory one refuses
// none.
func TestTakeAllOrNothing(t *testing.T) {
	s, r := open(t, redistest.Start(t).Address, nil)
	mustTake(t, s, true, demand("narrow", perHour(1)))
	for range 5 {
		got := mustTake(t, s, false, demand("wide", perHour(2)), demand("narrow", perHour(1)))
		if got[1].Wait == 0 {
			t.Error("the narrow limit refuses without a wait")
		}
	}
	r.drain()
	advisory := demand("narrow", perHour(1))
	advisory.Advisory = true
	for range 2 {
		if got := mustTake(t, s, true, demand("wide", perHour(2)), advisory); got[1].Wait == 0 {
			t.Error("an advisory limit that has no token does not say so")
		}
	}
	mustTake(t, s, false, demand("wide", perHour(2)), advisory)
	if got, want := fmt.Sprint(r.drain()), "[Admitted Admitted Refused]"; got != want {
		t.Errorf("outcomes are %s, want %s", got, want)
	}
}

// TestTakeKnown: a refusal is remembered for a while, and then asked for again.
func TestTakeKnown(t *testing.T) {
	server := redistest.Start(t)
	s, r := open(t, server.Address, nil)
	mustTake(t, s, true, demand("alice", perHour(1)))
	mustTake(t, s, false, demand("alice", perHour(1)))
	if d := mustTake(t, s, false, demand("alice", perHour(1)))[0]; d.Wait <= 59*time.Minute {
		t.Errorf("the wait is %v", d.Wait)
	}
	if got, want := fmt.Sprint(r.drain()), "[Admitted Refused Known]"; got != want {
		t.Errorf("outcomes are %s, want %s", got, want)
	}
	if err := client(t, server).FlushAll(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
	for {
		if passes, err := s.Take([]Demand{demand("alice", perHour(1))}); err != nil {
			t.Fatal(err)
		} else if passes {
			return // what Redis forgot does not refuse requests for longer than that
		}
	}
}

// TestTakeWithoutScript: a server that forgot the scripts is sent them again, within the same
// decision.
func TestTakeWithoutScript(t *testing.T) {
	server := redistest.Start(t)
	s, r := open(t, server.Address, nil)
	for range 3 {
		if err := client(t, server).ScriptFlush(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		mustTake(t, s, true, demand("alice", perHour(3)))
	}
	mustTake(t, s, false, demand("alice", perHour(3)))
	if got, want := fmt.Sprint(r.drain()), "[Admitted Admitted Admitted Refused]"; got != want {
		t.Errorf("outcomes are %s, want %s", got, want)
	}
}

// TestTakePipelines: decisions of many requests at once share round trips on a bounded number of connections.
func TestTakePipelines(t *testing.T) {
	server := redistest.Start(t)
	s, _ := open(t, server.Address, func(o *Options) { o.Connections = 2 })
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			for range 50 {
				if passes, err := s.Take([]Demand{demand(fmt.Sprint(i), perHour(50))}); err != nil || !passes {
					t.Errorf("passes: %v, %v", passes, err)
				}
			}
		})
	}
	wg.Wait()
	clients, err := client(t, server).ClientList(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, b := range clients {
		if b == '\n' {
			n++
		}
	}
	if n > 3 { // and the one that asks
		t.Errorf("there are %d connections:\n%s", n, clients)
	}
}

// TestTakeErrors: what Redis refuses is an error that says why, and decides nothing.
func TestTakeErrors(t *testing.T) {
	server := redistest.Start(t, "--requirepass", "correct")
	s, r := open(t, server.Address, func(o *Options) {
		o.Credentials = func() (string, string) { return "", "wrong" }
	})
	_, err := s.Take([]Demand{demand("alice", perHour(1))})
	if !errors.Is(err, ErrUnavailable) {
		t.Fatalf("the error is %v", err)
	}
	t.Log(err)
	if got, want := fmt.Sprint(r.drain()), "[Error]"; got != want {
		t.Errorf("outcomes are %s, want %s", got, want)
	}
	if _, err := Open(Options{Mode: "Many", Addresses: []string{server.Address}}); err == nil {
		t.Error("a mode that there is not is none")
	}
	if _, err := Open(Options{Mode: Single}); err == nil {
		t.Error("a store without an address is none")
	}
}

// TestWasSent: a demand knows whether Redis was asked about it, and not the gateway alone by a lease or a refusal that
// it remembers.
func TestWasSent(t *testing.T) {
	server := redistest.Start(t)
	s, r := open(t, server.Address, func(o *Options) { o.ConnectTimeout = 100 * time.Millisecond })
	leased := perHour(20)
	leased.Lease = 10
	seen := map[string]bool{}
	take := func(demands ...Demand) {
		_, _ = s.Take(demands)
		outcome := r.drain()[0]
		sent := outcome != OutcomeLeased && outcome != OutcomeKnown && outcome != OutcomeOpen
		seen[outcome] = true
		for i := range demands {
			if demands[i].WasSent() != sent {
				t.Errorf("%s: was sent %v, want %v", outcome, demands[i].WasSent(), sent)
			}
		}
	}
	for range 12 {
		take(demand("leased", leased))
		take(demand("narrow", perHour(1)))
	}
	server.Kill()
	for range 12 {
		take(demand("other", perHour(1)))
	}
	for _, outcome := range []string{OutcomeAdmitted, OutcomeLeased, OutcomeRefused, OutcomeKnown, OutcomeError,
		OutcomeOpen} {
		if !seen[outcome] {
			t.Errorf("no decision was %s: %v", outcome, seen)
		}
	}
}
