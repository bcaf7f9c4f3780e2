package policies

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/gatekeeper/match"
	vapmatch "github.com/admission-gateway/gateway/admission/match"
	"github.com/admission-gateway/gateway/internal/discovery"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/constraints"
	"github.com/admission-gateway/gateway/policies/finding"
)

// Idle is a place of the policy files that applies to no request.
type Idle struct {
	// Kind and Name are of the object.
	Kind, Name string
	Reason     IdleReason
	// At has the place, and says why.
	At Finding
}

// IdleReason is why a place of the policy files applies to no request.
type IdleReason string

// The reasons. All but the first depend on what API servers have.
const (
	IdleUnused    IdleReason = "Unused" // it can never apply, and a mark says that it is meant
	IdleResource  IdleReason = "NoResource"
	IdleKind      IdleReason = "NoKind"
	IdleNamespace IdleReason = "NoNamespace"
)

// IdleReasons are all reasons.
var IdleReasons = []IdleReason{IdleUnused, IdleResource, IdleKind, IdleNamespace}

// Live is what a gateway knows of its API servers at a moment.
type Live struct {
	// Catalogs have what the API servers serve; nil for one that has not said it yet.
	Catalogs []*discovery.Catalog
	// Namespaces are the Namespaces of the API servers, if HasNamespaces says that they are known.
	Namespaces    []document.Node
	HasNamespaces bool
}

// A need is something that a place of the files cannot apply without, and that only an API server can have.
type need struct {
	Idle
	// words name it.
	words string
	// isMissing reports whether the API servers lack it, as far as is known.
	isMissing func(*Live) bool
	// isUsual says that API servers have it unless they are old or incomplete.
	isUsual bool
}

// Idle returns the places that apply to no request at a moment, by file and line. What is not known yet counts as there.
func (s *Set) Idle(live *Live) []Idle {
	all := slices.Clone(s.unused)
	for i := range s.needs {
		if n := &s.needs[i]; n.isMissing(live) {
			one := n.Idle
			one.At.Message = "applies to no request at the moment: no API server has " + n.words
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b Idle) int { return finding.Compare(&a.At, &b.At) })
	return all
}

// MayBeIdle returns the places that apply to no request, or that do unless an API server has what they name.
func (s *Set) MayBeIdle() []Idle {
	all := slices.Clone(s.unused)
	for i := range s.needs {
		if n := &s.needs[i]; !n.isUsual {
			one := n.Idle
			one.At.Message = "applies only while an API server has " + n.words
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b Idle) int { return finding.Compare(&a.At, &b.At) })
	return all
}

// unused notes the objects that can never apply, and of which that is meant.
func (j *inForce) unused(l *loader) (all []Idle) {
	lost := l.lostPaths()
	for o := range maps.Values(l.known) {
		if !l.isMeant(o) {
			continue
		}
		k := *j
		k.findings, k.isMeant = &findings{}, func(*manifest.Object) bool { return false }
		k.objects(slices.Values([]*manifest.Object{o}))
		for i := range l.resources {
			if r := &l.resources[i]; r.at.from == o {
				k.fieldsOf(o, r)
			}
		}
		if p := lost[o]; p != nil && len(p.lost) > 0 {
			l.lose(k.findings, o, p)
		}
		k.Found = slices.DeleteFunc(k.Found, func(f Finding) bool { return f.Severity > Warning })
		if finding.Sort(k.Found); len(k.Found) > 0 {
			all = append(all, Idle{o.Kind, qualified(o), IdleUnused, k.Found[0]})
		}
	}
	return all
}

// A needs collects what places of the files cannot apply without.
type needs struct {
	*inForce
	l   *loader
	all []need
}

// needs returns what objects need of API servers. Objects that are meant to be unused have no needs.
func (j *inForce) needs(l *loader) []need {
	n := &needs{inForce: j, l: l}
	if !slices.ContainsFunc(j.routes, func(r Route) bool { return r.Kubernetes }) {
		return nil
	}
	for o := range maps.Values(l.known) {
		if !j.isMeant(o) {
			n.object(o)
		}
	}
	return n.all
}

// object notes what an object needs.
func (n *needs) object(o *manifest.Object) {
	for _, b := range matchBlocks(o) {
		n.block(o, b)
	}
	for _, path := range [...]string{"spec.matchConstraints.namespaceSelector", "spec.matchResources.namespaceSelector", "spec.match.namespaceSelector"} {
		if at, _ := o.At(path); at.Valid() && at.Kind() == document.Object {
			n.namespaces(o, at)
		}
	}
	if at, _ := o.At("spec.match.namespaces"); at.Valid() {
		n.namespaceNames(o, at)
	}
	if at, found := o.At("spec.paramKind"); found {
		n.kind(o, at, textAt(o, "spec.paramKind.apiVersion"), textAt(o, "spec.paramKind.kind"))
	}
	switch group, _ := o.GroupVersion(); {
	case group == ownGroup && o.Kind == "StateSource":
		if at, found := o.At("spec.resource"); found {
			version, _ := schema.ParseGroupVersion(textAt(o, "spec.resource.apiVersion"))
			n.resource(o, at, []string{version.Group}, textAt(o, "spec.resource.resource"), "", []string{version.Version})
		}
	case group == constraints.Group, group == constraints.MutationsGroup:
		for _, path := range [...]string{"spec.match.kinds", "spec.applyTo"} {
			list, _ := o.At(path)
			for k := list.First(); k.Valid(); k = k.Next() {
				n.kinds(o, k)
			}
		}
	}
}

