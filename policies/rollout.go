package policies

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/rollout"
)

// planKey identifies the rollout of several resources that one object describes.
type planKey struct {
	from *manifest.Object
	spec string
}

// planResources compiles how far descriptions of resources are in force. Resources of one document for which the same is said
// have one plan.
func (l *loader) planResources() {
	plans, places, isLocal := map[planKey]*rollout.Plan{}, map[*rollout.Plan]*loadedResource{}, map[*rollout.Plan]bool{}
	var order []*rollout.Plan
	for i := range l.resources {
		r := &l.resources[i]
		if r.rollout == nil {
			continue
		}
		text, err := json.Marshal(r.rollout)
		if err != nil {
			l.At(r.at.from, Error, r.planAt(), "must be a rollout: %v", err)
			continue
		}
		key := planKey{r.at.from, string(text)}
		plan, known := plans[key]
		if !known {
			plan = l.terms.ResourcePlan(r.at.from, r.rollout, r.at.from.Kind+"/"+r.at.from.Name, r.planAt())
			plans[key] = plan
			places[plan], order = r, append(order, plan)
		}
		r.Resource.Rollout = plan
		isLocal[plan] = isLocal[plan] || r.Namespaced
	}
	for _, plan := range order {
		if plan != nil && plan.IsLocal() && !isLocal[plan] {
			r := places[plan]
			l.At(r.at.from, Error, r.planAt()+".namespaces", "must not be set: no path of the resource has {namespace}")
		}
	}
}

// planAt is the place of the rollout in its file.
func (r *loadedResource) planAt() string { return cmp.Or(r.rolloutAt, "spec.rollout") }

// checkTried says which descriptions take policies with them: what is not enforced of a resource, no policy judges.
func (l *loader) checkTried() {
	var told []*rollout.Plan
	for i := range l.resources {
		r := &l.resources[i]
		if r.Rollout == nil || slices.Contains(told, r.Rollout) {
			continue
		}
		info := resource.Info{IsResource: true, Group: r.Group, Version: r.Version, Resource: r.Names.Plural, Name: "x"}
		if r.Operation != nil {
			info.Subresource = r.Operation.Subresource
		}
		for _, operation := range []admission.Operation{admission.Create, admission.Update, admission.Delete} {
			if l.set.chain.Concerns(&info, operation) || l.set.conventions.Concern(&info, operation) {
				told = append(told, r.Rollout)
				l.At(r.at.from, Warning, r.planAt(), "policies about '%s' are only tried with it: they refuse and change nothing for requests for which it is not enforced", info.Resource)
				break
			}
		}
	}
}
