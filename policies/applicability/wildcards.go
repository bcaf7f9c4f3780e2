package applicability

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/constraints"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/natives"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A wideBlock is a match block that names no single resource: it matches all resources of some
// groups, or some of all groups.
type wideBlock struct {
	path              string // of the name that says so
	groups, resources []string
}

// wideBlocks returns the wide match blocks of an object.
func wideBlocks(o *manifest.Object) (wide []wideBlock) {
	for _, block := range MatchBlocks(o) {
		groups, resources := manifest.Member(block.Node, "apiGroups"), manifest.Member(block.Node, "resources")
		w := wideBlock{groups: OrAny(manifest.Texts(groups)), resources: OrAny(manifest.Texts(resources))}
		switch all, any := WildcardIn(resources), WildcardIn(groups); {
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
	everything := wideBlock{"spec", []string{AnyName}, []string{AnyName}}
	switch group, _ := o.GroupVersion(); {
	case group == constraints.Group:
		match, _ := o.At("spec.match")
		kinds := manifest.Member(match, "kinds")
		if kinds.Len() == 0 {
			return append(wide, everything)
		}
		for k := kinds.First(); k.Valid(); k = k.Next() {
			named := manifest.Member(k, "kinds")
			if all := WildcardIn(named); all.Valid() || named.Len() == 0 {
				wide = append(wide, wideBlock{k.Path(), OrAny(manifest.Texts(manifest.Member(k, "apiGroups"))),
					[]string{AnyName}})
			}
		}
	case o.Kind == "ConventionPolicy":
		if _, found := o.At("spec.matchConstraints"); !found {
			wide = append(wide, everything)
		}
	}
	return wide
}

// WhatWildcardsMatch says which resources each wildcard of match blocks matches at a plain backend.
func (x *Index) WhatWildcardsMatch() []finding.Finding {
	var found finding.List
	for _, o := range x.Objects {
		if group, _ := o.GroupVersion(); x.PlainKinds[schema.GroupKind{Group: group, Kind: o.Kind}] {
			continue
		}
		for _, w := range wideBlocks(o) {
			found.By(matchedByWildcard, o, finding.Remark, w.path, "reaches on a Plain upstream %s",
				x.names.matchedBy(&w))
		}
	}
	return found.Found
}

// matchedBy says what a wide block matches.
func (n *names) matchedBy(w *wideBlock) string {
	isAny := slices.Contains(w.groups, AnyName)
	names := map[string]bool{}
	for _, one := range w.resources {
		name, _, _ := strings.Cut(one, "/")
		names[name] = true
	}
	all := names[AnyName]
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
		what = finding.Quoted(slices.Sorted(maps.Keys(names)))
	}
	if isAny {
		parts = append(parts, what+" below '/apis/GROUP/VERSION/' of "+finding.Quoted(natives.UndottedGroups())+
			" and of groups whose names have a dot")
	} else {
		for _, group := range w.groups {
			if group != "" {
				parts = append(parts, what+" below '/apis/"+group+"/VERSION/'")
			}
		}
	}
	core := slices.DeleteFunc(natives.CoreResources(), func(one string) bool { return !all && !names[one] })
	switch {
	case !isAny && !slices.Contains(w.groups, ""), len(core) == 0:
	case all:
		parts = append(parts, "Kubernetes' own resources below '/api/v1/'")
	default:
		parts = append(parts, finding.Quoted(core)+" below '/api/v1/'")
	}
	return strings.Join(parts, "; ")
}

// describedWords names the described resources that are reached.
func describedWords(described []string) string {
	switch {
	case len(described) == 0:
		return "no described resource"
	case len(described) > MaxNamed:
		return fmt.Sprintf("the described resources %s and %d more", strings.Join(described[:MaxNamed], ", "),
			len(described)-MaxNamed)
	case len(described) == 1:
		return "the described resource " + described[0]
	}
	return "the described resources " + strings.Join(described, ", ")
}

// MatchedByWildcards returns the described resources that the rules of a policy match if these have wildcards, and how
// bad it is if none of them has something. It returns none of other rules, and if an upstream is an API server, which
// has kinds that no file describes.
func (x *Index) MatchedByWildcards(o *manifest.Object) (all []*Resource, severity finding.Severity) {
	list, _ := o.At("spec.matchConstraints.resourceRules")
	hasWildcards := slices.ContainsFunc(rulesIn(list), func(r namedRule) bool {
		return slices.Contains(r.groups, AnyName) || slices.Contains(r.versions, AnyName) ||
			slices.Contains(r.resources, AnyName)
	})
	if !hasWildcards || !x.isPlain {
		return nil, finding.Error
	}
	var m matched
	for r := list.First(); r.Valid(); r = r.Next() {
		for _, name := range manifest.Texts(manifest.Member(r, "resources")) {
			if strings.Contains(name, "/") {
				return nil, finding.Error // the objects of subresources have other fields
			}
			m.add(x.named(manifest.Texts(manifest.Member(r, "apiGroups")), name))
		}
	}
	if severity = finding.Error; m.isOpen {
		severity = finding.Warning
	}
	return slices.DeleteFunc(m.all, func(r *Resource) bool { return r.Operation != nil }), severity
}
