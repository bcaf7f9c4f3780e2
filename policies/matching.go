package policies

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/resource"
)

// A matchBlock is a part of an object that chooses requests by groups and resources.
type matchBlock struct {
	document.Node
	// isLimit says that it has verbs in place of operations, and that groups or resources that are left out are all.
	isLimit bool
}

// matchBlocks returns the blocks of an object that choose requests by groups and resources.
func matchBlocks(o *manifest.Object) (blocks []matchBlock) {
	spec := memberOf(o.Document().Root(), "spec")
	for _, name := range [...]string{"matchConstraints", "matchResources"} {
		rules := memberOf(memberOf(spec, name), "resourceRules")
		for n := rules.First(); n.Valid(); n = n.Next() {
			blocks = append(blocks, matchBlock{Node: n})
		}
	}
	if o.Kind == "RateLimitPolicy" {
		if match := memberOf(spec, "match"); match.Valid() {
			blocks = append(blocks, matchBlock{match, true})
		}
	}
	return blocks
}

// A matched is what a match block means by its names.
type matched struct {
	// all are resources and operations that the files describe.
	all []*loadedResource
	// isOpen says that the block may match what no file describes.
	isOpen bool
}

// block finds what no request has of what a match block names.
func (j *inForce) block(o *manifest.Object, b matchBlock) (m matched) {
	groups := memberOf(b.Node, "apiGroups")
	isWrong := false
	for g := groups.First(); g.Valid(); g = g.Next() {
		isWrong = j.group(o, g) || isWrong
	}
	resources := memberOf(b.Node, "resources")
	in := orAny(textsIn(groups))
	for r := resources.First(); r.Valid(); r = r.Next() {
		one, hasFailed := j.resource(o, in, r, isWrong)
		m.all, m.isOpen, isWrong = append(m.all, one.all...), m.isOpen || one.isOpen, isWrong || hasFailed
	}
	if resources.Len() == 0 {
		m = j.named(in, anyName)
		m.isOpen = true // requests for no resource too
	}
	if isWrong {
		return matched{isOpen: true} // nothing more is known
	}
	j.versions(o, memberOf(b.Node, "apiVersions"), &m)
	j.verbs(o, b)
	j.scope(o, b.Node, &m)
	return m
}

// group finds a group that no file knows, and reports whether it did.
func (j *inForce) group(o *manifest.Object, at document.Node) bool {
	group, names := at.Str(), j.names
	if group == anyName || names.resources[group] != nil || names.native[group] != nil {
		return false
	}
	const nothing = "matches nothing that the files describe: no file has the group '%s'"
	if like := manifest.Suggest(group, maps.Keys(names.resources)); like != "" {
		j.never(o, at.Path(), nothing+"%s", group, like)
		return true
	}
	switch path := groupPathOf(group); {
	case !j.isPlain || j.isRouted(path):
		return false
	case !j.leadsTo(path):
		j.never(o, at.Path(), nothing+", and no route leads to paths below '%s/'", group, path)
	default:
		j.seldom(o, at.Path(), "matches nothing but paths below '%s/': no file has the group, and no upstream is an API server that may have it", path)
	}
	return true
}

// groupPathOf returns how the paths of a group begin on an API server.
func groupPathOf(group string) string {
	if group == "" {
		return "/api"
	}
	return "/apis/" + group
}

// named returns what a name of a resource means in some groups.
func (j *inForce) named(groups []string, name string) (m matched) {
	for _, group := range j.names.groups(groups) {
		for plural, all := range j.names.resources[group] {
			if name == anyName || name == plural {
				m.all = append(m.all, all...)
			}
		}
		if (name == anyName || j.names.native[group][name]) && j.mayServe(group) {
			m.isOpen = true
		}
	}
	if name == anyName && slices.Contains(groups, anyName) {
		m.isOpen = m.isOpen || !j.isPlain || j.leadsTo("/apis")
	}
	return m
}

