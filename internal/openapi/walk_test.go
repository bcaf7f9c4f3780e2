package openapi_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/openapi"
)

// everything is a document with all that OpenAPI knows besides schemas, and keywords that it does not know.
const everything = `
openapi: 3.1.0
info: {title: a, version: v1}
jsonSchemaDialect: https://json-schema.org/draft/2020-12/schema
x-other: {anything: 1}
webhooks: {made: {post: {}}}
security: [{key: []}]
unknown: 1
paths:
  /things:
    summary: all
    trace: {description: no}
    query: {description: a method of later versions}
    put: {responses: {'204': {description: done}}}
    get: {responses: {'200': {description: ok, headers: {X-Total: {schema: {type: integer}}}}}}
    post:
      tags: [a]
      operationId: make
      externalDocs: {url: http://a}
      parameters: [{name: q, in: query, allowReserved: true, schema: {type: string}, odd: 1}]
      requestBody:
        description: one
        content:
          application/json: {schema: {$ref: '#/components/schemas/Thing'}, example: {}}
          multipart/form-data:
            schema: {type: object, properties: {f: {type: string}}}
            encoding: {f: {headers: {X-A: {schema: {type: string}}}, allowReserved: true}}
      callbacks: {done: {'{$request.body#/url}': {post: {}}}}
      responses:
        '201': {description: ok, links: {next: {operationId: make}}, content: {application/json: {schema: {$ref: '#/components/schemas/Thing'}}}}
        default: {$ref: '#/components/responses/Bad'}
components:
  securitySchemes: {key: {type: apiKey, in: header, name: X-Key}}
  responses: {Bad: {description: bad, content: {text/plain: {}}}}
  schemas:
    Thing:
      type: object
      properties:
        secret: {type: string, writeOnly: true}
        picture: {type: string, contentEncoding: base64, contentMediaType: image/png}
        self: {$ref: '#/components/schemas/Thing'}
        list: {type: array, items: {type: string, xml: {name: a}}}
`

