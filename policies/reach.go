package policies

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Reach returns the resources at Kubernetes' paths that the match blocks of policies and limits
// name. No file has to define them: the policies apply to a plain API that serves their paths, too.
func (s *Set) Reach() resource.Reach { return s.reach }

// anyName stands in match blocks for all groups or all resources.
const anyName = "*"

// reach collects the resources that match blocks name.
type reach struct {
	named  map[schema.GroupResource]bool
	core   map[string]bool
	dotted map[string]bool
}

func newReach() *reach {
	return &reach{named: map[schema.GroupResource]bool{}, core: map[string]bool{}, dotted: map[string]bool{}}
}

// add notes a resource, or a subresource, by the names in a match block.
func (r *reach) add(group, name string) {
	name, _, _ = strings.Cut(name, "/")
	switch {
	case name == "":
	case group == anyName:
		r.addToAll(name)
	case group == "" && name == anyName:
		for _, one := range coreResources() {
			r.core[one] = true
		}
	default:
		r.named[schema.GroupResource{Group: group, Resource: name}] = true
	}
}

// addToAll notes a resource of all groups: of Kubernetes' own, and of those whose names have a dot. Paths of other
// groups are an ordinary API's own.
func (r *reach) addToAll(name string) {
	r.dotted[name] = true
	for _, group := range undottedGroups() {
		r.named[schema.GroupResource{Group: group, Resource: name}] = true
	}
	for _, one := range coreResources() {
		if name == anyName || name == one {
			r.core[one] = true
		}
	}
}

func (r *reach) rules(rules []admission.Rule) {
	for _, one := range rules {
		r.add(one.Group, one.Resource)
	}
}

// limit notes the resources that a limit names. One that names neither groups nor resources counts
// every request as it is, and asks for none to be read.
func (r *reach) limit(l *ratelimit.Rule) {
	groups, resources := l.APIGroups, l.Resources
	if len(groups)+len(resources) == 0 {
		return
	}
	for _, group := range orAny(groups) {
		for _, one := range orAny(resources) {
			r.add(group, one)
		}
	}
}

// orAny returns the names of a list, or the one that stands for all if the list leaves them out.
func orAny(names []string) []string {
	if len(names) == 0 {
		return []string{anyName}
	}
	return names
}

// result returns what was noted.
func (r *reach) result() resource.Reach {
	return resource.Reach{
		Resources: slices.SortedFunc(maps.Keys(r.named), func(a, b schema.GroupResource) int {
			return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
		}),
		Core:   slices.Sorted(maps.Keys(r.core)),
		Dotted: slices.Sorted(maps.Keys(r.dotted)),
	}
}

// coreResources are the resources of Kubernetes' core group: of its kinds, and two more that are not stored.
func coreResources() []string {
	all := []string{"bindings", "componentstatuses"}
	for kind, n := range natives {
		if kind.Group == "" {
			all = append(all, n.plural)
		}
	}
	slices.Sort(all)
	return all
}

// undottedGroups are Kubernetes' own groups whose names have no dot.
func undottedGroups() []string {
	groups := map[string]bool{"extensions": true} // of older versions
	for kind := range natives {
		if kind.Group != "" && !strings.Contains(kind.Group, ".") {
			groups[kind.Group] = true
		}
	}
	return slices.Sorted(maps.Keys(groups))
}
