package openapi

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/jsonschema"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
)

// Body is a media type that an operation takes.
type Body struct {
	Media string
	As    contract.Language
	// Form says how a form is read; nil for other bodies.
	Form *contract.Form
	// Schema is what a form or JSON must be; nil for other bodies, and if the document does not say.
	Schema *Schema
	// Place is the form's in the document.
	Place string
}

// The media types of forms.
const (
	fieldsType = "application/x-www-form-urlencoded"
	partsType  = "multipart/form-data"
)

// bodiesOf returns the media types that an operation takes, each with its own schema. JSON is translated as it is said.
func bodiesOf(d *Document, verb resource.Verb, operation document.Node, as translation) (all []Body) {
	body, _ := operation.Get("requestBody")
	content, _ := d.follow(body).Get("content")
	as.filling = d.fillingOf(operation)
	isDeletion := verb == resource.VerbDelete || verb == resource.VerbDeleteCollection
	switch {
	case verb.HasBody() && content.Len() == 0 && verb != resource.VerbPatch:
		return undeclaredBodies
	case !verb.HasBody() && !isDeletion, isDeletion && as.envelope: // whose body are options of Kubernetes' own
		return nil
	}
	var ranges []Body
	members(content, func(m document.Node) {
		var of []Body
		switch {
		case verb == resource.VerbPatch:
			of = patchOf(d, m)
		case isDeletion:
			of = deletionOf(d, m, as)
		default:
			of = bodyOf(d, m, as)
		}
		for _, b := range of {
			if mediaName(m) != b.Media { // what a range says counts after what is declared by name
				ranges = append(ranges, b)
			} else if !hasMedia(all, b.Media) {
				all = append(all, b)
			}
		}
	})
	for _, b := range ranges {
		if !hasMedia(all, b.Media) {
			all = append(all, b)
		}
	}
	return all
}

func hasMedia(bodies []Body, media string) bool {
	return slices.ContainsFunc(bodies, func(b Body) bool { return b.Media == media })
}

// deletionOf returns what a member of `content` lets clients send with a deletion.
func deletionOf(d *Document, m document.Node, as translation) []Body {
	all := bodyOf(d, m, as)
	for i := range all {
		if all[i].Form != nil {
			d.report.gap(m, "is not enforced: the gateway does not read forms of deletions")
			all[i] = Body{Media: all[i].Media, As: contract.AsBytes}
		}
	}
	return all
}

// undeclaredBodies are for operations without a declared body: JSON is read, all else passes.
var undeclaredBodies = []Body{
	{Media: "application/json", As: contract.AsJSON}, {Media: "application/*+json", As: contract.AsJSON}, {Media: "*/*", As: contract.AsBytes},
}

