package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/access"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
)

// Options of a [Manager]. The zero value is useful.
type Options struct {
	// Log gets what becomes of collections; nil discards it.
	Log *slog.Logger
	// LookupTimeout bounds one reading that a request waits for; 0 means 5 seconds.
	LookupTimeout time.Duration
	// TTL is how long an object that a request needed counts for later ones; 0 means
	// 5 seconds.
	TTL time.Duration
	// RetryWait is about how long a collection waits after it could not be read; it
	// doubles up to 30 seconds. 0 means half a second.
	RetryWait time.Duration
	// Linger is how long a collection that no policy reads any more is kept up to date;
	// 0 means a minute.
	Linger time.Duration
	// Liveness says how dead watches are noticed.
	Liveness Liveness
	// Changed is called with the reason when a collection can no longer be read, and with nil when
	// it can be read again.
	Changed func(path string, err error)
	// Read is called when the objects of a collection of the kind were read, or changed; it may be nil.
	Read func(kind schema.GroupVersionKind)
}

const (
	defaultLookupTimeout = 5 * time.Second
	defaultTTL           = 5 * time.Second
	defaultRetryWait     = 500 * time.Millisecond
	defaultLinger        = time.Minute
)

// A Manager keeps all collections and what was read on demand. It outlives policy
// sets and is safe for concurrent use.
type Manager struct {
	options  Options
	cache    *cache
	reviews  *access.Reviews
	backends Backends // nil until Start

	mu     sync.RWMutex
	feeds  map[key]*feed
	unused map[key]*time.Timer
	wanted []*Source
	closed bool
}

// NewManager returns a manager that reads nothing yet.
func NewManager(o Options) (*Manager, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Changed == nil {
		o.Changed = func(string, error) {}
	}
	if o.Read == nil {
		o.Read = func(schema.GroupVersionKind) {}
	}
	setDefault(&o.LookupTimeout, defaultLookupTimeout)
	setDefault(&o.TTL, defaultTTL)
	setDefault(&o.RetryWait, defaultRetryWait)
	setDefault(&o.Linger, defaultLinger)
	o.Liveness.setDefaults()
	m := &Manager{options: o, reviews: access.New(), feeds: map[key]*feed{}, unused: map[key]*time.Timer{}}
	var err error
	m.cache, err = newCache()
	return m, err
}

func setDefault(v *time.Duration, otherwise time.Duration) {
	if *v <= 0 {
		*v = otherwise
	}
}

// Reviews ask backends about users' access, for policies and for the gateway itself.
func (m *Manager) Reviews() *access.Reviews { return m.reviews }

// OnChange sets Options.Changed. It must be called before Start.
func (m *Manager) OnChange(f func(path string, err error)) { m.options.Changed = f }

// Start begins to keep up to date what Apply asked for. If it has begun before, other backends are read from now on:
// the collections whose backend is another one are listed anew.
func (m *Manager) Start(b Backends) {
	m.mu.Lock()
	before := m.backends
	m.backends = b
	if before != nil {
		for _, f := range m.feeds {
			if before.Backend(f.source.Upstream, f.source.Path) != b.Backend(f.source.Upstream, f.source.Path) {
				f.renew()
			}
		}
	}
	wanted := m.wanted
	m.mu.Unlock()
	m.Apply(wanted)
}

// Apply says which sources are read from now on. Sources that were read before go on as they are.
// Sources that are no longer named end after a while, so that requests in progress still find them.
func (m *Manager) Apply(sources []*Source) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wanted = sources
	if m.backends == nil || m.closed {
		return
	}
	used := map[key]bool{}
	strictest := map[key]Liveness{}
	for _, s := range sources {
		if s.Mode == OnDemand {
			continue
		}
		k := s.key()
		if !used[k] {
			strictest[k] = m.options.Liveness
		}
		used[k] = true
		strictest[k] = strictest[k].of(s)
		if t := m.unused[k]; t != nil {
			t.Stop()
			delete(m.unused, k)
		}
		if m.feeds[k] == nil {
			m.feeds[k] = newFeed(s, func() Backend { return m.backendOf(s.Upstream, s.Path) }, &m.options)
		}
	}
	for k, live := range strictest {
		m.feeds[k].liveness.Store(&live)
	}
	for k := range m.feeds {
		if !used[k] && m.unused[k] == nil {
			m.unused[k] = time.AfterFunc(m.options.Linger, func() { m.drop(k) })
		}
	}
}

