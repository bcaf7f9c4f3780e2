package applicability

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies/finding"
)

// CanMatch finds the objects, and the parts of objects, that can match no request.
func (x *Index) CanMatch() []finding.Finding {
	j := &judge{Index: x}
	for _, o := range x.Objects {
		if !x.IsUnused(o) {
			j.object(o)
		}
	}
	for i := range x.Resources {
		if r := &x.Resources[i]; !x.IsUnused(r.From) {
			j.fieldsOf(r)
		}
	}
	return j.Found
}

// object judges what one object matches.
func (j *judge) object(o *manifest.Object) {
	var m matched
	for _, b := range MatchBlocks(o) {
		m.add(j.block(o, b))
	}
	j.selections(o, &m)
	j.constraint(o)
	j.audit(o)
	j.source(o)
	j.template(o)
	switch group, _ := o.GroupVersion(); {
	case group == admissionRegistrationGroup && strings.HasSuffix(o.Kind, "Binding"):
		j.apartFrom(o, "spec.matchResources",
			j.Policies(strings.TrimSuffix(o.Kind, "Binding"), o.Text("spec.policyName")))
	case group == ownGroup && o.Kind == "PolicyException":
		refs, _ := o.At("spec.policies")
		var excepted []*manifest.Object
		for ref := refs.First(); ref.Valid(); ref = ref.Next() {
			excepted = append(excepted,
				j.Policies(manifest.Member(ref, "kind").Str(), manifest.Texts(manifest.Member(ref, "names"))...)...)
		}
		j.apartFrom(o, "spec.matchConstraints", excepted)
	}
}

// A matchBlock is a part of an object that chooses requests by groups and resources.
type matchBlock struct {
	document.Node
	// isLimit says that it has verbs in place of operations, and that groups or resources that are left out are all.
	isLimit bool
}

// MatchBlocks returns the blocks of an object that choose requests by groups and resources.
func MatchBlocks(o *manifest.Object) (blocks []matchBlock) {
	spec := manifest.Member(o.Document().Root(), "spec")
	for _, name := range [...]string{"matchConstraints", "matchResources"} {
		rules := manifest.Member(manifest.Member(spec, name), "resourceRules")
		for n := rules.First(); n.Valid(); n = n.Next() {
			blocks = append(blocks, matchBlock{Node: n})
		}
	}
	if o.Kind == "RateLimitPolicy" {
		if match := manifest.Member(spec, "match"); match.Valid() {
			blocks = append(blocks, matchBlock{match, true})
		}
	}
	return blocks
}

// A matched is what a match block means by its names.
type matched struct {
	// all are resources and operations that the files describe.
	all []*Resource
	// isOpen says that the block may match what no file describes.
	isOpen bool
}

// add adds what another block means.
func (m *matched) add(one matched) {
	m.all, m.isOpen = append(m.all, one.all...), m.isOpen || one.isOpen
}

// block finds what no request has of what a match block names.
func (j *judge) block(o *manifest.Object, b matchBlock) (m matched) {
	groups := manifest.Member(b.Node, "apiGroups")
	isWrong := false
	for g := groups.First(); g.Valid(); g = g.Next() {
		isWrong = j.group(o, g) || isWrong
	}
	resources := manifest.Member(b.Node, "resources")
	in := OrAny(manifest.Texts(groups))
	for r := resources.First(); r.Valid(); r = r.Next() {
		one, hasFailed := j.resource(o, in, r, isWrong)
		m.all, m.isOpen, isWrong = append(m.all, one.all...), m.isOpen || one.isOpen, isWrong || hasFailed
	}
	if resources.Len() == 0 {
		m = j.named(in, AnyName)
		m.isOpen = true // requests for no resource too
	}
	if isWrong {
		return matched{isOpen: true} // nothing more is known
	}
	j.versions(o, manifest.Member(b.Node, "apiVersions"), &m)
	j.verbs(o, b)
	j.scope(o, b.Node, &m)
	return m
}

