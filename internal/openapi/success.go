package openapi

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Successes returns how the operations of the document are answered. It does not need the resources.
func Successes(d *Document) (all []resource.Success) {
	for _, p := range d.paths() {
		for _, method := range p.named() {
			operation := p.operation(method)
			if !operation.Valid() {
				continue
			}
			one := resource.Success{Method: strings.ToUpper(method)}
			for _, base := range p.bases {
				one.Templates = append(one.Templates, base+p.path)
			}
			d.success(&one, operation)
			if len(one.Codes) > 0 {
				all = append(all, one)
			}
		}
	}
	return all
}

// success finds the answers of an operation.
func (d *Document) success(s *resource.Success, operation document.Node) {
	responses, _ := operation.Get("responses")
	members(responses, func(m document.Node) {
		code, isCode := codeOf(m.Key())
		if code == 2 {
			code = 200 // a range
		}
		if !isCode || code < 200 || code > 299 {
			return
		}
		if s.Codes = append(s.Codes, code); len(s.Codes) > 1 {
			return
		}
		content, _ := d.follow(m).Get("content")
		media := jsonMedia(content)
		if !media.Valid() {
			return
		}
		if body := d.sampleOf(d.follow(media)); body != nil {
			s.Media, s.Body = mediaName(media), body
		}
	})
	if strings.Contains(s.Media, "*") {
		s.Media = "application/json"
	}
}

// sampleOf returns a body of a media type; nil if there is none.
func (d *Document) sampleOf(media document.Node) []byte {
	if example, found := media.Get("example"); found {
		return example.AppendRaw(nil)
	}
	examples, _ := media.Get("examples")
	if value, found := d.follow(examples.First()).Get("value"); found {
		return value.AppendRaw(nil)
	}
	of, found := media.Get("schema")
	if !found {
		return nil
	}
	m := &sampler{doc: d, left: maxSampled}
	body, err := json.Marshal(m.value(of, 0))
	if err != nil || m.left <= 0 {
		return nil
	}
	return body
}

// The bounds of answers that are made: how many values one has, and how deep it is.
const (
	maxSampled      = 500
	maxSampledDepth = 12
)

// A sampler makes a value of a schema.
type sampler struct {
	doc  *Document
	left int // how many more values there may be
}

// value returns a value of a schema, as near as its types, bounds and required members say.
func (m *sampler) value(of document.Node, depth int) any {
	of = m.doc.follow(of)
	if m.left--; m.left <= 0 || !of.Valid() || depth > maxSampledDepth {
		return nil
	}
	for _, key := range []string{"example", "default", "const"} {
		if n, found := of.Get(key); found {
			return json.RawMessage(n.AppendRaw(nil))
		}
	}
	for _, key := range []string{"examples", "enum"} {
		if list, _ := of.Get(key); list.First().Valid() {
			return json.RawMessage(list.First().AppendRaw(nil))
		}
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		list, _ := of.Get(key)
		if _, hasType := of.Get("properties"); list.First().Valid() && !hasType {
			return m.value(list.First(), depth+1)
		}
	}
	parts := m.parts(of, nil, 0)
	switch typeOfParts(parts) {
	case "object":
		return m.object(parts, depth)
	case "array":
		items, _ := of.Get("items")
		list := []any{}
		for range min(size(of, "minItems"), m.left) {
			list = append(list, m.value(items, depth+1))
		}
		return list
	case "string":
		return m.textOf(of)
	case "integer", "number":
		if least, found := of.Get("minimum"); found {
			return json.RawMessage(least.AppendRaw(nil))
		}
		if most, found := of.Get("maximum"); found && strings.HasPrefix(string(most.Raw()), "-") {
			return json.RawMessage(most.AppendRaw(nil))
		}
		return 1
	case "boolean":
		return true
	}
	return nil
}

// parts returns the schema and the ones that it consists of.
func (m *sampler) parts(of document.Node, all []document.Node, depth int) []document.Node {
	if depth > maxSampledDepth || len(all) > maxSampled || !of.Valid() {
		return all
	}
	all = append(all, of)
	list, _ := of.Get("allOf")
	members(list, func(n document.Node) { all = m.parts(m.doc.follow(n), all, depth+1) })
	return all
}

// typeOfParts returns the first type that a part names.
func typeOfParts(parts []document.Node) string {
	for _, p := range parts {
		t, _ := p.Get("type")
		if t.Kind() == document.Array {
			t = t.First()
		}
		if t.Kind() == document.String {
			return t.Str()
		}
		if _, has := p.Get("properties"); has {
			return "object"
		}
	}
	return ""
}

// object returns an object with the members that are required of it, and that are not for requests alone.
func (m *sampler) object(parts []document.Node, depth int) map[string]any {
	o := map[string]any{}
	var required []string
	for _, p := range parts {
		list, _ := p.Get("required")
		members(list, func(n document.Node) { required = append(required, n.Str()) })
	}
	for _, p := range parts {
		properties, _ := p.Get("properties")
		members(properties, func(n document.Node) {
			name := strings.Clone(n.Key())
			if _, has := o[name]; !has && slices.Contains(required, name) && !truth(m.doc.follow(n), "writeOnly") {
				o[name] = m.value(n, depth+1)
			}
		})
	}
	return o
}

// size returns a bound of a schema; 0 if there is none.
func size(of document.Node, key string) int {
	bound, found := of.Get(key)
	if !found {
		return 0
	}
	n, err := strconv.Atoi(string(bound.Raw()))
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// sampleFormats are texts of the formats that documents use.
var sampleFormats = map[string]string{
	"date-time": "2030-01-01T00:00:00Z", "date": "2030-01-01", "time": "00:00:00Z", "duration": "PT1S",
	"uuid":  "00000000-0000-4000-8000-000000000001",
	"email": "user@example.com", "uri": "https://example.com/", "url": "https://example.com/", "uri-reference": "/",
	"hostname": "example.com",
	"ipv4":     "192.0.2.1", "ipv6": "2001:db8::1", "byte": "AA==",
}

// textOf returns a text of a schema. Patterns are not read.
func (m *sampler) textOf(of document.Node) string {
	if known := sampleFormats[text(of, "format")]; known != "" {
		return known
	}
	length := size(of, "minLength")
	if _, isBound := of.Get("maxLength"); isBound && size(of, "maxLength") < len(sampleText) {
		return sampleText[:size(of, "maxLength")]
	}
	if length > maxSampled {
		m.left = 0 // no answer is made
		return ""
	}
	return sampleText + strings.Repeat("x", max(length-len(sampleText), 0))
}

// sampleText is the text that answers have.
const sampleText = "text"
