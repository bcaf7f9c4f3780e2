package applicability

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/match"
	"github.com/admission-gateway/gateway/internal/cel/outcome"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies/finding"
)

// selections finds selectors, namespaces and conditions that no object of what an object matches can meet.
func (j *judge) selections(o *manifest.Object, m *matched) {
	for _, path := range [...]string{"spec.matchConstraints", "spec.matchResources"} {
		block, found := o.At(path)
		if !found {
			continue
		}
		j.excluded(o, block)
		j.namespaceSelector(o, manifest.Member(block, "namespaceSelector"), m)
		j.objectSelector(o, manifest.Member(block, "objectSelector"), m)
	}
	if !m.isClosed() || slices.ContainsFunc(m.all, func(r *Resource) bool { return r.Namespaced || r.isNamespaces() }) {
		return
	}
	none := fmt.Sprintf("no object of %s belongs to a namespace", kindsOf(m.all))
	if o.Kind == "RateLimitPolicy" {
		if at, _ := o.At("spec.match.namespaces"); at.Len() > 0 {
			j.never(o, at.Path(), "matches nothing: %s", none)
		}
		if at, _ := o.At("spec.exemptions.namespaces"); at.Len() > 0 {
			j.never(o, at.Path(), "exempts nothing: %s", none)
		}
		if at, _ := o.At("spec.key"); at.Is("Namespace") {
			j.unlessUndescribed(o, at.Path(), "counts all requests together: %s", none)
		}
	}
	for _, name := range [...]string{"namespaces", "namespaceSelector"} {
		if at, found := o.At("spec.rollout." + name); found && (at.Kind() != document.Array || at.Len() > 0) {
			j.never(o, at.Path(), "is enforced nowhere: %s", none)
		}
	}
	eachExpression(o.Document().Root(), func(n document.Node) {
		texts := outcome.Compared(n.Str(), "request.namespace")
		switch {
		case len(texts) > 0 && !slices.Contains(texts, ""):
			j.never(o, n.Path(), "compares `request.namespace` with %s, but it is always '': %s", finding.Quoted(texts),
				none)
		case len(outcome.Names(n.Str(), "namespaceObject")) > 0:
			j.never(o, n.Path(), "reads `namespaceObject`, which is always null: %s", none)
		}
	})
}

// isClosed reports whether the block matches described resources alone.
func (m *matched) isClosed() bool { return !m.isOpen && len(m.all) > 0 }

// isNamespaces reports whether the objects are namespaces themselves.
func (r *Resource) isNamespaces() bool { return r.Group == "" && r.Names.Plural == "namespaces" }

// eachExpression visits the expressions of an object: the texts whose keys say that they are some.
func eachExpression(n document.Node, visit func(document.Node)) {
	for m := n.First(); m.Valid(); m = m.Next() {
		switch {
		case m.Kind() != document.String:
			eachExpression(m, visit)
		case slices.Contains([]string{"expression", "messageExpression", "keyExpression", "cost", "when"}, m.Key()):
			visit(m)
		}
	}
}

// selectorOf returns the selector that a file says; nil if there is none that selects anything less than all.
func selectorOf(n document.Node) labels.Selector {
	var said metav1.LabelSelector
	if !n.Valid() || json.Unmarshal(n.AppendRaw(nil), &said) != nil {
		return nil
	}
	s, err := metav1.LabelSelectorAsSelector(&said)
	if err != nil || s.Empty() {
		return nil
	}
	return s
}

// namespaceSelector finds a selector of namespaces where objects have none, or that selects none of those that there
// are.
func (j *judge) namespaceSelector(o *manifest.Object, at document.Node, m *matched) {
	s := selectorOf(at)
	if s == nil {
		return
	}
	isLocal := func(r *Resource) bool { return r.Namespaced || r.isNamespaces() }
	switch {
	case m.isClosed() && !slices.ContainsFunc(m.all, isLocal):
		const all = "selects every object: no object of %s belongs to a namespace, and such objects are selected by any selector"
		if o.Kind == "PolicyException" {
			j.never(o, at.Path(), all, kindsOf(m.all)) // of what it should not be one
			return
		}
		j.unlessUndescribed(o, at.Path(), all, kindsOf(m.all))
	case !j.isPlain || j.hasNamespaces || match.AsksForNames(s):
	case len(j.namespaces) == 0:
		j.never(o, at.Path(), "cannot be decided: no policy file has a Namespace, no StateSource has the kind, and no upstream is an API server that could be asked for it")
	case !slices.ContainsFunc(j.namespaces,
		func(n *manifest.Object) bool { return admission.Selects(s, n.Document().Root()) }):
		j.never(o, at.Path(), "selects none of the Namespaces of the policy files, and no upstream is an API server that has others")
	}
}

