package applicability

import (
	"fmt"
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
	"github.com/admission-gateway/gateway/policies/natives"
)

// Inapplicable is a place of the policy files that applies to no request.
type Inapplicable struct {
	// Kind and Name are of the object.
	Kind, Name string
	Reason     Reason
	// At has the place, and says why.
	At finding.Finding
}

// Reason is why a place of the policy files applies to no request.
type Reason string

// The reasons. All but the first depend on what API servers have.
const (
	ReasonUnused      Reason = "Unused" // it can never apply, and a mark says that it is meant
	ReasonNoResource  Reason = "NoResource"
	ReasonNoKind      Reason = "NoKind"
	ReasonNoNamespace Reason = "NoNamespace"
)

// Reasons are all reasons.
var Reasons = []Reason{ReasonUnused, ReasonNoResource, ReasonNoKind, ReasonNoNamespace}

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
	Inapplicable
	// words name it.
	words string
	// isMissing reports whether the API servers lack it, as far as is known.
	isMissing func(*Live) bool
	// isUsual says that API servers have it unless they are old or incomplete.
	isUsual bool
}

// A Result is what a set keeps of the analysis: what can apply while the gateway runs, and after a reload.
type Result struct {
	unused  []Inapplicable // whose authors say so
	needs   []need         // of API servers
	named   []namedResource
	defined definitions
}

// Result returns what a set keeps.
func (x *Index) Result() *Result {
	return &Result{unused: x.unused(), needs: x.needs(), named: x.namedResources(), defined: x.names.definitions()}
}

// NotApplying returns the places that apply to no request at a moment, by file and line. What is not known yet counts
// as there.
func (r *Result) NotApplying(live *Live) []Inapplicable {
	return r.with(func(n *need) bool { return n.isMissing(live) },
		"applies to no request at the moment: no API server has ")
}

// MayNotApply returns the places that apply to no request, or that do unless an API server has what they name.
func (r *Result) MayNotApply() []Inapplicable {
	return r.with(func(n *need) bool { return !n.isUsual }, "applies only while an API server has ")
}

// with returns the unused places, and those with some of the needs.
func (r *Result) with(has func(*need) bool, message string) []Inapplicable {
	all := slices.Clone(r.unused)
	for i := range r.needs {
		if n := &r.needs[i]; has(n) {
			one := n.Inapplicable
			one.At.Message = message + n.words
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b Inapplicable) int { return finding.Compare(&a.At, &b.At) })
	return all
}

// unused returns the objects that can never apply, and whose authors say so.
func (x *Index) unused() (all []Inapplicable) {
	lost := x.lostPaths()
	for _, o := range x.Objects {
		if !x.IsUnused(o) {
			continue
		}
		j := &judge{Index: x}
		j.object(o)
		for i := range x.Resources {
			if r := &x.Resources[i]; r.From == o {
				j.fieldsOf(r)
			}
		}
		if p := lost[o]; p != nil && len(p.lost) > 0 {
			j.unreached(o, p)
		}
		j.Found = slices.DeleteFunc(j.Found, func(f finding.Finding) bool { return f.Severity > finding.Warning })
		if finding.Sort(j.Found); len(j.Found) > 0 {
			all = append(all, Inapplicable{o.Kind, o.QualifiedName(), ReasonUnused, j.Found[0]})
		}
	}
	return all
}

// needsOf collects what places of the files cannot apply without.
type needsOf struct {
	*Index
	all []need
}

// needs returns what objects need of API servers. Objects whose authors say that they may be unused have no needs.
func (x *Index) needs() []need {
	n := &needsOf{Index: x}
	if !slices.ContainsFunc(x.Routes, func(r Route) bool { return r.Kubernetes }) {
		return nil
	}
	for _, o := range x.Objects {
		if !x.IsUnused(o) {
			n.object(o)
		}
	}
	return n.all
}

