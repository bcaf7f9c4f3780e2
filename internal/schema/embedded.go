package schema

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
)

// embedded checks kind, apiVersion and metadata of a resource inside another one, as apiextensions' objectmeta does.
func (w *validator) embedded(v document.Node) {
	var apiVersion, kind bool
	for m := v.First(); m.Valid(); m = m.Next() {
		switch m.Key() {
		case "apiVersion":
			apiVersion = true
			if s := m.Str(); m.Kind() != document.String {
				w.ofResource(m, valueOf(m), "must be a string")
			} else if s == "" {
				w.ofResource(m, "", "must not be empty")
			} else if !quickGroupVersion(s) {
				if _, err := schema.ParseGroupVersion(s); err != nil {
					w.ofResource(m, clip(s), "must be '<group>/<version>' or '<version>'")
				}
			}
		case "kind":
			kind = true
			if s := m.Str(); m.Kind() != document.String {
				w.ofResource(m, valueOf(m), "must be a string")
			} else if s == "" {
				w.ofResource(m, "", "must not be empty")
			} else if !isKind(s) {
				if messages := utilvalidation.IsDNS1035Label(strings.ToLower(s)); len(messages) > 0 {
					w.ofResource(m, clip(s), "may have mixed case, but must otherwise match: "+strings.Join(messages, ","))
				}
			}
		case "metadata":
			w.metadata(metadataRules{embedded: true}, m)
		}
	}
	if !apiVersion {
		w.missing(v, "apiVersion", ofResource)
	}
	if !kind {
		w.missing(v, "kind", ofResource)
	}
}

func quickGroupVersion(s string) bool {
	group, version, found := strings.Cut(s, "/")
	return group != "" && (!found || version != "") && strings.IndexByte(version, '/') < 0
}

func (w *validator) ofResource(at document.Node, value any, detail string) {
	if !w.fails() {
		w.failures.add(failure{err: field.Invalid(w.path(at), value, detail), at: at.Index(), class: ofResource})
	}
}

// missing notes that an object has no member with this name.
func (w *validator) missing(object document.Node, name string, c class) {
	if !w.fails() {
		w.failures.add(failure{err: requiredFailure(w.path(object).Child(name)), at: object.Index(), class: c})
	}
}
