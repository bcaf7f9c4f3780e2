package ratelimit

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/resource"
)

// virtual is a clock that tests set.
type virtual struct{ now int64 }

func (v *virtual) wait(d time.Duration) { v.now += int64(d) }

// bench is a Limiter that decides at the time of a virtual clock.
type bench struct {
	*Limiter
	clock *virtual
}

func virtualLimiter(buckets int) (*bench, *virtual) {
	v := &virtual{now: int64(time.Hour)}
	if buckets == 0 {
		buckets = 1 << 10
	}
	return &bench{New(buckets), v}, v
}

// Decide decides about a request as the rules see it.
func (b *bench) Decide(rules *Rules, r *Request) Decision {
	var c Charges
	rules.Charge(&c, r)
	return b.decide(&c, b.clock.now, true)
}

type headers map[string]string

func (h headers) Get(name string) (string, bool) { v, ok := h[name]; return v, ok }
func (h headers) Each(func(name, value string) bool) {
}

func create(address string) *Request {
	return &Request{
		Info: &resource.Info{Verb: resource.VerbCreate, Group: "example.com", Version: "v1",
			Resource: "orders", Namespace: "team-a", IsResource: true},
		ClientAddress: netip.MustParseAddr(address),
		Username:      "jane",
		Headers:       headers{},
		Frame:         func() *cel.Frame { panic("no rule here needs CEL") },
	}
}

func byAddress(requests int, period time.Duration, burst int) *Rule {
	return &Rule{Name: "per-client", Key: ClientAddress, Requests: requests, Period: period, Burst: burst}
}

// ERR-3: the answer says how long to wait, and in which words.
func TestDecisionNamesLimitAndWait(t *testing.T) {
	l, clock := virtualLimiter(0)
	rules := NewRules([]*Rule{byAddress(6, time.Minute, 2)})
	r := create("192.0.2.1")
	for range 2 {
		if d := l.Decide(rules, r); !d.Allowed() {
			t.Fatalf("within the burst: %s", d.Message())
		}
	}
	clock.wait(500 * time.Millisecond)
	d := l.Decide(rules, r)
	if d.Allowed() {
		t.Fatal("beyond the burst, and allowed")
	}
	want := "the rate limit 'per-client' allows 6 requests in 60 seconds for each client address: try again after 10 seconds"
	if got := d.Message(); got != want || d.RetryAfter != 10 {
		t.Errorf("got %q, %d; want %q, 10", got, d.RetryAfter, want)
	}
	clock.wait(9 * time.Second)
	if d := l.Decide(rules, r); d.Allowed() || d.RetryAfter != 1 {
		t.Errorf("half a second before: %+v", d)
	}
	clock.wait(500 * time.Millisecond)
	if d := l.Decide(rules, r); !d.Allowed() {
		t.Errorf("after the wait: %s", d.Message())
	}
}

// ERR-3: who waits exactly Retry-After is admitted, whatever came before.
func TestWaitingRetryAfterIsEnough(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		l, clock := virtualLimiter(0)
		rules := NewRules([]*Rule{
			byAddress(1+random.IntN(20), time.Duration(1+random.IntN(90))*time.Second, 1+random.IntN(10)),
			{Name: "all", Key: Namespace, Requests: 1 + random.IntN(30),
				Period: time.Duration(1+random.IntN(90)) * time.Second, Burst: 1 + random.IntN(10)},
		})
		r := create("192.0.2.1")
		for range 50 {
			clock.wait(time.Duration(random.Int64N(int64(3 * time.Second))))
			d := l.Decide(rules, r)
			if d.Allowed() {
				continue
			}
			clock.wait(time.Duration(d.RetryAfter) * time.Second)
			if again := l.Decide(rules, r); !again.Allowed() {
				t.Fatalf("waited %d s and got %s", d.RetryAfter, again.Message())
			}
		}
	}
}

// model is a limiter as one would explain it: each bucket holds tokens, as exact fractions, that come back with time.
type model struct {
	requests, burst int64
	period          int64
	tokens          map[string]int64 // in units of 1/period request-nanoseconds
	at              map[string]int64
}

func (m *model) fill(key string, now int64) int64 {
	full := m.burst * m.period
	tokens, known := m.tokens[key]
	if !known {
		return full
	}
	return min(full, tokens+(now-m.at[key])*m.requests)
}

