package policies

import (
	"fmt"
	"slices"

	"github.com/admission-gateway/gateway/admission/match"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/routing"
	"github.com/admission-gateway/gateway/policies/applicability"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/modules"
	"github.com/admission-gateway/gateway/policies/source"
)

// upstreamUse is the position at which a file names an upstream of the gateway's configuration.
type upstreamUse struct {
	name string
	at   Finding
}

// useUpstream notes that a file names an upstream.
func (l *loader) useUpstream(o *manifest.Object, path, name string) {
	if name != "" {
		l.upstreams = append(l.upstreams, upstreamUse{name, finding.Of(o, path)})
	}
}

// RouteScope says for which routes a file describes something. It is part of the `spec` of several kinds.
type RouteScope struct {
	Hosts    []string `json:"hosts"`
	Upstream string   `json:"upstream"`
	Route    string   `json:"route"`
	// TargetRefs are objects of Gateway API.
	TargetRefs []resource.TargetRef `json:"targetRefs"`
}

// scope returns the scope as requests are compared with it.
func (s *RouteScope) scope() resource.Scope {
	return resource.Scope{Hosts: s.Hosts, Upstream: s.Upstream, Route: s.Route,
		Targets: resource.TargetsOf(s.TargetRefs)}
}

// scopeMembers are the members of a RouteScope.
var scopeMembers = []string{"hosts", "upstream", "route", "targetRefs"}

// scopeUse is the position at which a file names hosts, an upstream or a route of the gateway's
// configuration.
type scopeUse struct {
	scope resource.Scope
	at    map[string]Finding // the positions of the members of the scope, and of each host, in the file
}

// useScope notes that a file names hosts, an upstream or a route.
func (l *loader) useScope(o *manifest.Object, s resource.Scope, place func(member string) string) {
	if s.IsOpen() {
		return
	}
	use := scopeUse{s, map[string]Finding{}}
	for _, member := range scopeMembers {
		use.at[member] = finding.Of(o, place(member))
	}
	for i := range s.Targets {
		use.at[targetAt(i)] = finding.Of(o, place(targetAt(i)))
	}
	for i := range s.Hosts {
		member := hostAt(i)
		use.at[member] = finding.Of(o, place(member))
	}
	l.scopes = append(l.scopes, use)
}

// useTargets notes the objects of Gateway API that the spec of a policy names.
func (l *loader) useTargets(o *manifest.Object, refs []resource.TargetRef) {
	l.useScope(o, resource.Scope{Targets: resource.TargetsOf(refs)}, inSpec)
}

// useAnnotation notes those that the annotation of a policy or binding of Kubernetes' kinds names.
func (l *loader) useAnnotation(o *manifest.Object, annotations map[string]string) {
	targets, errs := match.TargetsIn(annotations)
	if len(errs) > 0 {
		return // which are found when it is compiled
	}
	l.useScope(o, resource.Scope{Targets: targets}, func(string) string { return match.TargetsPath.String() })
}

// hostAt is the member of a scope that is one of its hosts.
func hostAt(i int) string { return fmt.Sprintf("hosts[%d]", i) }

// targetAt is the member of a scope that is one of its targets.
func targetAt(i int) string { return fmt.Sprintf("targetRefs[%d]", i) }

// inSpec is the path at which the objects of our kinds have a member of their scope.
func inSpec(member string) string { return "spec." + member }

// lost returns what a scope names that the configuration does not have, or that it has of no route.
func (u *scopeUse) lost(g *Gateway, table *routing.Table) []Finding {
	var found []Finding
	fail := func(member, format string, args ...any) {
		f := u.at[member]
		f.Message = fmt.Sprintf(format, args...)
		found = append(found, f)
	}
	last := "hosts"
	for i, host := range u.scope.Hosts {
		if !slices.ContainsFunc(g.Routes, func(r Route) bool { return r.Host == host }) {
			fail(hostAt(i), "must be the `host` of a route of the configuration")
		}
	}
	if name := u.scope.Upstream; name != "" {
		last = "upstream"
		if !slices.Contains(g.Upstreams, name) {
			fail(last, "must be the name of an upstream of the configuration: %s",
				finding.Quoted(slices.Sorted(slices.Values(g.Upstreams))))
		}
	}
	if name := u.scope.Route; name != "" {
		last = "route"
		if !slices.ContainsFunc(g.Routes, func(r Route) bool { return r.Name == name }) {
			fail(last, "must be the `name` of a route of the configuration")
		}
	}
	if len(u.scope.Targets) > 0 {
		if g.Watches {
			return found // the cluster may have them
		}
		for i, t := range u.scope.Targets {
			if !hasTarget(table, &t) {
				fail(targetAt(i), "must be a Gateway, or a route, of the files that is in force, with a listener or a rule of the `sectionName`")
			}
		}
		return found
	}
	covered := slices.ContainsFunc(g.Routes, func(r Route) bool { return u.scope.Covers(r.Place()) })
	if len(found) == 0 && !covered {
		fail(last, "no route of the configuration has all that `hosts`, `upstream` and `route` say, so that nothing here would have an effect")
	}
	return found
}

