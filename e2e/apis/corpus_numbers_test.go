package apis

import (
	"encoding/json"
	"maps"
	"os"
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
		"the same":           {tally{refused: 1, missed: 3, named: 1}, before, false},
		"fewer":              {tally{refused: 0, missed: 2, named: 0}, before, false},
		"more refused":       {tally{refused: 2, missed: 3, named: 1}, before, true},
		"more missed":        {tally{refused: 1, missed: 4, named: 2}, before, true},
		"more named nowhere": {tally{refused: 1, missed: 3, named: 0}, before, true},
		"does not load":      {tally{error: "paths: must be an object"}, before, true},
		"a new document":     {tally{refused: 1}, "", false},
		"one that loads now": {tally{refused: 1}, "does not load: paths: must be an object", false},
		"none that loads ever": {tally{error: "paths: must be an object"}, "does not load: paths: must be an object",
			false},
	} {
		r := &recordedTest{TB: t}
		(&corpusRun{tally: test.tally}).compare(r, test.before)
		if got := strings.HasPrefix(r.said, "failed"); got != test.fails {
			t.Errorf("%s: %q, want a failure: %t", name, r.said, test.fails)
		}
	}
}

// TestWrongTallies: what the gate fails for.
func TestWrongTallies(t *testing.T) {
	for name, test := range map[string]struct {
		tally
		want string
	}{
		"all is well":       {tally{requests: 1100, undecided: 100, missed: 10, named: 10}, ""},
		"refused by a rule": {tally{requests: 10, ruled: map[string]int{byDiscriminator: 3}}, ""},
		"refused by none":   {tally{requests: 1000, refused: 1}, "right requests are refused by no rule"},
		"named nowhere":     {tally{requests: 1000, missed: 2, named: 1}, "wrong requests pass where check says nothing"},
		"too many missed": {tally{requests: 1100, undecided: 101, missed: 10, named: 10},
			"more than a hundredth of the requests passes and is wrong"},
	} {
		if got := test.wrong(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestRules: which right requests the gateway refuses on purpose.
func TestRules(t *testing.T) {
	read := func(withDiscriminators bool) *published {
		content := func(schema map[string]any) map[string]any {
			media := map[string]any{"schema": schema}
			return map[string]any{"content": map[string]any{"application/json": media,
				"application/merge-patch+json": maps.Clone(media)}}
		}
		return readPublished(map[string]any{
			"openapi": "3.1.0",
			"paths": map[string]any{
				"/orders": map[string]any{
					"post": map[string]any{"requestBody": content(map[string]any{"type": "object",
						"required":   []any{"size"},
						"properties": map[string]any{"size": map[string]any{"maximum": 5}}})}},
				"/orders/{id}": map[string]any{
					"patch": map[string]any{"requestBody": content(map[string]any{"type": "object"})},
					"put": map[string]any{
						"requestBody": content(map[string]any{"required": []any{"name"},
							"properties": map[string]any{"size": map[string]any{"maximum": 9}}})},
				},
				"/notes/{id}": map[string]any{"patch": map[string]any{"requestBody": content(map[string]any{
					"type": "object", "discriminator": map[string]any{"propertyName": "kind",
						"mapping": map[string]any{"a": "#/components/schemas/A"}},
				})}},
			},
			"components": map[string]any{"schemas": map[string]any{"A": map[string]any{}}},
		}, withDiscriminators)
	}
	d := read(false)
	c := &corpusRun{strict: func() *published { return read(true) }}
	stored := map[string]any{"size": json.Number("3"), "name": "a"}
	for _, test := range []struct{ operation, mediaType, body, want string }{
		{"patch /orders/{id}", "application/json", `{"size":8}`, ""},
		{"patch /orders/{id}", "application/json", `{"size":10}`, byResult},
		{"patch /orders/{id}", "application/json", `{"name":null}`, ""},
		{"patch /orders/{id}", "application/merge-patch+json", `{"name":null}`, byResult},
		{"put /orders/{id}", "application/json", `{"size":8,"name":"a"}`, ""},
		{"put /orders/{id}", "application/json", `null`, ""},
		{"post /orders", "application/json", `{"size":1}`, ""},
		{"patch /notes/{id}", "application/json", `{"kind":"a"}`, ""},
		{"patch /notes/{id}", "application/json", `{"kind":"A"}`, ""},
		{"patch /notes/{id}", "application/json", `{"kind":"b"}`, byDiscriminator},
	} {
		for _, o := range d.operation {
			if o.String() != test.operation {
				continue
			}
			s := &sample{operation: o, path: map[string]string{"id": "1"}, mediaType: test.mediaType,
				body: []byte(test.body), object: stored}
			if got := c.ruleFor(d, s); got != test.want {
				t.Errorf("%s %s: %q, want %q", test.operation, test.body, got, test.want)
			}
		}
	}
}

// TestRulesAreDocumented: each rule is a row of the page about differences.
func TestRulesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []string{byDiscriminator, byResult} {
		if !strings.Contains(string(page), "\n| "+rule+" |") {
			t.Errorf("docs/differences.md has no row %q", rule)
		}
	}
}

// TestMendedRequests: a wrong request that reaches the backend as a right one is not missed.
func TestMendedRequests(t *testing.T) {
	d := readPublished(map[string]any{
		"openapi": "3.0.3",
		"paths": map[string]any{
			"/orders": map[string]any{
				"post": map[string]any{"requestBody": map[string]any{
					"content": map[string]any{"application/json": map[string]any{"schema": map[string]any{
						"required": []any{"size"}, "properties": map[string]any{
							"size": map[string]any{"type": "integer", "default": 1},
							"lines": map[string]any{"items": map[string]any{"allOf": []any{
								map[string]any{"properties": map[string]any{"kind": map[string]any{"readOnly": true}}},
								map[string]any{"required": []any{"kind"},
									"properties": map[string]any{"kind": map[string]any{"enum": []any{"line"}}}},
							}}},
						},
					}}}}}}},
	}, false)
	for _, test := range []struct {
		sent, got string
		want      bool
	}{
		{`{}`, `{"size":1}`, true},
		{`{}`, `{}`, false},
		{`{"size":"x"}`, `{"size":"x"}`, false},
		{`{"size":1,"lines":[{}]}`, `{"size":1,"lines":[{}]}`, true},
		{`{"size":1,"lines":[{"kind":"other"}]}`, `{"size":1,"lines":[{}]}`, true},
		{`{"size":1,"lines":[{"kind":"other"}]}`, `{"size":1,"lines":[{"kind":"other"}]}`, false},
	} {
		s := &sample{operation: d.operation[0], mediaType: "application/json", body: []byte(test.sent)}
		if got := d.isMended(s, d.judge(s), []byte(test.got)); got != test.want {
			t.Errorf("%s as %s: %t, want %t", test.sent, test.got, got, test.want)
		}
	}
}

// TestGeneratedRequests: the generator makes right requests of what a schema asks for, the judge says what is wrong
// with a change, and a finding about the keyword or what is around it names it.
func TestGeneratedRequests(t *testing.T) {
	d := readPublished(map[string]any{
		"openapi": "3.0.3",
		"paths": map[string]any{"/orders/{id}": map[string]any{"put": map[string]any{
			"parameters": []any{map[string]any{"name": "id", "in": "path", "required": true,
				"schema": map[string]any{"type": "integer"}}},
			"requestBody": map[string]any{"required": true,
				"content": map[string]any{
					"application/json": map[string]any{
						"schema": map[string]any{"$ref": "#/components/schemas/Order"}}}},
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
		"right": {"5", "application/json", `{"state":"open"}`, judgement{isRight: true}},
		"null":  {"5", "application/json", `{"state":null}`, judgement{isRight: true}},
		"missing": {"5", "application/json", `{}`,
			judgement{keyword: "required", place: "body",
				schemas: []string{"/paths/~1orders~1{id}/put/requestBody/content/application~1json/schema",
					"/components/schemas/Order"}}},
		"media type": {"5", "text/csv", `{}`, judgement{keyword: "content", place: "body"}},
		"parameter": {"x", "application/json", `{"state":"open"}`,
			judgement{keyword: "type", place: "path.id",
				schemas: []string{"/paths/~1orders~1{id}/put/parameters/0/schema"}}},
		"without a body": {"5", "", "", judgement{keyword: "requestBody.required", place: "body"}},
	} {
		s := &sample{operation: o, path: map[string]string{"id": test.id}, mediaType: test.mediaType}
		if test.body != "" {
			s.body = []byte(test.body)
		}
		got := d.judge(s)
		if got.isRight != test.want.isRight || got.keyword != test.want.keyword || got.place != test.want.place ||
			len(got.schemas) > 0 && got.schemas[len(got.schemas)-1] != test.want.schemas[len(test.want.schemas)-1] {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
		for field, want := range map[string]bool{
			"components.schemas.Order": strings.HasPrefix(test.want.place, "body") && test.want.schemas != nil,
			"paths[/orders/{id}].put":  true, "paths[/orders].put": false,
			"components.schemas.Order.properties.state": false,
		} {
			if !got.isRight && (findings{fieldParts(field)}).names(o, got) != want {
				t.Errorf("%s: a finding at %s names it: %t, want %t", name, field, !want, want)
			}
		}
	}
}
