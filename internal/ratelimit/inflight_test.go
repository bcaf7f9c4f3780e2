package ratelimit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func crowd(perKey, total, queue int) *Rule {
	return &Rule{Name: "crowd", Key: Namespace, InFlight: InFlight{PerKey: perKey, Total: total, QueueLength: queue,
		QueueTimeout: time.Second}}
}

// visitor is a request that asks for a place.
type visitor struct {
	Charges
	limiter *Limiter
}

func visit(l *Limiter, rules *Rules, namespace string) *visitor {
	r := create("192.0.2.1")
	r.Info.Namespace = namespace
	v := &visitor{limiter: l}
	rules.Charge(&v.Charges, r)
	return v
}

// enter waits for a place, at most for the time of the rule that has none.
func (v *visitor) enter(gone <-chan struct{}) bool {
	full := v.limiter.Enter(&v.Charges)
	if full == nil {
		return true
	}
	return v.limiter.Wait(&v.Charges, full, time.Now().Add(full.Rule.InFlight.QueueTimeout), gone) == nil
}

func (v *visitor) leave() { v.limiter.Leave(&v.Charges) }

// nothing is served and nothing waits, so that no key takes memory.
func (l *Limiter) isEmpty() bool {
	for _, r := range l.slots.rules {
		if r.served != 0 || len(r.keys) != 0 || r.ready.Len() != 0 {
			return false
		}
	}
	return l.Waiting() == 0
}

func TestInFlightIsBounded(t *testing.T) {
	l, rules := New(100), NewRules([]*Rule{crowd(2, 3, 0)})
	a1, a2, a3 := visit(l, rules, "a"), visit(l, rules, "a"), visit(l, rules, "a")
	b1, b2 := visit(l, rules, "b"), visit(l, rules, "b")
	for i, step := range []struct {
		v    *visitor
		want string
	}{
		{a1, ""}, {a2, ""},
		{a3, "the rate limit 'crowd' allows 2 requests at a time for each namespace: try again after 1 second"},
		{b1, ""},
		{b2, "the rate limit 'crowd' allows 3 requests at a time in all: try again after 1 second"},
	} {
		got := ""
		if full := l.Enter(&step.v.Charges); full != nil {
			got = full.InFlightMessage(l.Dropped(full, time.Unix(1_800_000_000, 0)))
		}
		if got != step.want {
			t.Errorf("step %d: got %q, want %q", i, got, step.want)
		}
	}
	a1.leave()
	a1.leave() // once is enough
	if l.Enter(&b2.Charges) != nil {
		t.Error("nobody took the place that was given back, and it is not there")
	}
	for _, v := range []*visitor{a2, b1, b2} {
		v.leave()
	}
	if !l.isEmpty() {
		t.Error("something is left")
	}
}

// A limit that only warns has a place for every request, and knows which had none.
func TestInFlightWarns(t *testing.T) {
	rule := crowd(1, 0, 0)
	rule.Mode = Warn
	l, rules := New(100), NewRules([]*Rule{rule})
	first, second := visit(l, rules, "a"), visit(l, rules, "a")
	if l.Enter(&first.Charges) != nil || l.Enter(&second.Charges) != nil {
		t.Fatal("a limit that only warns refused")
	}
	if first.All()[0].Exceeds() || !second.All()[0].Exceeds() {
		t.Error("the second is beyond the limit, and only that")
	}
	want := "the rate limit 'crowd' allows 1 request at a time for each namespace: this request will be refused once it is enforced"
	if got := second.All()[0].Warning(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	first.leave()
	second.leave()
	if !l.isEmpty() {
		t.Error("something is left")
	}
}

// Requests that wait are served one key after the other, and the requests of a key in their order.
func TestQueueIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, rules := New(100), NewRules([]*Rule{crowd(0, 1, 10)})
		first := visit(l, rules, "x")
		first.enter(nil)
		var mu sync.Mutex
		var served []string
		for _, name := range []string{"a1", "a2", "a3", "a4", "b1", "c1", "c2"} {
			go func() {
				v := visit(l, rules, name[:1])
				if !v.enter(nil) {
					t.Errorf("%s was not served", name)
				}
				mu.Lock()
				served = append(served, name)
				mu.Unlock()
				v.leave()
			}()
			synctest.Wait()
		}
		first.leave()
		synctest.Wait()
		if want := []string{"a1", "b1", "c1", "a2", "c2", "a3", "a4"}; !slices.Equal(served, want) {
			t.Errorf("served %v, want %v", served, want)
		}
		if !l.isEmpty() {
			t.Error("something is left")
		}
	})
}