// patchOf returns what a member of `content` lets clients send with a PATCH, and names the media types that the gateway
// refuses. A patch has the members that it changes, and gets no defaults. In a form no field is required, because it has
// only those that it changes.
func patchOf(d *Document, m document.Node) (all []Body) {
	name := mediaName(m)
	_, hasSchema := d.follow(m).Get("schema")
	switch {
	case isJSONType(name), name == "*/*", name == "application/*":
		for _, b := range bodyOf(d, m, translation{of: ofChanges}) {
			if b.As == contract.AsJSON {
				all = append(all, b)
			}
		}
	case hasSchema && (name == fieldsType || name == partsType):
		for _, b := range bodyOf(d, m, translation{}) {
			if b.Schema.Props != nil {
				makePartial(b.Schema.Props)
			}
			b.Schema.Judge.Use = jsonschema.Partial
			all = append(all, b)
		}
	default:
		d.report.warn(m, "is refused: the gateway reads patches in JSON, and in forms with a schema")
	}
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

// mediaName returns the media type of a member of `content`.
func mediaName(m document.Node) string {
	name, _, _ := strings.Cut(strings.ToLower(m.Key()), ";")
	return strings.Clone(strings.TrimSpace(name))
}

func isJSONType(name string) bool {
	return name == "application/json" || strings.HasSuffix(name, "+json") || strings.HasSuffix(name, "/json")
}

// bodyOf returns what a member of `content` lets clients send.
func bodyOf(d *Document, m document.Node, as translation) []Body {
	name := mediaName(m)
	value, hasSchema := d.follow(m).Get("schema")
	json := Body{Media: name, As: contract.AsJSON}
	switch {
	case name == "*/*", name == "application/*":
		json.Media = "application/json"
		if isBytes := !hasSchema || isText(d, value); isBytes {
			return []Body{json, {Media: name, As: contract.AsBytes}}
		}
		json.Schema = d.cached(value, as)
		others := json
		others.Media = "application/*+json"
		return []Body{json, others}
	case isJSONType(name):
		if hasSchema {
			json.Schema = d.cached(value, as)
		}
		return []Body{json}
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
	s := d.translate(value, translation{of: ofUndefaulted}, nil)
	if s == nil || s.IsList() {
		d.report.warn(m, "is refused: the fields of a form must be the properties of an object")
		return nil
	}
	f := formReader{doc: d, as: as, schema: s, made: &contract.Form{}}
	f.encoding, _ = d.follow(m).Get("encoding")
	f.read(value)
	s.Judge.Schema = s.Judge.Schema.WithFiles(f.files...)
	s.reduce()
	return []Body{{Media: mediaName(m), As: as, Form: f.made, Schema: s, Place: Place(m)}}
}

// A formReader finds how the fields of a form are read.
type formReader struct {
	doc      *Document
	as       contract.Language
	encoding document.Node
	schema   *Schema
	made     *contract.Form
	files    []string // the fields whose values are names of files
}

// read reads the properties of the schema.
func (f *formReader) read(value document.Node) {
	t := &translator{doc: f.doc, depth: maxDepth, origins: map[string]document.Node{}}
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
	f.others(t, &c, value)
}

// others finds how fields are read that the schema does not name.
func (f *formReader) others(t *translator, c *conjunction, value document.Node) {
	props := f.schema.Props
	isOpen := props.AdditionalProperties != nil || props.XPreserveUnknownFields != nil && *props.XPreserveUnknownFields
	additional, _ := c.get("additionalProperties")
	switch {
	case !isOpen:
	case additional.Kind() != document.Object || additional.Len() == 0:
		f.made.Others = &contract.Parameter{In: contract.InBody, Types: []contract.Type{contract.String}}
	default:
		said := f.doc.report
		f.doc.report = newReport() // of keywords that the judge knows
		of, e := t.emit(t.flatten([]document.Node{additional}, nil), "", false)
		f.doc.report = said
		others := &contract.Parameter{In: contract.InBody}
		if why, ok := f.readAs(others, value, &of, e); !ok {
			f.refused(additional, why)
			return
		}
		f.made.Others = others
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
		if why, ok := f.readAs(&p, said, &props, e); !ok {
			f.refused(at, why)
			return
		}
	}
	f.made.Fields, f.made.Parts = append(f.made.Fields, p), append(f.made.Parts, part)
}

// refused names a field with which a form is refused.
func (f *formReader) refused(at document.Node, why string) {
	media := fieldsType
	if f.as == contract.AsParts {
		media = partsType
	}
	f.doc.report.warn(at, "is refused in forms of %s: %s", media, why)
}

// readAs finds how the text of a field becomes a value of its schema. If there is no way, it returns why: what a parameter
// would pass without is refused in a form, because a form with it would not be read whole.
func (f *formReader) readAs(p *contract.Parameter, said document.Node, props *apiextensionsv1.JSONSchemaProps, e *schema.Extensions) (why string, ok bool) {
	all := f.doc.report
	f.doc.report = newReport()
	ok = f.doc.readAs(p, said, props, e)
	for _, found := range f.doc.report.findings() {
		why = strings.TrimPrefix(found.Message, "is not enforced: ")
	}
	f.doc.report = all
	return why, ok
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

// isAnyMedia reports whether a contentMediaType is that of arbitrary bytes (RFC 2046), as files of each media type are.
func isAnyMedia(media document.Node) bool {
	return strings.EqualFold(media.Str(), "application/octet-stream")
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
	f.files = append(f.files, p.Name)
	c.each("pattern", func(n document.Node) {
		f.doc.report.gap(n, "is not enforced: the gateway does not read what is in files")
	})
	if media, found := c.get("contentMediaType"); found && len(part.Media) == 0 && !isAnyMedia(media) {
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
