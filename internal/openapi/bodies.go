package openapi

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
)

// Body is a media type that an operation takes.
type Body struct {
	Media string
	As    contract.Language
	// Form and Schema say how a form is read and what it must be; nil for other bodies.
	Form   *contract.Form
	Schema *Schema
	// Place is the form's in the document.
	Place string
}

// The media types of forms.
const (
	fieldsType = "application/x-www-form-urlencoded"
	partsType  = "multipart/form-data"
)

// bodiesOf returns the media types that an operation takes. Of patches these are forms alone: patches in JSON have types of
// their own.
func bodiesOf(d *Document, verb resource.Verb, operation document.Node) (all []Body) {
	body, found := operation.Get("requestBody")
	content, _ := d.follow(body).Get("content")
	switch {
	case verb == resource.VerbPatch:
		return patchesOf(d, content)
	case !verb.HasBody():
		return nil // the gateway reads them as options of Kubernetes' own
	}
	if !found || content.Len() == 0 {
		return undeclaredBodies
	}
	json := jsonMedia(content)
	members(content, func(m document.Node) {
		for _, b := range bodyOf(d, m, json) {
			if !slices.ContainsFunc(all, func(other Body) bool { return other.Media == b.Media }) {
				all = append(all, b)
			}
		}
	})
	return all
}

// undeclaredBodies are for operations of whose bodies the document says nothing: JSON is read, all else passes.
var undeclaredBodies = []Body{
	{Media: "application/json", As: contract.AsJSON}, {Media: "application/*+json", As: contract.AsJSON}, {Media: "*/*", As: contract.AsBytes},
}

// patchesOf returns the forms that a PATCH takes, and names the media types that the gateway refuses. A form has the fields
// that it changes, so that none has to be there.
func patchesOf(d *Document, content document.Node) (all []Body) {
	members(content, func(m document.Node) {
		name := mediaName(m)
		_, hasSchema := m.Get("schema")
		switch {
		case isJSONType(name), name == "*/*", name == "application/*":
		case hasSchema && (name == fieldsType || name == partsType):
			for _, b := range bodyOf(d, m, document.Node{}) {
				makePartial(b.Schema.Props)
				all = append(all, b)
			}
		default:
			d.report.warn(m, "is refused: the gateway reads patches in JSON, and in forms with a schema")
		}
	})
	return all
}

// makePartial lets an object, and the objects in it, lack any member.
func makePartial(props *apiextensionsv1.JSONSchemaProps) {
	props.Required, props.MinProperties = nil, nil
	for name, of := range props.Properties {
		makePartial(&of)
		props.Properties[name] = of
	}
}

// mediaName is the media type that a member of `content` is about.
func mediaName(m document.Node) string {
	name, _, _ := strings.Cut(strings.ToLower(m.Key()), ";")
	return strings.Clone(strings.TrimSpace(name))
}

func isJSONType(name string) bool {
	return name == "application/json" || strings.HasSuffix(name, "+json") || strings.HasSuffix(name, "/json")
}

// bodyOf returns what a member of `content` lets clients send. JSON is the member whose schema JSON
// is checked against.
func bodyOf(d *Document, m, json document.Node) []Body {
	name := mediaName(m)
	value, hasSchema := m.Get("schema")
	switch {
	case name == "*/*", name == "application/*":
		all := []Body{{Media: "application/json", As: contract.AsJSON}}
		if !hasSchema || isText(d, value) {
			all = append(all, Body{Media: name, As: contract.AsBytes})
		}
		return all
	case isJSONType(name):
		if other, _ := json.Get("schema"); string(other.Raw()) != string(value.Raw()) {
			d.report.warn(m, "is refused: the gateway holds JSON to one schema, and '%s' has another", json.Key())
			return nil
		}
		return []Body{{Media: name, As: contract.AsJSON}}
	case hasSchema && name == fieldsType:
		return formOf(d, m, value, contract.AsFields)
	case hasSchema && name == partsType:
		return formOf(d, m, value, contract.AsParts)
	}
	return []Body{{Media: name, As: contract.AsBytes}}
}

// isText reports whether a schema is one of text or bytes.
func isText(d *Document, value document.Node) bool {
	t := &translator{doc: d, depth: maxDepth}
	c := t.flatten([]document.Node{value}, nil)
	types, _ := t.types(&c)
	return slices.Equal(types, []string{"string"})
}

// formOf returns how a form is read, by its schema and its encoding.
func formOf(d *Document, m, value document.Node, as contract.Language) []Body {
	s := d.translate(value, translation{of: ofForms}, nil)
	if s == nil || s.isList() {
		d.report.warn(m, "is refused: the fields of a form must be the properties of an object")
		return nil
	}
	f := formReader{doc: d, as: as, schema: s, made: &contract.Form{}}
	f.encoding, _ = m.Get("encoding")
	f.read(value)
	return []Body{{Media: mediaName(m), As: as, Form: f.made, Schema: s, Place: Place(m)}}
}

// A formReader finds how the fields of a form are read.
type formReader struct {
	doc      *Document
	as       contract.Language
	encoding document.Node
	schema   *Schema
	made     *contract.Form
}

