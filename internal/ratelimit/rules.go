package ratelimit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/index"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Rules are the limits of one policy set, found by what they name. They are immutable and safe for concurrent use.
type Rules struct {
	list []*compiled // in the order in which they charge a request
	// within finds them, by what their scopes name of the route.
	within map[route]*index.Index
	scoped bool // a scope names something
}

// route is what the scope of a rule names of a route, one of them: its own name, or else its upstream, or else its
// host. The zero value is a scope that is open.
type route struct{ name, upstream, host string }

// routesOf returns the keys by which a rule is found; each request has at most one of them in
// common with the rule.
func routesOf(s *resource.Scope) []route {
	switch {
	case s.Route != "":
		return []route{{name: s.Route}}
	case s.Upstream != "":
		return []route{{upstream: s.Upstream}}
	case len(s.Hosts) == 0:
		return []route{{}}
	}
	routes := make([]route, len(s.Hosts))
	for n, host := range s.Hosts {
		routes[n] = route{host: host}
	}
	return routes
}

// actionsOf returns the verbs of a rule as actions of the index.
func actionsOf(verbs resource.VerbSet) uint16 { return uint16(verbs) }

// There are enough actions.
const _ = uint(16 - resource.NumVerbs)

// NewRules compiles limits.
func NewRules(rules []*Rule) *Rules {
	all := &Rules{within: map[route]*index.Index{}}
	for _, r := range rules {
		all.list = append(all.list, compile(r))
	}
	slices.SortStableFunc(all.list, func(a, b *compiled) int { return cmp.Compare(a.rank(), b.rank()) })
	for position, c := range all.list {
		for _, at := range routesOf(&c.limit.Scope) {
			all.scoped = all.scoped || at != route{}
			if all.within[at] == nil {
				all.within[at] = &index.Index{}
			}
			c.addTo(all.within[at], position)
		}
	}
	return all
}

// rank orders the rules: those for all, then by resources, then by groups.
func (c *compiled) rank() int {
	switch {
	case !open(c.limit.Resources):
		return 1
	case !open(c.limit.APIGroups):
		return 2
	}
	return 0
}

// addTo adds the rule to an index. It may be found for requests that it does not match, and is for all that it does.
func (c *compiled) addTo(x *index.Index, position int) {
	r := index.Rule{Actions: actionsOf(c.verbs)}
	if !open(c.limit.Namespaces) {
		r.Namespaces = c.limit.Namespaces
	}
	for _, r.Group = range unlessOpen(c.limit.APIGroups) {
		for _, name := range unlessOpen(c.limit.Resources) {
			r.Resource, r.Subresources = name, nil
			if main, sub, _ := strings.Cut(name, "/"); name != index.Any {
				r.Resource, r.Subresources = main, []string{sub}
			}
			x.Add(position, &r)
		}
	}
}

func unlessOpen(names []string) []string {
	if open(names) {
		return []string{index.Any}
	}
	return names
}

// find looks up the rules that may count requests for a resource or subresource, or for a path that
// is none, that come by a route; nil for a route that no scope names.
func (r *Rules) find(lists []*index.List, i *resource.Info, place *resource.RouteRef) []*index.List {
	if len(r.list) == 0 {
		return nil
	}
	key, verb := index.Key{Group: i.Group, Version: i.Version, Resource: i.Resource, Subresource: i.Subresource},
		uint16(1)<<i.Verb
	lists = r.findAt(lists, route{}, &key, verb)
	if place == nil || !r.scoped {
		return lists
	}
	for _, at := range [...]route{{name: place.Route}, {upstream: place.Upstream}, {host: place.Host}} {
		if at != (route{}) {
			lists = r.findAt(lists, at, &key, verb)
		}
	}
	return lists
}

func (r *Rules) findAt(lists []*index.List, at route, key *index.Key, verb uint16) []*index.List {
	if x := r.within[at]; x != nil {
		return x.Find(lists, key, verb)
	}
	return lists
}

// listBuffer has space for the lists of a look-up, so that it allocates nothing.
type listBuffer [8]*index.List

// Len is how many rules may count a request that comes by a route; nil is a route that no scope names.
func (r *Rules) Len(i *resource.Info, place *resource.RouteRef) (n int) {
	var to listBuffer
	s := search(r.find(to[:0], i, place), i)
	for s.Next() >= 0 {
		n++
	}
	return n
}

func search(lists []*index.List, i *resource.Info) (s index.Search) {
	for _, l := range lists {
		s.From(l.Plain)
		s.From(l.Named[i.Namespace])
	}
	return s
}

// A Scoped is the rules that may count the requests of one verb for a resource or subresource, or for a path that is
// none, which come by one route: what Rules has for them, found once. It is immutable and safe for concurrent use; the
// nil Scoped has no rules.
//
// The requests that it charges must have the verb, group, version, resource and subresource of the Info that it was
// made for, and come by the same route. Their paths, namespaces and names may differ.
type Scoped struct {
	rules *Rules
	lists []*index.List
	// evaluates says that a rule has expressions.
	evaluates bool
}

// For returns the rules for the verb and the resource or subresource of a request that comes by a route; nil if there
// are none.
func (r *Rules) For(i *resource.Info, place *resource.RouteRef) *Scoped {
	var to listBuffer
	found := r.find(to[:0], i, place)
	if len(found) == 0 {
		return nil
	}
	s := &Scoped{rules: r, lists: append([]*index.List(nil), found...)}
	positions := search(s.lists, i)
	for at := positions.Next(); at >= 0; at = positions.Next() {
		l := &r.list[at].limit
		s.evaluates = s.evaluates || len(l.Conditions) > 0 || l.KeyProgram != nil || l.Cost != nil
	}
	return s
}

// Evaluates reports whether it may depend on expressions how a request is counted.
func (s *Scoped) Evaluates() bool { return s != nil && s.evaluates }

// Len is how many rules may count a request.
func (s *Scoped) Len(i *resource.Info) (n int) {
	if s == nil {
		return 0
	}
	positions := search(s.lists, i)
	for positions.Next() >= 0 {
		n++
	}
	return n
}

// Charge adds the charges of a request by the rules.
func (s *Scoped) Charge(c *Charges, q *Request) {
	if s != nil {
		s.rules.charge(c, search(s.lists, q.Info), q)
	}
}
