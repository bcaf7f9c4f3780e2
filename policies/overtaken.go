package policies

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission/mutate"
	"github.com/admission-gateway/gateway/admission/typecheck"
	"github.com/admission-gateway/gateway/policies/applicability"
)

// overtaken finds defaults of a DefaultingPolicy that always come too late: the schema, the policy itself or a policy
// before it has set the field. A policy that is switched off comes before none and after none.
func overtaken(f *findings, p loadedDefaulting, before []loadedDefaulting, kinds *knownKinds) {
	all := p.spec.Spec.Defaults
	for i, d := range all {
		at := field.NewPath("spec", "defaults").Index(i).Child("field").String()
		if j := slices.IndexFunc(all[:i],
			func(first mutate.Default) bool { return first.Field == d.Field && isCertain(first) }); j >= 0 {
			f.By(applicability.NeverApplies, p.from, Error, at,
				"can never apply: the default with the index %d sets the field first", j)
			continue
		}
		if i := slices.IndexFunc(before, func(first loadedDefaulting) bool {
			return p.spec.Enabled() && first.sets(d.Field) && first.covers(p)
		}); i >= 0 {
			f.By(applicability.NeverApplies, p.from, Error, at, "can never apply: the DefaultingPolicy '%s' sets the field first, since policies run in the order of their names", before[i].spec.Name)
			continue
		}
		overtakenBySchema(f, p, at, d.Field, kinds)
	}
}

// overtakenBySchema finds a default of a field for which the schemas have one.
func overtakenBySchema(f *findings, p loadedDefaulting, at, name string, kinds *knownKinds) {
	const first = "the default of the schema is set first"
	resources := typecheck.Named(p.spec.Spec.MatchConstraints)
	hasDefault, isNever, parent := 0, true, ""
	for _, gvr := range resources {
		r, known := kinds.resources[gvr]
		if !known || r.compiled.props == nil {
			return
		}
		if within, found := defaultedWithin(r.compiled.props, name); found {
			hasDefault++
			if within != "" {
				isNever, parent = false, within
			}
		}
	}
	switch {
	case hasDefault == 0 || hasDefault < len(resources):
	case isNever:
		f.By(applicability.NeverApplies, p.from, Error, at, "can never apply: %s", first)
	default:
		f.By(applicability.NeverApplies, p.from, Warning, at, "applies only where `%s` is left out: otherwise %s",
			parent, first)
	}
}

// defaultedWithin reports whether a schema has a default for a field, and the outermost of the objects around it that
// may be left out; "" if there is none. Fields of items and keys of maps are not looked at.
func defaultedWithin(props *apiextensionsv1.JSONSchemaProps, name string) (within string, found bool) {
	if strings.Contains(name, "[") {
		return "", false
	}
	names := applicability.SegmentsOfField(name)
	for i, one := range names {
		next, known := props.Properties[one]
		switch {
		case !known:
			return "", false
		case i == len(names)-1:
			return within, next.Default != nil
		case within == "" && next.Default == nil && !slices.Contains(props.Required, one):
			within = strings.Join(names[:i+1], ".")
		}
		props = &next
	}
	return "", false
}

// isCertain reports whether a default is set wherever the field is unset.
func isCertain(d mutate.Default) bool { return d.When == "" && d.ValueExpression == "" }

// sets reports whether a policy sets a field wherever the policy applies and the field is unset.
func (p *loadedDefaulting) sets(name string) bool {
	return slices.ContainsFunc(p.spec.Spec.Defaults,
		func(d mutate.Default) bool { return d.Field == name && isCertain(d) })
}

// covers reports whether a policy applies to each request that another one applies to.
func (p *loadedDefaulting) covers(other loadedDefaulting) bool {
	spec := &p.spec.Spec
	match := spec.MatchConstraints
	if !p.spec.Enabled() || len(spec.MatchConditions) > 0 || len(spec.TargetRefs) > 0 || spec.Rollout != nil ||
		match == nil || len(match.ExcludeResourceRules) > 0 {
		return false
	}
	for _, name := range [...]string{"namespaceSelector", "objectSelector"} {
		if at, _ := p.from.At("spec.matchConstraints." + name); at.Len() > 0 {
			return false
		}
	}
	own, _ := p.from.At("spec.matchConstraints.resourceRules")
	others, _ := other.from.At("spec.matchConstraints.resourceRules")
	return applicability.RulesInclude(own, others)
}
