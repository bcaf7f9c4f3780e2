package policies

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies/finding"
)

// describedNames are the groups and resources that files describe.
type describedNames struct {
	resources map[string]map[string][]*loadedResource // by group and plural, also the operations of the resource
	native    map[string]map[string]bool              // of Kubernetes itself
}

func newDescribedNames(resources []loadedResource) *describedNames {
	n := &describedNames{map[string]map[string][]*loadedResource{}, map[string]map[string]bool{}}
	for i := range resources {
		r := &resources[i]
		if n.resources[r.Group] == nil {
			n.resources[r.Group] = map[string][]*loadedResource{}
		}
		n.resources[r.Group][r.Names.Plural] = append(n.resources[r.Group][r.Names.Plural], r)
	}
	for kind, one := range natives {
		if n.native[kind.Group] == nil {
			n.native[kind.Group] = map[string]bool{}
		}
		n.native[kind.Group][one.plural] = true
	}
	return n
}

// unmatched finds names in the match blocks of policies and limits that no request has. What the files alone make
// certain is warned of. The rest is certain if no backend is an API server, which may serve more: it is returned.
func (n *describedNames) unmatched(f *findings, objects iter.Seq[*manifest.Object]) (onPlain []Finding) {
	for o := range objects {
		for _, block := range matchBlocks(o) {
			onPlain = append(onPlain, n.unmatchedVerbs(f, o, block)...)
			resources, _ := block.Get("resources")
			groups, found := block.Get("apiGroups")
			if !found || groups.Len() == 0 {
				continue // limits without groups match all of them
			}
			for g := groups.First(); g.Valid(); g = g.Next() {
				onPlain = append(onPlain, n.unmatchedGroup(f, o, g, wildcardIn(resources).Valid())...)
				for r := resources.First(); r.Valid(); r = r.Next() {
					n.unmatchedResource(f, o, g.Str(), r)
				}
			}
		}
	}
	return onPlain
}

// matchBlocks returns the blocks of an object that choose requests by groups and resources.
func matchBlocks(o *manifest.Object) (blocks []document.Node) {
	for _, path := range [...]string{"spec.matchConstraints.resourceRules", "spec.matchResources.resourceRules"} {
		rules, _ := o.At(path)
		for n := rules.First(); n.Valid(); n = n.Next() {
			blocks = append(blocks, n)
		}
	}
	if match, found := o.At("spec.match"); found && o.Kind == "RateLimitPolicy" {
		blocks = append(blocks, match)
	}
	return blocks
}

// unmatchedGroup finds a group that no file knows. What a wide block reaches is said by reached.
func (n *describedNames) unmatchedGroup(f *findings, o *manifest.Object, at document.Node, isWide bool) []Finding {
	group := at.Str()
	switch {
	case group == "*" || n.resources[group] != nil || n.native[group] != nil:
		return nil
	}
	if like := manifest.Suggest(group, maps.Keys(n.resources)); like != "" {
		f.At(o, Warning, at.Path(), "matches nothing that the files describe: no file has the group '%s'%s", group, like)
		return nil
	}
	if isWide {
		return nil
	}
	one := finding.Of(o, at.Path())
	one.Severity = Remark
	one.Message = fmt.Sprintf("matches nothing but paths below '/apis/%s/': no file has the group, and no upstream is an API server that may have it", group)
	return []Finding{one}
}

// unmatchedResource finds a resource, or a subresource, that a group does not have.
func (n *describedNames) unmatchedResource(f *findings, o *manifest.Object, group string, at document.Node) {
	name, subresource, hasSubresource := strings.Cut(at.Str(), "/")
	known := n.resources[group]
	if name == "*" || known == nil || n.native[group][name] {
		return
	}
	all, found := known[name]
	if !found {
		like := manifest.Suggest(name, maps.Keys(known))
		if like == "" && !isWhollyOrdinary(known) {
			return // an API server may have it
		}
		f.At(o, Warning, at.Path(), "matches nothing that the files describe: the group '%s' has no resource '%s'%s", group, name, like)
		return
	}
	has := func(r *loadedResource) bool {
		return len(r.Paths) == 0 || r.Subresources.Has(subresource) || r.Operation != nil && r.Operation.Subresource == subresource
	}
	if hasSubresource && subresource != "*" && !slices.ContainsFunc(all, has) {
		f.At(o, Warning, at.Path(), "matches nothing that the files describe: '%s' has no subresource '%s'", all[0].GroupResource(), subresource)
	}
}

// isWhollyOrdinary reports whether all resources have paths of their own, so that no API server has more of the group.
func isWhollyOrdinary(resources map[string][]*loadedResource) bool {
	for _, all := range resources {
		if slices.ContainsFunc(all, func(r *loadedResource) bool { return len(r.Paths) == 0 }) {
			return false
		}
	}
	return true
}

// unmatchedVerbs finds operations of a policy, and verbs of a limit, that no resource of the block has.
func (n *describedNames) unmatchedVerbs(f *findings, o *manifest.Object, block document.Node) (onPlain []Finding) {
	verbs, isLimit := block.Get("verbs")
	if !isLimit {
		verbs, _ = block.Get("operations")
	}
	m := n.matched(block, isLimit)
	if len(m.verbs) == 0 || m.isOpen {
		return nil
	}
	for v := verbs.First(); v.Valid(); v = v.Next() {
		wanted := []string{v.Str()}
		if !isLimit {
			wanted = verbsOf(v.Str())
		}
		if v.Is("*") || v.Is(resource.VerbOptions.String()) || slices.ContainsFunc(wanted, func(verb string) bool { return slices.Contains(m.verbs, verb) }) {
			continue
		}
		one := finding.Of(o, v.Path())
		one.Severity, one.Message = Warning, m.lacks()
		if m.isOpenOnPlain {
			onPlain = append(onPlain, one)
		} else {
			f.Found = append(f.Found, one)
		}
	}
	return onPlain
}

