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
	"github.com/admission-gateway/gateway/policies/applicability"
	"github.com/admission-gateway/gateway/policies/natives"
)

// MatchedResources returns the resources at Kubernetes' paths that the match blocks of policies and limits
// name. No file has to define them: the policies apply to a plain API that serves their paths, too.
func (s *Set) MatchedResources() resource.NamedResources { return s.matched }

// matchedResources collects the resources that match blocks name.
type matchedResources struct {
	named  map[schema.GroupResource]bool
	core   map[string]bool
	dotted map[string]bool
}

func newMatchedResources() *matchedResources {
	return &matchedResources{named: map[schema.GroupResource]bool{}, core: map[string]bool{}, dotted: map[string]bool{}}
}

// add notes a resource, or a subresource, by the names in a match block.
func (r *matchedResources) add(group, name string) {
	name, _, _ = strings.Cut(name, "/")
	switch {
	case name == "":
	case group == applicability.AnyName:
		r.addToAll(name)
	case group == "" && name == applicability.AnyName:
		for _, one := range natives.CoreResources() {
			r.core[one] = true
		}
	default:
		r.named[schema.GroupResource{Group: group, Resource: name}] = true
	}
}

// addToAll notes a resource of all groups: of Kubernetes' own, and of those whose names have a dot. Paths of other
// groups are a plain API's own.
func (r *matchedResources) addToAll(name string) {
	r.dotted[name] = true
	for _, group := range natives.UndottedGroups() {
		r.named[schema.GroupResource{Group: group, Resource: name}] = true
	}
	for _, one := range natives.CoreResources() {
		if name == applicability.AnyName || name == one {
			r.core[one] = true
		}
	}
}

func (r *matchedResources) rules(rules []admission.Rule) {
	for _, one := range rules {
		r.add(one.Group, one.Resource)
	}
}

// limit notes the resources that a limit names. One that names neither groups nor resources counts
// every request as it is, and asks for none to be read.
func (r *matchedResources) limit(l *ratelimit.Rule) {
	groups, resources := l.APIGroups, l.Resources
	if len(groups)+len(resources) == 0 {
		return
	}
	for _, group := range applicability.OrAny(groups) {
		for _, one := range applicability.OrAny(resources) {
			r.add(group, one)
		}
	}
}

// result returns what was noted.
func (r *matchedResources) result() resource.NamedResources {
	return resource.NamedResources{
		Resources: slices.SortedFunc(maps.Keys(r.named), func(a, b schema.GroupResource) int {
			return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
		}),
		Core:   slices.Sorted(maps.Keys(r.core)),
		Dotted: slices.Sorted(maps.Keys(r.dotted)),
	}
}