// objectSelector finds a selector of labels where objects have none.
func (j *judge) objectSelector(o *manifest.Object, at document.Node, m *matched) {
	s := selectorOf(at)
	if s == nil || !m.isClosed() || slices.ContainsFunc(m.all, (*Resource).mayHaveLabels) {
		return
	}
	const none = "by their schema the objects of %s have no `metadata.labels`"
	if s.Matches(labels.Set{}) && o.Kind != "PolicyException" {
		j.unlessUndescribed(o, at.Path(), "selects every object: "+none, kindsOf(m.all))
		return
	}
	what := "selects nothing"
	if s.Matches(labels.Set{}) {
		what = "selects every object"
	}
	j.never(o, at.Path(), what+": "+none, kindsOf(m.all))
}

// mayHaveLabels reports whether objects may have labels, as far as the files say.
func (r *Resource) mayHaveLabels() bool {
	props := r.Props
	if r.Envelope == resource.Kubernetes || props == nil || props.XPreserveUnknownFields != nil &&
		*props.XPreserveUnknownFields {
		return true
	}
	if props.AdditionalProperties != nil &&
		(props.AdditionalProperties.Allows || props.AdditionalProperties.Schema != nil) {
		return true
	}
	_, found := props.Properties["metadata"]
	return found
}

// A namedRule is a resource rule of a match block: what it names of groups, versions, operations and resources.
type namedRule struct {
	groups, versions, operations, resources, names []string
	scope                                          string
}

// rulesIn returns the rules of a list.
func rulesIn(list document.Node) (all []namedRule) {
	for n := list.First(); n.Valid(); n = n.Next() {
		all = append(all, namedRule{
			manifest.Texts(manifest.Member(n, "apiGroups")), manifest.Texts(manifest.Member(n, "apiVersions")),
			manifest.Texts(manifest.Member(n, "operations")),
			manifest.Texts(manifest.Member(n, "resources")), manifest.Texts(manifest.Member(n, "resourceNames")),
			manifest.Member(n, "scope").Str(),
		})
	}
	return all
}

// excluded finds rules that are all excluded again, and rules that exclude nothing.
func (j *judge) excluded(o *manifest.Object, block document.Node) {
	list := manifest.Member(block, "excludeResourceRules")
	excluding := rulesIn(list)
	if len(excluding) == 0 {
		return
	}
	rules := rulesIn(manifest.Member(block, "resourceRules"))
	severity := finding.Warning // nothing goes unenforced
	if o.Kind == "PolicyException" {
		severity = finding.Error
	}
	i := 0
	for n := list.First(); n.Valid(); n = n.Next() {
		before := len(j.Found)
		j.block(o, matchBlock{Node: n})
		for at := range j.Found[before:] {
			j.Found[before+at].Severity = max(j.Found[before+at].Severity, severity)
		}
		if len(j.Found) == before && disjoint(rules, excluding[i:i+1]) {
			j.By(neverMatches, o, severity, n.Path(), "excludes nothing that `resourceRules` match")
		}
		i++
	}
	if len(rules) == 0 {
		every := []string{AnyName}
		rules = []namedRule{{every, every, every, []string{"*/*"}, nil, ""}}
	}
	for i := range rules {
		for _, one := range rules[i].apart() {
			if !slices.ContainsFunc(excluding, func(e namedRule) bool { return e.includes(&one) }) {
				return
			}
		}
	}
	j.By(NeverApplies, o, finding.Error, list.Path(),
		"must leave something of `resourceRules`, all of which it excludes")
}

// CanMatchWrites finds rules of a policy that match no create and no update, though the policy does nothing of other
// requests.
func CanMatchWrites(o *manifest.Object, why string) []finding.Finding {
	var found finding.List
	rules, _ := o.At("spec.matchConstraints.resourceRules")
	for n := rules.First(); n.Valid(); n = n.Next() {
		operations := manifest.Member(n, "operations")
		names := manifest.Texts(operations)
		isOther := func(name string) bool { return name != "DELETE" && name != "CONNECT" }
		if len(names) > 0 && !slices.ContainsFunc(names, isOther) {
			found.By(NeverApplies, o, finding.Error, operations.Path(), "can never apply: %s", why)
		}
	}
	return found.Found
}

// apart returns a rule for each group, operation and resource.
func (r *namedRule) apart() (all []namedRule) {
	for _, group := range r.groups {
		for _, operation := range r.operations {
			for _, name := range r.resources {
				one := *r
				one.groups, one.operations, one.resources = []string{group}, []string{operation}, []string{name}
				all = append(all, one)
			}
		}
	}
	return all
}

// includes reports whether all that another rule, which names one group, operation and resource, matches is matched.
func (r *namedRule) includes(one *namedRule) bool {
	all := func(names, of []string) bool {
		return slices.Contains(names, AnyName) ||
			!slices.ContainsFunc(of, func(name string) bool { return !slices.Contains(names, name) })
	}
	isNamed := slices.ContainsFunc(r.resources, func(name string) bool { return includesName(name, one.resources[0]) })
	return len(r.names) == 0 && (r.scope == "" || r.scope == AnyName || r.scope == one.scope) &&
		isNamed && all(r.groups, one.groups) && all(r.versions, one.versions) && all(r.operations, one.operations)
}

