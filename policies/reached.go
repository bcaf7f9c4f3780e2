package policies

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/constraints"
	"github.com/admission-gateway/gateway/policies/finding"
)

// A wideBlock is a match block that names no single resource: it matches all resources of some
// groups, or some of all groups.
type wideBlock struct {
	path              string // of the name that says so
	groups, resources []string
}

// wideBlocks returns the wide match blocks of an object.
func wideBlocks(o *manifest.Object) (wide []wideBlock) {
	for _, block := range matchBlocks(o) {
		groups, resources := memberOf(block.Node, "apiGroups"), memberOf(block.Node, "resources")
		w := wideBlock{groups: orAny(textsIn(groups)), resources: orAny(textsIn(resources))}
		switch all, any := wildcardIn(resources), wildcardIn(groups); {
		case groups.Len()+resources.Len() == 0:
			continue // a limit that counts every request as it is
		case all.Valid():
			w.path = all.Path()
		case any.Valid():
			w.path = any.Path()
		case resources.Len() == 0:
			w.path = groups.Path()
		case groups.Len() == 0:
			w.path = resources.Path()
		default:
			continue
		}
		wide = append(wide, w)
	}
	everything := wideBlock{"spec", []string{anyName}, []string{anyName}}
	switch group, _ := o.GroupVersion(); {
	case group == constraints.Group:
		match, _ := o.At("spec.match")
		kinds := memberOf(match, "kinds")
		if kinds.Len() == 0 {
			return append(wide, everything)
		}
		for k := kinds.First(); k.Valid(); k = k.Next() {
			named := memberOf(k, "kinds")
			if all := wildcardIn(named); all.Valid() || named.Len() == 0 {
				wide = append(wide, wideBlock{k.Path(), orAny(textsIn(memberOf(k, "apiGroups"))), []string{anyName}})
			}
		}
	case o.Kind == "ConventionPolicy":
		if _, found := o.At("spec.matchConstraints"); !found {
			wide = append(wide, everything)
		}
	}
	return wide
}

// reached says which resources each wildcard of match blocks matches at a plain backend.
func (n *describedNames) reached(objects iter.Seq[*manifest.Object], plain plainKinds) []Finding {
	var found []Finding
	for o := range objects {
		if plain.has(o) {
			continue
		}
		for _, w := range wideBlocks(o) {
			one := finding.Of(o, w.path)
			one.Severity, one.Message = Remark, "reaches on a Plain upstream "+n.reachOf(&w)
			found = append(found, one)
		}
	}
	return found
}

// reachOf says what a wide block reaches.
func (n *describedNames) reachOf(w *wideBlock) string {
	isAny := slices.Contains(w.groups, anyName)
	names := map[string]bool{}
	for _, one := range w.resources {
		name, _, _ := strings.Cut(one, "/")
		names[name] = true
	}
	all := names[anyName]
	var described []string
	for group, resources := range n.resources {
		for plural := range resources {
			if (isAny || slices.Contains(w.groups, group)) && (all || names[plural]) {
				described = append(described, "'"+resources[plural][0].GroupResource().String()+"'")
			}
		}
	}
	slices.Sort(described)
	parts := []string{describedWords(described)}
	what := "every path"
	if !all {
		what = quoted(slices.Sorted(maps.Keys(names)))
	}
	if isAny {
		parts = append(parts, what+" below '/apis/GROUP/VERSION/' of "+quoted(undottedGroups())+" and of groups whose names have a dot")
	} else {
		for _, group := range w.groups {
			if group != "" {
				parts = append(parts, what+" below '/apis/"+group+"/VERSION/'")
			}
		}
	}
	core := slices.DeleteFunc(coreResources(), func(one string) bool { return !all && !names[one] })
	switch {
	case !isAny && !slices.Contains(w.groups, ""), len(core) == 0:
	case all:
		parts = append(parts, "Kubernetes' own resources below '/api/v1/'")
	default:
		parts = append(parts, quoted(core)+" below '/api/v1/'")
	}
	return strings.Join(parts, "; ")
}

// describedWords names the described resources that are reached.
func describedWords(described []string) string {
	switch {
	case len(described) == 0:
		return "no described resource"
	case len(described) > maxNamed:
		return fmt.Sprintf("the described resources %s and %d more", strings.Join(described[:maxNamed], ", "), len(described)-maxNamed)
	case len(described) == 1:
		return "the described resource " + described[0]
	}
	return "the described resources " + strings.Join(described, ", ")
}