func TestModel(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		// Periods that the number of requests divides, for the interval is a whole number of nanoseconds.
		requests := int64(1 + random.IntN(10))
		period := requests * int64(1+random.IntN(1000)) * int64(time.Millisecond)
		burst := int64(1 + random.IntN(6))
		m := &model{requests: requests, burst: burst, period: period, tokens: map[string]int64{},
			at: map[string]int64{}}
		l, clock := virtualLimiter(0)
		rules := NewRules([]*Rule{byAddress(int(requests), time.Duration(period), int(burst))})
		for step := range 400 {
			clock.wait(time.Duration(random.Int64N(period / requests)))
			key := fmt.Sprintf("192.0.2.%d", random.IntN(4))
			tokens := m.fill(key, clock.now)
			want := tokens >= period
			if got := l.Decide(rules, create(key)).Allowed(); got != want {
				t.Fatalf("step %d: allowed %t, the model says %t (%d of %d, %d in %d ns, burst %d)", step, got, want,
					tokens, period, requests, period, burst)
			}
			if want {
				m.tokens[key], m.at[key] = tokens-period, clock.now
			}
		}
	}
}

// A request that one limit refuses takes nothing from the others.
func TestRefusedTakesNothing(t *testing.T) {
	l, clock := virtualLimiter(0)
	strict := &Rule{Name: "strict", Key: Global, Requests: 1, Period: time.Minute, Burst: 1}
	wide := byAddress(10, time.Minute, 10)
	both, alone := NewRules([]*Rule{wide, strict}), NewRules([]*Rule{wide})
	r := create("192.0.2.1")
	allowed := 0
	for range 50 {
		if l.Decide(both, r).Allowed() {
			allowed++
		}
	}
	if allowed != 1 {
		t.Fatalf("the strict limit let %d pass", allowed)
	}
	left := 0
	for l.Decide(alone, r).Allowed() {
		left++
	}
	if left != 9 {
		t.Errorf("%d requests were left in the wide limit, want 9", left)
	}
	clock.wait(time.Minute)
	if d := l.Decide(both, r); !d.Allowed() {
		t.Errorf("a minute later: %s", d.Message())
	}
}

// To make the store forget a bucket must not refill it, and memory is bounded.
func TestEvictionDoesNotRefill(t *testing.T) {
	l, clock := virtualLimiter(shards * 4)
	rules := NewRules([]*Rule{byAddress(1, time.Hour, 3)})
	attacker := create("198.51.100.1")
	spent := 0
	for l.Decide(rules, attacker).Allowed() {
		spent++
	}
	if spent != 3 {
		t.Fatalf("the burst was %d", spent)
	}
	for i := range 200_000 {
		flood := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		r := create("192.0.2.1")
		r.ClientAddress = flood
		l.Decide(rules, r)
		if i%1000 == 0 && l.Decide(rules, attacker).Allowed() {
			t.Fatalf("after %d other keys the attacker's bucket was full again", i)
		}
	}
	for i := range l.store.shards {
		if n := len(l.store.shards[i].overflow); n > 1 {
			t.Errorf("one rule has %d overflow buckets in a shard", n)
		}
	}
	clock.wait(4 * time.Hour)
	if d := l.Decide(rules, attacker); !d.Allowed() {
		t.Errorf("when all is paid back: %s", d.Message())
	}
}

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  Rule
		other func(*Request)
		apart bool
	}{
		{"another address", Rule{Key: ClientAddress},
			func(r *Request) { r.ClientAddress = netip.MustParseAddr("192.0.2.2") }, true},
		{"the same address mapped to IPv6", Rule{Key: ClientAddress},
			func(r *Request) { r.ClientAddress = netip.MustParseAddr("::ffff:192.0.2.1") }, false},
		{"another namespace", Rule{Key: Namespace}, func(r *Request) { r.Info.Namespace = "team-b" }, true},
		{"another resource", Rule{Key: Resource}, func(r *Request) { r.Info.Resource = "invoices" }, true},
		{"the same resource of another group", Rule{Key: Resource}, func(r *Request) { r.Info.Group = "example.org" },
			true},
		{"another header value", Rule{Key: Header, HeaderName: "x-tenant"},
			func(r *Request) { r.Headers = headers{"x-tenant": "b"} }, true},
		{"another header", Rule{Key: Header, HeaderName: "x-tenant"},
			func(r *Request) { r.Headers = headers{"x-other": "b"} }, false},
		{"another user", Rule{Key: User}, func(r *Request) { r.Username = "joe" }, true},
		{"the same user elsewhere", Rule{Key: User},
			func(r *Request) { r.ClientAddress = netip.MustParseAddr("192.0.2.2") }, false},
		{"nobody in particular", Rule{Key: User}, func(r *Request) { r.Username = anonymous }, true},
		{"a user who is called like the key of nobody", Rule{Key: User},
			func(r *Request) { r.Username = "anonymous \xc0\x00\x02\x01" }, true},
		{"anything, counted in all", Rule{Key: Global},
			func(r *Request) { r.ClientAddress = netip.MustParseAddr("192.0.2.2") }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, _ := virtualLimiter(0)
			c.rule.Name, c.rule.Requests, c.rule.Period, c.rule.Burst = "one", 1, time.Minute, 1
			rules := NewRules([]*Rule{&c.rule})
			if !l.Decide(rules, create("192.0.2.1")).Allowed() {
				t.Fatal("the first request was refused")
			}
			second := create("192.0.2.1")
			c.other(second)
			if got := l.Decide(rules, second).Allowed(); got != c.apart {
				t.Errorf("counted apart: %t, want %t", got, c.apart)
			}
		})
	}
}

