package ratelimit

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/resource"
)

// Several limits at once are what each would say alone, and the longest wait is the answer.
func TestSeveralLimitsAgainstModel(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		clock := &virtual{now: int64(time.Hour)}
		together := newLimiter(1<<10, func() int64 { return clock.now })
		var rules []*Rule
		for i := range 1 + random.IntN(10) {
			rules = append(rules, &Rule{Name: fmt.Sprintf("limit-%d", i), Key: []Key{ClientAddress, Namespace, Global}[i%3],
				Requests: 1 + random.IntN(20), Period: time.Duration(1+random.IntN(30)) * time.Second, Burst: 1 + random.IntN(8)})
		}
		all := NewRules(rules)
		arrival := map[string]int64{} // by rule and key, the arrival time that the definition of GCRA gives
		for step := range 200 {
			clock.wait(time.Duration(random.Int64N(int64(time.Second))))
			r := create(fmt.Sprintf("192.0.2.%d", random.IntN(3)))
			r.Info.Namespace = fmt.Sprintf("team-%d", random.IntN(2))
			var longest int64
			next := map[string]int64{}
			for _, rule := range rules {
				key := fmt.Sprint(rule.Name, map[Key]string{ClientAddress: r.ClientAddress.String(), Namespace: r.Info.Namespace}[rule.Key])
				p := paceOf(rule.Requests, rule.Period, rule.Burst)
				at := max(arrival[key], clock.now)
				longest = max(longest, at-p.tolerance-clock.now)
				next[key] = at + p.interval
			}
			d := together.Decide(all, r)
			if d.Allowed() != (longest == 0) {
				t.Fatalf("step %d: allowed %t, the longest wait is %d ns", step, d.Allowed(), longest)
			}
			if d.Allowed() {
				for key, at := range next {
					arrival[key] = at
				}
			} else if want := int((longest + int64(time.Second) - 1) / int64(time.Second)); d.RetryAfter != want {
				t.Fatalf("step %d: Retry-After %d, want %d", step, d.RetryAfter, want)
			}
		}
	}
}

// However many keys a flood has, it gets no more than places × burst at once: beyond those all share the overflow.
func TestFloodIsLimitedInAll(t *testing.T) {
	const places, keys = shards * 8, 300_000
	l, clock := virtualLimiter(places)
	rules := NewRules([]*Rule{byAddress(1, time.Minute, 2)})
	r := create("192.0.2.1")
	flood := func() (admitted int) {
		for i := range uint32(keys) {
			var a [4]byte
			binary.BigEndian.PutUint32(a[:], 10<<24+i)
			r.ClientAddress = netip.AddrFrom4(a)
			if l.Decide(rules, r).Allowed() {
				admitted++
			}
		}
		return admitted
	}
	if n := flood(); n > 2*(places+shards) {
		t.Errorf("%d of %d were admitted at once, want at most %d", n, keys, 2*(places+shards))
	}
	if n := flood(); n > places {
		t.Errorf("%d were admitted again in the same moment", n)
	}
	clock.wait(10 * time.Minute)
	r.ClientAddress = netip.MustParseAddr("192.0.2.1")
	if d := l.Decide(rules, r); !d.Allowed() {
		t.Errorf("when the flood is over: %s", d.Message())
	}
}

// Who asks all the time keeps its bucket through a flood of other keys.
func TestBusiestKeepsItsBucket(t *testing.T) {
	l, _ := virtualLimiter(shards * 8)
	rules := NewRules([]*Rule{byAddress(1, time.Hour, 3)})
	busy := create("198.51.100.1")
	for l.Decide(rules, busy).Allowed() {
	}
	address := busy.ClientAddress.As4()
	id := l.hasher.bucket(rules.others[0].id, l.hasher.bytes(address[:]))
	r := create("192.0.2.1")
	for i := range 50_000 {
		r.ClientAddress = netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		l.Decide(rules, r)
		if l.Decide(rules, busy).Allowed() {
			t.Fatalf("after %d other keys the busiest client was admitted", i)
		}
	}
	if b, _ := l.store.find(l.store.place(id), id); b == nil {
		t.Error("the bucket of the busiest client is gone")
	}
}

