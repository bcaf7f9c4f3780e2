package policies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies/applicability"
	"github.com/admission-gateway/gateway/policies/constraints"
	"github.com/admission-gateway/gateway/policies/source"
)

// Held returns the folder that could have policies for a request, and whose files are left out because they have
// errors; nil if none could. Nothing may be served in place of what it would say.
func (s *Set) Held(p *resource.RouteRef, i *resource.Info) *source.Folder {
	for _, f := range s.held {
		if f.Concerns.CoversRoute(p.Route, p.Host) {
			return f
		}
		if !i.IsResource {
			continue
		}
		other, isServedTwice := admission.Cohabitant(i.Group, i.Resource)
		if f.Concerns.HasGroup(i.Group) || isServedTwice && f.Concerns.HasGroup(other) {
			return f
		}
	}
	return nil
}

// hold makes requests for what folders without files concern known as such, before ordinary APIs too.
func (l *loader) hold() {
	l.set.held = l.source.Held
	for _, f := range l.source.Held {
		if f.Concerns == nil {
			continue
		}
		for _, group := range f.Concerns.Groups {
			l.matched.add(group, applicability.AnyName)
		}
	}
}

// folderOf returns the folder of a file; nil if no folder has an owner.
func (l *loader) folderOf(file string) *source.Folder {
	if len(l.source.Folders) == 0 {
		return nil
	}
	for i := range l.source.Files {
		if f := &l.source.Files[i]; f.Name == file {
			return &l.source.Folders[f.Folder]
		}
	}
	return nil
}

// ownFiles notes whose the files are.
func (l *loader) ownFiles() {
	if len(l.source.Folders) == 0 {
		return
	}
	for i := range l.set.files { // in the order of the source's
		if from := &l.source.Folders[l.source.Files[i].Folder]; from.Owner != "" {
			l.set.files[i].Folder, l.set.files[i].Owner = from.Name(), from.Owner
		}
	}
}

// checkFolders finds what reaches beyond the requests that the configuration lets a folder concern.
func (l *loader) checkFolders() []Finding {
	if !slices.ContainsFunc(l.source.Folders, func(f source.Folder) bool { return f.Concerns != nil }) {
		return nil
	}
	b := &bounds{loader: l, in: map[string]*source.Folder{}}
	for i := range l.source.Files {
		f := &l.source.Files[i]
		b.in[f.Name] = &l.source.Folders[f.Folder]
	}
	for _, o := range l.known {
		b.object(o)
	}
	for i := range l.resources {
		b.resource(&l.resources[i])
	}
	for i := range l.documented {
		d := &l.documented[i]
		b.paths(d.at.from, d.at.path, &d.Scope, d.Template)
	}
	return b.Found
}

// bounds compares what objects reach with what their folders may concern.
type bounds struct {
	*loader
	findings
	in map[string]*source.Folder // by the names of files
}

// of returns the folder of an object if it does not concern all requests; nil if it does.
func (b *bounds) of(o *manifest.Object) *source.Folder {
	if f := b.in[o.File]; f != nil && f.Concerns != nil {
		return f
	}
	return nil
}

// beyond records that a field reaches beyond the folder of its object.
func (b *bounds) beyond(f *source.Folder, o *manifest.Object, path, format string, args ...any) {
	b.At(o, Error, path, "must keep to what the configuration lets the files of %s concern, which is %s: %s", f, f.Concerns, fmt.Sprintf(format, args...))
}

// isRouteOf reports whether a route is one that a folder concerns.
func isRouteOf(f *source.Folder, r *Route) bool { return f.Concerns.CoversRoute(r.Name, r.Host) }

// commonOnly says why kinds that concern all requests belong to no owner.
func commonOnly(group, kind string) string {
	switch {
	case group == auditGroup:
		return "an audit policy is about all requests"
	case group == ownGroup && kind == "ErrorTemplate":
		return "the configuration refers to it"
	case group == constraints.ConfigGroup:
		return "it is about all constraints"
	case group == "" && kind == "Namespace":
		return "policies of others select by its labels"
	}
	return ""
}

