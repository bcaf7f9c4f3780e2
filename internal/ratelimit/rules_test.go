package ratelimit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestIndex: the rules that charge a request are those that a look at each rule finds.
func TestIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range testutil.Amount(300, 75) {
		compareIndex(t, r)
	}
}

// FuzzIndex does the same.
func FuzzIndex(f *testing.F) {
	for i := range uint64(20) {
		f.Add(i, i*i)
	}
	f.Fuzz(func(t *testing.T, one, other uint64) { compareIndex(t, rand.New(rand.NewPCG(one, other))) })
}

// compareIndex makes random rules, and compares the charges of random requests with each rule's own
// verdict, in the order that rules had before there was an index: those for all, then by resources,
// then by groups.
func compareIndex(t *testing.T, r *rand.Rand) {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	some := func(from ...string) (some []string) {
		for _, s := range from {
			if r.IntN(3) == 0 {
				some = append(some, s)
			}
		}
		return some
	}
	var limits []*Rule
	for i := range r.IntN(30) {
		limit := &Rule{Name: fmt.Sprintf("r%02d", i), Key: Global, Requests: 1, Period: 1, Burst: 1}
		if r.IntN(2) == 0 {
			limit.Resources = some("pods", "pods/status", "jobs", "*", "*/status")
		}
		if r.IntN(2) == 0 {
			limit.APIGroups = some("", "apps", "*")
		}
		if r.IntN(2) == 0 {
			limit.Verbs = some("get", "create", "deletecollection", "post", "*")
		}
		if r.IntN(3) == 0 {
			limit.Namespaces = some("", "team-a", "team-b", "*")
		}
		switch r.IntN(6) {
		case 0:
			limit.Scope.Route = pick("one", "two")
		case 1:
			limit.Scope.Upstream = pick("u", "v")
		case 2:
			limit.Scope.Hosts = some("", "a.example.com", "b.example.com")
		case 3:
			limit.Scope = resource.Scope{Route: pick("", "one"), Upstream: pick("", "u"), Hosts: some("a.example.com")}
		}
		limit.Exemptions = Exemptions{Namespaces: some("team-a"), Usernames: some("jane")}
		limits = append(limits, limit)
	}
	rules := NewRules(limits)
	for range 30 {
		i := &resource.Info{
			IsResource: r.IntN(4) > 0, Verb: resource.VerbNamed(pick("get", "list", "create", "deletecollection")),
			Group: pick("", "apps", "other"), Version: "v1",
			Resource: pick("pods", "jobs", "others"), Subresource: pick("", "status"),
			Namespace: pick("", "team-a", "team-b", "team-c"),
		}
		if !i.IsResource {
			*i = resource.Info{Verb: resource.VerbNamed(pick("get", "post", "options"))}
		}
		q := &Request{Info: i, Username: pick("jane", "joe")}
		if r.IntN(5) > 0 {
			q.Route = &resource.RouteRef{Host: pick("", "a.example.com", "c.example.com"),
				Upstream: pick("u", "v", "w"),
				Route:    pick("", "one", "three")}
		}
		var want []string
		for rank := range 3 {
			for _, limit := range limits {
				if c := compile(limit); c.rank() == rank && c.matchAll(q) == counted {
					want = append(want, limit.Name)
				}
			}
		}
		other := *i
		other.Namespace, other.Name = "team-x", "x"
		var c, d Charges
		rules.Charge(&c, q)
		rules.For(&other, q.Route).Charge(&d, q)
		for _, charges := range []*Charges{&c, &d} {
			var got []string
			for _, charge := range charges.All() {
				got = append(got, charge.Rule.Name)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%+v by %+v: charged by %v, want %v", i, q.Route, got, want)
			}
		}
		if n := rules.Len(i, q.Route); n < len(want) || n != rules.For(&other, q.Route).Len(i) {
			t.Fatalf("%+v by %+v: %d rules, and %d charge", i, q.Route, n, len(want))
		}
	}
}

// TestOthersCostNothing: of a thousand rules that do not match, none is looked at, whatever they do not match by.
func TestOthersCostNothing(t *testing.T) {
	for by, change := range map[string]func(*Rule, int){
		"resource":  func(r *Rule, i int) { r.Resources = []string{fmt.Sprint("things-", i)} },
		"group":     func(r *Rule, i int) { r.APIGroups = []string{fmt.Sprint("g-", i)} },
		"verb":      func(r *Rule, i int) { r.Verbs = []string{"list", "delete"} },
		"namespace": func(r *Rule, i int) { r.Namespaces = []string{fmt.Sprint("team-", i)} },
		"route":     func(r *Rule, i int) { r.Scope.Route = fmt.Sprint("route-", i) },
		"upstream":  func(r *Rule, i int) { r.Scope.Upstream = fmt.Sprint("upstream-", i) },
		"host":      func(r *Rule, i int) { r.Scope.Hosts = []string{fmt.Sprint("host-", i)} },
	} {
		var limits []*Rule
		for i := range 1000 {
			r := &Rule{Name: fmt.Sprint(i), Key: Global, Requests: 1, Period: 1, Burst: 1}
			change(r, i)
			limits = append(limits, r)
		}
		q := create("192.0.2.1")
		q.Route = &resource.RouteRef{Host: "example.com", Upstream: "u", Route: "r"}
		rules := NewRules(limits)
		if n := rules.Len(q.Info, q.Route); n != 0 {
			t.Errorf("%s: %d rules are looked at", by, n)
		}
		var c Charges
		if n := testing.AllocsPerRun(100, func() { rules.Charge(&c, q) }); n != 0 || len(c.All()) != 0 {
			t.Errorf("%s: %v allocations, %d charges", by, n, len(c.All()))
		}
	}
}
