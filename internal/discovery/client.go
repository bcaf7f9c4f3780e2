package discovery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// Interval is how often a server is asked for what changed. A server that does not have
	// aggregated discovery, which reports in a few bytes that nothing changed, is asked less often.
	Interval        = 10 * time.Second
	intervalOfLists = time.Minute
	// remembered is how long the server's answer counts that it does not serve a resource. It
	// bounds what clients can make the gateway ask.
	remembered        = 500 * time.Millisecond
	rememberedOfLists = 5 * time.Second
	// timeout bounds one learning: at most maxVersions answers of at most MaxAnswer bytes.
	timeout     = 10 * time.Second
	maxVersions = 1000
	// MaxAnswer is the size of the largest answer to read, in bytes.
	MaxAnswer = 32 << 20
	// leastRetry and mostRetry bound the wait after a server could not be asked.
	leastRetry, mostRetry = 100 * time.Millisecond, 5 * time.Second
)

// Accept is the media types that the server is asked for: an aggregated document if it has one.
const Accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

// A Request is one GET of the discovery API.
type Request struct {
	Target, Accept string
	// Known is the ETag of the answer that is known already; empty for none.
	Known string
}

// A Response is the server's. The code is 304 if the known answer still holds.
type Response struct {
	Code int
	Body []byte
	ETag string
}

// Options of a [Client].
type Options struct {
	// Ask sends a question by the gateway's own account.
	Ask func(ctx context.Context, q Request) (Response, error)
	// Changed is called with the reason when the server cannot be asked any more, and with nil when
	// it can be again; it may be nil.
	Changed func(err error)
	// Learned is called when what the server serves is known for the first time, or has changed; it
	// may be nil.
	Learned func()
}

// ErrPending is the error of a client that has learned nothing yet.
var ErrPending = errors.New("it is not known yet which resources the API server serves")

// A Client learns what one server serves. It is safe for concurrent use.
type Client struct {
	options Options
	flight  singleflight.Group     // one learning at a time
	learned atomic.Pointer[lesson] // nil until the server has answered for the first time
	running atomic.Bool

	// The aggregated documents as they were last read, and their ETags: of the learning alone.
	parts [2]*Catalog
	etags [2]string

	// hasDocument reports of each document whether the server had it once: of the learning alone.
	hasDocument [2]bool

	mu       sync.Mutex
	failure  error     // why the last learning failed; nil if it did not
	failedAt time.Time // when it ended
}

// A lesson is what was learned at one time.
type lesson struct {
	catalog *Catalog
	// asked is when the learning began.
	asked time.Time
	// isAggregated reports whether the server has aggregated discovery.
	isAggregated bool
}

// New returns a client that has asked nothing yet.
func New(o Options) *Client {
	if o.Changed == nil {
		o.Changed = func(error) {}
	}
	if o.Learned == nil {
		o.Learned = func() {}
	}
	return &Client{options: o}
}

// Catalog returns what is known, which is not changed afterwards. The catalog of a server without
// discovery is empty. It returns nil if nothing is known yet.
func (c *Client) Catalog() *Catalog {
	if l := c.learned.Load(); l != nil {
		return l.catalog
	}
	return nil
}

// Err returns nil if something is known, though it may be old, and otherwise why not.
func (c *Client) Err() error {
	if c.learned.Load() != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil {
		return fmt.Errorf("%w: %w", ErrPending, c.failure)
	}
	return ErrPending
}

// Find returns the resource at a path; nil if the server does not serve it. A resource that is not
// known is asked for: the error is that the server could not be asked, or cannot describe the
// version.
func (c *Client) Find(ctx context.Context, p Path) (*Resource, error) {
	catalog, err := c.with(ctx, func(c *Catalog) bool { return c.Find(p) != nil })
	r := catalog.Find(p)
	if r == nil && err == nil {
		err = catalog.unspeakable(p.GroupVersion())
	}
	return r, err
}

