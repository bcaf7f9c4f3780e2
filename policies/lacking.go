package policies

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/admission/typecheck"
	"github.com/admission-gateway/gateway/internal/cel"
)

// lackingByRego warns of what a RegoPolicy reads of fields that no object has which its rules match.
func (l *loader) lackingByRego(p *rego.Program, rules *admissionv1.MatchResources, kinds *knownKinds) {
	types := describedTypes(rules, kinds)
	if p == nil || len(types) == 0 {
		return
	}
	l.regoFound(p.LackingReads(func(path string) bool {
		return !slices.ContainsFunc(types, func(t *cel.ObjectType) bool { return !t.Lacks(path) })
	}), Warning)
}

// describedTypes returns the types of all objects that rules match; nil if the files do not describe each of them.
func describedTypes(rules *admissionv1.MatchResources, kinds *knownKinds) (all []*cel.ObjectType) {
	if rules == nil {
		return nil
	}
	for i := range rules.ResourceRules {
		r := &rules.ResourceRules[i].Rule
		for _, name := range slices.Concat(r.APIGroups, r.APIVersions, r.Resources) {
			if strings.ContainsAny(name, "*/") {
				return nil
			}
		}
	}
	for _, gvr := range typecheck.Named(rules) {
		k, known := kinds.Resource(gvr)
		if !known || !k.Own || k.Type == nil {
			return nil
		}
		all = append(all, k.Type)
	}
	return all
}
