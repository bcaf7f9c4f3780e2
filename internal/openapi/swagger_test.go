package openapi_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/openapi"
)

const swagger = `
swagger: '2.0'
info: {title: Silences, version: 1.0.0}
basePath: /api/v2
consumes: [application/json]
produces: [application/json]
paths:
  /silences:
    get:
      responses: {"200": {description: ok, schema: {type: object, properties: {data: {type: array, items: {$ref: '#/definitions/silence'}}}}}}
    post:
      parameters:
      - {in: body, name: silence, required: true, schema: {$ref: '#/definitions/silence'}}
      responses: {"200": {description: ok}}
  /silences/{id}:
    get:
      responses: {"200": {description: ok, schema: {$ref: '#/definitions/silence'}}}
    x-admission-gateway-resource: {names: {plural: mutes}}
definitions:
  silence:
    type: object
    required: [comment]
    properties:
      id: {type: string, readOnly: true}
      comment: {type: string, maxLength: 5, x-nullable: true}
      count: {type: integer, maximum: 9007199254740993}
      author: {type: string, maxLength: 5, nullable: true}
      labels: {type: object, additionalProperties: {type: string}, divisibleBy: 1}
`

// A document of version 2 is read as the document of version 3.0 that it converts to. Findings lead to the file as it
// is.
func TestSwagger(t *testing.T) {
	resources, operations, found := read(t, swagger).Resources(nil)
	if len(resources) != 1 || len(operations) > 0 {
		t.Fatalf("got %d resources, %d operations", len(resources), len(operations))
	}
	r := resources[0]
	type summary struct{ plural, kind, paths, items, name string }
	got := summary{r.Plural, r.Kind, strings.Join(r.Paths, " "), r.ItemsField, r.NameField}
	if want := (summary{"mutes", "Silence", "/api/v2/silences /api/v2/silences/{name}", "data", "id"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	wantFound := []string{
		"definitions.silence.properties.count.maximum: gap: is rounded to a double while the document is converted to OpenAPI 3",
		"definitions.silence.properties.labels.divisibleBy: warning: the keyword 'divisibleBy' is not enforced",
	}
	if got := findings(found); !slices.Equal(got, wantFound) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wantFound, "\n"))
	}
	if overlooked, _ := openapi.Overlooked(read(t, swagger)); len(overlooked) > 0 {
		t.Errorf("the document has %v, and nothing in it is unknown", overlooked)
	}
	s := compiled(t, r.Create)
	for text, want := range map[string]string{
		`{"comment":"short"}`:                          "",
		`{"comment":null}`:                             "",
		`{"comment":"a","author":null}`:                "",
		`{"id":"a"}`:                                   `comment: Required value`,
		`{"comment":"longer"}`:                         `comment: Too long: must be at most 5 characters`,
		`{"comment":"short","labels":{"a":1}}`:         `labels[a]: Invalid value: "integer": must be of type string`,
		`{"comment":"short","count":9007199254740994}`: `count: Invalid value: 9007199254740994: must be less than or equal to 9007199254740992`,
	} {
		if _, wrong := admitted(t, s, text); strings.Join(wrong, "; ") != want {
			t.Errorf("%s: got %q, want %q", text, wrong, want)
		}
	}
}

func TestSwaggerRefusals(t *testing.T) {
	for text, want := range map[string]string{
		`{"swagger":"1.2"}`:              "must be of version 2.0 of Swagger, not '1.2'",
		`{"swagger":"2.0","paths":[]}`:   "must be a document of Swagger 2.0 that can be converted to OpenAPI 3: ",
		`{"swagger":"2.0","host":"a/b"}`: `must be a document of Swagger 2.0 that can be converted to OpenAPI 3: invalid host "a/b"`,
	} {
		d, err := openapi.Parse([]byte(text))
		if err == nil {
			d.Release()
			t.Errorf("%s: no error", text)
		} else if !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %q, want %q", text, err, want)
		}
	}
}
