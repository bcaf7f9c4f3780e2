package ratelimit

import (
	"cmp"
	"slices"
	"time"

	"github.com/admission-gateway/gateway/internal/resource"
)

// Applicabilities says for each rule whether it counts a request that comes by a route, in the order of
// their names. The user and the header lines are not known. The time is the one by which rollouts
// are judged.
func (r *Rules) Applicabilities(i *resource.Info, place *resource.RouteRef, at time.Time) []resource.Applicability {
	all := []resource.Applicability{}
	for _, c := range r.all() {
		all = append(all, c.applicability(i, place, at))
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
	return slices.SortedFunc(slices.Values(r.list),
		func(a, b *compiled) int { return cmp.Compare(a.limit.Name, b.limit.Name) })
}

func (c *compiled) applicability(i *resource.Info, place *resource.RouteRef, at time.Time) resource.Applicability {
	o := resource.Applicability{Kind: "RateLimitPolicy", Name: c.limit.Name, Applies: resource.Always}
	if why := c.match(i, place); why != counted {
		return o.Unless(why.says(i))
	}
	exempt := &c.limit.Exemptions
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