// add notes a need.
func (n *needs) add(o *manifest.Object, at document.Node, reason IdleReason, isUsual bool, words string, isMissing func(*Live) bool) {
	n.all = append(n.all, need{Idle{o.Kind, qualified(o), reason, finding.Of(o, at.Path())}, words, isMissing, isUsual})
}

// block notes the resources that a match block names.
func (n *needs) block(o *manifest.Object, b matchBlock) {
	groups, versions := orAny(textsIn(memberOf(b.Node, "apiGroups"))), orAny(textsIn(memberOf(b.Node, "apiVersions")))
	resources := memberOf(b.Node, "resources")
	for r := resources.First(); r.Valid(); r = r.Next() {
		name, subresource, _ := strings.Cut(r.Str(), "/")
		n.resource(o, r, groups, name, subresource, versions)
	}
	if resources.Len() == 0 && !slices.Contains(groups, anyName) {
		n.resource(o, memberOf(b.Node, "apiGroups"), groups, anyName, "", versions)
	}
}

// resource notes a resource of one of some groups, in one of some versions, unless a Plain upstream may have it.
func (n *needs) resource(o *manifest.Object, at document.Node, groups []string, name, subresource string, versions []string) {
	isAny := slices.Contains(groups, anyName)
	if name == "" || name == anyName && isAny || n.isPlainly(groups, name) {
		return
	}
	if subresource == anyName {
		subresource = ""
	}
	what := "the resource '" + name + "'"
	if name == anyName {
		what = "a resource"
	}
	if subresource != "" {
		what = "the subresource '" + subresource + "' of " + what
	}
	if !isAny {
		what += " in " + groupWords(groups)
	}
	if !slices.Contains(versions, anyName) {
		what += " and the version " + strings.Join(strings.Split(quoted(versions), ", "), " or ")
	}
	isUsual := slices.ContainsFunc(n.names.groups(groups), func(group string) bool {
		return n.names.native[group][name] || name == anyName && n.names.native[group] != nil
	})
	n.add(o, at, IdleResource, isUsual, what, func(live *Live) bool {
		return live.isMissing(func(c *discovery.Catalog) bool {
			for _, r := range c.All() {
				if (isAny || slices.Contains(groups, r.Group)) && (name == anyName || name == r.Resource) &&
					(slices.Contains(versions, anyName) || slices.Contains(versions, r.Version)) &&
					(subresource == "" || c.Find(discovery.Path{GroupVersionResource: r, Subresource: subresource}) != nil) {
					return true
				}
			}
			return mayServe(c, groups)
		})
	})
}

// isPlainly reports whether a Plain upstream may have a resource of one of some groups: a file describes its paths, or a route
// leads to where an API server would have it.
func (n *needs) isPlainly(groups []string, name string) bool {
	for _, group := range n.names.groups(groups) {
		for plural, all := range n.names.resources[group] {
			if (name == anyName || name == plural) && slices.ContainsFunc(all, func(r *loadedResource) bool { return len(r.Paths) > 0 }) {
				return true
			}
		}
	}
	return slices.ContainsFunc(n.routes, func(r Route) bool {
		return !r.Kubernetes && slices.ContainsFunc(groups, func(group string) bool {
			path := groupPathOf(group)
			if group == anyName {
				path = "/apis"
			}
			return meets(r, append(segmentsOf(path), "{}", "{}", "{}", "{}", "{}", "{}"))
		})
	})
}

// isMissing reports whether all API servers have said what they serve, and none has something.
func (live *Live) isMissing(has func(*discovery.Catalog) bool) bool {
	return len(live.Catalogs) > 0 && !slices.ContainsFunc(live.Catalogs, func(c *discovery.Catalog) bool { return c == nil || has(c) })
}

// mayServe reports whether an API server cannot say at the moment what a version of one of some groups has.
func mayServe(c *discovery.Catalog, groups []string) bool {
	for version := range c.Failed() {
		if slices.Contains(groups, anyName) || slices.Contains(groups, version.Group) {
			return true
		}
	}
	return false
}

// kind notes the kind of a policy's parameters, unless the files have objects of it or a Plain upstream may.
func (n *needs) kind(o *manifest.Object, at document.Node, apiVersion, name string) {
	version, err := schema.ParseGroupVersion(apiVersion)
	kind := version.WithKind(name)
	if err != nil || name == "" || n.isHeld(kind) {
		return
	}
	if r := n.described(kind); r != nil && n.isPlainly([]string{kind.Group}, r.Names.Plural) || r == nil && n.isPlainly([]string{kind.Group}, "") {
		return
	}
	_, isUsual := natives[kind.GroupKind()]
	n.add(o, at, IdleKind, isUsual, fmt.Sprintf("the kind '%s' of '%s'", name, apiVersion), func(live *Live) bool {
		return live.isMissing(func(c *discovery.Catalog) bool {
			_, r := c.Named(kind)
			return r != nil || mayServe(c, []string{kind.Group})
		})
	})
}