// group finds a group that no file knows, and reports whether it did.
func (j *judge) group(o *manifest.Object, at document.Node) bool {
	group, names := at.Str(), j.names
	if group == AnyName || names.resources[group] != nil || names.native[group] != nil {
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
		j.unlessUndescribed(o, at.Path(), "matches nothing but paths below '%s/': no file has the group, and no upstream is an API server that may have it", path)
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
func (x *Index) named(groups []string, name string) (m matched) {
	for _, group := range x.names.groups(groups) {
		for plural, all := range x.names.resources[group] {
			if name == AnyName || name == plural {
				m.all = append(m.all, all...)
			}
		}
		if (name == AnyName || x.names.native[group][name]) && x.mayServe(group) {
			m.isOpen = true
		}
	}
	if name == AnyName && slices.Contains(groups, AnyName) {
		m.isOpen = m.isOpen || !x.isPlain || x.leadsTo("/apis")
	}
	return m
}

// groups returns the groups that names mean.
func (n *names) groups(named []string) []string {
	if !slices.Contains(named, AnyName) {
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
func (x *Index) mayServe(group string) bool { return !x.isPlain || x.leadsTo(groupPathOf(group)) }

// resource finds a resource, or a subresource, that none of the groups of its block has, and reports whether it did.
func (j *judge) resource(o *manifest.Object, groups []string, at document.Node,
	isGroupWrong bool) (m matched, hasFailed bool) {
	name, subresource, hasSubresource := strings.Cut(at.Str(), "/")
	m = j.named(groups, name)
	if len(m.all) == 0 && !m.isOpen {
		return m, !isGroupWrong && j.unknown(o, groups, name, at)
	}
	if !hasSubresource || subresource == AnyName {
		if !hasSubresource {
			m.all = slices.DeleteFunc(m.all,
				func(r *Resource) bool { return r.Operation != nil && r.Operation.Subresource != "" })
		}
		return m, false
	}
	var having []*Resource
	for _, r := range m.all {
		if len(r.Paths) == 0 || r.Subresources.Has(subresource) || r.Operation != nil &&
			r.Operation.Subresource == subresource {
			having = append(having, r)
		}
	}
	if len(having) == 0 && len(m.all) > 0 && !m.isOpen {
		of := "'" + m.all[0].GroupResource().String() + "' has"
		if name == AnyName {
			of = "no resource has"
		}
		word := "no subresource"
		if name == AnyName {
			word = "a subresource"
		}
		j.never(o, at.Path(), "matches nothing that the files describe: %s %s '%s'%s", of, word, subresource,
			manifest.Suggest(subresource, subresourcesOf(m.all)))
		return m, true
	}
	m.all = having
	return m, false
}

// subresourcesOf returns the names of the subresources of some resources.
func subresourcesOf(all []*Resource) func(yield func(string) bool) {
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
func (n *names) groupOf(name string) string {
	for _, group := range slices.Sorted(maps.Keys(n.resources)) {
		if len(n.resources[group][name]) > 0 {
			return group
		}
	}
	return ""
}

// unknown finds a resource that no file describes in the groups of its block, and that is not one of Kubernetes' own
// which an upstream may serve. It reports whether it did.
func (j *judge) unknown(o *manifest.Object, groups []string, name string, at document.Node) bool {
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
		isClosed = isClosed && j.names.native[group] == nil && j.names.resources[group] != nil &&
			isWhollyOrdinary(j.names.resources[group])
		mayServe = mayServe || j.mayServe(group)
	}
	isAny := slices.Contains(groups, AnyName)
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
		j.never(o, at.Path(), "%s: no route leads to paths below '%s/'", strings.TrimSuffix(nothing, ": "),
			groupPathOf(groups[0]))
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
		j.unlessUndescribed(o, at.Path(), "%s, so that it matches nothing but paths like %s of which no file says anything", strings.TrimPrefix(said, nothing), paths)
	}
	return true
}

// versions finds a list of versions that none of the resources of its block has.
func (j *judge) versions(o *manifest.Object, list document.Node, m *matched) {
	if list.Len() == 0 || m.isOpen || len(m.all) == 0 {
		return
	}
	for _, r := range m.all {
		if Lists(list, r.Version) {
			return
		}
	}
	versions := map[string]bool{}
	for _, r := range m.all {
		versions[r.Version] = true
	}
	first := list.First()
	j.never(o, first.Path(), "matches nothing that the files describe: the only versions of %s are %s%s",
		kindsOf(m.all), finding.Quoted(slices.Sorted(maps.Keys(versions))),
		manifest.Suggest(first.Str(), maps.Keys(versions)))
}

// kindsOf names resources, each once.
func kindsOf(all []*Resource) string {
	var names []string
	for _, r := range all {
		if name := "'" + r.GroupResource().String() + "'"; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) > MaxNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:MaxNamed], ", "), len(names)-MaxNamed)
	}
	return strings.Join(names, ", ")
}

// verbs finds operations of a policy, and verbs of a limit, that no resource of the block has. If others are matched,
// that is said in passing: a policy that names all writes is the usual one.
func (j *judge) verbs(o *manifest.Object, b matchBlock) {
	list := manifest.Member(b.Node, "operations")
	if b.isLimit {
		list = manifest.Member(b.Node, "verbs")
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
		if v.Is("*") || v.Is(resource.VerbOptions.String()) ||
			slices.ContainsFunc(wanted, func(verb string) bool { return slices.Contains(m.verbs, verb) }) {
			continue
		}
		lost = append(lost, v)
	}
	for _, v := range lost {
		switch {
		case len(lost) < list.Len():
			j.By(neverMatches, o, finding.Remark, v.Path(), "%s", m.lacks())
		case m.isOpenOnPlain && j.leadsTo("/apis") && WildcardIn(manifest.Member(b.Node, "resources")).Valid():
			j.unlessUndescribed(o, v.Path(), "%s", m.lacks())
		default:
			j.never(o, v.Path(), "%s", m.lacks())
		}
	}
}

// scope finds a rule for namespaced objects where there are none, or for others where all are.
func (j *judge) scope(o *manifest.Object, block document.Node, m *matched) {
	at := manifest.Member(block, "scope")
	if m.isOpen || len(m.all) == 0 || !at.Is("Namespaced") && !at.Is("Cluster") {
		return
	}
	isNamespaced := func(r *Resource) bool { return r.Namespaced }
	switch hasNamespaces := slices.ContainsFunc(m.all, isNamespaced); {
	case at.Is("Namespaced") && !hasNamespaces:
		j.never(o, at.Path(), "matches nothing: no object of %s belongs to a namespace", kindsOf(m.all))
	case at.Is("Cluster") && !slices.ContainsFunc(m.all, func(r *Resource) bool { return !r.Namespaced }):
		j.never(o, at.Path(), "matches nothing: each object of %s belongs to a namespace", kindsOf(m.all))
	}
}

// Lists reports whether a list of names has one, or the wildcard.
func Lists(list document.Node, name string) bool {
	for n := list.First(); n.Valid(); n = n.Next() {
		if n.Is("*") || n.Is(name) {
			return true
		}
	}
	return false
}
