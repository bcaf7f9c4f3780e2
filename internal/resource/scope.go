package resource

import "slices"

// A Scope says for which requests a file describes something. What is empty means all.
type Scope struct {
	// Hosts are hosts of routes, exactly as the routes name them.
	Hosts []string
	// Upstream is the name of the upstream to which a route leads, Route the name of the route itself.
	Upstream, Route string
	// Targets are objects of Gateway API: requests by any of them are meant.
	Targets []Target
}

// A Target is a Gateway, a listener of one, a route or a rule of one, in the words of a Place. What is empty means all.
type Target struct{ Gateway, Listener, Route, Rule string }

// TargetOf returns the target of a reference, as objects of Gateway API have it; false if the kind is none of those
// that have requests. The section is a listener or a rule.
func TargetOf(kind, namespace, name, section string) (Target, bool) {
	switch kind {
	case "Gateway":
		return Target{Gateway: namespace + "/" + name, Listener: section}, true
	case "HTTPRoute", "GRPCRoute":
		return Target{Route: kind + "/" + namespace + "/" + name, Rule: section}, true
	}
	return Target{}, false
}

// A TargetRef is the reference of a file to a Target.
type TargetRef struct {
	Group       string `json:"group"`
	Kind        string `json:"kind"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	SectionName string `json:"sectionName"`
}

// TargetsOf returns the targets of references. Those to kinds without requests are left out, which the definitions of
// kinds with references refuse.
func TargetsOf(refs []TargetRef) (all []Target) {
	for _, r := range refs {
		if t, is := TargetOf(r.Kind, r.Namespace, r.Name, r.SectionName); is {
			all = append(all, t)
		}
	}
	return all
}

// Cover reports whether any of the targets means the requests of a route. It does not allocate.
func Cover(targets []Target, p *RouteRef) bool {
	for i := range targets {
		if targets[i].covers(p) {
			return true
		}
	}
	return false
}

// covers reports whether the requests of a route are meant.
func (t *Target) covers(p *RouteRef) bool {
	return (t.Gateway == "" || t.Gateway == p.Gateway) && (t.Listener == "" || t.Listener == p.Listener) &&
		(t.Route == "" || t.Route == p.Route) && (t.Rule == "" || t.Rule == p.Rule)
}

// A RouteRef is a route as scopes name it. A Host that is empty means all hosts.
type RouteRef struct {
	Host, Upstream, Route string
	// Rule is the name of a rule within Route, or its index. Gateway and Listener are by which requests come: the
	// namespace and name of a Gateway or ListenerSet, and the name of a listener of it. They are empty for the
	// configuration's own.
	Rule, Gateway, Listener string
}

// Covers reports whether the requests of a route are meant.
func (s *Scope) Covers(p *RouteRef) bool {
	return (len(s.Hosts) == 0 || slices.Contains(s.Hosts, p.Host)) &&
		(s.Upstream == "" || s.Upstream == p.Upstream) && (s.Route == "" || s.Route == p.Route) &&
		(len(s.Targets) == 0 || Cover(s.Targets, p))
}

// IsOpen reports whether all requests are meant.
func (s *Scope) IsOpen() bool {
	return len(s.Hosts) == 0 && s.Upstream == "" && s.Route == "" && len(s.Targets) == 0
}

// contains reports whether every route that another scope covers is covered, whatever routes there are.
func (s *Scope) contains(other *Scope) bool {
	if s.Upstream != "" && s.Upstream != other.Upstream || s.Route != "" && s.Route != other.Route {
		return false
	}
	if len(s.Targets) > 0 && (len(other.Targets) == 0 || slices.ContainsFunc(other.Targets, func(o Target) bool {
		return !slices.ContainsFunc(s.Targets, func(t Target) bool {
			return t.covers(&RouteRef{Gateway: o.Gateway, Listener: o.Listener, Route: o.Route, Rule: o.Rule})
		})
	})) {
		return false
	}
	if len(s.Hosts) == 0 {
		return true
	}
	return len(other.Hosts) > 0 &&
		!slices.ContainsFunc(other.Hosts, func(h string) bool { return !slices.Contains(s.Hosts, h) })
}

// equal reports whether two scopes mean the same routes by the same words.
func (s *Scope) equal(other *Scope) bool { return s.contains(other) && other.contains(s) }

// Within returns the registry of the resources and documented operations that a route is meant by. They keep their
// numbers. It is an error if two of them are at the same path.
func (r *Registry) Within(p *RouteRef) (*Registry, error) {
	return r.where(func(s *Scope) bool { return s.Covers(p) })
}

// where returns the registry of the resources and documented operations whose scopes are chosen.
func (r *Registry) where(chosen func(*Scope) bool) (*Registry, error) {
	s := newRegistry(nil, nil)
	for _, res := range r.resources {
		if chosen(&res.Scope) {
			s.resources = append(s.resources, res)
		}
	}
	for _, d := range r.documented {
		if chosen(&d.Scope) {
			s.documented = append(s.documented, d)
		}
	}
	return s, s.indexAll()
}

// scopes returns the different scopes of the resources.
func (r *Registry) scopes() []*Scope {
	var all []*Scope
	for _, res := range r.resources {
		if !slices.ContainsFunc(all, res.Scope.equal) {
			all = append(all, &res.Scope)
		}
	}
	return all
}
