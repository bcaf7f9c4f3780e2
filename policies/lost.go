package policies

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
	if group != anyName {
		names, found := d[group]
		return found && (name == anyName || names[name])
	}
	for _, names := range d {
		if name == anyName || names[name] {
			return true
		}
	}
	return false
}

// namedResources returns what the match blocks of objects name. Objects that are meant to be unused are left out.
func (j *inForce) namedResources(objects []*manifest.Object) (named []namedResource) {
	for _, o := range objects {
		if j.isMeant(o) {
			continue
		}
		for _, b := range matchBlocks(o) {
			resources := memberOf(b.Node, "resources")
			for r := resources.First(); r.Valid(); r = r.Next() {
				name, _, _ := strings.Cut(r.Str(), "/")
				for _, group := range orAny(textsIn(memberOf(b.Node, "apiGroups"))) {
					if name != anyName || group != anyName {
						named = append(named, namedResource{group, name, o, r})
					}
				}
			}
		}
	}
	return named
}

// definitions returns the groups and resources that files describe.
func (n *describedNames) definitions() definitions {
	d := definitions{}
	for group, resources := range n.resources {
		d[group] = map[string]bool{}
		for name := range resources {
			d[group][name] = true
		}
	}
	return d
}

// lostSince returns an error for each policy and limit that names a resource which the files of the set before
// described, and these do not. An API server may still serve the resource, and a new process may so start with the
// files. But a definition that disappears while a gateway runs is rather a mount that was lost than a wish, and its
// policies would match nothing without a word.
func (s *Set) lostSince(before *Set) []Finding {
	var found finding.List
	for _, n := range s.named {
		if !before.defined.have(n.group, n.name) || s.defined.have(n.group, n.name) {
			continue
		}
		what := "'" + n.name + "'"
		if n.name == anyName {
			what = "a resource"
		}
		if n.group != anyName {
			what += " of the group '" + n.group + "'"
		}
		found.At(n.by, Error, n.at.Path(), "needs the definition of %s, which the policy files had until now: put it back, take away the rule too, "+
			"or say with the annotation '%s: %s' of the object that it is meant", what, unusedMark, allowedMark)
	}
	return slices.CompactFunc(finding.Sort(found.Found), func(a, b Finding) bool { return a == b })
}