// lacking returns a finding for all that the files ask of a gateway and that it does not have.
func (s *Set) lacking(g Gateway) []Finding {
	if g.Watches || s.routing != nil && len(g.Routes) == 0 {
		g.Routes = nil // those of the cluster, or of the files, lead to more than can be said of them here
	}
	found := applicability.Misplaced(s.served, g.Routes)
	if g.Routes == nil && s.routing != nil && !g.Watches {
		hasTargets := false
		for i := range s.scopes {
			if len(s.scopes[i].scope.Targets) > 0 {
				hasTargets = true
				found = append(found, s.scopes[i].lost(&g, s.routing)...)
			}
		}
		if hasTargets {
			found = append(found, applicability.AreApart(s.registry, s.served, placesOf(s.routing))...)
		}
	}
	if g.Routes != nil {
		for i := range s.scopes {
			found = append(found, s.scopes[i].lost(&g, s.routing)...)
		}
		found = append(found, applicability.AreApart(s.registry, s.served, applicability.ConfiguredPlaces(g.Routes))...)
		found = append(found, applicability.LeftOpen(s.served, g.Routes)...)
		found = append(found, s.unwritten(g.Routes)...)
	}
	if g.NoIdentity {
		found = append(found, s.remarks.users...)
	}
	if slices.ContainsFunc(g.Routes, func(r Route) bool { return r.Kubernetes && r.IsAnonymous }) {
		found = append(found, s.remarks.kinds...)
	}
	if !g.SharedLimits {
		found = append(found, s.remarks.sharing...)
	}
	if slices.ContainsFunc(g.Routes, func(r Route) bool { return !r.Kubernetes }) {
		found = append(found, s.remarks.wildcards...)
	}
	if g.LocalLocks {
		found = append(found, s.racing(g.MayLoseUpdates)...)
	}
	found = append(found, s.unaudited(g.AuditSinks)...)
	found = append(found, s.unnamed(&g.Offers)...)
	if g.Upstreams == nil {
		return found
	}
	for _, use := range s.upstreams {
		if slices.Contains(g.Upstreams, use.name) {
			continue
		}
		use.at.Message = fmt.Sprintf("must be the name of an upstream of the configuration: %s",
			finding.Quoted(slices.Sorted(slices.Values(g.Upstreams))))
		found = append(found, use.at)
	}
	return found
}

// Gateway says what a gateway's configuration has that policy files may ask for.
type Gateway struct {
	// Upstreams are the names of the backends; nil if they are not known.
	Upstreams []string
	// Routes lead requests to them; nil if they are not known.
	Routes []Route
	// SharedLimits reports whether there is a store for limits that gateways share, LocalLocks whether
	// there are several gateways and each locks objects for its own writes alone.
	// MayLoseUpdates says that the configuration asks for such locks.
	SharedLimits, LocalLocks, MayLoseUpdates bool
	// NoIdentity reports whether the configuration neither says how users are known, nor that every
	// client is anonymous.
	NoIdentity bool
	// AuditSinks are the names of the places that events of requests go to; nil if they are not known.
	AuditSinks []string
	// Offers are the parts of the configuration that policy files have to name.
	Offers Offers
	// Watches says that there are routes of a cluster too, which are not known.
	Watches bool
	// DescribesRoutes asks for a finding about each route of the files, which says for which requests it is in force.
	DescribesRoutes bool
	// Reviews asks for findings about what compiles and still cannot be meant, too. It takes longer than what a gateway
	// that starts has time for.
	Reviews bool
	// Controller is the controllerName of the GatewayClasses and IngressClasses of the files that count; empty means
	// the default.
	Controller string
	// Timed is called with the times of the stages of a load, at its end; it may be nil.
	Timed func([]StageTime)
	// Print is given what modules in Rego print; nil: they print nothing.
	Print func(file string, line int, text string)
	// Memory bounds what is taken to read files; nil sets no bound.
	Memory *memory.Budget
	// Bundles are the bundles by their names; nil if they are not known.
	Bundles map[string]modules.Bundle
	// IsOffline says that policies must ask no other servers: those with hosts that they may ask are refused.
	IsOffline bool
	// Stopped reports whether the set is wanted no longer. The load then ends with an error; nil: it never is.
	Stopped func() bool
	// readsOnce reports whether the texts of the files are not needed after a load: no bundle that changes has them
	// compiled again, and they are not kept for gateways that start later.
	readsOnce bool
}

// racing returns findings for writes that several gateways without common locks may send at once. What certainly
// loses updates is an error, unless the operator asked for it.
func (s *Set) racing(isStated bool) []Finding {
	found := slices.Clone(s.remarks.raced)
	for i := range found {
		if isStated {
			found[i].Severity = Warning
		}
	}
	return found
}

// CheckFor returns what Load finds, and what the files ask for that the gateway does not have.
func CheckFor(paths []string, g Gateway) []Finding {
	_, found := CompileFor(source.Read(paths, &source.Progress{}), g)
	return found
}

// CompileFor compiles files for a gateway. The Set is nil if a finding is an error.
func CompileFor(s *source.Source, g Gateway) (*Set, []Finding) { return CompileAfter(nil, s, g) }

// CompileAfter is CompileFor for files that are to replace the files of another set, which may be
// nil. The sets share what was compiled from the same. Of the gateway, only the bundles may have
// changed.
func CompileAfter(before *Set, s *source.Source, g Gateway) (*Set, []Finding) {
	set, found := compileWith(before, s, &g)
	return set.suited(g, found)
}

// suited returns the set, which may be nil, and what was found, with what the set asks for that the gateway does not
// have. The set is nil if that is an error.
func (s *Set) suited(g Gateway, found []Finding) (*Set, []Finding) {
	if s == nil {
		return nil, found
	}
	if lacking := s.lacking(g); len(lacking) > 0 {
		found = finding.Sort(append(found, lacking...))
	}
	if finding.HasErrors(found) {
		return nil, found
	}
	return s, found
}
