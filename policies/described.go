package policies

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/ratelimit"
)

// Native returns the resources of Kubernetes' own groups that policies or limits name. No file has to define
// them: an ordinary API that serves their paths is held to the policies.
func (s *Set) Native() []schema.GroupResource { return s.native }

// nativeNames collects the resources of Kubernetes' own groups that are named.
type nativeNames struct {
	groups map[string]bool
	found  map[schema.GroupResource]bool
}

func newNativeNames() *nativeNames {
	n := &nativeNames{groups: map[string]bool{}, found: map[schema.GroupResource]bool{}}
	for kind := range natives {
		n.groups[kind.Group] = true
	}
	return n
}

// add notes a resource, or a subresource, by the names in a match block. "*" names nothing.
func (n *nativeNames) add(group, resource string) {
	resource, _, _ = strings.Cut(resource, "/")
	if n.groups[group] && resource != "*" && resource != "" {
		n.found[schema.GroupResource{Group: group, Resource: resource}] = true
	}
}

func (n *nativeNames) rules(rules []admission.Rule) {
	for _, r := range rules {
		n.add(r.Group, r.Resource)
	}
}

func (n *nativeNames) limit(r *ratelimit.Rule) {
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			n.add(group, resource)
		}
	}
}

// sorted returns what was noted.
func (n *nativeNames) sorted() []schema.GroupResource {
	return slices.SortedFunc(maps.Keys(n.found), func(a, b schema.GroupResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
}

// describedNames are the groups and resources that files describe.
type describedNames struct {
	resources map[string]map[string]*loadedResource // by group and plural
	native    map[string]map[string]bool            // of Kubernetes itself
}

func newDescribedNames(resources []loadedResource) *describedNames {
	n := &describedNames{map[string]map[string]*loadedResource{}, map[string]map[string]bool{}}
	for i := range resources {
		r := &resources[i]
		if n.resources[r.Group] == nil {
			n.resources[r.Group] = map[string]*loadedResource{}
		}
		n.resources[r.Group][r.Names.Plural] = r
	}
	for kind, one := range natives {
		if n.native[kind.Group] == nil {
			n.native[kind.Group] = map[string]bool{}
		}
		n.native[kind.Group][one.plural] = true
	}
	return n
}

// unmatched finds names in the match blocks of policies and limits that no request has. What the files alone make
// certain is warned of. The rest is certain if no backend is an API server, which may serve more: it is returned.
func unmatched(f *findings, objects iter.Seq[*manifest.Object], resources []loadedResource) (onPlain []Finding) {
	names := newDescribedNames(resources)
	for o := range objects {
		for _, block := range matchBlocks(o) {
			resources, _ := block.Get("resources")
			groups, found := block.Get("apiGroups")
			if !found || groups.Len() == 0 {
				continue // limits without groups are about all of them
			}
			for g := groups.First(); g.Valid(); g = g.Next() {
				onPlain = append(onPlain, names.unmatchedGroup(f, o, g)...)
				for r := resources.First(); r.Valid(); r = r.Next() {
					names.unmatchedResource(f, o, g.Str(), r)
				}
			}
		}
	}
	return onPlain
}

// matchBlocks returns the blocks of an object that choose requests by groups and resources.
func matchBlocks(o *manifest.Object) (blocks []document.Node) {
	for _, path := range [...]string{"spec.matchConstraints.resourceRules", "spec.matchResources.resourceRules"} {
		rules, _ := o.At(path)
		for n := rules.First(); n.Valid(); n = n.Next() {
			blocks = append(blocks, n)
		}
	}
	if match, found := o.At("spec.match"); found && o.Kind == "RateLimitPolicy" {
		blocks = append(blocks, match)
	}
	return blocks
}

// unmatchedGroup finds a group that no file knows.
func (n *describedNames) unmatchedGroup(f *findings, o *manifest.Object, at document.Node) []Finding {
	group := at.Str()
	switch {
	case group == "*" && len(n.resources) == 0:
		return []Finding{{File: o.File, Line: o.Line(at.Path()), Field: at.Path(), Severity: Warning,
			Message: "matches nothing: no file describes a resource, and no upstream is an API server that has some"}}
	case group == "*" || n.resources[group] != nil || n.native[group] != nil:
		return nil
	}
	if like := manifest.Suggest(group, maps.Keys(n.resources)); like != "" {
		f.At(o, Warning, at.Path(), "matches nothing that the files describe: no file has the group '%s'%s", group, like)
		return nil
	}
	return []Finding{{File: o.File, Line: o.Line(at.Path()), Field: at.Path(), Severity: Warning,
		Message: fmt.Sprintf("matches nothing: no file has the group '%s', and no upstream is an API server that may have it", group)}}
}

// unmatchedResource finds a resource, or a subresource, that a group does not have.
func (n *describedNames) unmatchedResource(f *findings, o *manifest.Object, group string, at document.Node) {
	name, subresource, hasSubresource := strings.Cut(at.Str(), "/")
	known := n.resources[group]
	if name == "*" || known == nil || n.native[group][name] {
		return
	}
	r, found := known[name]
	if !found {
		like := manifest.Suggest(name, maps.Keys(known))
		if like == "" && !isWhollyOrdinary(known) {
			return // an API server may have it
		}
		f.At(o, Warning, at.Path(), "matches nothing: the group '%s' has no resource '%s'%s", group, name, like)
		return
	}
	if hasSubresource && subresource != "*" && len(r.Paths) > 0 && !r.Subresources.Has(subresource) {
		f.At(o, Warning, at.Path(), "matches nothing: '%s' has no subresource '%s'", r.GroupResource(), subresource)
	}
}

// isWhollyOrdinary reports whether all resources have paths of their own, so that no API server has more of the group.
func isWhollyOrdinary(resources map[string]*loadedResource) bool {
	for _, r := range resources {
		if len(r.Paths) == 0 {
			return false
		}
	}
	return true
}
