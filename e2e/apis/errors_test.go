package apis

import (
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"os"
	"slices"
	"strings"
	"testing"
)

// ordersDocument describes what the servers of orders validate themselves.
const ordersDocument = `openapi: 3.1.0
info: {title: Orders, version: "1"}
x-admission-gateway-resource: {errorFormat: Template, errorTemplate: %s}
paths:
  /orders:
    get: {parameters: [{name: limit, in: query, schema: {type: integer, maximum: 50}}]}
    post: {requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Order'}}}}}
components:
  schemas:
    Order:
      type: object
      required: [title]
      additionalProperties: false
      properties:
        title: {type: string, minLength: 1, maxLength: 5}
        state: {type: string, enum: [open, paid]}
        lines: {type: array, items: {$ref: '#/components/schemas/Line'}}
    Line:
      type: object
      required: [sku, count]
      properties: {sku: {type: string, minLength: 1}, count: {type: integer, minimum: 1, maximum: 9}}
`

// TestErrorsAsTheFrameworks: the library's templates write refusals as the frameworks do that they are named after:
// with the same code, media type and members. What differs is listed: each row has what the framework says and what the
// gateway says.
func TestErrorsAsTheFrameworks(t *testing.T) {
	for name, tt := range map[string]struct {
		start    func(t *testing.T) *program
		template string
		rows     []errorRow
	}{
		"NestJS": {nodeFramework("orders"), "nest", []errorRow{
			{`{}`,
				`400 ["title should not be empty","title must be a string","title must be shorter than or equal to 5 characters"]`,
				`400 ["title should not be empty"]`, false},
			{`{"title":"coffee"}`,
				`400 ["title must be shorter than or equal to 5 characters"]`,
				`400 ["title must be at most 5 characters"]`, false},
			{`{"title":7}`,
				`400 ["title must be a string","title must be shorter than or equal to 5 characters"]`,
				`400 ["title must be of type string"]`, false},
			{`{"title":"tea","state":"sent"}`,
				`400 ["state must be one of the following values: open, paid"]`,
				`400 ["state must be one of the following values: \"open\", \"paid\""]`, false},
			{`{"title":"tea","lines":[{"sku":"a","count":1},{"count":10}]}`,
				`400 ["lines.1.sku must be a string","lines.1.sku should not be empty","lines.1.count must not be greater than 9"]`,
				`400 ["lines.1.sku should not be empty","lines.1.count must be less than or equal to 9"]`, false},
			{`{"title":"tea","lines":[{"sku":"a","count":1.5}]}`,
				`400 ["lines.0.count must be an integer number"]`,
				`400 ["lines.0.count must be of type integer"]`, false},
			{`{"title":"tea","lines":"a"}`,
				`400 ["lines must be an array","each value in nested property lines must be either object or array"]`,
				`400 ["lines must be of type array"]`, false},
			{`{"title":"tea","x":1}`,
				`400 ["property x should not exist"]`,
				`400 ["x may not be set: the schema allows no other properties than its own"]`, false},
			{`{"title":"coffee","state":"sent"}`,
				`400 ["title must be shorter than or equal to 5 characters","state must be one of the following values: open, paid"]`,
				`400 ["title must be at most 5 characters","state must be one of the following values: \"open\", \"paid\""]`, false},
			{`?limit=51`,
				`400 ["limit must not be greater than 50"]`,
				`400 ["limit must be less than or equal to 50"]`, false},
			{`?limit=x`,
				`400 ["limit must be an integer number","limit must not be greater than 50"]`,
				`400 ["limit must be an integer"]`, false},
			{`{"title":`,
				`400 "Unexpected end of JSON input"`,
				`400 "the body must be JSON that can be read in one way only: title: unexpected end of the document, a value must stand here at offset 9"`, false},
			{`[]`,
				`400 ["title should not be empty","title must be a string","title must be shorter than or equal to 5 characters"]`,
				`400 "the body must be a JSON object, not a list"`, true},
		}},
		"FastAPI": {startFastAPI, "fastapi", []errorRow{
			{`{}`,
				`422 [{"loc":["body","title"],"msg":"field required","type":"value_error.missing"}]`,
				`422 [{"loc":["body","title"],"msg":"Field required","type":"missing"}]`, false},
			{`{"title":"coffee"}`,
				`422 [{"ctx":{"limit_value":5},"loc":["body","title"],"msg":"ensure this value has at most 5 characters","type":"value_error.any_str.max_length"}]`,
				`422 [{"loc":["body","title"],"msg":"must be at most 5 characters","type":"value_error"}]`, false},
			{`{"title":["a"]}`,
				`422 [{"loc":["body","title"],"msg":"str type expected","type":"type_error.str"}]`,
				`422 [{"loc":["body","title"],"msg":"must be of type string","type":"value_error"}]`, false},
			{`{"title":"tea","state":"sent"}`,
				`422 [{"ctx":{"enum_values":["open","paid"]},"loc":["body","state"],"msg":"value is not a valid enumeration member; permitted: 'open', 'paid'","type":"type_error.enum"}]`,
				`422 [{"loc":["body","state"],"msg":"supported values: \"open\", \"paid\"","type":"enum"}]`, false},
			{`{"title":"tea","lines":[{"sku":"a","count":1},{"count":10}]}`,
				`422 [{"loc":["body","lines",1,"sku"],"msg":"field required","type":"value_error.missing"},{"ctx":{"limit_value":9},"loc":["body","lines",1,"count"],"msg":"ensure this value is less than or equal to 9","type":"value_error.number.not_le"}]`,
				`422 [{"loc":["body","lines",1,"sku"],"msg":"Field required","type":"missing"},{"loc":["body","lines",1,"count"],"msg":"must be less than or equal to 9","type":"value_error"}]`, false},
			{`{"title":"tea","lines":[{"sku":"a","count":"x"}]}`,
				`422 [{"loc":["body","lines",0,"count"],"msg":"value is not a valid integer","type":"type_error.integer"}]`,
				`422 [{"loc":["body","lines",0,"count"],"msg":"must be of type integer","type":"value_error"}]`, false},
			{`{"title":"tea","lines":"a"}`,
				`422 [{"loc":["body","lines"],"msg":"value is not a valid list","type":"type_error.list"}]`,
				`422 [{"loc":["body","lines"],"msg":"must be of type array","type":"value_error"}]`, false},
			{`{"title":"tea","x":1}`,
				`422 [{"loc":["body","x"],"msg":"extra fields not permitted","type":"value_error.extra"}]`,
				`422 [{"loc":["body","x"],"msg":"may not be set: the schema allows no other properties than its own","type":"value_error"}]`, false},
			{`{"title":"coffee","state":"sent"}`,
				`422 [{"ctx":{"limit_value":5},"loc":["body","title"],"msg":"ensure this value has at most 5 characters","type":"value_error.any_str.max_length"},{"ctx":{"enum_values":["open","paid"]},"loc":["body","state"],"msg":"value is not a valid enumeration member; permitted: 'open', 'paid'","type":"type_error.enum"}]`,
				`422 [{"loc":["body","title"],"msg":"must be at most 5 characters","type":"value_error"},{"loc":["body","state"],"msg":"supported values: \"open\", \"paid\"","type":"enum"}]`, false},
			{`?limit=51`,
				`422 [{"ctx":{"limit_value":50},"loc":["query","limit"],"msg":"ensure this value is less than or equal to 50","type":"value_error.number.not_le"}]`,
				`422 [{"loc":["query","limit"],"msg":"must be less than or equal to 50","type":"value_error"}]`, false},
			{`?limit=x`,
				`422 [{"loc":["query","limit"],"msg":"value is not a valid integer","type":"type_error.integer"}]`,
				`422 [{"loc":["query","limit"],"msg":"must be an integer","type":"value_error"}]`, false},
			{`{"title":`,
				`422 [{"ctx":{"colno":10,"doc":"{\"title\":","lineno":1,"msg":"Expecting value","pos":9},"loc":["body",9],"msg":"Expecting value: line 1 column 10 (char 9)","type":"value_error.jsondecode"}]`,
				`400 "the body must be JSON that can be read in one way only: title: unexpected end of the document, a value must stand here at offset 9"`, true},
			{`[]`,
				`422 [{"loc":["body","title"],"msg":"field required","type":"value_error.missing"}]`,
				`400 "the body must be a JSON object, not a list"`, true},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			template, err := os.ReadFile("../../policies/library/errors/" + tt.template + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			server := tt.start(t)
			gateway := startGateway(t, server.url(), fmt.Sprintf(ordersDocument, tt.template), string(template))
			for _, r := range tt.rows {
				method, body := "POST", r.sent
				target := "/orders"
				if strings.HasPrefix(body, "?") {
					method, target, body = "GET", target+body, ""
				}
				ask := withJSON("", method, target, body)
				own, made := ask.mustSend(t, server.address), ask.mustSend(t, gateway.address)
				if got := errorOf(t, own); got != r.own {
					t.Errorf("%s: %s says\n%s\nwant\n%s", r.sent, name, got, r.own)
				}
				if got := errorOf(t, made); got != r.made {
					t.Errorf("%s: the gateway says\n%s\nwant\n%s", r.sent, got, r.made)
				}
				if a, b := shapeOf(t, own), shapeOf(t, made); (a != b) != r.hasOtherMembers {
					t.Errorf("%s: the members are\n%s\n%s", r.sent, a, b)
				}
			}
		})
	}
}

// An errorRow is a wrong request, a body or a query, and what is said to it.
type errorRow struct {
	sent      string
	own, made string
	// hasOtherMembers says that the framework has other members than the template.
	hasOtherMembers bool
}

// errorOf returns the code and the messages of an answer, each with what is beside it.
func errorOf(t *testing.T, a *answer) string {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal([]byte(a.body), &body); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	said := body["message"]
	if said == nil {
		said = body["detail"]
	}
	text, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(a.code, " ", string(text))
}

// shapeOf returns the code, the media type and the members of an answer with the kinds of their values. What is no
// message is there as it is.
func shapeOf(t *testing.T, a *answer) string {
	t.Helper()
	var body any
	if err := json.Unmarshal([]byte(a.body), &body); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	media, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(a.code, " ", media, " ", shape("", body))
}

func shape(name string, v any) string {
	switch v := v.(type) {
	case map[string]any:
		var members []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key != "ctx" { // FastAPI's numbers and values of the rule, which its message has too
				members = append(members, key+": "+shape(key, v[key]))
			}
		}
		return "{" + strings.Join(members, ", ") + "}"
	case []any:
		var items []string
		for _, one := range v {
			items = append(items, shape(name, one))
		}
		if name == "message" { // a framework may say more than one thing of a field
			items = slices.Compact(items)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case string:
		if name == "message" || name == "msg" || name == "type" || name == "detail" {
			return "text"
		}
	}
	return fmt.Sprint(v)
}
