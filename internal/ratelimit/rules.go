package ratelimit

import (
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/resource"
)

// Rules are the limits of one policy set, found by what they name. They are immutable and safe for concurrent use.
type Rules struct {
	// byResource has the rules that name resources, byGroup the rules that name only groups, and
	// others the rest, so that a request meets only rules that may concern it.
	byResource, byGroup map[string][]*compiled
	others              []*compiled
}

// NewRules compiles limits.
func NewRules(rules []*Rule) *Rules {
	all := &Rules{byResource: map[string][]*compiled{}, byGroup: map[string][]*compiled{}}
	for _, r := range rules {
		c := compile(r)
		switch {
		case !open(r.Resources):
			for _, name := range r.Resources {
				main, _, _ := strings.Cut(name, "/")
				all.byResource[main] = add(all.byResource[main], c)
			}
		case !open(r.APIGroups):
			for _, group := range r.APIGroups {
				all.byGroup[group] = add(all.byGroup[group], c)
			}
		default:
			all.others = append(all.others, c)
		}
	}
	return all
}

func add(list []*compiled, c *compiled) []*compiled {
	if slices.Contains(list, c) {
		return list
	}
	return append(list, c)
}

// candidates are the rules that could concern a request.
func (r *Rules) candidates(i *resource.Info) (lists [3][]*compiled) {
	lists[0] = r.others
	if len(r.byResource) > 0 {
		lists[1] = r.byResource[i.Resource]
	}
	if len(r.byGroup) > 0 {
		lists[2] = r.byGroup[i.Group]
	}
	return lists
}

// Len is the number of rules that could concern a request.
func (r *Rules) Len(i *resource.Info) int {
	n := 0
	for _, list := range r.candidates(i) {
		n += len(list)
	}
	return n
}
