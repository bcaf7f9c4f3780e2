package ratelimit

import (
	"encoding/binary"
	"fmt"
	"github.com/admission-gateway/gateway/internal/testutil"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"
	"time"
)

// leaky is one bucket as one would explain it: it fills with what comes in, leaks all the time, and must not overflow.
type leaky struct {
	level, at int64       // nanoseconds of requests, when it was last looked at
	admitted  []admission // of this bucket
}

type admission struct{ at, cost int64 }

// world is a model of a limiter: each rule and key has a bucket, which is never forgotten.
type world struct {
	rules   []*Rule
	buckets map[string]*leaky
}

// at returns a bucket at a time, and the interval and the size of the rule's buckets.
func (w *world) at(rule *Rule, key string, now int64) (b *leaky, interval, size int64) {
	id := rule.Name + "/" + key
	if b = w.buckets[id]; b == nil {
		b = &leaky{at: now}
		w.buckets[id] = b
	}
	b.level, b.at = max(0, b.level-(now-b.at)), now
	interval = (int64(rule.Period) + int64(rule.Requests) - 1) / int64(rule.Requests)
	return b, interval, interval * int64(rule.Burst)
}

// decide returns how long the request has to wait, under each rule and by the strictest.
func (w *world) decide(keys []string, costs []int64, now int64) (waits []int64, longest int64) {
	for i, rule := range w.rules {
		b, interval, size := w.at(rule, keys[i], now)
		wait := max(0, b.level+costs[i]*interval-size)
		if waits = append(waits, wait); rule.Mode != Warn {
			longest = max(longest, wait)
		}
	}
	for i, rule := range w.rules {
		if b, interval, _ := w.at(rule, keys[i], now); longest == 0 && waits[i] == 0 {
			b.level += costs[i] * interval
			b.admitted = append(b.admitted, admission{now, costs[i]})
		}
	}
	return waits, longest
}

// checkSpans checks that in no span of time more was admitted than the burst and one more for each
// interval of it.
func (w *world) checkSpans(t *testing.T) {
	for _, rule := range w.rules {
		interval := (int64(rule.Period) + int64(rule.Requests) - 1) / int64(rule.Requests)
		for id, b := range w.buckets {
			if len(id) <= len(rule.Name) || id[:len(rule.Name)+1] != rule.Name+"/" {
				continue
			}
			for i := range b.admitted {
				sum := int64(0)
				for _, a := range b.admitted[i:] {
					sum += a.cost
					if most := int64(rule.Burst) + (a.at-b.admitted[i].at)/interval; sum > most {
						t.Fatalf("%s: %d within %d ns, want at most %d (%+v)", id, sum, a.at-b.admitted[i].at, most,
							*rule)
					}
				}
			}
		}
	}
}

// numbers are the source of the choices of a run.
type numbers interface{ IntN(n int) int }

// play has many clients ask under several rules, and compares each decision with the model. Clients
// that are refused sometimes wait exactly as long as the answer says, and must be admitted then.
func play(t *testing.T, n numbers, steps int) {
	w := &world{buckets: map[string]*leaky{}}
	keys := []Key{User, ClientAddress, Namespace, Resource, Header, Global}
	for i := range 1 + n.IntN(5) {
		rule := &Rule{
			Name: fmt.Sprint("rule-", i), Key: keys[n.IntN(len(keys))], HeaderName: "x-tenant",
			Requests: 1 + n.IntN(20), Period: time.Duration(1+n.IntN(40)) * time.Second, Burst: 1 + n.IntN(12),
		}
		if n.IntN(4) == 0 {
			rule.Mode = Warn
		}
		w.rules = append(w.rules, rule)
	}
	l, clock := virtualLimiter(0)
	rules := NewRules(w.rules)
	for step := range steps {
		clock.wait(time.Duration(n.IntN(1 << (10 + n.IntN(22)))))
		who := n.IntN(6)
		r := create(fmt.Sprint("192.0.2.", who%3))
		r.Username = []string{"ann", "bob", anonymous}[who/2]
		r.Info.Namespace, r.Info.Resource = fmt.Sprint("team-", n.IntN(2)), fmt.Sprint("kind-", n.IntN(2))
		r.Headers = headers{"x-tenant": fmt.Sprint(n.IntN(2))}
		for again := false; ; again = true {
			var c Charges
			rules.Charge(&c, r)
			texts, costs := make([]string, len(w.rules)), make([]int64, len(w.rules))
			for i := range c.list {
				c.list[i].Cost = int64(1 + (who*7+i*5+step)%w.rules[i].Burst)
				texts[i], costs[i] = string(c.list[i].Key), c.list[i].Cost
			}
			waits, longest := w.decide(texts, costs, clock.now)
			if again && longest > 0 {
				t.Fatalf("step %d: waited as long as told, and has to wait %d ns more", step, longest)
			}
			d := l.decide(&c, clock.now, true)
			if d.Allowed() != (longest == 0) {
				t.Fatalf("step %d: allowed %t, the model has it wait %d ns", step, d.Allowed(), longest)
			}
			for i := range c.list {
				charge := &c.list[i]
				level := w.buckets[w.rules[i].Name+"/"+texts[i]].level
				if charge.Wait != waits[i] || charge.Debt != level {
					t.Fatalf("step %d, %s: waits %d with a debt of %d, want %d and %d", step, charge.Rule.Name,
						charge.Wait, charge.Debt, waits[i], level)
				}
				if charge.Exceeds() != (waits[i] > 0 && charge.Rule.Mode == Warn) {
					t.Fatalf("step %d, %s: exceeds %t", step, charge.Rule.Name, charge.Exceeds())
				}
			}
			if longest == 0 {
				break
			}
			if want := int((longest + int64(time.Second) - 1) / int64(time.Second)); d.RetryAfter != want ||
				d.RetryAfter < 1 {
				t.Fatalf("step %d: Retry-After %d, want %d", step, d.RetryAfter, want)
			}
			if n.IntN(3) > 0 {
				break
			}
			clock.wait(time.Duration(d.RetryAfter) * time.Second)
		}
	}
	w.checkSpans(t)
}

