package ratelimit

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/resource"
)

// Several limits at once say what each would say alone, and the longest wait is the answer.
func TestSeveralLimitsAgainstModel(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		together, clock := virtualLimiter(0)
		var rules []*Rule
		for i := range 1 + random.IntN(10) {
			rules = append(rules, &Rule{Name: fmt.Sprintf("limit-%d", i),
				Key:      []Key{ClientAddress, Namespace, Global}[i%3],
				Requests: 1 + random.IntN(20), Period: time.Duration(1+random.IntN(30)) * time.Second,
				Burst: 1 + random.IntN(8)})
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
				key := fmt.Sprint(rule.Name,
					map[Key]string{ClientAddress: r.ClientAddress.String(), Namespace: r.Info.Namespace}[rule.Key])
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
	const buckets, keys = shards * ways, 300_000
	l, clock := virtualLimiter(buckets)
	places := shards * (2*ways*int(l.store.pairs) + l.store.cacheSize)
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

// The client that has spent most keeps its bucket through a flood of other keys.
func TestDeepestInDebtKeepsItsBucket(t *testing.T) {
	l, _ := virtualLimiter(shards * ways)
	rules := NewRules([]*Rule{byAddress(1, time.Hour, 3)})
	busy := create("198.51.100.1")
	for l.Decide(rules, busy).Allowed() {
	}
	r := create("192.0.2.1")
	for i := range 50_000 {
		r.ClientAddress = netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		l.Decide(rules, r)
	}
	address := busy.ClientAddress.As4()
	b := l.store.place(rules.list[0].id, l.hasher.bytes(address[:]))
	if _, where := l.store.shards[b.shard].find(b); where.tat == nil {
		t.Error("the bucket of the busiest client is not in the table")
	}
}

// What leaves the table is found in the cache, and comes back into the table when there is room.
func TestCachedIsExact(t *testing.T) {
	s := newStore(1)
	h := &s.shards[0]
	const now = 1000
	for i := range uint64(2*ways + 3) {
		b := bucket{tag: (i + 1) << 16}
		_, where := h.find(b)
		s.keep(b, where, int64(now+10+i), now)
	}
	for i := range uint64(2*ways + 3) {
		tat, where := h.find(bucket{tag: (i + 1) << 16})
		if tat != int64(now+10+i) || where.isCached != (i < 3) {
			t.Errorf("bucket %d: %d, cached %t", i, tat, where.isCached)
		}
	}
	back := bucket{tag: 1 << 16}
	_, where := h.find(back)
	s.keep(back, where, now+500, now+14) // when the first in the table counts no more
	if tat, where := h.find(back); tat != now+500 || where.tat == nil || h.cache.Contains(back) {
		t.Errorf("it did not come back: %d, %+v", tat, where)
	}
}

// All keys that have no bucket while the overflow counts share it: each moves it on.
func TestOverflowIsShared(t *testing.T) {
	s := newStore(1)
	h := &s.shards[0]
	const now, ahead = 1000, 1_000_000
	for key := range uint64(2*ways + s.cacheSize + 1) {
		b := bucket{tag: (key + 1) << 16}
		_, where := h.find(b)
		s.keep(b, where, now+ahead, now)
	}
	for i := range int64(5) {
		b := bucket{tag: uint64(1000+i) << 16}
		tat, where := h.find(b)
		if want := int64(now + ahead + i); tat != want {
			t.Fatalf("new key %d begins at %d, want %d", i, tat, want)
		}
		s.keep(b, where, tat+1, now)
	}
}

// Overflow buckets of rules that are gone do not pile up.
func TestOverflowIsBounded(t *testing.T) {
	s := newStore(1)
	for rule := range uint64(10_000) {
		now := int64(rule) * 100
		for key := range uint64(2*ways + s.cacheSize + 3) {
			b := bucket{tag: (key+1)<<16 | rule}
			_, where := s.shards[0].find(b)
			s.keep(b, where, now+50+int64(key), now)
		}
	}
	if n := len(s.shards[0].overflow); n == 0 || n > maxOverflow {
		t.Errorf("%d overflow buckets are kept, want at most %d", n, maxOverflow)
	}
}

// The extremes that a policy may have do not overflow.
func TestPaceOfExtremes(t *testing.T) {
	p := paceOf(1, 86400*time.Second, 1_000_000_000)
	if p.interval != int64(86400*time.Second) || p.tolerance != forever {
		t.Errorf("got %+v", p)
	}
	now := int64(50 * 365 * 24 * time.Hour)
	if after, wait := p.decide(0, now, p.most); wait != 0 || after <= now {
		t.Errorf("the dearest: %d, wait %d", after, wait)
	}
	full, _ := p.decide(0, now, p.most)
	if _, wait := p.decide(full, now, p.most); wait <= 0 || wholeSeconds(wait) > math.MaxInt32 {
		t.Errorf("the dearest after the dearest waits %d ns", wait)
	}
	tat := int64(0)
	for range 1000 {
		after, wait := p.decide(tat, now, 1)
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
		rules = append(rules, &Rule{Name: fmt.Sprintf("limit-%d", i), Key: Global,
			Resources: []string{fmt.Sprintf("things-%d", i), fmt.Sprintf("things-%d/status", i)}, Requests: 1,
			Period: time.Second, Burst: 1})
	}
	rules = append(rules,
		&Rule{Name: "group", Key: Global, APIGroups: []string{"a.example.com", "b.example.com"}, Requests: 1,
			Period: time.Second, Burst: 1},
		&Rule{Name: "all", Key: Global, APIGroups: []string{"*"}, Resources: []string{"*"}, Requests: 1,
			Period: time.Second, Burst: 1})
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
		if got := all.Len(&c.info, nil); got != c.want {
			t.Errorf("%+v: held against %d rules, want %d", c.info, got, c.want)
		}
	}
	if n := NewRules(nil).Len(&resource.Info{}, nil); n != 0 {
		t.Errorf("no rules: %d", n)
	}
}

// A limit of the core group is not about discovery and health.
func TestPathsThatAreNoResource(t *testing.T) {
	l, _ := virtualLimiter(0)
	health := create("192.0.2.1")
	health.Info = &resource.Info{Verb: resource.VerbGet, Path: "/healthz"}
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
	var rules []*Rule
	for i := range 1000 {
		rules = append(rules, &Rule{Name: fmt.Sprint(i), Key: Global, Resources: []string{fmt.Sprintf("things-%d", i)},
			Requests: 1, Period: time.Second, Burst: 1})
	}
	all, r := NewRules(rules), create("192.0.2.1")
	var c Charges
	b.ReportAllocs()
	for b.Loop() {
		c.Reset()
		all.Charge(&c, r)
	}
}
