package proxy

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/admission-gateway/gateway/internal/routing"
	"github.com/admission-gateway/gateway/policies"
)

// manyRoutes is a table of so many routes, each for a host of its own and to a backend of its own, of which one differs
// from version to version.
func manyRoutes(n, version int) *routing.Table {
	backends, all := make([]routing.Backend, n), make([]routing.Route, n)
	for i := range all {
		backends[i] = routing.Backend{Name: fmt.Sprintf("infra/b%d:8080", i),
			Servers: []string{fmt.Sprintf("127.%d.%d.1:8080", i/250, i%250+1)}}
		all[i] = ruleOf(fmt.Sprint("r", i), prefix("/api"), i)
		all[i].Attachments[0].Host = fmt.Sprintf("h%d.example.com", i)
	}
	all[n/2].Matches = prefix(fmt.Sprintf("/version/%d", version))
	return tableOf(backends, all...)
}

// BenchmarkNext: how long a table takes to come into force of which one route has changed.
func BenchmarkNext(b *testing.B) {
	set := noPolicies()
	current := func() *policies.Set { return set }
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := bare(b)
			g := newTabled(b, c, manyRoutes(n, 0), current)
			defer func() { g.retire() }()
			version := 0
			for b.Loop() {
				version++
				b.StopTimer()
				table := manyRoutes(n, version)
				b.StartTimer()
				next, err := g.Next(Options{Config: c, Routing: table, Policies: current,
					Log: slog.New(slog.DiscardHandler)})
				if err != nil {
					b.Fatal(err)
				}
				next.Replace(g, func() {})
				g = next
			}
		})
	}
}

// BenchmarkFirst: how long the first table takes.
func BenchmarkFirst(b *testing.B) {
	set := noPolicies()
	for _, n := range []int{10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c, table := bare(b), manyRoutes(n, 0)
			for b.Loop() {
				newTabled(b, c, table, func() *policies.Set { return set }).retire()
			}
		})
	}
}