func TestIPv6IsCountedBy64(t *testing.T) {
	l, _ := virtualLimiter(0)
	rules := NewRules([]*Rule{byAddress(1, time.Minute, 1)})
	for _, c := range []struct {
		address string
		want    bool
	}{{"2001:db8::1", true}, {"2001:db8::ffff:1", false}, {"2001:db8:0:1::1", true}} {
		if got := l.Decide(rules, create(c.address)).Allowed(); got != c.want {
			t.Errorf("%s: %t, want %t", c.address, got, c.want)
		}
	}
}

func TestRulesChooseRequests(t *testing.T) {
	info := func(verb, group, res, sub, ns string) *resource.Info {
		return &resource.Info{Verb: resource.VerbNamed(verb), Group: group, Resource: res, Subresource: sub,
			Namespace: ns, IsResource: true}
	}
	for _, c := range []struct {
		rule Rule
		info *resource.Info
		want bool
	}{
		{Rule{}, info("get", "", "pods", "", "a"), true},
		{Rule{Verbs: []string{"create"}}, info("get", "", "pods", "", "a"), false},
		{Rule{Verbs: []string{"get", "list"}}, info("list", "", "pods", "", "a"), true},
		{Rule{APIGroups: []string{""}, Resources: []string{"pods"}}, info("get", "", "pods", "", "a"), true},
		{Rule{APIGroups: []string{"apps"}, Resources: []string{"pods"}}, info("get", "", "pods", "", "a"), false},
		{Rule{APIGroups: []string{""}, Resources: []string{"pods"}}, info("update", "", "pods", "status", "a"), false},
		{Rule{APIGroups: []string{""}, Resources: []string{"pods/status"}}, info("update", "", "pods", "status", "a"),
			true},
		{Rule{APIGroups: []string{"*"}, Resources: []string{"*"}}, info("update", "apps", "pods", "status", "a"), true},
		{Rule{Namespaces: []string{"b"}}, info("get", "", "pods", "", "a"), false},
		{Rule{Namespaces: []string{"a", "b"}}, info("get", "", "pods", "", "a"), true},
	} {
		l, _ := virtualLimiter(0)
		c.rule.Name, c.rule.Key, c.rule.Requests, c.rule.Period, c.rule.Burst = "one", Global, 1, time.Hour, 1
		rules := NewRules([]*Rule{&c.rule})
		r := create("192.0.2.1")
		r.Info = c.info
		l.Decide(rules, r)
		if got := !l.Decide(rules, r).Allowed(); got != c.want {
			t.Errorf("%+v concerns %+v: %t, want %t", c.rule, *c.info, got, c.want)
		}
	}
}