// object notes what an object needs.
func (n *needsOf) object(o *manifest.Object) {
	for _, b := range MatchBlocks(o) {
		n.block(o, b)
	}
	for _, path := range [...]string{"spec.matchConstraints.namespaceSelector", "spec.matchResources.namespaceSelector",
		"spec.match.namespaceSelector"} {
		if at, _ := o.At(path); at.Valid() && at.Kind() == document.Object {
			n.namespaces(o, at)
		}
	}
	if at, _ := o.At("spec.match.namespaces"); at.Valid() {
		n.namespaceNames(o, at)
	}
	if at, found := o.At("spec.paramKind"); found {
		n.kind(o, at, o.Text("spec.paramKind.apiVersion"), o.Text("spec.paramKind.kind"))
	}
	switch group, _ := o.GroupVersion(); {
	case group == ownGroup && o.Kind == "StateSource":
		if at, found := o.At("spec.resource"); found {
			version, _ := schema.ParseGroupVersion(o.Text("spec.resource.apiVersion"))
			n.resource(o, at, []string{version.Group}, o.Text("spec.resource.resource"), "", []string{version.Version})
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
func (n *needsOf) add(o *manifest.Object, at document.Node, reason Reason, isUsual bool, words string,
	isMissing func(*Live) bool) {
	place := finding.Of(o, at.Path())
	place.Rule = neverMatches
	n.all = append(n.all, need{Inapplicable{o.Kind, o.QualifiedName(), reason, place}, words, isMissing, isUsual})
}

// block notes the resources that a match block names.
func (n *needsOf) block(o *manifest.Object, b matchBlock) {
	groups, versions := OrAny(manifest.Texts(manifest.Member(b.Node, "apiGroups"))),
		OrAny(manifest.Texts(manifest.Member(b.Node, "apiVersions")))
	resources := manifest.Member(b.Node, "resources")
	for r := resources.First(); r.Valid(); r = r.Next() {
		name, subresource, _ := strings.Cut(r.Str(), "/")
		n.resource(o, r, groups, name, subresource, versions)
	}
	if resources.Len() == 0 && !slices.Contains(groups, AnyName) {
		n.resource(o, manifest.Member(b.Node, "apiGroups"), groups, AnyName, "", versions)
	}
}

// resource notes a resource of one of some groups, in one of some versions, unless a Plain upstream may have it.
func (n *needsOf) resource(o *manifest.Object, at document.Node, groups []string, name, subresource string,
	versions []string) {
	isAny := slices.Contains(groups, AnyName)
	if name == "" || name == AnyName && isAny || n.isPlainly(groups, name) {
		return
	}
	if subresource == AnyName {
		subresource = ""
	}
	what := "the resource '" + name + "'"
	if name == AnyName {
		what = "a resource"
	}
	if subresource != "" {
		what = "the subresource '" + subresource + "' of " + what
	}
	if !isAny {
		what += " in " + groupWords(groups)
	}
	if !slices.Contains(versions, AnyName) {
		what += " and the version " + strings.Join(strings.Split(finding.Quoted(versions), ", "), " or ")
	}
	isUsual := slices.ContainsFunc(n.names.groups(groups), func(group string) bool {
		return n.names.native[group][name] || name == AnyName && n.names.native[group] != nil
	})
	n.add(o, at, ReasonNoResource, isUsual, what, func(live *Live) bool {
		return live.isMissing(func(c *discovery.Catalog) bool {
			for _, r := range c.All() {
				if (isAny || slices.Contains(groups, r.Group)) && (name == AnyName || name == r.Resource) &&
					(slices.Contains(versions, AnyName) || slices.Contains(versions, r.Version)) &&
					(subresource == "" ||
						c.Find(discovery.Path{GroupVersionResource: r, Subresource: subresource}) != nil) {
					return true
				}
			}
			return mayServe(c, groups)
		})
	})
}

// isPlainly reports whether a Plain upstream may have a resource of one of some groups: a file describes its paths, or
// a route leads to where an API server would have it.
func (n *needsOf) isPlainly(groups []string, name string) bool {
	for _, group := range n.names.groups(groups) {
		for plural, all := range n.names.resources[group] {
			if (name == AnyName || name == plural) &&
				slices.ContainsFunc(all, func(r *Resource) bool { return len(r.Paths) > 0 }) {
				return true
			}
		}
	}
	return slices.ContainsFunc(n.Routes, func(r Route) bool {
		return !r.Kubernetes && slices.ContainsFunc(groups, func(group string) bool {
			path := groupPathOf(group)
			if group == AnyName {
				path = "/apis"
			}
			return meets(r, append(SegmentsOf(path), "{}", "{}", "{}", "{}", "{}", "{}"))
		})
	})
}

// isMissing reports whether all API servers have said what they serve, and none has something.
func (live *Live) isMissing(has func(*discovery.Catalog) bool) bool {
	return len(live.Catalogs) > 0 &&
		!slices.ContainsFunc(live.Catalogs, func(c *discovery.Catalog) bool { return c == nil || has(c) })
}

// mayServe reports whether an API server cannot say at the moment what a version of one of some groups has.
func mayServe(c *discovery.Catalog, groups []string) bool {
	for version := range c.Failed() {
		if slices.Contains(groups, AnyName) || slices.Contains(groups, version.Group) {
			return true
		}
	}
	return false
}

// kind notes the kind of a policy's parameters, unless the files have objects of it or a Plain upstream may.
func (n *needsOf) kind(o *manifest.Object, at document.Node, apiVersion, name string) {
	version, err := schema.ParseGroupVersion(apiVersion)
	kind := version.WithKind(name)
	if err != nil || name == "" || n.HeldKinds[kind.GroupKind()] {
		return
	}
	if r := n.described(kind); r != nil && n.isPlainly([]string{kind.Group}, r.Names.Plural) || r == nil &&
		n.isPlainly([]string{kind.Group}, "") {
		return
	}
	_, isUsual := natives.Kinds[kind.GroupKind()]
	n.add(o, at, ReasonNoKind, isUsual, fmt.Sprintf("the kind '%s' of '%s'", name, apiVersion), func(live *Live) bool {
		return live.isMissing(func(c *discovery.Catalog) bool {
			_, r := c.Named(kind)
			return r != nil || mayServe(c, []string{kind.Group})
		})
	})
}

// described returns the resource whose objects are of a kind; nil if no file describes it.
func (n *needsOf) described(kind schema.GroupVersionKind) *Resource {
	for i := range n.Resources {
		if r := &n.Resources[i]; r.Group == kind.Group && r.Names.Kind == kind.Kind {
			return r
		}
	}
	return nil
}

// kinds notes the kinds that a block of Gatekeeper's names.
func (n *needsOf) kinds(o *manifest.Object, block document.Node) {
	list := manifest.Member(block, "apiGroups")
	if !list.Valid() {
		list = manifest.Member(block, "groups") // of applyTo
	}
	groups := OrAny(manifest.Texts(list))
	isAny := slices.Contains(groups, AnyName)
	named := manifest.Member(block, "kinds")
	for k := named.First(); k.Valid(); k = k.Next() {
		name := k.Str()
		if name == "" || name == AnyName || n.isPlainKind(groups, name) {
			continue
		}
		words := "the kind '" + name + "'"
		if !isAny {
			words += " in " + groupWords(groups)
		}
		isUsual := false
		for kind := range natives.Kinds {
			isUsual = isUsual || kind.Kind == name && (isAny || slices.Contains(groups, kind.Group))
		}
		n.add(o, k, ReasonNoKind, isUsual, words, func(live *Live) bool {
			return live.isMissing(func(c *discovery.Catalog) bool {
				for _, r := range c.All() {
					if isAny || slices.Contains(groups, r.Group) {
						if served := c.Find(discovery.Path{GroupVersionResource: r}); served != nil &&
							served.Kind.Kind == name {
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
		return "one of the groups " + finding.Quoted(groups)
	case groups[0] == "":
		return "the core group"
	}
	return "the group '" + groups[0] + "'"
}

// isPlainKind reports whether a Plain upstream may have objects of a kind of one of some groups.
func (n *needsOf) isPlainKind(groups []string, name string) bool {
	isAny := slices.Contains(groups, AnyName)
	isIt := func(r Resource) bool {
		return len(r.Paths) > 0 && r.Names.Kind == name && (isAny || slices.Contains(groups, r.Group))
	}
	return slices.ContainsFunc(n.Resources, isIt) || n.isPlainly(groups, "")
}

// namespaces notes that a selector has to select some Namespace. One that asks for names alone is judged without any.
func (n *needsOf) namespaces(o *manifest.Object, at document.Node) {
	s := selectorOf(at)
	if s == nil || slices.ContainsFunc(n.Index.namespaces,
		func(one *manifest.Object) bool { return admission.Selects(s, one.Document().Root()) }) {
		return
	}
	words := "a Namespace that the selector selects"
	if vapmatch.AsksForNames(s) {
		words = "a Namespace of that name"
	}
	n.add(o, at, ReasonNoNamespace, false, words, func(live *Live) bool {
		return live.HasNamespaces &&
			!slices.ContainsFunc(live.Namespaces, func(one document.Node) bool { return selectsNamespace(s, one) })
	})
}

// selectsNamespace reports whether a selector selects a Namespace, which has its name as a label.
func selectsNamespace(s labels.Selector, one document.Node) bool {
	if admission.Selects(s, one) {
		return true
	}
	metadata := manifest.Member(one, "metadata")
	set := labels.Set{"kubernetes.io/metadata.name": namespaceName(one)}
	all := manifest.Member(metadata, "labels")
	for label := all.First(); label.Valid(); label = label.Next() {
		set[label.Key()] = label.Str()
	}
	return s.Matches(set)
}

// namespaceNames notes the namespaces of a list, in which Gatekeeper's have wildcards.
func (n *needsOf) namespaceNames(o *manifest.Object, list document.Node) {
	for at := list.First(); at.Valid(); at = at.Next() {
		name := match.Wildcard(at.Str())
		if slices.ContainsFunc(n.Index.namespaces, func(one *manifest.Object) bool { return name.Matches(one.Name) }) {
			continue
		}
		n.add(o, at, ReasonNoNamespace, false, fmt.Sprintf("the Namespace '%s'", name), func(live *Live) bool {
			return live.HasNamespaces &&
				!slices.ContainsFunc(live.Namespaces,
					func(one document.Node) bool { return name.Matches(namespaceName(one)) })
		})
	}
}

// namespaceName returns the name of a Namespace.
func namespaceName(one document.Node) string {
	return manifest.Member(manifest.Member(one, "metadata"), "name").Str()
}