// drop ends a collection that is still not used.
func (m *Manager) drop(k key) {
	m.mu.Lock()
	f := m.feeds[k]
	unused := m.unused[k] != nil
	if unused {
		delete(m.unused, k)
		delete(m.feeds, k)
	}
	m.mu.Unlock()
	if unused && f != nil {
		f.stop()
	}
}

// Close ends everything; it does not wait for answers of backends that are still to
// come.
func (m *Manager) Close() {
	m.mu.Lock()
	m.closed = true
	feeds := m.feeds
	m.feeds = map[key]*feed{}
	for _, t := range m.unused {
		t.Stop()
	}
	m.unused = map[key]*time.Timer{}
	m.mu.Unlock()
	for _, f := range feeds {
		f.stop()
	}
}

// Synced returns nil once each collection was read, or could not be.
func (m *Manager) Synced() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, f := range m.feeds {
		if !f.synced() {
			return fmt.Errorf("the state at '%s' is being read for the first time", f.source.Path)
		}
	}
	return nil
}

// Ages returns how long ago the backend of each collection last showed that what is known of it is right, by its path.
func (m *Manager) Ages() map[string]time.Duration {
	m.mu.RLock()
	defer m.mu.RUnlock()
	now, all := time.Now(), make(map[string]time.Duration, len(m.feeds))
	for _, f := range m.feeds {
		if f.seen.Load() != 0 {
			all[f.source.Path] = max(all[f.source.Path], f.age(now))
		}
	}
	return all
}

// Overdue returns which collections that are watched, or were, have not been known to be right for longer than it takes
// to notice that a connection is dead; nil if there is none.
func (m *Manager) Overdue() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var all []string
	now := time.Now()
	for _, f := range m.feeds {
		live := f.liveness.Load()
		if age := f.age(now); f.source.Mode == Watch && f.seen.Load() != 0 && age > live.Period+live.Grace+
			live.Grace/2 {
			all = append(all, fmt.Sprintf("'%s' was last known to be right %d seconds ago", f.source.Path,
				int64(age.Seconds())))
		}
	}
	if all == nil {
		return nil
	}
	slices.Sort(all)
	if n := len(all); n > maxOverdue {
		all = append(all[:maxOverdue], fmt.Sprintf("and %d more", n-maxOverdue))
	}
	return errors.New(strings.Join(all, ", "))
}

// maxOverdue bounds how many collections one error names.
const maxOverdue = 5

// An Activity is what was read of a collection that is kept up to date.
type Activity struct {
	Kind string
	// Events were read of watches, bookmarks among them, and the whole collection was listed so many times.
	Events, Lists uint64
	// Silences counts the watches that were given up because the backend was silent.
	Silences uint64
	// LastEvent is when an event came last; zero before the first one.
	LastEvent time.Time
	// Age is how long ago the backend last showed that what is known is right.
	Age time.Duration
}

// Activities returns what was read of each collection that has been read.
func (m *Manager) Activities() []Activity {
	m.mu.RLock()
	defer m.mu.RUnlock()
	now, all := time.Now(), make([]Activity, 0, len(m.feeds))
	for _, f := range m.feeds {
		if f.seen.Load() == 0 {
			continue
		}
		one := Activity{Kind: f.source.Kind.Kind, Events: f.events.Load(), Lists: f.lists.Load(),
			Silences: f.silences.Load(), Age: f.age(now)}
		if at := f.lastEvent.Load(); at != 0 {
			one.LastEvent = time.Unix(0, at)
		}
		all = append(all, one)
	}
	return all
}

// Known returns the objects of a source that is kept up to date, without waiting; false if they are not known.
func (m *Manager) Known(s *Source) ([]document.Node, bool) {
	m.mu.RLock()
	f := m.feeds[s.key()]
	m.mu.RUnlock()
	if f == nil {
		return nil, false
	}
	v := f.store.view()
	if v == nil {
		return nil, false
	}
	return v.objects, true
}

