package resource

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NamedResources says which resources at Kubernetes' paths the match blocks of files name, without a
// file that describes them. These blocks are taken from an ordinary API that serves such a path.
type NamedResources struct {
	// Resources are meant in any version. A Resource "*" means all resources of the group.
	Resources []schema.GroupResource
	// Core are Kubernetes' own resources of the core group that a wildcard matches. They are meant
	// in the version v1, the only one that there is: an ordinary API has resources of its own below
	// /api.
	Core []string
	// Dotted are resources of each group whose name has a dot. "*" means all of them.
	Dotted []string
}

// IsEmpty reports whether no such resource is meant.
func (r *NamedResources) IsEmpty() bool { return len(r.Resources)+len(r.Core)+len(r.Dotted) == 0 }

// anyResource means all resources.
const anyResource = "*"

// namespaces are the only resource whose objects have paths of other resources below their own.
const namespaces = "namespaces"

// coreVersion is the version of the core group.
const coreVersion = "v1"

// A namedMatcher finds out whether requests are for [NamedResources].
type namedMatcher struct {
	resources    map[schema.GroupResource]struct{} // also "*"
	core, dotted map[string]struct{}
}

// within returns what a route leads to of the reach.
func (r *NamedResources) within(leadsTo func(path string) bool) *NamedResources {
	var led NamedResources
	for _, one := range r.Resources {
		if leadsTo(groupPath(one.Group)) {
			led.Resources = append(led.Resources, one)
		}
	}
	if leadsTo(groupPath("") + "/" + coreVersion) {
		led.Core = r.Core
	}
	if leadsTo("/apis") {
		led.Dotted = r.Dotted
	}
	return &led
}

// index makes the reach ready to be asked.
func (r *NamedResources) index() namedMatcher {
	set := func(names []string) map[string]struct{} {
		all := make(map[string]struct{}, len(names))
		for _, name := range names {
			all[name] = struct{}{}
		}
		return all
	}
	m := namedMatcher{resources: make(map[schema.GroupResource]struct{}, len(r.Resources)), core: set(r.Core),
		dotted: set(r.Dotted)}
	for _, one := range r.Resources {
		m.resources[one] = struct{}{}
	}
	return m
}

// has reports whether a resource is meant.
func (m *namedMatcher) has(gvr schema.GroupVersionResource) bool {
	if _, ok := m.resources[gvr.GroupResource()]; ok {
		return true
	}
	if _, ok := m.resources[schema.GroupResource{Group: gvr.Group, Resource: anyResource}]; ok {
		return true
	}
	if gvr.Group == "" {
		_, ok := m.core[gvr.Resource]
		return ok && gvr.Version == coreVersion
	}
	if len(m.dotted) == 0 || !isDottedGroup(gvr.Group) {
		return false
	}
	if _, ok := m.dotted[gvr.Resource]; ok {
		return true
	}
	_, ok := m.dotted[anyResource]
	return ok
}

// describeReach adds the paths of the reach.
func (p *Plain) describeReach(r *NamedResources) {
	for _, one := range r.Resources {
		p.describeKubernetes(one)
	}
	for _, name := range r.Dotted {
		p.describeMeant(groupPath(dottedGroup)+"/{version}/", name)
	}
	for _, name := range r.Core {
		p.describeMeant(groupPath("")+"/"+coreVersion+"/", name)
	}
}

// describeMeant adds the paths of a resource that a wildcard matches. What else is below a
// namespace is in it, and not a part of the namespace itself.
func (p *Plain) describeMeant(prefix, name string) {
	switch name {
	case anyResource:
		p.describeBelow(prefix + "{resource}")
	case namespaces:
		p.spellings.add(prefix+name, anyMethod)
		p.spellings.add(prefix+name+"/{name}", anyMethod)
		p.describeBelow(prefix+name+"/{name}/status", prefix+name+"/{name}/finalize")
	default:
		p.describeBelow(prefix+name, prefix+"namespaces/{namespace}/"+name)
	}
}

// isKubernetes reports whether a path is one of a resource of Kubernetes' form that is described here.
func (p *Plain) isKubernetes(cut *path) bool {
	segments := cut.segments[:min(cut.n, maxSegments)]
	var gvr schema.GroupVersionResource
	switch {
	case segments[0] == "api" && len(segments) > 2:
		gvr.Version, segments = segments[1], segments[2:]
	case segments[0] == "apis" && len(segments) > 3:
		gvr.Group, gvr.Version, segments = segments[1], segments[2], segments[3:]
	default:
		return false
	}
	if segments[0] != namespaces || len(segments) < 3 {
		gvr.Resource = segments[0]
		return p.has(gvr)
	}
	if gvr.Resource = segments[2]; p.has(gvr) {
		return true
	}
	if gvr.Resource = namespaces; segments[2] == "status" || segments[2] == "finalize" {
		return p.has(gvr)
	}
	return p.isNamed(gvr.GroupResource())
}

// has reports whether a resource is described by a file, or meant by a match block.
func (p *Plain) has(gvr schema.GroupVersionResource) bool {
	_, known := p.registry.known[gvr.GroupResource()]
	return known || p.reached.has(gvr)
}

// isNamed reports whether a resource is described by a file, or named by a match block. Everything below its paths
// is described.
func (p *Plain) isNamed(gr schema.GroupResource) bool {
	if _, known := p.registry.known[gr]; known {
		return true
	}
	_, named := p.reached.resources[gr]
	return named
}

// isDottedGroup reports whether a name is one of a group that has a dot: a DNS subdomain of several labels.
func isDottedGroup(name string) bool {
	if len(name) > 253 || !strings.Contains(name, ".") {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if !isGroupLabel(label) {
			return false
		}
	}
	return true
}

func isGroupLabel(s string) bool {
	if s == "" || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// dottedGroup stands in described paths for any group whose name has a dot.
const dottedGroup = "{group with a dot}"

// isDottedSpelling reports whether a segment of a path can be read as a group whose name has a dot.
func isDottedSpelling(s string) bool {
	s = trimJunk(fold(s))
	end := slices.IndexFunc([]byte(s), func(c byte) bool {
		return c < ' ' || c == 0x7f || c == ';' || c == '?' ||
			c == '#'
	})
	if end >= 0 {
		s = s[:end]
	}
	s, _, _ = strings.Cut(s, "::$")
	return isDottedGroup(strings.TrimRight(s, ". +"))
}
