package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Resolver looks up the addresses of a host; a *net.Resolver is one.
type Resolver interface {
	// LookupNetIP is asked with the network "ip".
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

const (
	// maxAddresses bounds the endpoints that one name stands for.
	maxAddresses = 256
	// lookupTimeout bounds one lookup, and firstRetry is after what time a
	// failed one is made again; each failure doubles that up to the period.
	lookupTimeout = 5 * time.Second
	firstRetry    = time.Second
)

var (
	errUnresolved  = errors.New("the names of the endpoints are not resolved yet")
	errNoAddresses = errors.New("the name has no addresses")
)

// lookup is what the pool knows of the resolving of names.
type lookup struct {
	failed  error // the outcome of the last lookup of any name
	unknown int   // names whose first lookup is not over
}

// over notes how a lookup of the origin's name went.
func (l *lookup) over(o *origin, err error) {
	if !o.asked && !o.fixed {
		l.unknown--
	}
	o.asked, o.failed, l.failed = true, err, err
}

// origin is one base URL.
type origin struct {
	position   int    // among the base URLs
	authority  string // host and port
	host, port string
	fixed      bool // one endpoint for ever
	asked      bool // its first lookup is over
	failed     error
}

// isOne tells whether the origin is one server in any case: an address, or
// this machine, whatever addresses it has.
func (o *origin) isOne() bool {
	if _, err := netip.ParseAddr(o.host); err == nil {
		return true
	}
	host := strings.ToLower(strings.TrimSuffix(o.host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// follow keeps the endpoints of a name in step with its addresses until the
// context ends.
func (c *Client) follow(ctx context.Context, o *origin) {
	retry, failing := firstRetry, false
	for {
		addresses, err := c.lookUp(ctx, o)
		if ctx.Err() != nil {
			return
		}
		wait := c.config.ResolvePeriod
		if err == nil {
			retry, failing = firstRetry, false
			c.adopt(ctx, o, addresses)
		} else {
			c.pool.lookupFailed(o, err, !failing)
			wait, retry, failing = min(wait, retry), 2*retry, true
		}
		// Replicas that start together do not ask together for ever.
		timer := time.NewTimer(wait - time.Duration(rand.Int64N(int64(wait)/8+1)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// lookUp returns the addresses of a name, at least one, in their order.
func (c *Client) lookUp(ctx context.Context, o *origin) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := c.config.Resolver.LookupNetIP(ctx, "ip", o.host)
	if err != nil {
		return nil, err
	}
	addresses := make([]netip.Addr, 0, len(found))
	for _, a := range found {
		if a.IsValid() {
			addresses = append(addresses, a.Unmap())
		}
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	addresses = slices.Compact(addresses)
	if len(addresses) == 0 {
		return nil, errNoAddresses
	}
	return addresses[:min(len(addresses), maxAddresses)], nil
}

// adopt makes the addresses the endpoints of a name.
func (c *Client) adopt(ctx context.Context, o *origin, addresses []netip.Addr) {
	wanted := make([]string, len(addresses))
	for i, a := range addresses {
		wanted[i] = net.JoinHostPort(a.String(), o.port)
	}
	for _, e := range c.pool.set(o, wanted, time.Now()) {
		c.watchHealth(ctx, e)
	}
}

// set makes the addresses the endpoints of an origin and returns those that
// are new. What an endpoint that stays has been through it keeps.
func (p *pool) set(o *origin, addresses []string, now time.Time) []*endpoint {
	p.mu.Lock()
	defer p.unlock()
	if p.closed {
		return nil
	}
	known := make(map[string]*endpoint)
	for _, e := range p.all {
		if e.origin == o {
			known[e.addr] = e
		}
	}
	kept := slices.DeleteFunc(slices.Clone(p.all), func(e *endpoint) bool { return e.origin == o })
	var added []*endpoint
	for _, addr := range addresses {
		e := known[addr]
		if e == nil {
			e = &endpoint{addr: addr, origin: o}
			added = append(added, e)
		}
		delete(known, addr)
		kept = append(kept, e)
	}
	p.lookup.over(o, nil)
	if len(added) == 0 && len(known) == 0 {
		return nil
	}
	p.all = kept
	for _, e := range known {
		p.remove(e)
	}
	slices.SortStableFunc(p.all, func(a, b *endpoint) int { return cmp.Compare(a.origin.position, b.origin.position) })
	if !o.fixed {
		p.tell(Change{Event: AddressesChanged, Endpoint: o.authority, Cause: fmt.Sprintf("%d added, %d removed, %d in all", len(added), len(known), len(addresses))})
	}
	p.rebuild(now)
	p.serve()
	return added
}

// remove takes an endpoint, which is no longer one of all, out of use. Its
// exchanges go on.
func (p *pool) remove(e *endpoint) {
	e.removed = true
	p.dropIdle(e)
	if e.stop != nil {
		e.stop()
	}
}

// lookupFailed notes that a name cannot be resolved. Its endpoints stay: a name
// server that is down says nothing about the backend.
func (p *pool) lookupFailed(o *origin, err error, isNews bool) {
	p.mu.Lock()
	p.lookup.over(o, err)
	if isNews {
		p.tell(Change{Event: LookupFailed, Endpoint: o.authority, Cause: err.Error()})
	}
	if len(p.all) == 0 && p.lookup.unknown == 0 {
		p.fail(&dialError{err})
	}
	p.unlock()
}
