package policies

import (
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	schemaruntime "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission/typecheck"
	"github.com/admission-gateway/gateway/internal/manifest"
)

// wildcards finds fields in expressions that none of the kinds has which rules with wildcards match, and that the files describe.
// It is an error if nothing else can match, and a warning if something may that no file describes.
func (l *loader) wildcards(o *manifest.Object, states []string, known *knownKinds, review func([]string, typecheck.Kinds) ([]typecheck.Warning, error)) {
	all, severity := l.widely(o)
	lacking := map[string]string{} // what is said of the fields of expressions that no kind so far has
	for i, r := range all {
		warnings, err := review(states, oneKind{known, r.GroupVersion().WithResource(r.Names.Plural)})
		if err != nil {
			return
		}
		of := map[string]string{}
		for _, w := range warnings {
			text, _ := o.At(w.Field)
			if undefinedField.MatchString(w.Text) && !distinguishes.MatchString(text.Str()) && (i == 0 || lacking[w.Field] != "") {
				of[w.Field] = w.Text
			}
		}
		if lacking = of; len(lacking) == 0 {
			return
		}
	}
	for at, text := range lacking {
		l.At(o, severity, at, "%s", text)
	}
}

// widely returns the described resources that rules with wildcards match, and how bad it is if none of them has something. It
// returns none of other rules, and if an upstream is an API server, which has kinds that no file describes.
func (l *loader) widely(o *manifest.Object) (all []*loadedResource, severity Severity) {
	if !mayHaveWildcards(o) {
		return nil, Error
	}
	list, _ := o.At("spec.matchConstraints.resourceRules")
	hasWildcards := slices.ContainsFunc(rulesIn(list), func(r namedRule) bool {
		return slices.Contains(r.groups, anyName) || slices.Contains(r.versions, anyName) || slices.Contains(r.resources, anyName)
	})
	if !hasWildcards || l.isMeant(o) {
		return nil, Error
	}
	j := newInForce(l)
	if !j.isPlain {
		return nil, Error
	}
	var m matched
	for r := list.First(); r.Valid(); r = r.Next() {
		for _, name := range textsIn(memberOf(r, "resources")) {
			if strings.Contains(name, "/") {
				return nil, Error // the objects of subresources have other fields
			}
			one := j.named(textsIn(memberOf(r, "apiGroups")), name)
			m.all, m.isOpen = append(m.all, one.all...), m.isOpen || one.isOpen
		}
	}
	if m.isOpen {
		severity = Warning
	}
	return slices.DeleteFunc(m.all, func(r *loadedResource) bool { return r.Operation != nil }), severity
}

// undefinedField finds that an expression reads a field which a kind has not.
var undefinedField = regexp.MustCompile(`undefined field '`)

// distinguishes finds expressions that ask whether there is a field, or of which kind an object is.
var distinguishes = regexp.MustCompile(`\bhas\(|\.\?|\[\?|\b(?:object|oldObject)\.kind\b|\brequest\.(?:kind|resource|requestKind|requestResource)\b|\bdyn\(`)

// oneKind knows the kind of one resource, which every rule matches.
type oneKind struct {
	*knownKinds
	only schemaruntime.GroupVersionResource
}

// Expand implements typecheck.Expander.
func (k oneKind) Expand(*admissionv1.NamedRuleWithOperations) []schemaruntime.GroupVersionResource {
	return []schemaruntime.GroupVersionResource{k.only}
}
