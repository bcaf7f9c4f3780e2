package proxy

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/routing"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/proxy/routes"
)

// ownListener is the number of the listeners of the configuration, which share the routes of the configuration. The
// listener of the index i of a routing.Table has the number i+1.
const ownListener = 0

// A routeTable leads from what a request shows of itself to a backend. It is immutable.
type routeTable struct {
	table []*route
	tree  *routes.Tree[*choice] // finds some of the table
	// to has the routes by their backends.
	to       map[*backend][]*route
	backends []*backend
	// upstreams are the backends of the configuration, services those of a routing.Table, by their names.
	upstreams, services map[string]*backend
	listeners           []routing.Listener
	own                 int // how many routes are the configuration's
}

// compile makes the tree: of the routes of the configuration, the more specific ones first, and of those that are led
// to by further entries.
func (r *routeTable) compile(own []*route, more []*route, entries []routes.Entry[*choice]) (err error) {
	slices.SortStableFunc(own, func(a, b *route) int {
		return cmp.Or(cmp.Compare(min(len(b.host), 1), min(len(a.host), 1)),
			cmp.Compare(len(b.spans[0].from), len(a.spans[0].from)))
	})
	r.own = len(own)
	r.table, r.to = slices.Concat(own, more), make(map[*backend][]*route, len(r.backends))
	for i, one := range r.table {
		one.index = i
		r.to[one.backend] = append(r.to[one.backend], one)
	}
	all := make([]routes.Entry[*choice], 0, len(own)+len(entries))
	for _, one := range own {
		all = append(all, routes.Entry[*choice]{
			Listener: ownListener, Host: one.host,
			Match: &routing.Match{Path: routing.PathMatch{Value: one.spans[0].from}},
			Route: &choice{routes: []*route{one}},
		})
	}
	r.tree, err = routes.New(append(all, entries...))
	return err
}

// find returns the routes among which the requests of a head are shared that come by a listener; nil if there is none,
// or if servers may read the path as one that is routed in another way.
func (r *routeTable) find(listener int, head *message.Head) *choice {
	one, _ := r.search(listener, head)
	return one
}

// look is find, with the answer to requests that have no route.
func (r *routeTable) look(listener int, head *message.Head) (*choice, error) {
	one, err := r.search(listener, head)
	switch {
	case err != nil:
		return nil, ambiguous(head, err)
	case one == nil:
		return nil, noRoute(head)
	}
	return one, nil
}

// lookAnywhere is look by the first listener that has routes of a head. It is for operators.
func (r *routeTable) lookAnywhere(head *message.Head) (*choice, error) {
	for listener := range len(r.listeners) + 1 {
		if one, err := r.search(listener, head); one != nil || err != nil {
			return r.look(listener, head)
		}
	}
	return nil, noRoute(head)
}

func (r *routeTable) search(listener int, head *message.Head) (*choice, error) {
	one, _, err := r.tree.Find(&routes.Request{Listener: listener, Host: head.Host, Target: str(head.Target),
		Head: head})
	return one, err
}

// noRoute is the answer to a request that no route takes.
func noRoute(head *message.Head) error {
	return status.NoSuchPath("no route leads from host '%s' and path '%s' to a backend", head.Host, pathOf(head.Target))
}

// ambiguous is the answer to a request whose path leads to one route as it is written, and to another as some servers
// read it: whatever is said of the other route would not count for it.
func ambiguous(head *message.Head, err error) error {
	return status.BadRequest("the request path '%s' is refused: %v. Spell it as all servers read it",
		pathOf(head.Target), err)
}

// bareHead is a head with nothing but a method, a host and a target.
func bareHead(method, host, target string) *message.Head {
	return &message.Head{Method: []byte(method), Host: []byte(host), Target: []byte(target)}
}

// leadsTo reports whether a route leads requests at or below a path, or at one above it, to the backend.
func (r *routeTable) leadsTo(b *backend, path string) bool {
	return slices.ContainsFunc(r.to[b], func(one *route) bool { return one.reaches(path) })
}

func (r *routeTable) close() {
	for _, b := range r.backends {
		b.release()
	}
}

// A span is a prefix of clients' paths, and the prefix that the backend gets in its place.
type span struct{ from, to string }

// A choice is the routes among which the requests of a rule are shared, at least one.
type choice struct {
	routes []*route
	shares *shares // nil if there is one route
}

// pick returns the route of a request. before is the one that it was given before, if it is looked at again.
func (c *choice) pick(before *route) *route {
	switch {
	case c.shares == nil:
		return c.routes[0]
	case before != nil && slices.Contains(c.routes, before):
		return before
	}
	return c.routes[c.shares.next()]
}

// has reports whether a route is among them.
func (c *choice) has(one *route) bool { return c != nil && slices.Contains(c.routes, one) }

// newRoutes makes the backends of the configuration and of a table, or takes them over from a Gateway before, and the
// routes that lead to them.
func (g *Gateway) newRoutes(o *Options, before *Gateway) (_ *routeTable, err error) {
	r := &routeTable{upstreams: make(map[string]*backend, len(o.Config.Upstreams))}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	own, err := g.ownRoutes(r, o, before)
	if err != nil {
		return nil, err
	}
	if o.Routing == nil {
		return r, r.compile(own, nil, nil)
	}
	r.listeners = o.Routing.Listeners
	c := &compiler{gateway: g, options: o, into: r}
	c.addServices(before)
	for i := range o.Routing.Routes {
		c.addRoute(&o.Routing.Routes[i])
	}
	if err := r.compile(own, c.routes, c.entries); err != nil {
		return nil, fmt.Errorf("routing: %w", err)
	}
	return r, nil
}

// listenerOf returns the number of the listener that took a request: ownListener for those of the configuration, and
// one more than its index for a listener of a routing.Table.
func listenerOf(r *request) int {
	if r.listener == nil { // the head was refused, or no client sent it
		return ownListener
	}
	return r.listener.Routes
}
