package ratelimit

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/ratelimit/redistest"
	"github.com/admission-gateway/gateway/internal/ratelimit/shared"
	"github.com/admission-gateway/gateway/internal/resource"
)

// broken is a store that is unavailable.
type broken struct{ asked int }

func (b *broken) Take([]shared.Demand) (bool, error) {
	b.asked++
	return false, errors.New("broken")
}

func (b *broken) Known([]shared.Demand) {}

// onRedis returns a Limiter that shares limits with others on the same server.
func onRedis(t *testing.T, server *redistest.Server) *Limiter {
	t.Helper()
	s, err := shared.Open(shared.Options{Mode: shared.Single, Addresses: []string{server.Address}, Prefix: "gateway:",
		Timeout: 10 * time.Second, ConnectTimeout: 10 * time.Second, Connections: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	l := New(0)
	l.Share(s)
	return l
}

func hourly(name string, n int, sharing *Sharing) *Rule {
	return &Rule{Name: name, Key: Global, Requests: 1, Period: time.Hour, Burst: n, Sharing: sharing}
}

// ask decides on one request, and says what the decision was.
func ask(l *Limiter, rules ...*Rule) string {
	var c Charges
	info := resource.Info{IsResource: true, Verb: resource.VerbGet, Resource: "orders"}
	NewRules(rules).Charge(&c, &Request{Info: &info})
	d := l.Decide(&c, time.Now())
	switch {
	case d.Unavailable:
		return "unavailable: " + d.Message()
	case !d.Allowed():
		return fmt.Sprintf("refused by %s", d.Charge.Rule.Name)
	}
	return "passes"
}

// left is how many requests a rule has left here, as the RateLimit header shows it.
func left(l *Limiter, r *Rule) string {
	var c Charges
	info := resource.Info{IsResource: true, Verb: resource.VerbGet, Resource: "orders"}
	NewRules([]*Rule{r}).Charge(&c, &Request{Info: &info})
	l.Peek(&c, time.Now())
	n, _, _ := strings.Cut(string(c.AppendState(nil, 1)), ";t=")
	return n
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestSharedLimits: limiters with one Redis count together, and none of them what another limit refuses.
func TestSharedLimits(t *testing.T) {
	server := redistest.Start(t)
	a, b := onRedis(t, server), onRedis(t, server)
	together, local := hourly("together", 3, &Sharing{WhenUnavailable: LocalLimit}), hourly("local", 2, nil)
	expect(t, []string{ask(a, together), ask(b, together), ask(a, together), ask(b, together), ask(a, together)},
		"passes", "passes", "passes", "refused by together", "refused by together")
	// What is refused by Redis is given back here.
	for range 5 {
		expect(t, []string{ask(a, local, together)}, "refused by together")
	}
	expect(t, []string{left(a, local)}, `"local";r=2`)
	// What is refused here takes nothing there.
	wide, narrow := hourly("wide", 2, &Sharing{WhenUnavailable: LocalLimit}), hourly("narrow", 1, nil)
	expect(t, []string{ask(a, wide, narrow), ask(a, wide, narrow), ask(a, wide, narrow), ask(b, wide), ask(b, wide)},
		"passes", "refused by narrow", "refused by narrow", "passes", "refused by wide")
}

// TestSharedStrictest: the wait is the longest of all limits that refuse (ERR-3), of shared ones that are known to do
// so.
func TestSharedStrictest(t *testing.T) {
	l := onRedis(t, redistest.Start(t))
	day := &Rule{Name: "day", Key: Global, Requests: 1, Period: 24 * time.Hour, Burst: 1, Sharing: &Sharing{}}
	hour := hourly("hour", 2, nil)
	expect(t, []string{ask(l, day, hour), ask(l, day, hour), ask(l, hour), ask(l, hour), ask(l, day, hour)},
		"passes", "refused by day", "passes", "refused by hour", "refused by day")
}

// TestSharedWarns: a limit that only warns counts, and lets pass.
func TestSharedWarns(t *testing.T) {
	l := onRedis(t, redistest.Start(t))
	shadow := hourly("shadow", 1, &Sharing{WhenUnavailable: Deny})
	shadow.Mode = Warn
	info := resource.Info{IsResource: true, Verb: resource.VerbGet, Resource: "orders"}
	var got []string
	for range 2 {
		var c Charges
		NewRules([]*Rule{shadow}).Charge(&c, &Request{Info: &info})
		d := l.Decide(&c, time.Now())
		got = append(got, fmt.Sprint(d.Allowed(), c.All()[0].Exceeds()))
	}
	expect(t, got, "true false", "true true")
	l = New(0)
	l.Share(&broken{})
	expect(t, []string{ask(l, shadow)}, "passes")
}

// TestFallback: without the store, requests are dealt with as each rule says, and nothing is taken for refused ones.
func TestFallback(t *testing.T) {
	local := hourly("local", 5, nil)
	sharing := func(name string, n int, f Fallback) *Rule { return hourly(name, n, &Sharing{WhenUnavailable: f}) }
	for name, share := range map[string]func(*Limiter){"broken": func(l *Limiter) { l.Share(&broken{}) },
		"none": func(*Limiter) {}} {
		t.Run(name, func(t *testing.T) {
			l := New(0)
			share(l)
			deny, allow, two := sharing("deny", 5, Deny), sharing("allow", 1, Allow), sharing("two", 2, LocalLimit)
			denied := "unavailable: the rate limit 'deny' cannot be counted, because the store that gateways share is unavailable: try again after 1 second"
			expect(t, []string{ask(l, deny), ask(l, local, deny, two), ask(l, local, allow), ask(l, local, allow)},
				denied, denied, "passes", "passes")
			expect(t, []string{left(l, local)}, `"local";r=3`)
			expect(t, []string{ask(l, local, two), ask(l, local, two, allow), ask(l, local, two), ask(l, local, two)},
				"passes", "passes", "refused by two", "refused by two")
			expect(t, []string{left(l, local)}, `"local";r=1`)
		})
	}
}

// TestFallbackHeaders: a limit that is not counted shows no number, as none is known.
func TestFallbackHeaders(t *testing.T) {
	l := New(0)
	var c Charges
	info := resource.Info{IsResource: true, Verb: resource.VerbGet, Resource: "orders"}
	NewRules([]*Rule{hourly("allow", 1, &Sharing{WhenUnavailable: Allow}), hourly("local", 2, nil)}).Charge(&c,
		&Request{Info: &info})
	l.Decide(&c, time.Now())
	if got, want := string(c.AppendState(nil, 0)), `"local";r=1;t=3600`; got != want {
		t.Errorf("the header is %s, want %s", got, want)
	}
}

// TestRefusedHereAsksNobody: the store is not asked about requests that are refused in any case.
func TestRefusedHereAsksNobody(t *testing.T) {
	l, b := New(0), &broken{}
	l.Share(b)
	rules := []*Rule{hourly("local", 1, nil), hourly("shared", 10, &Sharing{WhenUnavailable: Allow})}
	for range 10 {
		ask(l, rules...)
	}
	if b.asked != 1 {
		t.Errorf("the store was asked %d times, want once", b.asked)
	}
}

// late is a store that refuses, and lets others take before it does.
type late struct{ before func() }

func (s *late) Take(d []shared.Demand) (bool, error) {
	s.before()
	d[0].Wait = time.Hour
	return false, nil
}

func (s *late) Known([]shared.Demand) {}

// TestGiveBackNeverRefills: while a request that Redis refuses holds tokens here, others come; never more of them pass
// than if it had not been there.
func TestGiveBackNeverRefills(t *testing.T) {
	l := New(0)
	r := &Rule{Name: "local", Key: Global, Requests: 100, Period: time.Second, Burst: 5}
	other := hourly("shared", 1, &Sharing{WhenUnavailable: Deny})
	start, passed := time.Now(), 0
	var mu sync.Mutex
	one := func() {
		if ask(l, r) == "passes" {
			mu.Lock()
			passed++
			mu.Unlock()
		}
	}
	l.Share(&late{before: one})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for time.Since(start) < 300*time.Millisecond {
				if got := ask(l, r, other); got != "refused by shared" && got != "refused by local" {
					t.Error(got)
					return
				}
			}
		})
	}
	wg.Wait()
	if most := r.Burst + int(time.Since(start)/(10*time.Millisecond)); passed > most {
		t.Errorf("%d passed, of %d that may", passed, most)
	}
}

