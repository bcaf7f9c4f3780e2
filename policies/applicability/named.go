package applicability

import (
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/finding"
)

// A namedResource is a resource that a match block names.
type namedResource struct {
	group, name string // either may be "*"
	by          *manifest.Object
	at          document.Node
}

// definitions are the groups and resources that files describe.
type definitions map[string]map[string]bool

func (d definitions) have(group, name string) bool {
	if group != AnyName {
		names, found := d[group]
		return found && (name == AnyName || names[name])
	}
	for _, names := range d {
		if name == AnyName || names[name] {
			return true
		}
	}
	return false
}

// namedResources returns what the match blocks of objects name, but of those that may be unused.
func (x *Index) namedResources() (named []namedResource) {
	for _, o := range x.Objects {
		if x.IsUnused(o) {
			continue
		}
		for _, b := range MatchBlocks(o) {
			resources := manifest.Member(b.Node, "resources")
			for at := resources.First(); at.Valid(); at = at.Next() {
				name, _, _ := strings.Cut(at.Str(), "/")
				for _, group := range OrAny(manifest.Texts(manifest.Member(b.Node, "apiGroups"))) {
					if name != AnyName || group != AnyName {
						named = append(named, namedResource{group, name, o, at})
					}
				}
			}
		}
	}
	return named
}

// definitions returns the groups and resources that files describe.
func (n *names) definitions() definitions {
	d := definitions{}
	for group, resources := range n.resources {
		d[group] = map[string]bool{}
		for name := range resources {
			d[group][name] = true
		}
	}
	return d
}

// LostSince returns an error for each policy and limit that names a resource which the files of the set before
// described, and these do not. An API server may still serve the resource, and a new process may so start with the
// files. But a definition that disappears while a gateway runs is rather a mount that was lost than a wish, and its
// policies would match nothing without a word.
func (r *Result) LostSince(before *Result) []finding.Finding {
	var found finding.List
	for _, n := range r.named {
		if !before.defined.have(n.group, n.name) || r.defined.have(n.group, n.name) {
			continue
		}
		what := "'" + n.name + "'"
		if n.name == AnyName {
			what = "a resource"
		}
		if n.group != AnyName {
			what += " of the group '" + n.group + "'"
		}
		found.By(lostDefinition, n.by, finding.Error, n.at.Path(), "needs the definition of %s, which the policy files had until now: put it back, take away the rule too, "+
			"or say with the annotation '%s: %s' of the object that it is meant", what, UnusedMark, UnusedAllowed)
	}
	return slices.CompactFunc(finding.Sort(found.Found), func(a, b finding.Finding) bool { return a == b })
}