// Named returns the plural name of the resource whose objects are of the kind, and the resource;
// nil if the server serves none. A kind that is not known is asked for.
func (c *Client) Named(ctx context.Context, kind schema.GroupVersionKind) (string, *Resource, error) {
	catalog, err := c.with(ctx, func(c *Catalog) bool { _, r := c.Named(kind); return r != nil })
	plural, r := catalog.Named(kind)
	if r == nil && err == nil {
		err = catalog.unspeakable(kind.GroupVersion())
	}
	return plural, r, err
}

// Versions returns the versions in which the server serves a resource, the preferred one first. A
// resource that is not known is asked for.
func (c *Client) Versions(ctx context.Context, r schema.GroupResource) ([]string, error) {
	catalog, err := c.with(ctx, func(c *Catalog) bool { return len(c.Versions(r)) > 0 })
	versions := catalog.Versions(r)
	for gv := range catalog.Failed() {
		if len(versions) == 0 && err == nil && gv.Group == r.Group {
			err = catalog.unspeakable(gv)
		}
	}
	return versions, err
}

// All returns everything that the server serves now.
func (c *Client) All(ctx context.Context) (*Catalog, error) {
	return c.with(ctx, func(c *Catalog) bool { return c != nil })
}

// with returns a catalog that has something. The server is asked if what is known does not have it;
// the error is that it could not be, and then the catalog is what was known.
func (c *Client) with(ctx context.Context, has func(*Catalog) bool) (*Catalog, error) {
	if known := c.current(); has(known) {
		return known, nil
	}
	catalog, err := c.ask(ctx)
	if has(catalog) {
		return catalog, nil // what was known holds
	}
	return catalog, err
}

// current returns what need not be asked for again; nil for nothing.
func (c *Client) current() *Catalog {
	l := c.learned.Load()
	if l == nil || !c.running.Load() && time.Since(l.asked) > l.interval() {
		return nil
	}
	return l.catalog
}

// ask returns what the server serves now: what it was asked for a moment ago, or its answer to a
// question that begins no earlier. One question is asked at a time.
func (c *Client) ask(ctx context.Context) (*Catalog, error) {
	now := time.Now()
	for {
		if l := c.learned.Load(); l != nil && now.Sub(l.asked) < l.remembered() {
			return l.catalog, nil
		}
		if err := c.failedSince(now.Add(-leastRetry)); err != nil {
			return c.Catalog(), err
		}
		select {
		case done := <-c.flight.DoChan("", func() (any, error) { return nil, c.learn() }):
			if done.Err != nil {
				return c.Catalog(), done.Err
			}
		case <-ctx.Done():
			return c.Catalog(), errors.New("the API server did not say which resources it serves before the request was over")
		}
	}
}

// failedSince returns why the last learning failed, if it ended after a time: a server that fails is
// not asked again at once.
func (c *Client) failedSince(then time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failedAt.After(then) {
		return c.failure
	}
	return nil
}

// remembered is how long counts that the server does not serve what is not in the catalog.
func (l *lesson) remembered() time.Duration {
	switch {
	case l.isAggregated:
		return remembered
	case l.catalog.Len() == 0:
		return intervalOfLists // the server has no discovery
	}
	return rememberedOfLists
}

func (l *lesson) interval() time.Duration {
	if l.isAggregated {
		return Interval
	}
	return intervalOfLists
}