// verbsOf returns the verbs of the requests that policies match by an operation.
func verbsOf(operation string) (all []string) {
	for v := range resource.Verbs {
		if o := v.Operation(); o != 0 && o.String() == operation {
			all = append(all, v.String())
		}
	}
	switch operation {
	case resource.AdmitCreate.String():
		return append(all, creates)
	case resource.AdmitConnect.String():
		return append(all, connects)
	}
	return all
}

// Kinds of requests that have other verbs, beside these: an update that may create, and a connection to somewhere else.
const (
	creates  = "creates"
	connects = "connects"
)

// matchedVerbs has the verbs that requests for the resources of a match block can have.
type matchedVerbs struct {
	named, verbs []string
	// isOpen says that the block may match more than the files describe, isOpenOnPlain that it may
	// if there is an API server.
	isOpen, isOpenOnPlain bool
}

// matched returns what the files say of the resources that a block matches.
func (n *describedNames) matched(block document.Node, isLimit bool) (m matchedVerbs) {
	list, _ := block.Get("apiGroups")
	groups := textsIn(list)
	isAny := len(groups) == 0 || slices.Contains(groups, "*")
	if isAny {
		groups, m.isOpenOnPlain = slices.Sorted(maps.Keys(n.resources)), true
	}
	list, _ = block.Get("resources")
	resources := textsIn(list)
	if len(resources) == 0 {
		resources = []string{"*/*"}
	}
	for _, group := range groups {
		known := n.resources[group]
		for _, one := range resources {
			name, subresource, _ := strings.Cut(one, "/")
			if isLimit && name == "*" {
				subresource = "*"
				m.isOpen = m.isOpen || group == "" || isAny // requests that no file describes have a verb too
			}
			switch {
			case name != "*" && len(known[name]) > 0:
				m.add(known[name], subresource)
			case name == "*" && known != nil:
				m.isOpenOnPlain = m.isOpenOnPlain || n.native[group] != nil || !isWhollyOrdinary(known)
				for _, plural := range slices.Sorted(maps.Keys(known)) {
					m.add(known[plural], subresource)
				}
			case !isAny:
				m.isOpen = m.isOpen || n.native[group] != nil || known == nil || !isWhollyOrdinary(known)
			}
		}
	}
	return m
}

// add takes a resource, and its operations, for some of their subresources; "*" is all of them.
func (m *matchedVerbs) add(all []*loadedResource, subresource string) {
	m.named = append(m.named, "'"+all[0].GroupResource().String()+"'")
	for _, r := range all {
		subresources := []string{subresource}
		switch {
		case subresource == "*" && r.Operation != nil:
			subresources = []string{r.Operation.Subresource}
		case subresource == "*":
			subresources = append([]string{"", "status", "scale"}, r.Subresources.Other...)
		}
		for _, s := range subresources {
			verbs, isKnown := r.verbs(s)
			m.isOpen = m.isOpen || !isKnown
			for _, verb := range verbs {
				if !slices.Contains(m.verbs, verb.String()) {
					m.verbs = append(m.verbs, verb.String())
				}
			}
			if slices.Contains(verbs, resource.VerbUpdate) && s == "" && r.Writes.CreateOnUpdate && !slices.Contains(m.verbs, creates) {
				m.verbs = append(m.verbs, creates)
			}
		}
	}
}

// verbs returns what a resource, or a subresource of its objects, can be asked for; false if the files do not say.
func (r *loadedResource) verbs(subresource string) (verbs []resource.Verb, isKnown bool) {
	if len(r.Paths) == 0 {
		return nil, false
	}
	return r.Verbs(subresource), true
}

// lacks says which verbs the resources have instead of the wanted ones.
func (m *matchedVerbs) lacks() string {
	var verbs []string
	for _, verb := range m.verbs {
		if verb != creates {
			verbs = append(verbs, verb)
		}
	}
	slices.Sort(verbs)
	of := strings.Join(m.named, ", ")
	if len(m.named) > maxNamed {
		of = fmt.Sprintf("%s and %d more", strings.Join(m.named[:maxNamed], ", "), len(m.named)-maxNamed)
	}
	return fmt.Sprintf("matches nothing that the files describe: the only verbs of %s are %s", of, strings.Join(verbs, ", "))
}

// maxNamed is how many resources a finding names.
const maxNamed = 3

// textsIn returns the texts of a list.
func textsIn(list document.Node) (texts []string) {
	for n := list.First(); n.Valid(); n = n.Next() {
		texts = append(texts, n.Str())
	}
	return texts
}

func memberOf(n document.Node, name string) document.Node {
	m, _ := n.Get(name)
	return m
}

// wildcardIn returns the first name of a list that stands for all groups or resources; invalid if none does.
func wildcardIn(list document.Node) document.Node {
	for n := list.First(); n.Valid(); n = n.Next() {
		if name, _, _ := strings.Cut(n.Str(), "/"); name == anyName {
			return n
		}
	}
	return document.Node{}
}
