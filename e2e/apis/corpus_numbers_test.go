package apis

import (
	"strings"
	"testing"
)

func TestMoreDifferencesFail(t *testing.T) {
	before := (&tally{operations: 3, requests: 20, agreed: 15, refused: 1, missed: 3, named: 1, undecided: 1}).String()
	for name, test := range map[string]struct {
		tally
		before string
		fails  bool
	}{
		"the same":             {tally{refused: 1, missed: 3, named: 1}, before, false},
		"fewer":                {tally{refused: 0, missed: 2, named: 0}, before, false},
		"more refused":         {tally{refused: 2, missed: 3, named: 1}, before, true},
		"more missed":          {tally{refused: 1, missed: 4, named: 2}, before, true},
		"more named nowhere":   {tally{refused: 1, missed: 3, named: 0}, before, true},
		"does not load":        {tally{error: "paths: must be an object"}, before, true},
		"a new document":       {tally{refused: 1}, "", false},
		"one that loads now":   {tally{refused: 1}, "does not load: paths: must be an object", false},
		"none that loads ever": {tally{error: "paths: must be an object"}, "does not load: paths: must be an object", false},
	} {
		r := &recordedTest{TB: t}
		(&corpusRun{tally: test.tally}).compare(r, test.before)
		if got := strings.HasPrefix(r.said, "failed"); got != test.fails {
			t.Errorf("%s: %q, want a failure: %t", name, r.said, test.fails)
		}
	}
}

// TestGeneratedRequests: the generator makes right requests of what a schema asks for, the judge says what is wrong with a
// change, and a finding about the keyword or what is around it names it.
func TestGeneratedRequests(t *testing.T) {
	d := readPublished(map[string]any{
		"openapi": "3.0.3",
		"paths": map[string]any{"/orders/{id}": map[string]any{"put": map[string]any{
			"parameters":  []any{map[string]any{"name": "id", "in": "path", "required": true, "schema": map[string]any{"type": "integer"}}},
			"requestBody": map[string]any{"required": true, "content": map[string]any{"application/json": map[string]any{"schema": map[string]any{"$ref": "#/components/schemas/Order"}}}},
		}}},
		"components": map[string]any{"schemas": map[string]any{"Order": map[string]any{
			"type": "object", "required": []any{"id", "state"},
			"properties": map[string]any{
				"id":    map[string]any{"type": "integer", "readOnly": true},
				"state": map[string]any{"type": "string", "nullable": true, "enum": []any{"open", nil}},
			},
		}}},
	}, false)
	o := d.operation[0]
	for name, test := range map[string]struct {
		id, mediaType, body string
		want                judgement
	}{
		"right":          {"5", "application/json", `{"state":"open"}`, judgement{isRight: true}},
		"null":           {"5", "application/json", `{"state":null}`, judgement{isRight: true}},
		"missing":        {"5", "application/json", `{}`, judgement{keyword: "required", place: "body", schemas: []string{"/paths/~1orders~1{id}/put/requestBody/content/application~1json/schema", "/components/schemas/Order"}}},
		"media type":     {"5", "text/csv", `{}`, judgement{keyword: "content", place: "body"}},
		"parameter":      {"x", "application/json", `{"state":"open"}`, judgement{keyword: "type", place: "path.id", schemas: []string{"/paths/~1orders~1{id}/put/parameters/0/schema"}}},
		"without a body": {"5", "", "", judgement{keyword: "requestBody.required", place: "body"}},
	} {
		s := &sample{operation: o, path: map[string]string{"id": test.id}, mediaType: test.mediaType}
		if test.body != "" {
			s.body = []byte(test.body)
		}
		got := d.judge(s)
		if got.isRight != test.want.isRight || got.keyword != test.want.keyword || got.place != test.want.place || len(got.schemas) > 0 && got.schemas[len(got.schemas)-1] != test.want.schemas[len(test.want.schemas)-1] {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
		for field, want := range map[string]bool{
			"components.schemas.Order": strings.HasPrefix(test.want.place, "body") && test.want.schemas != nil,
			"paths[/orders/{id}].put":  true, "paths[/orders].put": false, "components.schemas.Order.properties.state": false,
		} {
			if !got.isRight && (findings{fieldParts(field)}).names(o, got) != want {
				t.Errorf("%s: a finding at %s names it: %t, want %t", name, field, !want, want)
			}
		}
	}
}
