package openapi_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/openapi"
)

// Whatever of parameters and credentials is not enforced is named.
func TestUnenforcedParameters(t *testing.T) {
	_, _, found := read(t, `
openapi: 3.0.3
security: [{key: []}]
paths:
  /things/{id}:
    get:
      security: [{tls: [], token: [read]}, {nothing: []}]
      parameters:
      - {name: gone, in: path, schema: {type: string}}
      - {name: a, in: body, schema: {type: string}}
      - {name: b, in: query, schema: {type: object}}
      - {name: c, in: query, style: deepObject, schema: {type: string}}
      - {name: id, in: query, style: matrix, schema: {type: string}}
      - {name: d, in: query, schema: {type: array, items: {type: object}}}
      - {name: e, in: query, schema: {oneOf: [{type: array, items: {}}, {type: string}]}}
      - {name: f, in: query, content: {text/csv: {schema: {type: string}}}}
      - {name: g, in: cookie, schema: {type: array, items: {type: string}}}
      - {name: h, in: query, schema: {oneOf: [{maxLength: 1}, {minimum: 1}]}}
      - {name: i, in: query, schema: {type: string, format: colour}}
      - {$ref: '#/components/parameters/None'}
components:
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Key}
    token: {type: oauth2, flows: {}}
    tls: {type: mutualTLS}
`).Resources(nil)
	got := findings(found)
	const get = "paths[/things/{id}].get."
	want := []string{
		get + "parameters[11].$ref: must point to something in the document, not '#/components/parameters/None'",
		get + "parameters[0]: warning: is not enforced: the path has no '{gone}'",
		get + "parameters[1]: warning: is not enforced: a parameter must have a name, and 'in' with 'path', 'query', 'header' or 'cookie'",
		get + "parameters[3]: gap: is not enforced: the gateway does not read parameters of the style 'deepObject' here",
		get + "parameters[4]: gap: is not enforced: the gateway does not read parameters of the style 'matrix' here",
		get + "parameters[5]: gap: is not enforced: the gateway reads no lists and objects within lists",
		get + "parameters[6]: gap: is not enforced: its alternatives name no types by which the text could be read",
		get + "parameters[7].content: gap: is not enforced: the gateway reads parameters with a schema, or in JSON",
		get + "parameters[8]: gap: is not enforced: the gateway does not read lists of the style 'form' here",
		get + "parameters[9]: gap: is not enforced: its alternatives name no types by which the text could be read",
		get + "parameters[10].schema.format: gap: the format 'colour' is not enforced",
		"components.securitySchemes.tls: gap: is not enforced: the gateway looks for an apiKey, and for credentials of the header Authorization",
		get + "security[0].token: note: is not enforced: the API itself knows which scopes its credentials have",
		get + "security[1].nothing: warning: is not enforced: the document has no such security scheme",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What is readOnly is found wherever the objects of a request have it, and reported if that cannot
// be decided.
func TestReadOnly(t *testing.T) {
	resources, _, found := read(t, things("3.0.3", `
Thing:
  allOf:
  - {$ref: '#/components/schemas/Base'}
  - type: object
    properties:
      list: {type: array, items: {$ref: '#/components/schemas/Base'}}
      map: {type: object, additionalProperties: {$ref: '#/components/schemas/Base'}}
      other: {oneOf: [{type: object, properties: {made: {type: string, readOnly: true}}}, {type: string}]}
Base: {type: object, properties: {id: {type: string, readOnly: true}, name: {type: string, readOnly: false}}}
`)).Resources(nil)
	want := []string{"components.schemas.Thing.allOf[1].properties.other.oneOf[0].properties.made.readOnly: gap: is not enforced within alternatives"}
	if got := findings(found); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	parse := func(text string) document.Node {
		d, err := document.Parse([]byte(text), document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Release)
		return d.Root()
	}
	for _, test := range []struct{ sent, stored, want string }{
		{`{"id":"a","name":"b"}`, `null`, `id `},
		{`{"id":"a","name":"b"}`, `{"id":"a"}`, ``},
		{`{"id":"a","name":"b"}`, `{"id":"c"}`, `id "c"`},
		{`{"list":[{"id":"a"}],"map":{"k":{"id":"b"}}}`, `{"list":[{"id":"a"}],"map":{"k":{"id":"c"}}}`,
			`map.k.id "c"`},
		{`{"list":[{"id":"a"},{"name":"b"}]}`, `{"list":[{"id":"a"}]}`, `list[0].id `},
		{`{"other":{"made":"x"}}`, `{}`, ``},
		{`[1]`, `{}`, ``},
	} {
		var got []string
		resources[0].Create.Owned.Each(parse(test.sent), parse(test.stored), func(sent, stored document.Node) {
			got = append(got, sent.Path()+" "+string(stored.Raw()))
		})
		if strings.Join(got, "; ") != test.want {
			t.Errorf("%s over %s: got %q, want %q", test.sent, test.stored, got, test.want)
		}
	}
}

// What is writeOnly is found wherever objects have it. The result of a patch of the stored object
// may lack it, and gets no default for it, in alternatives too.
func TestWriteOnly(t *testing.T) {
	resources, _, found := read(t, things("3.0.3", `
Thing:
  allOf:
  - {$ref: '#/components/schemas/Base'}
  - type: object
    properties:
      list: {type: array, items: {$ref: '#/components/schemas/Base'}}
      map: {type: object, additionalProperties: {$ref: '#/components/schemas/Base'}}
      other: {oneOf: [{type: object, required: [key], properties: {key: {type: string, writeOnly: true}}}, {type: string}]}
Base:
  type: object
  required: [key, name]
  properties: {key: {type: integer, writeOnly: true}, pin: {type: string, writeOnly: true, default: p}, name: {type: string, writeOnly: false}}
`)).Resources(nil)
	if len(found) > 0 {
		t.Errorf("found %q", findings(found))
	}
	for _, test := range []struct{ object, hidden, missing, created, patched string }{
		{`{"name":"a","key":1,"pin":"b"}`, "key pin", "", `{"name":"a","key":1,"pin":"b"} `,
			`{"name":"a","key":1,"pin":"b"} `},
		{`{"name":"a"}`, "", ".key .pin", `{"name":"a","pin":"p"} key: Required value`, `{"name":"a"} `},
		{`{"key":"x"}`, "key", ".pin", `{"key":"x","pin":"p"} name: Required value; key: Invalid value: "string": must be of type integer`,
			`{"key":"x"} name: Required value; key: Invalid value: "string": must be of type integer`},
		{`{"name":"a","key":1,"pin":"","list":[{"name":"b"}],"map":{"k":{"name":"c","pin":"d"}},"other":{}}`,
			"key map.k.pin pin", "list[0].key list[0].pin map.k.key",
			`{"name":"a","key":1,"pin":"","list":[{"name":"b","pin":"p"}],"map":{"k":{"name":"c","pin":"d"}},"other":{}} ` +
				`list[0].key: Required value; map[k].key: Required value; ` +
				`other: Invalid value: must match exactly one of the alternatives in 'oneOf', and matches none; other.key: Required value`,
			`{"name":"a","key":1,"pin":"","list":[{"name":"b"}],"map":{"k":{"name":"c","pin":"d"}},"other":{}} `},
	} {
		d, err := document.Parse([]byte(test.object), document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		r := resources[0]
		var hidden, missing []string
		for _, n := range r.Result.Hidden.In(d.Root()) {
			hidden = append(hidden, n.Path())
		}
		r.Result.Hidden.Missing(d.Root(),
			func(around document.Node, name string) { missing = append(missing, around.Path()+"."+name) })
		if got := strings.Join(hidden, " "); got != test.hidden {
			t.Errorf("%s: %q is hidden, want %q", test.object, got, test.hidden)
		}
		if got := strings.Join(missing, " "); got != test.missing {
			t.Errorf("%s: %q is missing, want %q", test.object, got, test.missing)
		}
		for _, one := range []struct {
			of   *openapi.Schema
			want string
		}{{r.Create, test.created}, {r.Result.ForPatches(), test.patched}} {
			object, wrong := admitted(t, compiled(t, one.of), test.object)
			if got := object + " " + strings.Join(wrong, "; "); got != one.want {
				t.Errorf("%s becomes\n%s\nwant\n%s", test.object, got, one.want)
			}
		}
		d.Release()
	}
}