// ERR-3: decisions, waits and what is left are the same as in the model, for many clients, rules
// and costs; never more passes than the burst and one request for each interval; who waits exactly
// Retry-After is admitted.
func TestDecisionsAgainstModel(t *testing.T) {
	for seed := range uint64(150) {
		play(t, rand.New(rand.NewPCG(seed, 11)), 250)
	}
}

// tape are choices made of bytes.
type tape struct{ bytes []byte }

func (b *tape) IntN(n int) int {
	if len(b.bytes) == 0 {
		return 0
	}
	var word [4]byte
	b.bytes = b.bytes[copy(word[:], b.bytes):]
	return int(binary.LittleEndian.Uint32(word[:]) % uint32(n))
}

func FuzzDecisionsAgainstModel(f *testing.F) {
	for seed := range byte(4) {
		random := rand.NewChaCha8([32]byte{seed})
		b := make([]byte, 600)
		_, _ = random.Read(b)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		play(t, &tape{b}, min(len(b)/4, 100))
	})
}

// Hostile input, "very many distinct keys": while the store forgets nearly every key no key is ever admitted more than
// its burst and one request for each interval, whatever else comes.
func TestForgettingNeverAdmitsMore(t *testing.T) {
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 12))
		rule := byAddress(1+random.IntN(5), time.Duration(1+random.IntN(20))*time.Second, 1+random.IntN(5))
		rule.Name = "rule"
		l, clock := virtualLimiter(shards)
		rules := NewRules([]*Rule{rule})
		w := &world{rules: []*Rule{rule}, buckets: map[string]*leaky{}}
		r := create("192.0.2.1")
		for range 30_000 {
			clock.wait(time.Duration(random.IntN(2_000_000)))
			n := random.IntN(20_000)
			if random.IntN(4) == 0 {
				n = random.IntN(20) // they come again and again
			}
			r.ClientAddress = netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)})
			if l.Decide(rules, r).Allowed() {
				b, _, _ := w.at(rule, r.ClientAddress.String(), clock.now)
				b.admitted = append(b.admitted, admission{clock.now, 1})
			}
		}
		w.checkSpans(t)
	}
}

// Hostile input, "very many distinct keys": ten million take no more memory than the store has, and a client that has
// used up its burst before them is refused after them.
func TestTenMillionKeys(t *testing.T) {
	keys := testutil.Amount(10_000_000, 400_000) // three times what the limiter remembers
	if testutil.Race {
		keys = min(keys, 1_000_000)
	}
	l, clock := virtualLimiter(1 << 17)
	rules := NewRules([]*Rule{byAddress(1, time.Hour, 3),
		{Name: "all", Key: Global, Requests: 1_000_000_000, Period: time.Second, Burst: 1_000_000_000}})
	attacker := create("198.51.100.1")
	for range 3 {
		if !l.Decide(rules, attacker).Allowed() {
			t.Fatal("within the burst, and refused")
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := create("192.0.2.1")
	var c Charges
	for i := range keys {
		clock.wait(time.Microsecond)
		r.ClientAddress = netip.AddrFrom4([4]byte{byte(i>>24) + 11, byte(i >> 16), byte(i >> 8), byte(i)})
		c.Reset()
		rules.Charge(&c, r)
		l.decide(&c, clock.now, true)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if took := int64(after.HeapAlloc) - int64(before.HeapAlloc); took > 12<<20 {
		t.Errorf("%d keys take %d bytes, want at most 12 MiB", keys, took)
	}
	if l.Decide(rules, attacker).Allowed() {
		t.Error("after the flood the burst was there again")
	}
	runtime.KeepAlive(l)
}