// TestOverlooked: whatever of a document is not enforced is named, except what Resources names.
func TestOverlooked(t *testing.T) {
	said := func(list []openapi.Finding) (all []string) {
		for _, f := range list {
			all = append(all, f.Path+": "+f.Message)
		}
		return all
	}
	found, mild := openapi.Overlooked(read(t, everything))
	got, want := said(found), []string{
		"jsonSchemaDialect: is not enforced: schemas are read in the dialect of OpenAPI",
		"webhooks: is not enforced: webhooks go from the API to its clients: the gateway does not see them",
		"unknown: the keyword 'unknown' is not enforced",
		"paths[/things].trace: is not enforced: TRACE is refused: no server behind a gateway can answer it truly",
		"paths[/things].post.parameters[0].allowReserved: is not enforced: reserved characters pass, encoded or not",
		"paths[/things].post.parameters[0].odd: the keyword 'odd' is not enforced",
		"components.schemas.Thing.properties.picture.contentEncoding: is not enforced: the gateway does not look into texts",
		"components.schemas.Thing.properties.picture.contentMediaType: is not enforced: the gateway does not look into texts, and takes it for the type of a file in forms alone",
		"components.schemas.Thing.properties.list.items.xml: is not enforced: the gateway reads no XML",
		"paths[/things].post.requestBody.content[multipart/form-data].encoding.f.headers: is not enforced: headers of parts are not enforced",
		"paths[/things].post.requestBody.content[multipart/form-data].encoding.f.allowReserved: is not enforced: reserved characters pass, encoded or not",
		"paths[/things].post.callbacks: is not enforced: callbacks go from the API to its clients: the gateway does not see them",
		"paths[/things].post.responses.201.links: is not enforced: links are not followed",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	got, want = said(mild), []string{
		"paths[/things].put: says nothing of its body: what is no JSON passes without being read",
		"paths[/things].get.responses.200.headers: is not enforced: answers pass as they come, whatever their codes, headers and bodies",
		"components.schemas.Thing.properties.secret.writeOnly: is not enforced in answers: they pass as they come",
		"paths[/things].post.responses.201.content: is not enforced: answers pass as they come, whatever their codes, headers and bodies",
		"components.responses.Bad.content: is not enforced: answers pass as they come, whatever their codes, headers and bodies",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestVersion32: what OpenAPI 3.2 adds holds, or is named.
func TestVersion32(t *testing.T) {
	const document = `
openapi: 3.2.0
$self: https://example.com/orders.yaml
info: {title: Orders, version: v1}
tags: [{name: a, summary: A, parent: b, kind: nav}, {name: b}]
servers: [{url: /v1, name: first}]
paths:
  /orders:
    query: {requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {'200': {description: ok}}}
    additionalOperations:
      COPY: {responses: {'204': {description: done}}}
      copy: {}
      GET: {}
      TRACE: {}
      "a b": {}
    get:
      parameters:
      - {name: all, in: querystring, content: {application/json: {schema: {type: object}}}}
      - {name: taste, in: cookie, style: cookie, schema: {type: string}}
      responses: {'200': {summary: ok, content: {application/jsonl: {itemSchema: {type: object}}}}}
    post:
      requestBody:
        content:
          application/json: {$ref: '#/components/mediaTypes/Order'}
          application/jsonl: {itemSchema: {type: object}}
          multipart/mixed: {prefixEncoding: [{contentType: text/plain}], itemEncoding: {contentType: image/png}}
      responses: {'201': {description: ok}}
components:
  mediaTypes:
    Order: {schema: {type: object, required: [name], properties: {name: {type: string}}}}
`
	d := read(t, document)
	all, documented, found := d.Resources(func(*openapi.Resource) {})
	over, _ := openapi.Overlooked(d)
	var got []string
	for _, f := range append(found, over...) {
		if !strings.HasSuffix(f.Path, ".responses") {
			got = append(got, f.Path+": "+f.Message)
		}
	}
	slices.Sort(got)
	want := []string{
		"$self: is not enforced: a reference counts from the file that it is in, and no reference leads to a URL",
		"paths[/orders].additionalOperations.GET: is not enforced: here stand methods without small letters that have no member of their own, such as 'COPY'",
		"paths[/orders].additionalOperations.TRACE: is not enforced: here stand methods without small letters that have no member of their own, such as 'COPY'",
		"paths[/orders].additionalOperations.copy: is not enforced: here stand methods without small letters that have no member of their own, such as 'COPY'",
		"paths[/orders].additionalOperations[a b]: is not enforced: here stand methods without small letters that have no member of their own, such as 'COPY'",
		"paths[/orders].get.parameters[0]: is not enforced: the gateway does not read the whole query as one value",
		"paths[/orders].get.parameters[1]: is not enforced: the gateway does not read parameters of the style 'cookie' here",
		"paths[/orders].post.requestBody.content[application/jsonl].itemSchema: is not enforced: the gateway does not read the items of a sequence",
		"paths[/orders].post.requestBody.content[multipart/mixed].itemEncoding: is not enforced: the gateway reads the parts of a form by their names",
		"paths[/orders].post.requestBody.content[multipart/mixed].prefixEncoding: is not enforced: the gateway reads the parts of a form by their names",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var named []string
	for _, o := range documented {
		named = append(named, o.Method+" "+strings.Join(o.Templates, " "))
	}
	if want := []string{"QUERY /v1/orders", "COPY /v1/orders"}; !slices.Equal(named, want) {
		t.Errorf("operations %q, want %q", named, want)
	}
	var bodies []string
	for _, o := range all[0].Operations() {
		for _, b := range o.Bodies {
			if b.Schema != nil {
				b.Media += " with a schema"
			}
			bodies = append(bodies, b.Media)
		}
	}
	if want := []string{"application/json with a schema", "application/jsonl", "multipart/mixed"}; !slices.Equal(bodies,
		want) {
		t.Errorf("bodies %q, want %q", bodies, want)
	}
}

// TestOverlookedOfSchemas: what a default or `nullable` takes away from another keyword is named.
func TestOverlookedOfSchemas(t *testing.T) {
	const document = `
openapi: 3.0.3
info: {title: Orders, version: v1}
paths:
  /orders:
    post: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Order'}}}}, responses: {'201': {description: ok}}}
  /bills:
    x-admission-gateway-resource: {defaults: Off}
    post: {requestBody: {content: {application/json: {schema: {required: [size], properties: {size: {type: integer, default: 1}}}}}}, responses: {'201': {description: ok}}}
components:
  schemas:
    Size: {type: integer, default: 1}
    Order:
      type: object
      required: [customer, quantity, size]
      properties:
        customer: {type: string}
        quantity: {type: integer, default: 1}
        size: {$ref: '#/components/schemas/Size'}
        state: {type: string, nullable: true, enum: [open, paid]}
        reason: {type: string, nullable: true, enum: [late, null]}
`
	d := read(t, document)
	d.Resources(nil)
	var got []string
	_, mild := openapi.Overlooked(d)
	for _, f := range mild {
		if !strings.HasSuffix(f.Path, ".responses") {
			got = append(got, f.Path+": "+f.Message)
		}
	}
	want := []string{
		"components.schemas.Order.required: is not enforced of 'quantity', 'size', whose default is filled in",
		"components.schemas.Order.properties.state.enum: is not enforced of null, which `nullable` lets be",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestOverlookedAnswers: keywords of answers that are checked against the document are not named,
// but for what the gateway does not read.
func TestOverlookedAnswers(t *testing.T) {
	const answers = `
openapi: 3.0.3
info: {title: Things, version: "1"}
x-admission-gateway-resource: {responses: Warn}
paths:
  /things/{id}:
    get:
      responses:
        '200':
          headers: {X-A: {schema: {type: string}, odd: 1}}
          content:
            application/json: {schema: {$ref: '#/components/schemas/Thing'}}
            text/csv: {schema: {type: string}}
            image/*: {schema: {type: string}}
        '20': {description: odd}
    put: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Thing'}}}}, responses: {default: {description: ok}}}
%s
components:
  schemas:
    Thing:
      type: object
      properties: {secret: {type: string, writeOnly: true}, body: {type: string, contentEncoding: base64}}
`
	for _, test := range []struct {
		more string
		mild []string
	}{
		{"", []string{"paths[/things/{id}].get.responses.200.content[text/csv].schema: is not enforced in answers: the gateway reads their JSON alone"}},
		{"  /others/{id}:\n    x-admission-gateway-resource: {responses: Ignore}\n    get: {responses: {'200': {headers: {X-B: {}}}}}", []string{
			"components.schemas.Thing.properties.secret.writeOnly: is not enforced in answers: they pass as they come",
			"paths[/things/{id}].get.responses.200.content[text/csv].schema: is not enforced in answers: the gateway reads their JSON alone",
			"paths[/others/{id}].get.responses.200.headers: is not enforced: answers pass as they come, whatever their codes, headers and bodies",
		}},
	} {
		d := read(t, fmt.Sprintf(answers, test.more))
		_, _, found := d.Resources(nil)
		if got := findings(found); len(got) > 0 {
			t.Errorf("got\n%s", strings.Join(got, "\n"))
		}
		overlooked, mild := openapi.Overlooked(d)
		want := []string{
			"paths[/things/{id}].get.responses.20: must be a status code, such as '200' or '2XX', or 'default'",
			"paths[/things/{id}].get.responses.200.headers.X-A.odd: warning: the keyword 'odd' is not enforced",
			"components.schemas.Thing.properties.body.contentEncoding: gap: is not enforced: the gateway does not look into texts",
		}
		if got := findings(overlooked); !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		var got []string
		for _, f := range mild {
			got = append(got, f.Path+": "+f.Message)
		}
		if !slices.Equal(got, test.mild) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.mild, "\n"))
		}
	}
}

// TestEveryPlaceIsNamed: a finding that many operations share is there for each of them.
func TestEveryPlaceIsNamed(t *testing.T) {
	var text strings.Builder
	text.WriteString("openapi: 3.1.0\ninfo: {title: T, version: '1'}\npaths:\n")
	for i := range 30 {
		fmt.Fprintf(&text, "  /p%d: {post: {unknown: 1}}\n", i)
	}
	found, _ := openapi.Overlooked(read(t, text.String()))
	places := map[string]int{}
	for _, f := range found {
		places[f.Message]++
	}
	if want := map[string]int{"the keyword 'unknown' is not enforced": 30}; !maps.Equal(places, want) {
		t.Errorf("got %v, want %v", places, want)
	}
}
