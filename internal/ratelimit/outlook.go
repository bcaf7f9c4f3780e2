package ratelimit

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/admission-gateway/gateway/internal/resource"
)

// Outlooks says of each rule whether it counts a request that comes by a route, in the order of
// their names. Who asks, and by which header lines, is not known. The time is the one
// by which rollouts are judged.
func (r *Rules) Outlooks(i *resource.Info, place *resource.Place, at time.Time) []resource.Outlook {
	all := []resource.Outlook{}
	for _, c := range r.all() {
		all = append(all, c.outlook(i, place, at))
	}
	return all
}

// List returns the limits in the order of their names. They must not be changed.
func (r *Rules) List() []*Rule {
	limits := []*Rule{}
	for _, c := range r.all() {
		limits = append(limits, &c.limit)
	}
	return limits
}

// all returns the rules in the order of their names.
func (r *Rules) all() []*compiled {
	once := map[*compiled]bool{}
	for _, c := range r.others {
		once[c] = true
	}
	for _, table := range []map[string][]*compiled{r.byResource, r.byGroup} {
		for _, list := range table {
			for _, c := range list {
				once[c] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(once), func(a, b *compiled) int { return cmp.Compare(a.limit.Name, b.limit.Name) })
}

func (c *compiled) outlook(i *resource.Info, place *resource.Place, at time.Time) resource.Outlook {
	o := resource.Outlook{Kind: "RateLimitPolicy", Name: c.limit.Name, Applies: resource.Always}
	exempt := &c.limit.Exemptions
	switch {
	case !i.IsResource && c.resourcesOnly:
		return o.Unless("it names resources, and the path is none")
	case !c.limit.Scope.IsOpen() && (place == nil || !c.limit.Scope.Covers(place)):
		return o.Unless("its scope has other routes")
	case !c.choosesResource(i) || !chooses(c.limit.APIGroups, i.Group):
		return o.Unless("it is about other resources")
	case !c.verbs.Has(i.Verb):
		return o.Unless("it is not about the verb '" + i.VerbName() + "'")
	case !chooses(c.limit.Namespaces, i.Namespace):
		return o.Unless("it is about other namespaces")
	case i.Namespace != "" && slices.Contains(exempt.Namespaces, i.Namespace):
		return o.Unless("the namespace '" + i.Namespace + "' is exempt")
	}
	if len(exempt.Addresses)+len(exempt.Usernames)+len(exempt.Groups) > 0 {
		o = o.If("the client is not exempt")
	}
	if len(c.limit.Conditions) > 0 {
		o = o.If("its matchConditions hold")
	}
	if c.limit.Rollout != nil {
		if how := c.limit.Rollout.In(at); how != "" {
			o = o.Also("enforced " + how + ", and only tried otherwise")
		}
	}
	return o
}