// TestSharedBound: four gateways with many clients never let more pass than one limit allows, beside limits of their
// own that refuse some of the same requests and have theirs given back.
func TestSharedBound(t *testing.T) {
	server := redistest.Start(t)
	together := &Rule{Name: "together", Key: Global, Requests: 500, Period: time.Second, Burst: 50, Sharing: &Sharing{}}
	mine := &Rule{Name: "mine", Key: Global, Requests: 200, Period: time.Second, Burst: 40}
	var wg sync.WaitGroup
	var passed atomic.Int64
	start := time.Now()
	for range 4 {
		l := onRedis(t, server)
		for range 4 {
			wg.Go(func() {
				for passed.Load() < 600 {
					if ask(l, together, mine) == "passes" {
						passed.Add(1)
					}
				}
			})
		}
	}
	wg.Wait()
	// One more, because the clocks of this process and Redis may run apart by so much.
	if n, most := passed.Load(), 50+int64(time.Since(start)/(2*time.Millisecond))+1; n > most {
		t.Errorf("%d passed, of %d that may", n, most)
	}
}

// TestSharedRetryAfter: who waits exactly as long as a refusal says is admitted (ERR-3), with leases and without.
func TestSharedRetryAfter(t *testing.T) {
	server := redistest.Start(t)
	for _, lease := range []int{0, 3} {
		t.Run(fmt.Sprint(lease), func(t *testing.T) {
			t.Parallel()
			gateways := []*Limiter{onRedis(t, server), onRedis(t, server)}
			r := &Rule{Name: fmt.Sprint("lease", lease), Key: Global, Requests: 1, Period: time.Second, Burst: 4,
				Sharing: &Sharing{Lease: lease}}
			rules := NewRules([]*Rule{r})
			info := resource.Info{IsResource: true, Verb: resource.VerbGet, Resource: "orders"}
			decide := func(l *Limiter) Decision {
				var c Charges
				rules.Charge(&c, &Request{Info: &info})
				return l.Decide(&c, time.Now())
			}
			for i := 0; ; i++ {
				if d := decide(gateways[i%2]); !d.Allowed() && i%2 == 1 {
					time.Sleep(time.Duration(d.RetryAfter) * time.Second)
					if again := decide(gateways[1]); !again.Allowed() {
						t.Errorf("after %d seconds the wait is %d more", d.RetryAfter, again.RetryAfter)
					}
					return
				}
			}
		})
	}
}