// Objects returns the objects of a source, for a request in the namespace. The error says why they
// are not known; it is [cel.ErrSkip] if policies are to be left out then.
func (m *Manager) Objects(ctx context.Context, s *Source, namespace string) ([]document.Node, error) {
	if s.Mode == OnDemand {
		return m.onDemand(ctx, s, namespace)
	}
	v, err := m.viewOf(ctx, s)
	if err != nil {
		return nil, err
	}
	return v.objects, nil
}

// Find returns the object of a source with the name; an invalid node if there is none. The source
// must cover the kind of it.
func (m *Manager) Find(ctx context.Context, s *Source, namespace, name string) (document.Node, error) {
	if s.Mode == OnDemand {
		all, err := m.onDemand(ctx, s, "")
		for _, o := range all {
			if keyOf(o) == namespace+"/"+name {
				return o, err
			}
		}
		return document.Node{}, err
	}
	v, err := m.viewOf(ctx, s)
	if err != nil {
		return document.Node{}, err
	}
	return v.find(namespace, name), nil
}

// In returns the objects of a source in a namespace; objects that belong to none are in the empty
// one. The source must cover the kind of them.
func (m *Manager) In(ctx context.Context, s *Source, namespace string) ([]document.Node, error) {
	if s.Mode == OnDemand {
		all, err := m.onDemand(ctx, s, "")
		return slices.DeleteFunc(slices.Clone(all), func(o document.Node) bool {
			return !strings.HasPrefix(keyOf(o), namespace+"/")
		}), err
	}
	v, err := m.viewOf(ctx, s)
	if err != nil {
		return nil, err
	}
	return v.within(namespace), nil
}

// viewOf returns the known objects of a source that is kept up to date.
func (m *Manager) viewOf(ctx context.Context, s *Source) (*view, error) {
	m.mu.RLock()
	f := m.feeds[s.key()]
	m.mu.RUnlock()
	if f == nil {
		return nil, s.unknown("has not been read yet", nil)
	}
	v := f.store.view()
	if v == nil {
		f.wait(ctx)
		v = f.store.view()
	}
	if v == nil {
		return nil, s.unknown("has not been read yet", f.why())
	}
	if age := f.staleness(time.Now()); s.MaxStaleness > 0 && age > s.MaxStaleness {
		return nil, s.unknown(fmt.Sprintf("is stale: it was last known %d seconds ago", int(age.Seconds())), f.why())
	}
	return v, nil
}

func (m *Manager) onDemand(ctx context.Context, s *Source, namespace string) ([]document.Node, error) {
	b := m.backendOf(s.Upstream, s.Path)
	if b == nil {
		return nil, s.unknown("cannot be read", s.noBackend())
	}
	if namespace == "" && strings.Contains(s.Path, requestNamespace) {
		return nil, s.unknown("cannot be read", errNoNamespace)
	}
	target := s.target(url.PathEscape(namespace))
	found, err := m.cache.get(ctx, reading{b, target}, s.TTL, m.options.LookupTimeout,
		func(ctx context.Context) (listing, error) {
			return list(ctx, b, target, s.Items, s.Kind, bounds{s.MaxObjects, s.MaxBytes})
		})
	if err != nil {
		return nil, s.unknown("cannot be read", err)
	}
	return found, nil
}

// noBackend says why there is no backend to ask.
func (s *Source) noBackend() error {
	if s.Upstream != "" {
		return fmt.Errorf("no upstream has the name '%s'", s.Upstream)
	}
	return errors.New("no route of the gateway leads from its path to a backend")
}

// unknown is the answer of a source that is not known.
func (s *Source) unknown(how string, why error) error {
	switch {
	case s.Skip:
		return cel.ErrSkip
	case why != nil:
		return fmt.Errorf("the state '%s' %s: %w", s.Name, how, why)
	}
	return fmt.Errorf("the state '%s' %s", s.Name, how)
}

func (m *Manager) backendOf(upstream, path string) Backend {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.backends == nil {
		return nil
	}
	return m.backends.Backend(upstream, path)
}
