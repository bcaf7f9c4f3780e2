package openapi

import (
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// Bounds of a schema whose references are replaced by what they refer to. What the document itself spells out is not
// bounded by them.
const (
	maxNodes = 4_000
	maxDepth = 24 // of references
)

// translate makes a schema of an object, or of a list without envelope; nil if it is neither. If
// the whole would be too large, what is deepest is left out.
func (d *Document) translate(n document.Node, o translation, without map[string]bool) *Schema {
	judge := d.judge(n, o)
	for depth := maxDepth; ; depth = min(depth-1, d.depthOf(n)) {
		saved := d.report
		d.report = newReport() // of keywords that the judge knows
		if judge == nil {
			d.report = saved.clone()
		}
		t := &translator{doc: d, options: o, depth: depth, left: map[string]bool{}, origins: map[string]document.Node{}, marks: marks{owned: map[string]bool{}, hidden: map[string]bool{}}, without: without, undefaulted: o.of.isUndefaulted(), isJudged: judge != nil}
		c := t.flatten([]document.Node{n}, nil)
		types, _ := t.types(&c)
		isList := !o.envelope && slices.Equal(types, []string{"array"})
		if len(types) > 0 && !isList && !slices.Equal(types, []string{"object"}) && judge == nil {
			d.report.warn(n, "must be of type object; the schema is not enforced")
			return nil
		}
		props, extensions := t.emit(c, "", false)
		if t.full {
			d.report = saved
			continue
		}
		if judge != nil {
			d.report = saved
			for _, f := range t.said {
				d.report.add(f)
			}
		} else if props.Type != "object" && !isList {
			return nil
		}
		for _, err := range t.keywords.Errors {
			d.report.add(Finding{Path: err.Field, Message: err.ErrorBody(), Error: true})
		}
		return &Schema{
			Props: &props, Extensions: extensions, Defaults: t.defaults, Unfilled: cel.NewUnfilled(leftIn(t.left, &props, "", "")), Judge: judge, Plain: judge != nil && !t.isNative,
			Owned: markedIn(t.marks.owned, &props, ""), Hidden: markedIn(t.marks.hidden, &props, ""), Hides: t.marks.hides,
			doc: d, node: n, options: o, origins: t.origins, isList: props.Type == "array", isUntyped: t.isUntyped,
		}
	}
}

// IsList reports whether the schema is one of lists.
func (s *Schema) IsList() bool { return s != nil && s.isList }

// Where finds the place in the document of a path within Props.
func (s *Schema) Where(path string) string {
	for at := path; ; {
		if n, found := s.origins[at]; found {
			return Place(n) + path[len(at):]
		}
		cut := strings.LastIndexAny(at, ".[")
		if cut < 0 {
			return Place(s.node)
		}
		at = at[:cut]
	}
}

// Without translates the schema again without the defaults at the paths, each of a schema within Props.
func (s *Schema) Without(paths map[string]bool) *Schema {
	for path := range paths {
		m, _ := s.origins[path].Get("default")
		delete(s.doc.filled, m.Index())
	}
	return s.doc.translate(s.node, s.options, paths)
}

// emit translates a conjunction that stands at a place of the result. free is set if the result
// need not be structural.
func (t *translator) emit(c conjunction, at string, free bool) (apiextensionsv1.JSONSchemaProps, *schema.Extensions) {
	t.nodes++
	e := &schema.Extensions{}
	t.full = t.full || t.nodes > maxNodes && c.trail.length() > 1
	if t.full || c.cut || len(c.parts) == 0 {
		return anything(free), e
	}
	if !free {
		t.origins[at] = c.parts[0].Node
	}
	b := &builder{t: t, at: at, free: free, e: e}
	b.groups(&c)
	b.typed, b.nullable = t.types(&c)
	b.typed = intersect(b.typed, b.union)
	b.infer(&c)
	b.build(&c)
	if !free {
		b.own(&c)
	}
	return b.p, e
}

// freely translates a schema that need not be structural.
func (t *translator) freely(c conjunction) *schema.Free {
	if len(c.parts) == 0 {
		return &schema.Free{Schema: &apiextensionsv1.JSONSchemaProps{Nullable: true}, Extensions: &schema.Extensions{}}
	}
	path := field.NewPath(Place(c.parts[0].Node))
	props, e := t.emit(c, "", true)
	at := schema.At(path)
	at.Beyond, at.Properties, at.Items, at.Additional = e.Beyond, e.Properties, e.Items, e.Additional
	return &schema.Free{Schema: &props, Extensions: at}
}

// build translates what the parts say, by the types that the value may have.
func (b *builder) build(c *conjunction) {
	b.p.Nullable = b.nullable || len(b.typed) == 0 || b.t.isJudged
	switch {
	case c.forbids():
		b.p = anything(b.free)
		if !b.t.isJudged {
			b.never()
		}
		return
	case len(b.typed) == 1 && b.typed[0] != "null":
		b.p.Type = b.typed[0]
	case b.isIntOrString(c):
		b.p.XIntOrString = !b.free
		if b.free {
			b.e.Beyond.Types = b.typed
		}
	default:
		b.several(c)
		return
	}
	b.keywordsOf(c)
}

// several translates a value of no known type, or of several, which a structural schema says nothing about.
func (b *builder) several(c *conjunction) {
	if len(b.typed) > 0 {
		b.e.Beyond.Types = b.typed
		if b.nullable && !slices.Contains(b.typed, "null") {
			b.e.Beyond.Types = append(slices.Clip(b.typed), "null")
		}
	}
	if b.free {
		b.keywordsOf(c)
		return
	}
	if b.t.isJudged {
		b.p = anything(false)
		b.setDefault(c)
		return
	}
	rest := builder{t: b.t, free: true, typed: b.typed, nullable: b.nullable, consts: b.consts, listed: b.listed, e: &schema.Extensions{}}
	rest.p.Nullable = b.nullable || len(b.typed) == 0
	rest.keywordsOf(c)
	b.p = anything(false)
	b.p.Nullable = len(b.typed) == 0 || b.nullable
	said := &schema.Free{Schema: &rest.p, Extensions: schema.At(field.NewPath(Place(c.parts[0].Node)))}
	said.Extensions.Beyond, said.Extensions.Properties, said.Extensions.Items, said.Extensions.Additional =
		rest.e.Beyond, rest.e.Properties, rest.e.Items, rest.e.Additional
	if !said.Extensions.Empty() || !reflect.DeepEqual(rest.p, apiextensionsv1.JSONSchemaProps{Nullable: rest.p.Nullable}) {
		b.e.Beyond.AllOf = append(b.e.Beyond.AllOf, said)
	}
}

// keywordsOf translates the keywords; each looks at values of one type.
func (b *builder) keywordsOf(c *conjunction) {
	b.enumeration(c)
	if !b.t.isJudged {
		b.unenforced(c)
	}
	if b.may("string") {
		b.text(c)
	}
	if b.may("number") || b.may("integer") {
		b.number(c)
	}
	if b.may("array") {
		b.list(c)
	}
	if b.may("object") {
		b.object(c)
	}
	if b.t.isJudged {
		b.setDefault(c)
		return
	}
	c.each("not", func(n document.Node) {
		b.e.Beyond.Not = append(b.e.Beyond.Not, b.t.freely(b.t.flatten([]document.Node{n}, c.trail)))
	})
	if !b.free {
		b.setDefault(c)
	}
}

// isIntOrString reports whether the value is Kubernetes' kind of number or name.
func (b *builder) isIntOrString(c *conjunction) bool {
	if c.says("x-kubernetes-int-or-string") {
		b.typed = []string{"integer", "string"}
		return true
	}
	if format, found := c.get("format"); found && format.Str() == "int-or-string" {
		b.typed = []string{"integer", "string"}
		return true
	}
	return len(b.typed) == 2 && slices.Contains(b.typed, "integer") && slices.Contains(b.typed, "string")
}