// The queue of a key is bounded in length and in time, and who goes away frees its place in it.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, rules := New(100), NewRules([]*Rule{crowd(1, 0, 2)})
		first := visit(l, rules, "a")
		first.enter(nil)
		start := time.Now()
		results := map[string]string{}
		var mu sync.Mutex
		come := func(name string, gone chan struct{}) {
			go func() {
				v := visit(l, rules, "a")
				ok := v.enter(gone)
				mu.Lock()
				results[name] = fmt.Sprint(ok, " after ", time.Since(start))
				mu.Unlock()
			}()
			synctest.Wait()
		}
		leaves := make(chan struct{})
		come("stays too long", nil)
		come("goes away", leaves)
		come("finds the queue full", nil)
		time.Sleep(500 * time.Millisecond)
		close(leaves)
		synctest.Wait()
		come("comes into the room", nil)
		time.Sleep(600 * time.Millisecond)
		first.leave()
		synctest.Wait()
		want := map[string]string{
			"stays too long": "false after 1s", "goes away": "false after 500ms",
			"finds the queue full": "false after 0s",
			"comes into the room":  "true after 1.1s",
		}
		mu.Lock()
		defer mu.Unlock()
		for name, w := range want {
			if results[name] != w {
				t.Errorf("%s: %s, want %s", name, results[name], w)
			}
		}
	})
}

// Requests under several rules take no place while they wait, so that no two of them wait for each
// other, and the requests of one key do not keep the places of all others.
func TestQueueTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &Rule{Name: "all", Key: Global, InFlight: InFlight{Total: 2, QueueLength: 10, QueueTimeout: time.Second}}
		l, rules := New(100), NewRules([]*Rule{all, crowd(1, 0, 10)})
		first := visit(l, rules, "a")
		first.enter(nil)
		for range 5 {
			go func() {
				v := visit(l, rules, "a")
				if v.enter(nil) {
					v.leave()
				}
			}()
		}
		synctest.Wait()
		other := visit(l, rules, "b")
		if !other.enter(nil) {
			t.Error("requests that wait keep the place of another key")
		}
		other.leave()
		first.leave()
		synctest.Wait()
		if !l.isEmpty() {
			t.Error("something is left")
		}
	})
}

// New bounds hold for what is served and waits already.
func TestBoundsOutliveReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(100)
		narrow, wide := NewRules([]*Rule{crowd(1, 0, 5)}), NewRules([]*Rule{crowd(3, 0, 5)})
		served := make(chan bool, 1)
		first := visit(l, narrow, "a")
		first.enter(nil)
		go func() { served <- visit(l, narrow, "a").enter(nil) }()
		synctest.Wait()
		if third := visit(l, wide, "a"); l.Enter(&third.Charges) != nil {
			t.Error("there is room for three")
		}
		if !<-served {
			t.Error("who waited was not let in")
		}
		if fourth := visit(l, wide, "a"); l.Enter(&fourth.Charges) == nil {
			t.Error("there is no room for four")
		}
	})
}

// Whatever comes and goes: no bound is ever exceeded, no request waits while there is room, and
// nothing is left in the end.
func TestInFlightAtRandom(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			perKey, total := random.IntN(4), random.IntN(6)
			if perKey+total == 0 {
				total = 1
			}
			bounds := []*Rule{crowd(perKey, total, random.IntN(4)),
				{Name: "all", Key: Global,
					InFlight: InFlight{PerKey: 4, QueueLength: 3, QueueTimeout: 2 * time.Second}}}
			l, rules := New(100), NewRules(bounds)
			var mu sync.Mutex
			served, all := map[string]int{}, 0
			var wg sync.WaitGroup
			for i := range 200 {
				key := fmt.Sprint(random.IntN(4))
				arrives, stays := time.Duration(random.IntN(20_000))*time.Millisecond,
					time.Duration(random.IntN(600))*time.Millisecond
				gone := make(chan struct{})
				if i%7 == 0 {
					time.AfterFunc(arrives+stays/2, func() { close(gone) })
				}
				wg.Go(func() {
					time.Sleep(arrives)
					v := visit(l, rules, key)
					if !v.enter(gone) {
						return
					}
					mu.Lock()
					served[key]++
					all++
					if perKey > 0 && served[key] > perKey || total > 0 && all > total || all > 4 {
						t.Errorf("%d of one key and %d in all are served, want at most %d and %d", served[key], all,
							perKey, total)
					}
					mu.Unlock()
					time.Sleep(stays)
					mu.Lock()
					served[key]--
					all--
					mu.Unlock()
					v.leave()
				})
			}
			wg.Wait()
			if !l.isEmpty() {
				t.Error("something is left")
			}
		})
	}
}

// To be served and to leave takes no memory of its own.
func BenchmarkEnterAndLeave(b *testing.B) {
	l, rules := New(100), NewRules([]*Rule{crowd(10, 1000, 10)})
	v := visit(l, rules, "a")
	b.ReportAllocs()
	for b.Loop() {
		if l.Enter(&v.Charges) != nil {
			b.Fatal("full")
		}
		l.Leave(&v.Charges)
	}
}