// Overflow buckets of rules that are gone do not pile up.
func TestOverflowIsBounded(t *testing.T) {
	s := newStore(1)
	for rule := range uint64(10_000) {
		now := int64(rule) * 10
		for key := range uint64(3) {
			s.add(0, bucketID{rule + 1, 1 + key}, now+5+int64(key), now)
		}
	}
	if n := len(s.shards[0].overflow); n > maxOverflow {
		t.Errorf("%d overflow buckets are kept, want at most %d", n, maxOverflow)
	}
}

func TestStoreIsBounded(t *testing.T) {
	s := newStore(shards * 4)
	for key := range uint64(100_000) {
		id := bucketID{1, key}
		s.add(s.place(id), id, int64(key), 0)
	}
	total := 0
	for i := range s.shards {
		total += s.shards[i].buckets.Len()
	}
	if total != shards*4 {
		t.Errorf("%d buckets are kept, want %d", total, shards*4)
	}
}

// The extremes that a policy may have do not overflow.
func TestPaceOfExtremes(t *testing.T) {
	p := paceOf(1, 86400*time.Second, 1_000_000_000)
	if p.interval != int64(86400*time.Second) || p.tolerance != forever {
		t.Errorf("got %+v", p)
	}
	now := int64(100 * 365 * 24 * time.Hour)
	tat := int64(0)
	for range 1000 {
		after, wait := p.decide(tat, now)
		if wait != 0 || after <= now {
			t.Fatalf("got %d, wait %d", after, wait)
		}
		tat = after
	}
	if p := paceOf(1_000_000_000, time.Second, 1); p.interval != 1 || p.tolerance != 0 {
		t.Errorf("got %+v", p)
	}
}

func TestRulesAreIndexed(t *testing.T) {
	var rules []*Rule
	for i := range 1000 {
		rules = append(rules, &Rule{Name: fmt.Sprintf("limit-%d", i), Key: Global, Resources: []string{fmt.Sprintf("things-%d", i), fmt.Sprintf("things-%d/status", i)}, Requests: 1, Period: time.Second, Burst: 1})
	}
	rules = append(rules,
		&Rule{Name: "group", Key: Global, APIGroups: []string{"a.example.com", "b.example.com"}, Requests: 1, Period: time.Second, Burst: 1},
		&Rule{Name: "all", Key: Global, APIGroups: []string{"*"}, Resources: []string{"*"}, Requests: 1, Period: time.Second, Burst: 1})
	all := NewRules(rules)
	for _, c := range []struct {
		info resource.Info
		want int
	}{
		{resource.Info{IsResource: true, Resource: "orders"}, 1},
		{resource.Info{IsResource: true, Resource: "things-7"}, 2},
		{resource.Info{IsResource: true, Group: "b.example.com", Resource: "things-7", Subresource: "status"}, 3},
		{resource.Info{}, 1},
	} {
		if got := all.Len(&c.info); got != c.want {
			t.Errorf("%+v: held against %d rules, want %d", c.info, got, c.want)
		}
	}
	if n := NewRules(nil).Len(&resource.Info{}); n != 0 {
		t.Errorf("no rules: %d", n)
	}
}

// A limit of the core group is not about discovery and health.
func TestPathsThatAreNoResource(t *testing.T) {
	l, _ := virtualLimiter(0)
	health := create("192.0.2.1")
	health.Info = &resource.Info{Verb: "get", Path: "/healthz"}
	for _, c := range []struct {
		rule Rule
		want bool
	}{
		{Rule{APIGroups: []string{""}}, false},
		{Rule{Namespaces: []string{""}}, false},
		{Rule{Verbs: []string{"get"}}, true},
		{Rule{}, true},
	} {
		c.rule.Name, c.rule.Key, c.rule.Requests, c.rule.Period, c.rule.Burst = fmt.Sprint(c), Global, 1, time.Hour, 1
		rules := NewRules([]*Rule{&c.rule})
		l.Decide(rules, health)
		if got := !l.Decide(rules, health).Allowed(); got != c.want {
			t.Errorf("%+v counts /healthz: %t, want %t", c.rule, got, c.want)
		}
	}
}

func BenchmarkDecideThousandRulesThatDoNotMatch(b *testing.B) {
	l := New(0)
	var rules []*Rule
	for i := range 1000 {
		rules = append(rules, &Rule{Name: fmt.Sprint(i), Key: Global, Resources: []string{fmt.Sprintf("things-%d", i)}, Requests: 1, Period: time.Second, Burst: 1})
	}
	all, r := NewRules(rules), create("192.0.2.1")
	b.ReportAllocs()
	for b.Loop() {
		l.Decide(all, r)
	}
}