// groups returns the groups that names mean.
func (n *describedNames) groups(named []string) []string {
	if !slices.Contains(named, anyName) {
		return named
	}
	all := map[string]bool{}
	for group := range n.resources {
		all[group] = true
	}
	for group := range n.native {
		all[group] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// mayServe reports whether an upstream may serve resources of a group that no file describes.
func (j *inForce) mayServe(group string) bool { return !j.isPlain || j.leadsTo(groupPathOf(group)) }

// resource finds a resource, or a subresource, that none of the groups of its block has, and reports whether it did.
func (j *inForce) resource(o *manifest.Object, groups []string, at document.Node, isGroupWrong bool) (m matched, hasFailed bool) {
	name, subresource, hasSubresource := strings.Cut(at.Str(), "/")
	m = j.named(groups, name)
	if len(m.all) == 0 && !m.isOpen {
		return m, !isGroupWrong && j.unknown(o, groups, name, at)
	}
	if !hasSubresource || subresource == anyName {
		if !hasSubresource {
			m.all = slices.DeleteFunc(m.all, func(r *loadedResource) bool { return r.Operation != nil && r.Operation.Subresource != "" })
		}
		return m, false
	}
	var having []*loadedResource
	for _, r := range m.all {
		if len(r.Paths) == 0 || r.Subresources.Has(subresource) || r.Operation != nil && r.Operation.Subresource == subresource {
			having = append(having, r)
		}
	}
	if len(having) == 0 && len(m.all) > 0 && !m.isOpen {
		of := "'" + m.all[0].GroupResource().String() + "' has"
		if name == anyName {
			of = "no resource has"
		}
		word := "no subresource"
		if name == anyName {
			word = "a subresource"
		}
		j.never(o, at.Path(), "matches nothing that the files describe: %s %s '%s'%s", of, word, subresource, manifest.Suggest(subresource, subresourcesOf(m.all)))
		return m, true
	}
	m.all = having
	return m, false
}

// subresourcesOf returns the names of the subresources of some resources.
func subresourcesOf(all []*loadedResource) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, r := range all {
			for _, name := range slices.Concat([]string{"status", "scale"}, r.Subresources.Other) {
				if r.Subresources.Has(name) && !yield(name) {
					return
				}
			}
			if r.Operation != nil && r.Operation.Subresource != "" && !yield(r.Operation.Subresource) {
				return
			}
		}
	}
}

// groupOf returns the first group in which files describe a resource; "" if there is none, or it has no name.
func (n *describedNames) groupOf(name string) string {
	for _, group := range slices.Sorted(maps.Keys(n.resources)) {
		if len(n.resources[group][name]) > 0 {
			return group
		}
	}
	return ""
}

// unknown finds a resource that no file describes in the groups of its block, and that is not one of Kubernetes' own which an
// upstream may serve. It reports whether it did.
func (j *inForce) unknown(o *manifest.Object, groups []string, name string, at document.Node) bool {
	const nothing = "matches nothing that the files describe: "
	known, isOwn, isClosed, mayServe := map[string]bool{}, false, true, false
	for _, group := range j.names.groups(groups) {
		for plural := range j.names.resources[group] {
			known[plural] = true
		}
		for plural := range j.names.native[group] {
			known[plural] = true
		}
		isOwn = isOwn || j.names.native[group][name]
		isClosed = isClosed && j.names.native[group] == nil && j.names.resources[group] != nil && isWhollyOrdinary(j.names.resources[group])
		mayServe = mayServe || j.mayServe(group)
	}
	isAny := slices.Contains(groups, anyName)
	isClosed, mayServe = isClosed && !isAny, mayServe || isAny && j.leadsTo("/apis")
	which := "the group '" + groups[0] + "' has"
	switch {
	case isAny:
		which = "no group has"
	case len(groups) > 1:
		which = "none of the groups has"
	}
	article := "no"
	if isAny || len(groups) > 1 {
		article = "a"
	}
	said := fmt.Sprintf("%s%s %s resource '%s'", nothing, which, article, name)
	like := manifest.Suggest(name, maps.Keys(known))
	if other := j.names.groupOf(name); like == "" && other != "" && j.isPlain {
		like = "; did you mean it of the group `" + other + "`?"
	}
	switch {
	case isOwn:
		j.never(o, at.Path(), "%s: no route leads to paths below '%s/'", strings.TrimSuffix(nothing, ": "), groupPathOf(groups[0]))
	case like != "", isClosed:
		j.never(o, at.Path(), "%s%s", said, like)
	case !j.isPlain:
		return false // an API server may have it
	case !isAny && !slices.ContainsFunc(groups, func(group string) bool { return !j.isRouted(groupPathOf(group)) }):
		return false // its author knows of the paths
	case !mayServe:
		j.never(o, at.Path(), "%s, and no route leads to where an API server would have it", said)
	default:
		paths := "'" + groupPathOf(groups[0]) + "/VERSION/" + name + "'"
		if isAny {
			paths = "'/apis/GROUP/VERSION/" + name + "'"
		}
		j.seldom(o, at.Path(), "%s, so that it matches nothing but paths like %s of which no file says anything", strings.TrimPrefix(said, nothing), paths)
	}
	return true
}