// Run asks until the context is done: at once, and then for what changed. What is known stays known
// while the server cannot be asked. It calls asked after the first question, answered or not.
func (c *Client) Run(ctx context.Context, asked func()) {
	c.running.Store(true)
	defer c.running.Store(false)
	retry := leastRetry
	for {
		_, err, _ := c.flight.Do("", func() (any, error) { return nil, c.learn() })
		asked()
		asked = func() {}
		wait := retry
		switch l := c.learned.Load(); {
		case err == nil:
			wait, retry = l.interval(), leastRetry
		default:
			retry = min(2*retry, mostRetry)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// learn asks for everything. It remembers what it learned, or why it could not.
func (c *Client) learn() error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	next := &lesson{catalog: newCatalog(), asked: time.Now()}
	err := c.read(ctx, next)
	c.mu.Lock()
	hadFailed := c.failure != nil
	c.failure, c.failedAt = err, time.Now()
	c.mu.Unlock()
	if err != nil {
		if !hadFailed {
			c.options.Changed(err)
		}
		return err
	}
	before := c.Catalog()
	next.catalog.keep(before)
	if before != nil && before.Equal(next.catalog) {
		next.catalog = before
	}
	c.learned.Store(next)
	if next.catalog != before {
		c.options.Learned()
	}
	if hadFailed {
		c.options.Changed(nil)
	}
	return nil
}

// roots are the paths of the two documents: of the core group, and of all others.
var roots = [2]string{"/api", "/apis"}

// read reads both documents, and the lists of what they name unless they are aggregated.
func (c *Client) read(ctx context.Context, l *lesson) error {
	for i, root := range roots {
		part, err := c.readRoot(ctx, i, root, l)
		switch {
		case errors.Is(err, errNoDiscovery) && c.hasDocument[i]:
			return fmt.Errorf("GET %s: %w, and the server had one before", root, err)
		case errors.Is(err, errNoDiscovery):
			continue // as a server that is no API server, or one without a core group, answers
		case err != nil:
			return err
		}
		c.hasDocument[i] = true
		l.catalog.merge(part)
	}
	return nil
}

// readRoot returns what one of the documents has.
func (c *Client) readRoot(ctx context.Context, i int, root string, l *lesson) (*Catalog, error) {
	answer, err := c.options.Ask(ctx, Request{Target: root, Accept: Accept, Known: c.etags[i]})
	if err != nil {
		return nil, err
	}
	if answer.Code == http.StatusNotModified && c.parts[i] != nil {
		l.isAggregated = true
		return c.parts[i], nil
	}
	c.etags[i], c.parts[i] = "", nil
	if err := errOf(root, answer.Code); err != nil {
		return nil, err
	}
	d, err := readDocument(answer.Body)
	if err != nil {
		return nil, err
	}
	part := newCatalog()
	if d.Kind == kindAggregated {
		l.isAggregated = true
		d.addTo(part)
		part.complete()
		if len(part.failed) == 0 {
			c.etags[i], c.parts[i] = answer.ETag, part
		}
		return part, nil
	}
	if err := c.readLists(ctx, part, d.groupVersions()); err != nil {
		return nil, err
	}
	part.complete()
	return part, nil
}

// readLists asks for the resources of each version. A version of which the server cannot speak is
// an aggregated API that is down.
func (c *Client) readLists(ctx context.Context, part *Catalog, versions []schema.GroupVersion) error {
	if len(versions) > maxVersions {
		return fmt.Errorf("the API server serves more than %d versions of groups", maxVersions)
	}
	for _, gv := range versions {
		target := GroupVersionPath(gv)
		answer, err := c.options.Ask(ctx, Request{Target: target, Accept: "application/json"})
		if err != nil {
			return err
		}
		if answer.Code == http.StatusNotFound {
			continue // it went in between
		}
		if err := errOf(target, answer.Code); err != nil {
			part.failed[gv] = err.Error()
		} else if err := addResources(part, gv, answer.Body); err != nil {
			part.failed[gv] = fmt.Sprintf("GET %s: %v", target, err)
		}
	}
	return nil
}

// errOf returns the error of an answer's code. A server without discovery does not know the paths.
func errOf(target string, code int) error {
	switch {
	case code == http.StatusOK:
		return nil
	case code == http.StatusUnauthorized:
		return fmt.Errorf("GET %s was answered 401: the API server does not know the gateway's account", target)
	case code == http.StatusForbidden:
		return fmt.Errorf("GET %s was answered 403: the gateway's account needs the ClusterRole system:discovery, which every authenticated user has unless it was taken away", target)
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= http.StatusInternalServerError:
		return fmt.Errorf("GET %s was answered %d", target, code)
	}
	return errNoDiscovery
}
