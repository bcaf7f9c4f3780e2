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

// planned is something with a rollout.
type planned struct {
	from         *manifest.Object
	path         string // of the rollout
	spec         *rollout.ResourceSpec
	isNamespaced bool
	into         **rollout.Plan
}

// planResources compiles how far descriptions of resources, and of other operations, are in force. Parts of one
// document for which the same is said have one plan.
func (l *loader) planResources() {
	var all []planned
	for i := range l.resources {
		r := &l.resources[i]
		all = append(all, planned{r.at.from, r.planAt(), r.rollout, r.Namespaced, &r.Resource.Rollout})
	}
	for i := range l.documented {
		o := &l.documented[i]
		all = append(all, planned{o.at.from, o.rolloutAt, o.rollout, false, &o.Documented.Rollout})
	}
	plans, isLocal := map[planKey]*rollout.Plan{}, map[*rollout.Plan]bool{}
	var first []planned // of each plan
	for _, one := range all {
		if one.spec == nil {
			continue
		}
		text, err := json.Marshal(one.spec)
		if err != nil {
			l.At(one.from, Error, one.path, "must be a rollout: %v", err)
			continue
		}
		key := planKey{one.from, string(text)}
		plan, known := plans[key]
		if !known {
			plan = l.terms.ResourcePlan(one.from, one.spec, one.from.Kind+"/"+one.from.Name, one.path)
			plans[key], first = plan, append(first, one)
		}
		*one.into = plan
		isLocal[plan] = isLocal[plan] || one.isNamespaced
	}
	for _, one := range first {
		if plan := *one.into; plan != nil && plan.IsLocal() && !isLocal[plan] {
			l.At(one.from, Error, one.path+".namespaces", "must not be set: no path of the resource has {namespace}")
		}
	}
}

// planAt is the place of the rollout in its file.
func (r *loadedResource) planAt() string { return cmp.Or(r.rolloutAt, "spec.rollout") }

// notEnforced says which descriptions take policies with them: what is not enforced of a resource, no policy judges.
func notEnforced(resources []loadedResource, set *Set) []Finding {
	var f findings
	var told []*rollout.Plan
	for i := range resources {
		r := &resources[i]
		if r.Rollout == nil || slices.Contains(told, r.Rollout) {
			continue
		}
		info := resource.Info{IsResource: true, Group: r.Group, Version: r.Version, Resource: r.Names.Plural, Name: "x"}
		if r.Operation != nil {
			info.Subresource = r.Operation.Subresource
		}
		for _, operation := range []admission.Operation{admission.Create, admission.Update, admission.Delete} {
			if set.chain.Concerns(&info, operation) || set.conventions.Concern(&info, operation) {
				told = append(told, r.Rollout)
				f.At(r.at.from, Warning, r.planAt(), "policies about '%s' are only tried with it: they refuse and change nothing for requests for which it is not enforced", info.Resource)
				break
			}
		}
	}
	return f.Found
}