// includesName reports whether a name of a rule, such as 'pods' or '*/status', means all that another one means.
func includesName(name, other string) bool {
	resource, subresource, _ := strings.Cut(name, "/")
	otherResource, otherSubresource, _ := strings.Cut(other, "/")
	return (resource == AnyName || resource == otherResource) &&
		(subresource == AnyName || subresource == otherSubresource)
}

// RulesInclude reports whether the resource rules of a list match all that the rules of another list match.
func RulesInclude(list, others document.Node) bool {
	rules := rulesIn(list)
	for _, r := range rulesIn(others) {
		for _, one := range r.apart() {
			if !slices.ContainsFunc(rules, func(r namedRule) bool { return r.includes(&one) }) {
				return false
			}
		}
	}
	return len(rules) > 0
}

// disjoint reports whether no request can match a rule of both lists. Resources that API servers serve in two groups
// are not told apart.
func disjoint(a, b []namedRule) bool {
	for i := range a {
		if slices.ContainsFunc(b, func(other namedRule) bool { return a[i].meets(&other) }) {
			return false
		}
	}
	return len(a) > 0 && len(b) > 0
}

// meets reports whether a request may match two rules.
func (r *namedRule) meets(other *namedRule) bool {
	common := func(a, b []string) bool {
		return slices.Contains(a, AnyName) || slices.Contains(b, AnyName) ||
			slices.ContainsFunc(a, func(name string) bool { return slices.Contains(b, name) })
	}
	areNamed := slices.ContainsFunc(r.resources, func(name string) bool {
		return slices.ContainsFunc(other.resources,
			func(of string) bool { return includesName(name, of) || includesName(of, name) || crosses(name, of) })
	})
	return areNamed && (common(r.groups, other.groups) || r.isCohabitant() && other.isCohabitant()) &&
		common(r.operations, other.operations)
}

// crosses reports whether 'pods/*' and '*/status' have something in common.
func crosses(a, b string) bool {
	resource, subresource, _ := strings.Cut(a, "/")
	otherResource, otherSubresource, _ := strings.Cut(b, "/")
	return (resource == AnyName || otherResource == AnyName || resource == otherResource) &&
		(subresource == AnyName || otherSubresource == AnyName || subresource == otherSubresource)
}

// isCohabitant reports whether a resource of the rule may be served in another group too.
func (r *namedRule) isCohabitant() bool {
	return slices.ContainsFunc(r.groups, func(group string) bool {
		return slices.ContainsFunc(r.resources, func(name string) bool {
			name, _, _ = strings.Cut(name, "/")
			_, is := admission.Cohabitant(group, name)
			return is
		})
	})
}

// apartFrom finds a binding, or an exception, that has no request in common with its policy.
func (j *judge) apartFrom(o *manifest.Object, path string, policies []*manifest.Object) {
	list, _ := o.At(path + ".resourceRules")
	rules := rulesIn(list)
	if len(rules) == 0 || len(policies) == 0 {
		return
	}
	for _, p := range policies {
		of, _ := p.At("spec.matchConstraints.resourceRules")
		if !disjoint(rules, rulesIn(of)) {
			return
		}
	}
	j.By(NeverApplies, o, finding.Error, list.Path(), "must have something in common with what the %s '%s' matches, so that it applies to some request", policies[0].Kind, policies[0].Name)
}

// fieldsOf finds fields of an APIResource that name no property of its schema.
func (j *judge) fieldsOf(r *Resource) {
	o, props := r.From, r.Props
	if o.Kind != "APIResource" || r.Operation != nil || props == nil || props.Type != "object" {
		return
	}
	fields, _ := o.At("spec.fields")
	for n := fields.First(); n.Valid(); n = n.Next() {
		if n.Key() == "items" || n.Key() == "answer" || n.Str() == "" {
			continue // of lists and answers, which have no schema here
		}
		if name, known := lostProperty(props, SegmentsOfField(n.Str())); name != "" {
			j.By(UnknownName, o, finding.Error, n.Path(), "must name a property of the schema: there is no '%s'%s",
				name, manifest.Suggest(name, slices.Values(known)))
		}
	}
}

// SegmentsOfField returns the names of a path like '.meta.version'.
func SegmentsOfField(path string) []string {
	return strings.FieldsFunc(path, func(c rune) bool { return c == '.' })
}

// lostProperty returns the first name of a path that a schema has no property for, and those that it has; "" if it may
// have all.
func lostProperty(props *apiextensionsv1.JSONSchemaProps, path []string) (name string, known []string) {
	for _, name := range path {
		isOpen := props.XPreserveUnknownFields != nil && *props.XPreserveUnknownFields ||
			props.AdditionalProperties != nil || props.XEmbeddedResource
		next, found := props.Properties[name]
		switch {
		case !found && (isOpen || len(props.Properties) == 0):
			return "", nil
		case !found:
			return name, slices.Sorted(maps.Keys(props.Properties))
		}
		props = &next
	}
	return "", nil
}
