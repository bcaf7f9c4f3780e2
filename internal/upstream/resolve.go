package upstream

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/admission-gateway/gateway/internal/upstream/balance"
)

const (
	// maxAddresses bounds the endpoints of one name.
	maxAddresses = 256
	// lookupTimeout bounds one lookup, and firstRetry is after what time a
	// failed one is made again; each failure doubles that up to the period.
	lookupTimeout = 5 * time.Second
	firstRetry    = time.Second
)

var errNoAddresses = errors.New("the name has no addresses")

// origin is one base URL. The pool's lock guards its state.
type origin struct {
	balance.Origin
	host, port string
	failed     error
}

// isOneServer reports whether the origin is one server in any case: an address, or this machine, whatever addresses it
// has.
func (o *origin) isOneServer() bool {
	if _, err := netip.ParseAddr(o.host); err == nil {
		return true
	}
	host := strings.ToLower(strings.TrimSuffix(o.host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// over notes how a lookup of the origin's name went.
func (l *lookup) over(o *origin, err error) {
	if !o.Asked && !o.IsFixed {
		l.unknown--
	}
	o.Asked, o.failed, l.failed = true, err, err
}

// replace makes the addresses the endpoints of an origin and returns the new ones. An endpoint that stays keeps its
// history; the exchanges of one that goes end in peace.
func (p *pool) replace(o *origin, addresses []string, now time.Time) []*endpoint {
	p.mu.Lock()
	defer p.unlock()
	if p.slots.isClosed {
		return nil
	}
	added, removed := p.set.Replace(&o.Origin, addresses, now)
	p.lookup.over(o, nil)
	for _, e := range removed {
		p.slots.drop(e)
		if e.Conns.stop != nil {
			e.Conns.stop()
		}
	}
	p.serve()
	return added
}

// lookupFailed notes that a name cannot be resolved. Its endpoints stay: a name server that is down shows nothing of
// the backend.
func (p *pool) lookupFailed(o *origin, err error, isNews bool) {
	p.mu.Lock()
	p.lookup.over(o, err)
	if isNews {
		p.set.Report(balance.Change{Event: balance.LookupFailed, Endpoint: o.Authority, Cause: err.Error()})
	}
	if len(p.set.All()) == 0 && p.lookup.unknown == 0 {
		p.fail(&dialError{err})
	}
	p.unlock()
}

// resolver keeps the endpoints of names in step with their addresses.
type resolver struct {
	config *Config
	pool   *pool
	// added is called with each new endpoint.
	added func(context.Context, *endpoint)
}

// start puts the endpoints in force that are known, and begins to look up the others.
func (r *resolver) start(ctx context.Context, origins []*origin) {
	for _, o := range origins {
		if o.IsFixed = r.config.ResolvePeriod <= 0 || o.isOneServer(); !o.IsFixed {
			r.pool.lookup.unknown++
		}
	}
	for _, o := range origins {
		if o.IsFixed {
			r.adopt(ctx, o, []string{o.Authority})
		} else {
			go r.follow(ctx, o)
		}
	}
}

// follow keeps the endpoints of a name in step with its addresses until the context ends.
func (r *resolver) follow(ctx context.Context, o *origin) {
	retry, failing := firstRetry, false
	for {
		addresses, err := r.lookUp(ctx, o)
		if ctx.Err() != nil {
			return
		}
		wait := r.config.ResolvePeriod
		if err == nil {
			retry, failing = firstRetry, false
			r.adopt(ctx, o, addresses)
		} else {
			r.pool.lookupFailed(o, err, !failing)
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

// lookUp returns the addresses of a name, at least one, in their order, with the origin's port.
func (r *resolver) lookUp(ctx context.Context, o *origin) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := r.config.Resolver.LookupNetIP(ctx, "ip", o.host)
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
	wanted := make([]string, min(len(addresses), maxAddresses))
	for i := range wanted {
		wanted[i] = net.JoinHostPort(addresses[i].String(), o.port)
	}
	return wanted, nil
}

// adopt makes the addresses the endpoints of a name.
func (r *resolver) adopt(ctx context.Context, o *origin, addresses []string) {
	for _, e := range r.pool.replace(o, addresses, time.Now()) {
		r.added(ctx, e)
	}
}