// isHeld reports whether the files have objects of a kind.
func (n *needs) isHeld(kind schema.GroupVersionKind) bool {
	for id := range n.l.objects {
		if id.group == kind.Group && id.kind == kind.Kind {
			return true
		}
	}
	return false
}

// described returns the resource whose objects are of a kind; nil if no file describes it.
func (n *needs) described(kind schema.GroupVersionKind) *loadedResource {
	for i := range n.l.resources {
		if r := &n.l.resources[i]; r.Group == kind.Group && r.Names.Kind == kind.Kind {
			return r
		}
	}
	return nil
}

// kinds notes the kinds that a block of Gatekeeper's names.
func (n *needs) kinds(o *manifest.Object, block document.Node) {
	list := memberOf(block, "apiGroups")
	if !list.Valid() {
		list = memberOf(block, "groups") // of applyTo
	}
	groups := orAny(textsIn(list))
	isAny := slices.Contains(groups, anyName)
	named := memberOf(block, "kinds")
	for k := named.First(); k.Valid(); k = k.Next() {
		name := k.Str()
		if name == "" || name == anyName || n.isPlainKind(groups, name) {
			continue
		}
		words := "the kind '" + name + "'"
		if !isAny {
			words += " in " + groupWords(groups)
		}
		isUsual := false
		for kind := range natives {
			isUsual = isUsual || kind.Kind == name && (isAny || slices.Contains(groups, kind.Group))
		}
		n.add(o, k, IdleKind, isUsual, words, func(live *Live) bool {
			return live.isMissing(func(c *discovery.Catalog) bool {
				for _, r := range c.All() {
					if isAny || slices.Contains(groups, r.Group) {
						if served := c.Find(discovery.Path{GroupVersionResource: r}); served != nil && served.Kind.Kind == name {
							return true
						}
					}
				}
				return mayServe(c, groups)
			})
		})
	}
}

// groupWords name groups.
func groupWords(groups []string) string {
	switch {
	case len(groups) > 1:
		return "one of the groups " + quoted(groups)
	case groups[0] == "":
		return "the core group"
	}
	return "the group '" + groups[0] + "'"
}

// isPlainKind reports whether a Plain upstream may have objects of a kind of one of some groups.
func (n *needs) isPlainKind(groups []string, name string) bool {
	isAny := slices.Contains(groups, anyName)
	isIt := func(r loadedResource) bool {
		return len(r.Paths) > 0 && r.Names.Kind == name && (isAny || slices.Contains(groups, r.Group))
	}
	return slices.ContainsFunc(n.l.resources, isIt) || n.isPlainly(groups, "")
}

// namespaces notes that a selector has to select some Namespace. One that asks for names alone is judged without any.
func (n *needs) namespaces(o *manifest.Object, at document.Node) {
	s := selectorOf(at)
	if s == nil || slices.ContainsFunc(n.inForce.namespaces, func(one *manifest.Object) bool { return admission.Selects(s, one.Document().Root()) }) {
		return
	}
	words := "a Namespace that the selector selects"
	if vapmatch.AsksForNames(s) {
		words = "a Namespace of that name"
	}
	n.add(o, at, IdleNamespace, false, words, func(live *Live) bool {
		return live.HasNamespaces && !slices.ContainsFunc(live.Namespaces, func(one document.Node) bool { return selectsNamespace(s, one) })
	})
}

// selectsNamespace reports whether a selector selects a Namespace, which has its name as a label.
func selectsNamespace(s labels.Selector, one document.Node) bool {
	if admission.Selects(s, one) {
		return true
	}
	metadata, _ := one.Get("metadata")
	set := labels.Set{"kubernetes.io/metadata.name": memberOf(metadata, "name").Str()}
	all := memberOf(metadata, "labels")
	for label := all.First(); label.Valid(); label = label.Next() {
		set[label.Key()] = label.Str()
	}
	return s.Matches(set)
}

// namespaceNames notes the namespaces of a list, in which Gatekeeper's have wildcards.
func (n *needs) namespaceNames(o *manifest.Object, list document.Node) {
	for at := list.First(); at.Valid(); at = at.Next() {
		name := match.Wildcard(at.Str())
		if slices.ContainsFunc(n.inForce.namespaces, func(one *manifest.Object) bool { return name.Matches(one.Name) }) {
			continue
		}
		n.add(o, at, IdleNamespace, false, fmt.Sprintf("the Namespace '%s'", name), func(live *Live) bool {
			return live.HasNamespaces && !slices.ContainsFunc(live.Namespaces, func(one document.Node) bool { return name.Matches(nameOf(one)) })
		})
	}
}