// object finds what an object reaches by its match blocks.
func (b *bounds) object(o *manifest.Object) {
	f := b.of(o)
	if f == nil {
		return
	}
	group, _ := o.GroupVersion()
	if why := commonOnly(group, o.Kind); why != "" {
		b.beyond(f, o, "", "%s", why)
		return
	}
	if o.OpenAPI || b.plain.has(o) {
		return
	}
	switch {
	case group == admissionRegistrationGroup && strings.HasSuffix(o.Kind, "Binding"):
		b.narrowing(f, o, "spec.matchResources", "spec.policyName",
			b.applicable.Policies(strings.TrimSuffix(o.Kind, "Binding"), o.Text("spec.policyName")))
	case group == ownGroup && o.Kind == "PolicyException":
		refs, _ := o.At("spec.policies")
		var excepted []*manifest.Object
		for ref := refs.First(); ref.Valid(); ref = ref.Next() {
			excepted = append(excepted,
				b.applicable.Policies(manifest.Member(ref, "kind").Str(),
					manifest.Texts(manifest.Member(ref, "names"))...)...)
		}
		b.narrowing(f, o, "spec.matchConstraints", "spec.policies", excepted)
	case o.Kind == "RateLimitPolicy":
		b.limit(f, o)
	case group == constraints.Group, group == constraints.MutationsGroup:
		b.kinds(f, o)
	case group == admissionRegistrationGroup, group == ownGroup &&
		slices.Contains([]string{"ConventionPolicy", "DefaultingPolicy", "RegoPolicy"}, o.Kind):
		if !b.blocks(f, o, o) {
			b.beyond(f, o, "spec.matchConstraints", "it matches all resources")
		}
	}
}

// narrowing judges an object that narrows what policies match, which may be in other folders. If it narrows nothing, it
// reaches as far as they do.
func (b *bounds) narrowing(f *source.Folder, o *manifest.Object, path, reference string, policies []*manifest.Object) {
	if rules, _ := o.At(path + ".resourceRules"); rules.Len() > 0 {
		b.blocks(f, o, o)
		return
	}
	for _, p := range policies {
		before := len(b.Found)
		if hasBlocks := b.blocks(f, o, p); !hasBlocks || len(b.Found) > before {
			b.Found = b.Found[:before]
			b.beyond(f, o, reference, "the %s '%s' matches more, and `%s.resourceRules` do not narrow that", p.Kind,
				p.Name, path)
			return
		}
	}
}

// blocks judges the match blocks of a policy, and reports whether there are some. Findings name o.
func (b *bounds) blocks(f *source.Folder, o, policy *manifest.Object) bool {
	blocks := applicability.MatchBlocks(policy)
	for _, block := range blocks {
		b.block(f, o, block.Node)
	}
	return len(blocks) > 0
}

// block judges the groups and resources of a match block.
func (b *bounds) block(f *source.Folder, o *manifest.Object, block document.Node) {
	groups, resources := manifest.Member(block, "apiGroups"), manifest.Member(block, "resources")
	if groups.Len() == 0 {
		b.beyond(f, o, block.Path(), "it matches all groups")
		return
	}
	for g := groups.First(); g.Valid(); g = g.Next() {
		switch group := g.Str(); {
		case group == applicability.AnyName:
			b.beyond(f, o, g.Path(), "it matches all groups")
		case f.Concerns.HasGroup(group):
		case len(f.Concerns.Routes)+len(f.Concerns.Hosts) == 0:
			b.beyond(f, o, g.Path(), "it matches the group '%s'", group)
		default:
			b.resources(f, o, group, g, resources)
		}
	}
}

// resources judges resources of a group that a folder has by its routes and hosts alone.
func (b *bounds) resources(f *source.Folder, o *manifest.Object, group string, at, resources document.Node) {
	for i := range b.gateway.Routes {
		if r := &b.gateway.Routes[i]; r.Kubernetes && !isRouteOf(f, r) {
			b.beyond(f, o, at.Path(), "%s leads to an API server, which may have the group '%s'", r.Words(), group)
			return
		}
	}
	for r := resources.First(); r.Valid(); r = r.Next() {
		name, _, _ := strings.Cut(r.Str(), "/")
		for plural, all := range b.applicable.ResourcesOf(group) {
			if name != applicability.AnyName && name != plural {
				continue
			}
			if other := b.elsewhere(f, all); other != nil {
				b.beyond(f, o, r.Path(), "%s leads to '%s' too", other.Words(), all[0].GroupResource())
				return
			}
		}
	}
}

