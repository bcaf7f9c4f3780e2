package openapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/openapi"
)

// TestSuccesses: the answer that is made up for an operation is of the schema that the document has for its first
// success.
func TestSuccesses(t *testing.T) {
	const answer = `{description: d, content: {application/json: {schema: %s}}}`
	for name, c := range map[string]struct{ responses, want string }{
		"an example": {
			`{"201": {description: d, content: {application/json: {example: {a: 1}, schema: {type: string}}}}}`,
			`[201] application/json {"a":1}`,
		},
		"one of examples": {
			`{"200": {description: d, content: {application/json: {examples: {one: {value: [2]}}}}}}`,
			`[200] application/json [2]`,
		},
		"failures are none": {`{"404": {description: d}, default: {description: d}, "199": {description: d}, "300": {description: d}}`,
			``},
		"no body": {`{"204": {description: d}, "200": ` + fmt.Sprintf(answer, `{type: string}`) + `}`,
			`[204 200] `},
		"a range": {`{2XX: ` + fmt.Sprintf(answer, `{type: boolean}`) + `}`, `[200] application/json true`},
		"any media type": {`{"200": {description: d, content: {"*/*": {schema: {type: boolean}}}}}`,
			`[200] application/json true`},
		"required members": {
			`{"200": ` + fmt.Sprintf(answer, `{type: object, required: [a, secret, n], properties: {a: {type: string}, b: {type: string},
			secret: {type: string, writeOnly: true}, n: {type: integer, minimum: 3}}}`) + `}`, `[200] application/json {"a":"text","n":3}`,
		},
		"parts": {
			`{"200": ` + fmt.Sprintf(answer,
				`{allOf: [{required: [a]}, {properties: {a: {const: x}}}, {required: [b], properties: {b: {enum: [y, z]}}}]}`) + `}`,
			`[200] application/json {"a":"x","b":"y"}`,
		},
		"a choice": {`{"200": ` + fmt.Sprintf(answer, `{oneOf: [{type: integer, maximum: -2}, {type: string}]}`) + `}`,
			`[200] application/json -2`},
		"a list": {
			`{"200": ` + fmt.Sprintf(answer, `{type: array, minItems: 2, items: {type: string, format: date}}`) + `}`,
			`[200] application/json ["2030-01-01","2030-01-01"]`,
		},
		"types": {`{"200": ` + fmt.Sprintf(answer, `{type: ["null", string]}`) + `}`, `[200] application/json null`},
		"too much": {`{"200": ` + fmt.Sprintf(answer, `{type: array, minItems: 900, items: {type: string}}`) + `}`,
			`[200] `},
		// An object that requires one of its own kind ends where it is too deep to go on.
		"recursion": {
			`{"200": ` + fmt.Sprintf(answer, `{$ref: "#/components/schemas/Node"}`) + `}`,
			`[200] application/json ` + strings.Repeat(`{"next":`, 13) + "null" + strings.Repeat("}", 13),
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := read(t, `{openapi: 3.1.0, info: {title: a, version: "1"}, components: {schemas: {Node: {type: object, required: [next], properties: {
  next: {$ref: "#/components/schemas/Node"}}}}}, paths: {/things: {get: {responses: `+c.responses+`}}}}`)
			got := ""
			for _, s := range openapi.Successes(d) {
				if s.Method != "GET" || len(s.Templates) != 1 || s.Templates[0] != "/things" {
					t.Errorf("the operation is %s %v", s.Method, s.Templates)
				}
				if len(s.Body) > 0 && !json.Valid(s.Body) {
					t.Errorf("the body is %s", s.Body)
				}
				got = fmt.Sprintf("%v %s %s", s.Codes, s.Media, s.Body)
			}
			if strings.TrimSpace(got) != strings.TrimSpace(c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