func TestConditionsAndKeyExpressions(t *testing.T) {
	var compiler cel.RequestCompiler
	condition, err := compiler.Condition("request.verb == 'create' && request.headers['x-tier'] == 'free'")
	if err != nil {
		t.Fatal(err)
	}
	key, err := compiler.Key("request.headers['x-tenant']")
	if err != nil {
		t.Fatal(err)
	}
	rules := NewRules([]*Rule{{Name: "free", Conditions: []*cel.Program{condition}, Key: Expression, KeyProgram: key,
		Requests: 1, Period: time.Hour, Burst: 1}})
	l, _ := virtualLimiter(0)
	send := func(h headers) bool {
		r := create("192.0.2.1")
		r.Headers = h
		f := cel.NewFrame(t.Context())
		defer f.Release()
		f.Vars().SetLimited(&cel.Request{Verb: r.Info.VerbName(), Headers: h})
		r.Frame = func() *cel.Frame { return f }
		return l.Decide(rules, r).Allowed()
	}
	var got []bool
	for _, h := range []headers{
		{"x-tier": "free", "x-tenant": "a"},
		{"x-tier": "free", "x-tenant": "a"},
		{"x-tier": "free", "x-tenant": "b"},
		{"x-tier": "paid", "x-tenant": "a"},
		{"x-tenant": "c"}, // the condition cannot be evaluated: it counts as true
		{"x-tenant": "c"},
		{"x-tier": "free"}, // the key cannot be evaluated: counted with all others like it
		{"x-tier": "free"},
	} {
		got = append(got, send(h))
	}
	if want := []bool{true, false, true, true, true, false, true, false}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Those who do not say who they are do not use up what others of them may.
func TestAnonymousUsersAreCountedByAddress(t *testing.T) {
	l, _ := virtualLimiter(0)
	rules := NewRules([]*Rule{{Name: "per-user", Key: User, Requests: 1, Period: time.Minute, Burst: 1}})
	for _, c := range []struct {
		address string
		want    bool
	}{{"192.0.2.1", true}, {"192.0.2.1", false}, {"192.0.2.2", true}, {"2001:db8::1", true}, {"2001:db8::2", false}} {
		r := create(c.address)
		r.Username = anonymous
		if got := l.Decide(rules, r).Allowed(); got != c.want {
			t.Errorf("%s: %t, want %t", c.address, got, c.want)
		}
	}
}

func TestExemptions(t *testing.T) {
	rule := byAddress(1, time.Hour, 1)
	rule.Exemptions = Exemptions{
		Usernames: []string{"root"}, Groups: []string{"system:masters"}, Namespaces: []string{"kube-system"},
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")},
	}
	rules := NewRules([]*Rule{rule})
	for _, c := range []struct {
		name   string
		change func(*Request)
		exempt bool
	}{
		{"nothing of it", func(*Request) {}, false},
		{"the user", func(r *Request) { r.Username = "root" }, true},
		{"a group", func(r *Request) { r.Groups = []string{"dev", "system:masters"} }, true},
		{"another group", func(r *Request) { r.Groups = []string{"dev"} }, false},
		{"the namespace", func(r *Request) { r.Info.Namespace = "kube-system" }, true},
		{"no namespace", func(r *Request) { r.Info.Namespace = "" }, false},
		{"an address", func(r *Request) { r.ClientAddress = netip.MustParseAddr("10.1.2.3") }, true},
		{"an address mapped to IPv6", func(r *Request) { r.ClientAddress = netip.MustParseAddr("::ffff:10.1.2.3") },
			true},
		{"an IPv6 address", func(r *Request) { r.ClientAddress = netip.MustParseAddr("fd00::1") }, true},
		{"no address", func(r *Request) { r.ClientAddress = netip.Addr{} }, false},
	} {
		l, _ := virtualLimiter(0)
		r := create("192.0.2.1")
		c.change(r)
		l.Decide(rules, r)
		if got := l.Decide(rules, r).Allowed(); got != c.exempt {
			t.Errorf("%s: exempt %t, want %t", c.name, got, c.exempt)
		}
	}
}

// A request counts at least as one and at most as the burst, and as the burst if the expression
// fails.
func TestCosts(t *testing.T) {
	for _, c := range []struct {
		expression string
		want       int64
	}{
		{"1", 1}, {"3", 3}, {"10", 10}, {"11", 10}, {"9223372036854775807", 10}, {"0", 1}, {"-5", 1},
		{"int(request.query['limit']) / 100", 5},
		{"int(request.query['none'])", 10},
		{"1 / int(request.headers['x-zero'])", 10},
		{"request.bodyBytes / 1024", 2},
		{"request.userInfo.groups.exists(g, g == 'batch') ? 4 : 1", 4},
	} {
		cost, err := cel.RequestCompiler{}.Cost(c.expression)
		if err != nil {
			t.Fatal(err)
		}
		rules := NewRules([]*Rule{{Name: "cost", Key: Global, Requests: 10, Period: time.Minute, Burst: 10,
			Cost: cost}})
		f := cel.NewFrame(t.Context())
		f.Vars().SetLimited(&cel.Request{Query: "limit=500", BodyBytes: 2048, Headers: headers{"x-zero": "0"},
			User: cel.User{Groups: []string{"batch"}}})
		r := create("192.0.2.1")
		r.Frame = func() *cel.Frame { return f }
		var charges Charges
		rules.Charge(&charges, r)
		if got := charges.All()[0].Cost; got != c.want {
			t.Errorf("%s: counts as %d, want %d", c.expression, got, c.want)
		}
		f.Release()
	}
}

// The headers of the IETF's draft: what there is, and what is left of it.
func TestHeaders(t *testing.T) {
	quiet := &Rule{Name: "quiet", Key: Global, Requests: 10, Period: time.Second, Burst: 10, Quiet: true}
	served := &Rule{Name: "served", Key: Global, InFlight: InFlight{Total: 1}}
	rules := NewRules([]*Rule{byAddress(100, time.Minute, 10), quiet, served,
		{Name: "a\"b\\c\u00e9", Key: Global, Requests: 1, Period: time.Hour, Burst: 3}})
	l, clock := virtualLimiter(0)
	var c Charges
	rules.Charge(&c, create("192.0.2.1"))
	if got, want := string(c.AppendPolicy(nil)), `"per-client";q=100;w=60, "a\"b\\c?";q=1;w=3600`; got != want {
		t.Errorf("policy %s, want %s", got, want)
	}
	for i, want := range []string{
		`"per-client";r=9;t=1, "a\"b\\c?";r=2;t=3600`,
		`"per-client";r=8;t=2, "a\"b\\c?";r=1;t=7200`,
		`"per-client";r=7;t=2, "a\"b\\c?";r=0;t=10800`,
		`"per-client";r=9;t=1, "a\"b\\c?";r=0;t=3599`, // refused: no time is later than Retry-After
	} {
		if i == 3 {
			clock.wait(1200 * time.Millisecond)
		}
		c.Reset()
		rules.Charge(&c, create("192.0.2.1"))
		d := l.decide(&c, clock.now, true)
		if got := string(c.AppendState([]byte("x"), d.RetryAfter)); got != "x"+want || d.Allowed() != (i < 3) {
			t.Errorf("request %d, allowed %t: %s, want %s", i, d.Allowed(), got, want)
		}
	}
	if got := (&Charges{}).AppendPolicy(nil); len(got) > 0 {
		t.Errorf("no limits, and %s", got)
	}
}

// Buckets outlive the rules of a policy set; other terms are another bucket.
func TestBucketsOutliveReload(t *testing.T) {
	l, _ := virtualLimiter(0)
	r := create("192.0.2.1")
	for _, c := range []struct {
		rule *Rule
		want bool
	}{{byAddress(1, time.Hour, 1), true}, {byAddress(1, time.Hour, 1), false}, {byAddress(2, time.Hour, 1), true}} {
		if got := l.Decide(NewRules([]*Rule{c.rule}), r).Allowed(); got != c.want {
			t.Errorf("%+v: %t, want %t", c.rule, got, c.want)
		}
	}
}

func TestConcurrentDecisionsNeverAdmitMore(t *testing.T) {
	l, _ := virtualLimiter(0)
	rules := NewRules([]*Rule{
		{Name: "all", Key: Global, Requests: 1, Period: time.Hour, Burst: 100},
		byAddress(1, time.Hour, 40),
	})
	var mu sync.Mutex
	admitted := map[string]int{}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			address := fmt.Sprintf("192.0.2.%d", w%4)
			for range 200 {
				if l.Decide(rules, create(address)).Allowed() {
					mu.Lock()
					admitted[address]++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	total := 0
	for address, n := range admitted {
		if total += n; n > 40 {
			t.Errorf("%s: %d admitted, want at most 40", address, n)
		}
	}
	if total != 100 {
		t.Errorf("%d admitted in all, want 100", total)
	}
}

// A decision while so many keys count. Beyond the caches of the processor it is one access to
// memory.
func benchmarkDecide(b *testing.B, keys int) {
	l := New(0)
	rules := NewRules([]*Rule{byAddress(1000, 100_000*time.Second, 1000)})
	r := create("192.0.2.1")
	at := time.Now()
	var c Charges
	decide := func(i int) {
		at = at.Add(time.Microsecond)
		r.ClientAddress = netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		c.Reset()
		rules.Charge(&c, r)
		l.Decide(&c, at)
	}
	for i := range keys {
		decide(i)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		decide(i)
		if i += 7919; i >= keys {
			i %= keys
		}
	}
}

func BenchmarkDecideThousandKeys(b *testing.B) { benchmarkDecide(b, 1000) }
func BenchmarkDecideMillionKeys(b *testing.B)  { benchmarkDecide(b, 1_000_000) }
