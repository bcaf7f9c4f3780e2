package proxy

import (
	"strings"

	"github.com/admission-gateway/gateway/internal/resource"
)

// A Destination is where a request leads.
type Destination struct {
	// Upstream is the name of the backend, and Target what it gets in place of the request's.
	Upstream, Target string
	Info             resource.Info
	Resource         *resource.Resource // nil if no file describes it
}

// Locate returns where a request leads. found is false if no route leads to a backend, or the request is refused there
// by its path.
func (g *Gateway) Locate(method, host, target string) (d Destination, found bool) {
	choice, err := g.routes.lookAnywhere(bareHead(method, host, target))
	if err != nil {
		return d, false
	}
	one := choice.routes[0]
	d.Upstream, d.Target = one.backend.name, target
	if one.rules != nil {
		to, err := one.rules.AppendTarget(nil, []byte(target))
		if err != nil {
			return d, false
		}
		d.Target = string(to)
	}
	d.Info, d.Resource, err = g.scopesOf(g.policies()).resolver(one).Resolve(method, []byte(d.Target))
	d.Info.Place = &one.place
	return d, err == nil
}

// Way returns the host, "" for any, and the target by which a request reaches a target of a backend. If several routes
// lead there, it is one whose backend files describe there, then an API server's for a path of its form, then the most
// specific.
func (g *Gateway) Way(method, target string) (host, shown string, found bool) {
	best := -1
	path, query, hasQuery := strings.Cut(target, "?")
	for _, one := range g.routes.table {
		asked, isLed := g.asked(one, method, path)
		if !isLed {
			continue
		}
		if rank := g.rankAt(one, method, path); rank > best {
			best, host, shown = rank, one.host, asked
		}
	}
	if hasQuery {
		shown += "?" + query
	}
	return host, shown, best >= 0
}

// asked returns the path by which a client reaches a path of the backend of a route.
func (g *Gateway) asked(one *route, method, path string) (asked string, isLed bool) {
	for _, s := range one.spans {
		rest, isBelow := strings.CutPrefix(path, s.to)
		if !isBelow || rest != "" && rest[0] != '/' {
			continue
		}
		if asked = s.from + rest; asked == "" {
			asked = "/"
		}
		if by, _ := g.routes.lookAnywhere(bareHead(method, one.host, asked)); by.has(one) && one.makes(asked, path) {
			return asked, true
		}
	}
	return "", false
}

// makes reports whether the backend gets a path in place of a client's by the route.
func (r *route) makes(asked, path string) bool {
	if r.rules == nil {
		return asked == path
	}
	made, err := r.rules.AppendTarget(nil, []byte(asked))
	return err == nil && string(made) == path
}

// rankAt says how much is known of a request that comes by a route: 2 if files describe it, 1 if it has the form of an
// API server's, else 0.
func (g *Gateway) rankAt(one *route, method, path string) int {
	i, about, err := g.scopesOf(g.policies()).resolver(one).Resolve(method, []byte(path))
	switch {
	case about != nil || i.Documented != nil:
		return 2
	case err == nil && i.IsResource:
		return 1
	}
	return 0
}

// Resolvers returns how requests to a backend are read, for each route that leads to it.
func (g *Gateway) Resolvers(upstream string) (all []resource.Resolver) {
	of := g.scopesOf(g.policies())
	for _, one := range g.routes.table {
		if one.backend.name == upstream {
			all = append(all, of.resolver(one))
		}
	}
	return all
}
