package schema

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/list"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// Beyond holds the keywords of JSON Schema and OpenAPI that structural schemas lack. It adds to the
// structural schema of the same value. Values of Kubernetes' documents are validated by it. All other documents have a [Judge]
// for that: of their schemas it says only which types the text of a parameter or a field may stand for.
type Beyond struct {
	// Types are JSON types, null among them. The value has one of them; empty means what the schema
	// says.
	Types []string
	// Closed refuses members that are no property of the schema.
	Closed bool
	// Rest describes the members that are no property of the schema; nil allows any.
	Rest *Free
	// Unique refuses lists in which an item stands twice.
	Unique bool
	// Null is set if null is one of the values of the enumeration.
	Null bool

	// AllOf must all match. In each group of AnyOf and OneOf one must match. None of Not may match.
	AllOf        []*Free
	AnyOf, OneOf [][]*Free
	Not          []*Free
}

// Free is a schema that need not be structural: it may have types wherever it stands. Defaults and rules in it are not
// looked at.
type Free struct {
	Schema     *apiextensionsv1.JSONSchemaProps
	Extensions *Extensions
}

func (b *Beyond) empty() bool {
	return b == nil || len(b.Types) == 0 && !b.Closed && b.Rest == nil && !b.Unique && !b.Null &&
		len(b.AllOf) == 0 && len(b.AnyOf) == 0 && len(b.OneOf) == 0 && len(b.Not) == 0
}

// beyond adds to a shape whose members are complete.
func (x *extender) beyond(s *Shape, b *Beyond) {
	if b.empty() {
		return
	}
	if len(b.Types) > 0 {
		s.accepts, s.typeName = [document.Array + 1]verdict{}, ""
		if slices.Contains(b.Types, "null") {
			s.null = nullIsValue
		}
		s.accept(b.Types, "")
	}
	if b.Rest != nil {
		s.object.additional, s.object.others = x.free(b.Rest), max(s.object.others, othersAllowed)
	}
	if b.Closed {
		s.object.others, s.object.isClosed = othersRefused, true
	}
	if b.Unique && (s.list.kind == nil || s.list.kind.MayRepeat) {
		s.list.kind = &list.Type{}
	}
	if b.Null && s.enum != nil {
		s.enum.Add(constant([]byte(`null`)))
	}
	x.logic(s, b)
	s.summarise()
}

func (x *extender) logic(s *Shape, b *Beyond) {
	l := s.logic
	if l == nil {
		l = &logicRules{}
	}
	l.allOf = append(l.allOf, x.all(b.AllOf)...)
	for _, group := range b.AnyOf {
		l.allOf = append(l.allOf, combined(logicRules{anyOf: x.all(group)}))
	}
	for _, group := range b.OneOf {
		l.allOf = append(l.allOf, combined(logicRules{oneOf: x.all(group)}))
	}
	for _, shape := range x.all(b.Not) {
		l.allOf = append(l.allOf, combined(logicRules{not: shape}))
	}
	if !l.empty() {
		s.logic = l
	}
}

// combined is a shape that says nothing else.
func combined(l logicRules) *Shape {
	s := &Shape{accepts: anyKind, logic: &l}
	s.summarise()
	return s
}

func (x *extender) all(list []*Free) []*Shape {
	shapes := make([]*Shape, 0, len(list))
	for _, f := range list {
		shapes = append(shapes, x.free(f))
	}
	return shapes
}

// free compiles a schema that is not structural.
func (x *extender) free(f *Free) *Shape {
	props := &apiextensions.JSONSchemaProps{}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(f.Schema, props, nil)
	var s *Shape
	if err == nil {
		s, err = x.compiler.shape(props, nil, false)
	}
	if err != nil {
		x.errs = append(x.errs, field.Invalid(f.Extensions.path, wording.Omitted, err.Error()))
		return combined(logicRules{})
	}
	preserveUnknown(s)
	x.freely(s, f.Extensions)
	return s
}

// keepUnknown lets members be that the shapes do not name: unlike in structural schemas they are not unknown.
func preserveUnknown(s *Shape) {
	if s == nil {
		return
	}
	s.preserves = true
	for i := range s.object.properties {
		preserveUnknown(s.object.properties[i].Shape)
	}
	preserveUnknown(s.object.additional)
	preserveUnknown(s.list.items)
	s.summarise()
}

// freely adds the extensions to a shape that is not structural and to those in it.
func (x *extender) freely(s *Shape, e *Extensions) {
	if e.Empty() {
		return
	}
	for _, name := range sorted(e.Properties) {
		if p := s.Property(name); p != nil {
			x.freely(p.Shape, e.Properties[name])
		}
	}
	if s.object.additional != nil {
		x.freely(s.object.additional, e.Additional)
	}
	if s.list.items != nil {
		x.freely(s.list.items, e.Items)
	}
	x.beyond(s, &e.Beyond)
	s.summarise()
}
