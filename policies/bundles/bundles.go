// Package bundles keeps the bundles of the gateway's configuration up to date: it asks bundle servers
// by OPA's protocol, reads archives from files, and keeps the last good version on disk.
//
// A version is in force when the policies that name the bundle were compiled with it and came into
// force as one set. A version that cannot be read, that is not signed as it must be, or that does not
// compile never replaces the one in force. While there is none, policies fail for each request.
package bundles

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/admission-gateway/gateway/policies/modules"
)

// Bundles are the bundles of a gateway. Its methods are safe for concurrent use.
type Bundles struct {
	options Options
	all     map[string]*follower
	order   []string
}

// New returns Bundles. None of them is loaded.
func New(o Options) *Bundles {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Failed == nil {
		o.Failed = func(string, Stage) {}
	}
	b := &Bundles{options: o, all: make(map[string]*follower, len(o.Sources)),
		order: slices.Sorted(maps.Keys(o.Sources))}
	for name, s := range o.Sources {
		b.all[name] = &follower{name: name, source: s, options: &b.options}
	}
	return b
}

// Initial are the bundles before anything is loaded, for policies that are compiled now.
func (b *Bundles) Initial() map[string]modules.Bundle {
	all := make(map[string]modules.Bundle, len(b.all))
	for name, f := range b.all {
		all[name] = modules.Bundle{Usable: f.usable}
	}
	return all
}

// Restore loads what needs no server: files, and what was kept on disk. It must be called before Run.
func (b *Bundles) Restore(ctx context.Context) {
	for _, name := range b.order {
		b.all[name].restore(ctx)
	}
}

// Run keeps the bundles up to date until ctx is done.
func (b *Bundles) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, f := range b.all {
		all.Go(func() { f.run(ctx) })
	}
	all.Wait()
}

// Ready returns which bundle has not been loaded yet; nil if all have.
func (b *Bundles) Ready() error {
	for _, name := range b.order {
		if err := b.all[name].loaded(); err != nil {
			return err
		}
	}
	return nil
}

// Status returns how the bundles are, by name.
func (b *Bundles) Status() []Status {
	all := make([]Status, 0, len(b.order))
	for _, name := range b.order {
		all = append(all, b.all[name].status())
	}
	return all
}

// Ages returns how long ago each bundle that is loaded was last known to be the newest.
func (b *Bundles) Ages() map[string]time.Duration {
	ages := make(map[string]time.Duration, len(b.all))
	for _, s := range b.Status() {
		if !s.Confirmed.IsZero() {
			ages[s.Name] = max(0, b.options.Now().Sub(s.Confirmed))
		}
	}
	return ages
}