// elsewhere returns a route that leads to some of the resources, and that a folder does not concern; nil if there is
// none.
func (b *bounds) elsewhere(f *source.Folder, all []*applicability.Resource) *Route {
	for _, r := range all {
		paths := r.Paths
		if len(paths) == 0 {
			paths = applicability.KubernetesPaths(r.Resource)
		}
		if one := b.beyondRoute(f, &r.Scope, paths); one != nil {
			return one
		}
	}
	return nil
}

// beyondRoute returns a route in a scope that leads to some of the paths, and that a folder does not concern.
func (b *bounds) beyondRoute(f *source.Folder, s *resource.Scope, paths []string) *Route {
	routes := b.gateway.Routes
	for i := range routes {
		if r := &routes[i]; s.Covers(r.Place()) && !isRouteOf(f, r) && applicability.ServedBy(*r, paths, routes) != "" {
			return r
		}
	}
	return nil
}

// limit judges a rate limit, which has a scope beside its groups.
func (b *bounds) limit(f *source.Folder, o *manifest.Object) {
	scope := resource.Scope{Upstream: o.Text("spec.upstream"), Route: o.Text("spec.route")}
	hosts, _ := o.At("spec.hosts")
	scope.Hosts = manifest.Texts(hosts)
	routes := b.gateway.Routes
	outside := slices.IndexFunc(routes, func(r Route) bool { return scope.Covers(r.Place()) && !isRouteOf(f, &r) })
	match, _ := o.At("spec.match")
	switch {
	case outside < 0:
	case manifest.Member(match, "apiGroups").Len() == 0:
		b.beyond(f, o, "spec.match", "it counts requests by %s, which `spec.route`, `spec.hosts` and `spec.upstream` let in", routes[outside].Words())
	default:
		b.block(f, o, match)
	}
}

// kinds judges the kinds that an object of Gatekeeper's matches.
func (b *bounds) kinds(f *source.Folder, o *manifest.Object) {
	matched, _ := o.At("spec.match.kinds")
	if applied, _ := o.At("spec.applyTo"); applied.Len() > 0 {
		matched = applied
	}
	if matched.Len() == 0 {
		b.beyond(f, o, "spec.match", "it matches all groups")
		return
	}
	for one := matched.First(); one.Valid(); one = one.Next() {
		groups := manifest.Member(one, "apiGroups")
		if applied := manifest.Member(one, "groups"); applied.Len() > 0 {
			groups = applied
		}
		if groups.Len() == 0 {
			b.beyond(f, o, one.Path(), "it matches all groups")
		}
		for g := groups.First(); g.Valid(); g = g.Next() {
			switch {
			case g.Str() == applicability.AnyName:
				b.beyond(f, o, g.Path(), "it matches all groups")
			case !f.Concerns.HasGroup(g.Str()):
				b.beyond(f, o, g.Path(), "it matches the group '%s'", g.Str())
			}
		}
	}
}

// resource judges the paths of a resource.
func (b *bounds) resource(r *loadedResource) {
	f := b.of(r.at.from)
	switch {
	case f == nil:
	case len(r.Paths) > 0:
		for k, path := range r.Paths {
			said := path
			if k < len(r.Written.Routes) {
				said = r.Written.Routes[k]
			}
			b.paths(r.at.from, applicability.PathOf(&applicability.Resource{Resource: r.Resource, From: r.at.from,
				At: r.at.path}, said), &r.Scope, path)
		}
	case !f.Concerns.HasGroup(r.Group):
		at := "spec.group"
		if r.at.from.OpenAPI {
			at = r.at.path
		}
		if one := b.beyondRoute(f, &r.Scope, applicability.KubernetesPaths(r.Resource)); one != nil {
			b.beyond(f, r.at.from, at, "%s leads to '%s' too", one.Words(), r.GroupResource())
		}
	}
}

// paths judges paths that an object describes in a scope.
func (b *bounds) paths(o *manifest.Object, at string, s *resource.Scope, path string) {
	f := b.of(o)
	if f == nil {
		return
	}
	if one := b.beyondRoute(f, s, []string{path}); one != nil {
		b.beyond(f, o, at, "%s leads to '%s' too", one.Words(), path)
	}
}
