package schema

import (
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/format"
	"github.com/admission-gateway/gateway/internal/schema/graph"
	"github.com/admission-gateway/gateway/internal/schema/keyword"
	"github.com/admission-gateway/gateway/internal/schema/meta"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// A Model describes a value as a document does: its types, what is in it, its default, and its marks. Models form a
// graph: a schema that contains itself leads back to itself. A model does not say which values are valid: Check does.
type Model struct {
	// Types are the JSON types that the value may have, without null; none is any.
	Types []string
	// IsInferred reports whether the schema names no type, and its keywords tell which one is meant.
	IsInferred bool
	// Nullable reports whether null is a value.
	Nullable bool
	// Format is the format of a string; "" if it has none.
	Format string
	// Enum are the values that are listed.
	Enum []document.Node

	// Properties are the members that have names, in the order of the document.
	Properties []ModelProperty
	// Others describes the other members; nil if the document does not.
	Others *Model
	// IsOpen reports whether there may be other members, of any value.
	IsOpen bool
	// IsClosed reports whether there may be none.
	IsClosed bool
	// Required are the members that clients have to set.
	Required []string
	// Items describes the items of a list; nil if the document does not.
	Items *Model
	// Alternatives are the lists of anyOf and oneOf that Types do not tell, in a document that Kubernetes publishes.
	Alternatives []document.Node
	// IsAmbiguous reports whether Types do not tell how the text of a parameter is read.
	IsAmbiguous bool

	// Default takes the place of a missing value; invalid if there is none.
	Default document.Node
	// IsLeft reports whether there is a default that is left to the API.
	IsLeft bool
	// IsImplied is set for kind, apiVersion and metadata, which all objects of Kubernetes' form have.
	IsImplied bool

	// Check says which values are valid; nil if that is not known.
	Check *graph.Schema
	// Parts are the schemas of the document that hold for the value; its own is the first one.
	Parts []document.Node
}

// ModelProperty is a member that a document names.
type ModelProperty struct {
	Name  string
	Model *Model
	// IsOwned reports whether only the API sets it, IsHidden whether the API does not show it.
	IsOwned, IsHidden bool
}

// Is reports whether the value has exactly the type.
func (m *Model) Is(name string) bool { return len(m.Types) == 1 && m.Types[0] == name }

// Property is the model of a member; one of any value if the document does not name it.
func (m *Model) Property(name string) *Model {
	for i := range m.Properties {
		if m.Properties[i].Name == name {
			return m.Properties[i].Model
		}
	}
	return Anything
}

// Anything is the model of a value of which nothing is said.
var Anything = &Model{IsOpen: true, Nullable: true}

// Each visits the models of what is in a value.
func (m *Model) Each(visit func(*Model)) {
	for i := range m.Properties {
		visit(m.Properties[i].Model)
	}
	for _, in := range [...]*Model{m.Others, m.Items} {
		if in != nil {
			visit(in)
		}
	}
}

// Reachable returns the model and all that it leads to, each once.
func (m *Model) Reachable() []*Model {
	all, seen := []*Model{m}, map[*Model]bool{m: true}
	for i := 0; i < len(all); i++ {
		all[i].Each(func(in *Model) {
			if !seen[in] {
				seen[in] = true
				all = append(all, in)
			}
		})
	}
	return all
}

// texts are the listed values that are strings.
func (m *Model) texts() []document.Node {
	return slices.DeleteFunc(slices.Clone(m.Enum), func(v document.Node) bool { return v.Kind() != document.String })
}

// IsEndless reports whether the default of a value has a default in it that leads back to it.
func (m *Model) IsEndless() bool {
	return m.Default.Valid() && !m.complete(decoded(m.Default), []*Model{m})
}

// complete fills in the defaults of what is in a decoded value; around are the models of the defaults around it. It
// reports whether that comes to an end.
func (m *Model) complete(value any, around []*Model) bool {
	switch value := value.(type) {
	case map[string]any:
		for i := range m.Properties {
			p := &m.Properties[i]
			of, within := p.Model, around
			if _, found := value[p.Name]; !found {
				if !of.Default.Valid() || of.IsImplied {
					continue
				}
				if slices.Contains(around, of) {
					return false
				}
				value[p.Name], within = decoded(of.Default), append(slices.Clip(around), of)
			}
			if !of.complete(value[p.Name], within) {
				return false
			}
		}
		if m.Others != nil && len(m.Properties) == 0 {
			for _, in := range value {
				if !m.Others.complete(in, around) {
					return false
				}
			}
		}
	case []any:
		for _, in := range value {
			if m.Items != nil && !m.Items.complete(in, around) {
				return false
			}
		}
	}
	return true
}

// decoded is a value of the document as Kubernetes decodes it.
func decoded(n document.Node) (value any) {
	_ = json.Unmarshal(n.AppendRaw(nil), &value) // it is JSON
	return value
}

// CompileModel compiles the schema of a document. Options.Check says which values are valid, and Options.Declared has
// the keywords of Kubernetes and the gateway; it is nil if the document has none.
func CompileModel(root *Model, o Options) (s *Schema, warnings, errs field.ErrorList) {
	refuse := func(err error) (*Schema, field.ErrorList, field.ErrorList) {
		return nil, warnings, field.ErrorList{field.Invalid(o.Path, wording.Omitted, err.Error())}
	}
	var structural *structuralschema.Structural
	if o.Declared != nil {
		internal := &apiextensions.JSONSchemaProps{}
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(o.Declared, internal,
			nil); err != nil {
			return refuse(err)
		}
		if warnings, errs = checkSchema(internal, o); len(errs) > 0 {
			return nil, warnings, errs
		}
		var err error
		if structural, err = structuralschema.NewStructural(internal); err != nil {
			return refuse(err)
		}
	}
	c := modelCompiler{compiler: newCompiler(), shapes: map[*Model]*Shape{}, models: root.Reachable(),
		isNative: o.Declared != nil}
	c.defaultsNull, c.hasEnvelope = o.DefaultsNull, o.Resource
	s = &Schema{root: c.compile(o.Resource), resource: o.Resource, check: o.Check, use: o.Use}
	if structural != nil {
		if err := c.declare(s.root, structural); err != nil {
			return refuse(err)
		}
	}
	for _, m := range c.models {
		if len(m.Properties) > maxProperties {
			return refuse(fmt.Errorf("must have at most %d properties", maxProperties))
		}
		c.shapes[m].link()
	}
	for _, of := range c.shapes {
		if of.list.kind != nil {
			of.list.kind.Defaults = of.list.items.keyDefaults(of.list.kind.Keys)
		}
	}
	if c.hasEnvelope {
		s.meta = newMetadata(false)
	}
	if structural != nil {
		if errs = c.extend(s, structural, o.Extensions); len(errs) > 0 {
			return nil, warnings, errs
		}
	}
	c.summarise()
	s.prepare()
	if o.Resource {
		s.metadata = &meta.Rules{Namespaced: o.Namespaced, AnyName: o.AnyName}
	}
	s.scale = newScale((*apiextensions.CustomResourceSubresourceScale)(o.Scale))
	return s, warnings, nil
}

// modelCompiler makes the shapes of models, one of each.
type modelCompiler struct {
	*compiler
	models   []*Model // the root's is the first
	isNative bool     // there are keywords of Kubernetes or the gateway
	shapes   map[*Model]*Shape
}

// compile makes the shapes, and returns the root's.
func (c *modelCompiler) compile(isResource bool) *Shape {
	for _, m := range c.models {
		c.shapes[m] = c.shape(m)
	}
	for _, m := range c.models {
		of := c.shapes[m]
		for i := range m.Properties {
			of.object.properties = append(of.object.properties,
				Property{Name: m.Properties[i].Name, Shape: c.shapes[m.Properties[i].Model]})
		}
		if m.Others != nil && len(m.Properties) == 0 && !m.IsClosed {
			of.object.additional, of.object.others = c.shapes[m.Others], othersAllowed
		}
		if m.Items != nil {
			of.list.items = c.shapes[m.Items]
		}
	}
	root := c.shapes[c.models[0]]
	if c.models[0].IsInferred {
		root.accepts = anyKind // a value of another type is valid
	}
	if isResource {
		root.envelope = resourceEnvelope
	}
	return root
}

// shape makes the shape of a value without what is in it.
func (c *modelCompiler) shape(m *Model) *Shape {
	s := &Shape{null: nullIsValue, preserves: m.IsOpen, check: m.Check, merging: mergingBy(m.Types, m.Format)}
	if m.IsImplied {
		s.null = nullIsMissing
	}
	s.accept(m.Types, "")
	if m.IsClosed {
		s.object.others = othersRefused
	}
	if f := format.Of(m.Format); f != nil {
		s.text = &keyword.Text{Least: -1, Most: -1, Format: f}
	}
	if names := m.texts(); c.isNative && len(names) > 0 {
		s.enum = keyword.NewEnum(names) // for the discriminators of unions
	}
	if value := decoded(m.Default); m.Default.Valid() && value != nil {
		m.complete(value, []*Model{m})
		s.def, _ = encode(value) // it was decoded
		if c.defaultsNull {
			s.null = nullIsDefaulted
		}
	}
	return s
}

// declare takes the keywords of Kubernetes from a schema that describes the same value. If it describes a value of the
// graph several times, the one counts that is nearest to the root.
func (c *modelCompiler) declare(root *Shape, structural *structuralschema.Structural) error {
	type declared struct {
		shape *Shape
		by    *structuralschema.Structural
	}
	seen := map[*Shape]bool{}
	for queue := []declared{{root, structural}}; len(queue) > 0; queue = queue[1:] {
		s, st := queue[0].shape, queue[0].by
		if s == nil || st == nil || seen[s] {
			continue
		}
		seen[s] = true
		if err := c.keywords(s, st); err != nil {
			return err
		}
		if v := st.ValueValidation; v != nil {
			for _, name := range v.Required {
				s.object.required = append(s.object.required, document.NewName(name))
			}
		}
		for i := range s.object.properties {
			if p := &s.object.properties[i]; p.Shape != nil {
				of := st.Properties[p.Name]
				queue = append(queue, declared{p.Shape, &of})
			}
		}
		if st.AdditionalProperties != nil {
			queue = append(queue, declared{s.object.additional, st.AdditionalProperties.Structural})
		}
		queue = append(queue, declared{s.list.items, st.Items})
	}
	return nil
}

// summarise sets what the walks have to know of all that a shape leads to. Nothing is checked by these shapes.
func (c *modelCompiler) summarise() {
	type summary struct {
		hasDefaults, hasListTypes bool
		rulesIn                   ruleReach
	}
	for isChanged := true; isChanged; {
		isChanged = false
		for i := len(c.models) - 1; i >= 0; i-- {
			s := c.shapes[c.models[i]]
			before := summary{s.hasDefaults, s.hasListTypes, s.rulesIn}
			s.summarise()
			isChanged = isChanged || before != summary{s.hasDefaults, s.hasListTypes, s.rulesIn}
		}
	}
	for _, s := range c.shapes {
		s.flat, s.checks = s.envelope != embeddedEnvelope, checkNothing
	}
}