// versions finds a list of versions that none of the resources of its block has.
func (j *inForce) versions(o *manifest.Object, list document.Node, m *matched) {
	if list.Len() == 0 || m.isOpen || len(m.all) == 0 {
		return
	}
	for _, r := range m.all {
		if has(list, r.Version) {
			return
		}
	}
	versions := map[string]bool{}
	for _, r := range m.all {
		versions[r.Version] = true
	}
	first := list.First()
	j.never(o, first.Path(), "matches nothing that the files describe: the only versions of %s are %s%s",
		kindsOf(m.all), quoted(slices.Sorted(maps.Keys(versions))), manifest.Suggest(first.Str(), maps.Keys(versions)))
}

// kindsOf names resources, each once.
func kindsOf(all []*loadedResource) string {
	var names []string
	for _, r := range all {
		if name := "'" + r.GroupResource().String() + "'"; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) > maxNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
	}
	return strings.Join(names, ", ")
}

// verbs finds operations of a policy, and verbs of a limit, that no resource of the block has. If others are matched, that is
// said in passing: a policy that names all writes is the usual one.
func (j *inForce) verbs(o *manifest.Object, b matchBlock) {
	list := memberOf(b.Node, "operations")
	if b.isLimit {
		list = memberOf(b.Node, "verbs")
	}
	m := j.names.matched(b.Node, b.isLimit)
	if len(m.verbs) == 0 || m.isOpen || m.isOpenOnPlain && !j.isPlain {
		return
	}
	var lost []document.Node
	for v := list.First(); v.Valid(); v = v.Next() {
		wanted := []string{v.Str()}
		if !b.isLimit {
			wanted = verbsOf(v.Str())
		}
		if v.Is("*") || v.Is(resource.VerbOptions.String()) || slices.ContainsFunc(wanted, func(verb string) bool { return slices.Contains(m.verbs, verb) }) {
			continue
		}
		lost = append(lost, v)
	}
	for _, v := range lost {
		switch {
		case len(lost) < list.Len():
			j.At(o, Remark, v.Path(), "%s", m.lacks())
		case m.isOpenOnPlain && j.leadsTo("/apis") && wildcardIn(memberOf(b.Node, "resources")).Valid():
			j.seldom(o, v.Path(), "%s", m.lacks())
		default:
			j.never(o, v.Path(), "%s", m.lacks())
		}
	}
}

// scope finds a rule for namespaced objects where there are none, or for others where all are.
func (j *inForce) scope(o *manifest.Object, block document.Node, m *matched) {
	at := memberOf(block, "scope")
	if m.isOpen || len(m.all) == 0 || !at.Is("Namespaced") && !at.Is("Cluster") {
		return
	}
	isNamespaced := func(r *loadedResource) bool { return r.Namespaced }
	switch hasNamespaces := slices.ContainsFunc(m.all, isNamespaced); {
	case at.Is("Namespaced") && !hasNamespaces:
		j.never(o, at.Path(), "matches nothing: no object of %s belongs to a namespace", kindsOf(m.all))
	case at.Is("Cluster") && !slices.ContainsFunc(m.all, func(r *loadedResource) bool { return !r.Namespaced }):
		j.never(o, at.Path(), "matches nothing: each object of %s belongs to a namespace", kindsOf(m.all))
	}
}