// read reads the properties of the schema.
func (f *formReader) read(value document.Node) {
	props, e := f.schema.Props, f.schema.Extensions
	t := &translator{doc: f.doc, depth: maxDepth}
	c := t.flatten([]document.Node{value}, nil)
	done := map[string]bool{}
	c.each("properties", func(properties document.Node) {
		members(properties, func(m document.Node) {
			if name := strings.Clone(m.Key()); !done[name] {
				done[name] = true
				f.field(name, m)
			}
		})
	})
	switch {
	case props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil:
		f.made.Others = &contract.Parameter{In: contract.InBody}
		of := e.Additional
		if of == nil {
			of = &schema.Extensions{}
		}
		if !f.doc.readAs(f.made.Others, value, props.AdditionalProperties.Schema, of) {
			f.made.Others = nil
		}
	case props.XPreserveUnknownFields != nil && *props.XPreserveUnknownFields:
		f.made.Others = &contract.Parameter{In: contract.InBody, Types: []contract.Type{contract.String}}
	}
}

// field reads a property of the schema.
func (f *formReader) field(name string, at document.Node) {
	p, part := contract.Parameter{In: contract.InBody, Name: name}, contract.Part{}
	said, hasEncoding := f.encoding.Get(name)
	if !hasEncoding {
		said = at
	}
	for one := range strings.SplitSeq(strings.ToLower(text(said, "contentType")), ",") {
		if one, _, _ = strings.Cut(one, ";"); strings.TrimSpace(one) != "" {
			part.Media = append(part.Media, strings.TrimSpace(one))
		}
	}
	props, e := f.schema.Props.Properties[name], f.schema.Extensions.Properties[name]
	if e == nil {
		e = &schema.Extensions{}
	}
	switch file, isList := f.file(at); {
	case file.Valid():
		f.readFile(&p, &part, file, isList)
	case f.isJSON(&props, e, part.Media):
		p.Shape = contract.JSON
		if f.as == contract.AsParts && slices.Equal(typesIn(&props, e), []string{"array"}) && len(part.Media) == 0 {
			p.Shape, p.Items = contract.List, contract.JSON
		}
	default:
		if !f.doc.readAs(&p, said, &props, e) {
			f.doc.report.warn(at, "is refused in forms")
			return
		}
	}
	f.made.Fields, f.made.Parts = append(f.made.Fields, p), append(f.made.Parts, part)
}

// isJSON reports whether a field is written in JSON: the encoding says so, or it is an object in a part.
func (f *formReader) isJSON(props *apiextensionsv1.JSONSchemaProps, e *schema.Extensions, media []string) bool {
	if len(media) > 0 {
		return every(media, isJSONType)
	}
	if f.as != contract.AsParts {
		return false
	}
	names := typesIn(props, e)
	if slices.Equal(names, []string{"array"}) && props.Items != nil && props.Items.Schema != nil {
		of := e.Items
		if of == nil {
			of = &schema.Extensions{}
		}
		names = typesIn(props.Items.Schema, of)
	}
	return slices.Contains(names, "object")
}

// every reports whether something is true of each text.
func every(texts []string, is func(string) bool) bool {
	return !slices.ContainsFunc(texts, func(one string) bool { return !is(one) })
}

// file returns the schema of a file, if a property is a file or a list of files.
func (f *formReader) file(at document.Node) (file document.Node, isList bool) {
	t := &translator{doc: f.doc, depth: maxDepth}
	c := t.flatten([]document.Node{at}, nil)
	types, _ := t.types(&c)
	if slices.Equal(types, []string{"array"}) {
		at, isList = document.Node{}, true
		c.each("items", func(n document.Node) { at = n })
		if !at.Valid() {
			return at, false
		}
		c = t.flatten([]document.Node{at}, nil)
		types, _ = t.types(&c)
	}
	format, _ := c.get("format")
	_, isMedia := c.get("contentMediaType")
	_, isEncoded := c.get("contentEncoding")
	switch {
	case format.Is("binary") && slices.Equal(types, []string{"string"}):
	case f.doc.v31 && isMedia && !isEncoded && (len(types) == 0 || slices.Equal(types, []string{"string"})):
	case f.as == contract.AsParts && len(types) == 0 && c.isEmpty():
	default:
		return document.Node{}, false
	}
	return at, isList
}

// isEmpty reports whether the schema says nothing of the value.
func (c *conjunction) isEmpty() bool {
	for _, keyword := range []string{"oneOf", "anyOf", "enum", "const", "properties", "items", "$ref"} {
		if _, found := c.get(keyword); found {
			return false
		}
	}
	return true
}

// readFile makes a property one whose value is the name of a file.
func (f *formReader) readFile(p *contract.Parameter, part *contract.Part, file document.Node, isList bool) {
	part.IsFile = true
	p.Types = []contract.Type{contract.String}
	t := &translator{doc: f.doc, depth: maxDepth}
	c := t.flatten([]document.Node{file}, nil)
	b := &builder{t: t}
	if least := b.most(&c, "minLength"); least != nil {
		part.MinBytes = *least
	}
	if most := b.least(&c, "maxLength"); most != nil {
		part.MaxBytes = *most
	}
	if media, found := c.get("contentMediaType"); found && len(part.Media) == 0 {
		part.Media = []string{strings.ToLower(strings.Clone(media.Str()))}
	}
	name := apiextensionsv1.JSONSchemaProps{Type: "string"}
	props := f.schema.Props.Properties[p.Name]
	if isList {
		p.Shape = contract.List
		props.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &name}
		if e := f.schema.Extensions.Properties[p.Name]; e != nil {
			e.Items = nil
		}
	} else {
		props = name
		delete(f.schema.Extensions.Properties, p.Name)
	}
	f.schema.Props.Properties[p.Name] = props
}
