package openapi

import (
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/schema/graph"
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
	{Media: "application/json", As: contract.AsJSON}, {Media: "application/*+json", As: contract.AsJSON},
	{Media: "*/*", As: contract.AsBytes},
}

// patchOf returns what a member of `content` lets clients send with a PATCH, and names the media types that the gateway
// refuses. A patch has the members that it changes, and gets no defaults. In a form no field is required, because it
// has only those that it changes.
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
			b.Schema.use = graph.Partial
			all = append(all, b)
		}
	default:
		d.report.warn(m, "is refused: the gateway reads patches in JSON, and in forms with a schema")
	}
	return all
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
		json.Schema = d.schemaOf(value, as)
		others := json
		others.Media = "application/*+json"
		return []Body{json, others}
	case isJSONType(name):
		if hasSchema {
			json.Schema = d.schemaOf(value, as)
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
	c := d.conjunctionOf(value)
	return c.is("string")
}

// formOf returns how a form is read, by its schema and its encoding.
func formOf(d *Document, m, value document.Node, as contract.Language) []Body {
	s := d.newSchema(value, translation{of: ofUndefaulted})
	if s.IsList() {
		d.report.warn(m, "is refused: the fields of a form must be the properties of an object")
		return nil
	}
	f := formReader{doc: d, as: as, made: &contract.Form{}}
	f.encoding, _ = d.follow(m).Get("encoding")
	f.read(value, d.modelOf(value, s.as))
	s.check = s.check.WithFiles(f.files...)
	return []Body{{Media: mediaName(m), As: as, Form: f.made, Schema: s, Place: Place(m)}}
}

// A formReader finds how the fields of a form are read.
type formReader struct {
	doc      *Document
	as       contract.Language
	encoding document.Node
	made     *contract.Form
	files    []string // the fields whose values are names of files
}

// read reads the properties of the schema.
func (f *formReader) read(value document.Node, m *schema.Model) {
	c := f.doc.conjunctionOf(value)
	done := map[string]bool{}
	c.each("properties", func(properties document.Node) {
		members(properties, func(at document.Node) {
			if name := strings.Clone(at.Key()); !done[name] {
				done[name] = true
				f.field(name, at, m.Property(name))
			}
		})
	})
	f.others(&c, m, value)
}

// others finds how fields are read that the schema does not name.
func (f *formReader) others(c *conjunction, m *schema.Model, value document.Node) {
	additional, _ := c.get("additionalProperties")
	switch {
	case m.IsClosed:
	case m.Others == nil || additional.Kind() != document.Object || additional.Len() == 0:
		f.made.Others = &contract.Parameter{In: contract.InBody, Types: []contract.Type{contract.String}}
	default:
		others := &contract.Parameter{In: contract.InBody}
		if why, ok := f.readAs(others, value, m.Others); !ok {
			f.refused(additional, why)
			return
		}
		f.made.Others = others
	}
}

// field reads a property of the schema.
func (f *formReader) field(name string, at document.Node, m *schema.Model) {
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
	switch file, isList := f.file(at); {
	case file.Valid():
		f.readFile(&p, &part, file, isList)
	case f.isJSON(m, part.Media):
		p.Shape = contract.JSON
		if f.as == contract.AsParts && m.Is("array") && len(part.Media) == 0 {
			p.Shape, p.Items = contract.List, contract.JSON
		}
	default:
		if why, ok := f.readAs(&p, said, m); !ok {
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

// readAs finds how the text of a field becomes a value of its schema. If there is no way, it returns why: what a
// parameter would pass without is refused in a form, because a form with it would not be read whole.
func (f *formReader) readAs(p *contract.Parameter, said document.Node, m *schema.Model) (why string, ok bool) {
	all := f.doc.report
	f.doc.report = newReport()
	ok = f.doc.readAs(p, said, m)
	for _, found := range f.doc.report.findings() {
		why = strings.TrimPrefix(found.Message, "is not enforced: ")
	}
	f.doc.report = all
	return why, ok
}

// isJSON reports whether a field is written in JSON: the encoding says so, or it is an object in a part.
func (f *formReader) isJSON(m *schema.Model, media []string) bool {
	if len(media) > 0 {
		return every(media, isJSONType)
	}
	if f.as == contract.AsParts && m.Is("array") {
		m = m.Items
	}
	return f.as == contract.AsParts && slices.Contains(m.Types, "object")
}

// every reports whether something is true of each text.
func every(texts []string, is func(string) bool) bool {
	return !slices.ContainsFunc(texts, func(one string) bool { return !is(one) })
}

// file returns the schema of a file, if a property is a file or a list of files.
func (f *formReader) file(at document.Node) (file document.Node, isList bool) {
	c := f.doc.conjunctionOf(at)
	if c.is("array") {
		at, isList = document.Node{}, true
		c.each("items", func(n document.Node) { at = n })
		if !at.Valid() {
			return at, false
		}
		c = f.doc.conjunctionOf(at)
	}
	types, _ := c.types()
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
	c := f.doc.conjunctionOf(file)
	if least := c.count("minLength", isMore); least != nil {
		part.MinBytes = *least
	}
	if most := c.count("maxLength", isLess); most != nil {
		part.MaxBytes = *most
	}
	f.files = append(f.files, p.Name)
	c.each("pattern", func(n document.Node) {
		f.doc.report.gap(n, "is not enforced: the gateway does not read what is in files")
	})
	if media, found := c.get("contentMediaType"); found && len(part.Media) == 0 && !isAnyMedia(media) {
		part.Media = []string{strings.ToLower(strings.Clone(media.Str()))}
	}
	if isList {
		p.Shape = contract.List
	}
}
