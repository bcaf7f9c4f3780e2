package policies

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	schemaruntime "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/admission/typecheck"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/applicability"
)

// unfilledByRego warns of what a RegoPolicy reads of fields whose default is left to the API.
func (l *loader) unfilledByRego(
	o *manifest.Object, p *rego.Program, rules *admissionv1.MatchResources, conditions []admissionv1.MatchCondition,
	kinds *knownKinds,
) {
	unasked(&l.findings, o, rules, conditions, kinds)
	if p == nil || slices.ContainsFunc(conditions,
		func(c admissionv1.MatchCondition) bool { return asksForKind.MatchString(c.Expression) }) {
		return
	}
	for _, k := range append(typecheck.Matched(rules, kinds), typecheck.Matched(rules, wideKinds{kinds})...) {
		l.unfilledIn(&l.findings, p, &k)
	}
}

// unfilledIn warns of what modules read of such fields of a kind.
func (l *loader) unfilledIn(f *findings, p *rego.Program, k *typecheck.Kind) {
	if k.Unfilled == nil {
		return
	}
	found := p.UnfilledReads(k.Unfilled)
	for i := range found {
		found[i].Message = fmt.Sprintf("%v: %s", k.GroupVersionKind, found[i].Message)
	}
	l.regoFound(f, applicability.Unasked, found, Warning)
}

// checkUnfilled warns of what PolicyExceptions, and templates of Gatekeeper's for the kinds that a constraint matches,
// read of such fields.
func (l *loader) checkUnfilled() []Finding {
	var f findings
	kinds := l.knownKinds()
	for o, e := range l.terms.Read() {
		unasked(&f, o, e.Spec.MatchConstraints, e.Spec.MatchConditions, kinds)
	}
	for o, t := range part[gatekeeperFiles](l).files.InRego() {
		l.impossibleByTemplate(&f, o, t, kinds)
		for i := range l.resources {
			r := &l.resources[i]
			if r.Operation != nil || r.compiled.unfilled == nil || !matchesKind(o, r) {
				continue
			}
			k := kinds.of(r)
			l.unfilledIn(&f, t.Modules(), &k)
		}
	}
	return f.Found
}

// matchesKind reports whether a constraint matches the kind of a resource: all kinds if it names none.
func matchesKind(constraint *manifest.Object, r *loadedResource) bool {
	all, _ := constraint.At("spec.match.kinds")
	for one := all.First(); one.Valid(); one = one.Next() {
		if lists(one, "apiGroups", r.Group) && lists(one, "kinds", r.Names.Kind) {
			return true
		}
	}
	return all.Len() == 0
}

// lists reports whether a member is a list that has a text, or the wildcard.
func lists(n document.Node, name, text string) bool {
	list, _ := n.Get(name)
	for item := list.First(); item.Valid(); item = item.Next() {
		if item.Is(text) || item.Is(applicability.AnyName) {
			return true
		}
	}
	return false
}

// unasked warns of match conditions that read such fields without asking for them.
func unasked(f *findings, o *manifest.Object, rules *admissionv1.MatchResources,
	conditions []admissionv1.MatchCondition, kinds *knownKinds) {
	p := &typecheck.Policy{Match: rules, Conditions: conditions}
	for _, w := range append(typecheck.Unasked(p, kinds), typecheck.Unasked(p, wideKinds{kinds})...) {
		f.By(applicability.Unasked, o, Warning, w.Field, "%s", w.Text)
	}
}

// unaskedWidely warns of expressions of a policy that read such fields of the kinds which rules with wildcards match.
// An expression, or a policy with a match condition, that asks of which kind an object is may never see them.
func unaskedWidely(f *findings, o *manifest.Object, states []string, kinds *knownKinds,
	review func([]string, typecheck.Kinds) ([]typecheck.Warning, error)) {
	if !mayHaveWildcards(o) {
		return
	}
	var rules admissionv1.MatchResources
	if n, found := o.At("spec.matchConstraints"); !found || json.Unmarshal(n.Raw(), &rules) != nil {
		return
	}
	wide := wideKinds{kinds}
	if len(typecheck.Matched(&rules, wide)) == 0 {
		return
	}
	conditions, _ := o.At("spec.matchConditions")
	for c := conditions.First(); c.Valid(); c = c.Next() {
		if text, _ := c.Get("expression"); asksForKind.MatchString(text.Str()) {
			return
		}
	}
	warnings, err := review(states, wide)
	if err != nil {
		return // as the review of the kinds that rules name says
	}
	for _, w := range warnings {
		if text, _ := o.At(w.Field); w.Fails == "" && !asksForKind.MatchString(text.Str()) {
			f.By(applicability.Unasked, o, Warning, w.Field, "%s", w.Text)
		}
	}
}

// mayHaveWildcards reports whether an object may have a string that begins with a wildcard. A JSON file may write it as
// an escape.
func mayHaveWildcards(o *manifest.Object) bool {
	return bytes.Contains(o.JSON, []byte(applicability.AnyName)) &&
		bytes.Contains(o.JSON, []byte(`"`+applicability.AnyName)) || bytes.Contains(o.JSON, []byte(`\u`))
}

// asksForKind finds expressions that ask of which kind or resource an object is.
var asksForKind = regexp.MustCompile(`\b(?:object|oldObject)\.(?:kind|apiVersion)\b|\brequest\.(?:kind|resource|requestKind|requestResource)\b`)

// wideKinds knows the fields with a default that is left to the API, and nothing else, of the kinds that rules with
// wildcards match.
type wideKinds struct{ *knownKinds }

// Expand implements typecheck.Expander.
func (k wideKinds) Expand(rule *admissionv1.NamedRuleWithOperations) (all []schemaruntime.GroupVersionResource) {
	has := func(names []string, name string) bool {
		return slices.Contains(names, name) || slices.Contains(names, applicability.AnyName)
	}
	isWide := slices.Contains(rule.APIGroups, applicability.AnyName) ||
		slices.Contains(rule.APIVersions, applicability.AnyName) ||
		slices.Contains(rule.Resources, applicability.AnyName) || slices.Contains(rule.Resources, "*/*")
	if !isWide {
		return nil
	}
	for gvr, r := range k.resources {
		if r.compiled.unfilled != nil && has(rule.APIGroups, gvr.Group) && has(rule.APIVersions, gvr.Version) &&
			(has(rule.Resources, gvr.Resource) || slices.Contains(rule.Resources, "*/*")) {
			all = append(all, gvr)
		}
	}
	slices.SortFunc(all, func(a, b schemaruntime.GroupVersionResource) int {
		return strings.Compare(a.String(),
			b.String())
	})
	return all
}

// Resource implements typecheck.Kinds.
func (k wideKinds) Resource(gvr schemaruntime.GroupVersionResource) (typecheck.Kind, bool) {
	kind, found := k.knownKinds.Resource(gvr)
	kind.Type = nil
	return kind, found
}
