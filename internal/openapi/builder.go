package openapi

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// translator makes a structural schema of one of JSON Schema, and of what a structural one cannot say the extensions.
type translator struct {
	doc      *Document
	options  translation
	depth    int // of references
	nodes    int // so far
	full     bool
	defaults bool            // there are some
	left     map[string]bool // the places of the defaults that are left to the API
	origins  map[string]document.Node
	keywords schema.ExtensionReader
	without  map[string]bool
	// undefaulted is set for the values of parameters, to which no defaults are given.
	undefaulted bool
	marks       marks
	// isJudged is set if a judge says which values are right: what is translated is what defaults, rules and
	// Kubernetes' keywords need.
	isJudged bool
	// isUntyped is set if the root names no type, and one is inferred from its keywords.
	isUntyped bool
	isNative  bool      // there are keywords of Kubernetes' own
	said      []Finding // of what is translated, if it is judged
}

// builder is the translation of one schema.
type builder struct {
	t        *translator
	at       string
	free     bool
	typed    []string // the types that the value may have; none is any
	nullable bool
	union    []string        // types that alternatives allow
	consts   []document.Node // values that alternatives list
	listed   bool            // there are such alternatives

	p apiextensionsv1.JSONSchemaProps
	e *schema.Extensions
}

// never says that no value is right.
func (b *builder) never() {
	b.e.Beyond.Not = append(b.e.Beyond.Not, &schema.Free{Schema: &apiextensionsv1.JSONSchemaProps{Nullable: true}, Extensions: &schema.Extensions{}})
}

// may reports whether the value may be of the type.
func (b *builder) may(name string) bool { return len(b.typed) == 0 || slices.Contains(b.typed, name) }

// anything is the schema that every value is right for.
func anything(free bool) apiextensionsv1.JSONSchemaProps {
	if free {
		return apiextensionsv1.JSONSchemaProps{Nullable: true}
	}
	return apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: new(true), Nullable: true}
}

// warn reports a mistake of the document's author, and what becomes of it.
func (b *builder) warn(at document.Node, format string, args ...any) {
	b.t.doc.report.warn(at, format, args...)
}

// gap reports what is right and not enforced.
func (b *builder) gap(at document.Node, format string, args ...any) {
	b.t.doc.report.gap(at, format, args...)
}

// say reports what becomes of a keyword that no judge knows of.
func (b *builder) say(at document.Node, format string, args ...any) {
	b.sayAll(Finding{Path: Place(at), Message: fmt.Sprintf(format, args...)})
}

// sayGap reports a right keyword that no judge knows of and that is not enforced.
func (b *builder) sayGap(at document.Node, format string, args ...any) {
	b.sayAll(Finding{Path: Place(at), Message: fmt.Sprintf(format, args...), Gap: true})
}

func (b *builder) sayAll(f Finding) {
	if b.t.isJudged {
		b.t.said = append(b.t.said, f)
		return
	}
	b.t.doc.report.add(f)
}
