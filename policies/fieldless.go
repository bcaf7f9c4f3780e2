package policies

import (
	"regexp"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	schemaruntime "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission/typecheck"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/applicability"
)

// wildcards finds fields in expressions that none of the kinds has which rules with wildcards match, and that the files
// describe. It is an error if nothing else can match, and a warning if something may that no file describes.
func (l *loader) wildcards(o *manifest.Object, states []string, known *knownKinds,
	review func([]string, typecheck.Kinds) ([]typecheck.Warning, error)) {
	all, severity := l.matchedByWildcards(o)
	lacking := map[string]string{} // what is said of the fields of expressions that no kind so far has
	for i, r := range all {
		warnings, err := review(states, oneKind{known, r.GroupVersion().WithResource(r.Names.Plural)})
		if err != nil {
			return
		}
		of := map[string]string{}
		for _, w := range warnings {
			text, _ := o.At(w.Field)
			if undefinedField.MatchString(w.Text) && !distinguishes.MatchString(text.Str()) &&
				(i == 0 || lacking[w.Field] != "") {
				of[w.Field] = w.Text
			}
		}
		if lacking = of; len(lacking) == 0 {
			return
		}
	}
	for at, text := range lacking {
		l.By(applicability.UnknownField, o, severity, at, "%s", text)
	}
}

// matchedByWildcards returns the described resources that rules with wildcards match, as applicability.Index does; none
// if the policy may be unused.
func (l *loader) matchedByWildcards(o *manifest.Object) ([]*applicability.Resource, Severity) {
	if !mayHaveWildcards(o) || l.mayBeUnused(o) {
		return nil, Error
	}
	return applicability.New(l.applicableFiles()).MatchedByWildcards(o)
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
