package match

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	vapmatch "github.com/admission-gateway/gateway/admission/match"
)

// Resources returns the names of the resources that serve a kind; false if others may serve it too.
type Resources func(schema.GroupKind) (plurals []string, known bool)

// scattered are groups with kinds that subresources of other groups have, such as autoscaling's Scale
// in apps' deployments.
var scattered = []string{"authentication.k8s.io", "autoscaling", "policy"}

// Rules are the rules under which a chain finds what has the match block. They may find more than a
// [Matcher] matches, never less.
func (s *Spec) Rules(operations admission.Operation, resources Resources) []admission.Rule {
	narrow := admission.Rule{Operations: operations, Labels: vapmatch.LabelsOf(s.LabelSelector)}
	if !slices.ContainsFunc(s.Namespaces, func(w Wildcard) bool { return strings.Contains(string(w), anyName) }) {
		for _, name := range s.Namespaces {
			narrow.Namespaces = append(narrow.Namespaces, string(name))
		}
	}
	if len(s.Kinds) == 0 {
		return Rules(narrow, nil, nil, resources)
	}
	var all []admission.Rule
	for _, k := range s.Kinds {
		all = append(all, Rules(narrow, unlessAny(k.APIGroups), unlessAny(k.Kinds), resources)...)
	}
	return all
}

// Rules are copies of a rule for each resource that serves one of the kinds in one of the groups; nil
// stands for any.
func Rules(like admission.Rule, groups, kinds []string, resources Resources) []admission.Rule {
	var all []admission.Rule
	add := func(group, resource string) {
		like.Group, like.Resource = group, resource
		all = append(all, like)
	}
	if groups == nil {
		add(anyName, anyName)
		return all
	}
	for _, group := range groups {
		if kinds == nil {
			add(group, anyName)
			if slices.Contains(scattered, group) {
				add(anyName, anyName)
			}
		}
		for _, kind := range kinds {
			plurals, known := resources(schema.GroupKind{Group: group, Kind: kind})
			for _, plural := range plurals {
				add(group, plural)
			}
			switch {
			case known:
			case slices.Contains(scattered, group):
				add(anyName, anyName)
			default:
				add(group, anyName)
			}
		}
	}
	return all
}
