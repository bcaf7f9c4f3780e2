package scaffold

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/policytest"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/source"
)

// TestValue makes values of schemas.
func TestValue(t *testing.T) {
	const components = `{"openapi": "3.1.0", "components": {"schemas": {
		"Node": {"type": "object", "required": ["next"], "properties": {"next": {"$ref": "#/components/schemas/Node"}}},
		"Base": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}, "kind": {"type": "string"}}}}}}`
	d, err := read([]byte(components))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ schema, examples, plain string }{
		{`{"type": "string"}`, `"example"`, `"example"`},
		{`{"type": "string", "example": "tea"}`, `"tea"`, `"example"`},
		{`{"type": "string", "examples": ["tea", "milk"]}`, `"tea"`, `"example"`},
		{`{"type": "string", "minLength": 9}`, `"examplexx"`, `"examplexx"`},
		{`{"type": "string", "maxLength": 2}`, `"ex"`, `"ex"`},
		{`{"type": "string", "format": "ipv4"}`, `"192.0.2.1"`, `"192.0.2.1"`},
		{`{"type": "string", "pattern": "^[A-Z]{3}$"}`, `"EUR"`, `"EUR"`},
		{`{"type": ["null", "integer"], "minimum": 7}`, `7`, `7`},
		{`{"type": "integer", "exclusiveMinimum": 7, "multipleOf": 5}`, `10`, `10`},
		{`{"type": "number", "maximum": -2}`, `-2`, `-2`},
		{`{"type": "integer", "minimum": 3, "exclusiveMinimum": true}`, `4`, `4`},
		{`{"enum": ["a", "b"]}`, `"a"`, `"a"`},
		{`{"const": 5}`, `5`, `5`},
		{`{"default": 5}`, `5`, `5`},
		{`{"type": "boolean"}`, `true`, `true`},
		{`{"type": "array", "minItems": 2, "items": {"type": "boolean"}}`, `[true,true]`, `[true,true]`},
		{`{"type": "array", "maxItems": 0}`, `[]`, `[]`},
		{`{"required": ["b"], "properties": {"a": {}, "b": {"type": "boolean"}, "c": {"readOnly": true}}}`, `{"b":true}`, `{"b":true}`},
		{`{"required": ["id"], "properties": {"id": {"readOnly": true}, "b": {"type": "boolean"}}}`, `{"b":true}`, `{"b":true}`},
		{`{"allOf": [{"$ref": "#/components/schemas/Base"}], "required": ["kind"], "properties": {"b": {"type": "boolean"}}}`, `{"b":true,"id":1,"kind":"example"}`, `{"b":true,"id":1,"kind":"example"}`},
		{`{"oneOf": [{"type": "null"}, {"type": "integer"}]}`, `1`, `1`},
		{`{"$ref": "#/components/schemas/Nothing"}`, `"x"`, `"x"`},
	} {
		for examples, want := range map[bool]string{true: tt.examples, false: tt.plain} {
			decoder := json.NewDecoder(strings.NewReader(tt.schema))
			decoder.UseNumber()
			var s any
			if err := decoder.Decode(&s); err != nil {
				t.Fatal(tt.schema, err)
			}
			m := &maker{described: d, examples: examples}
			if got := inJSON(m.value(s, 0)); got != want {
				t.Errorf("%s, examples %v: %s, want %s", tt.schema, examples, got, want)
			}
		}
	}
	m := &maker{described: d}
	m.value(map[string]any{"$ref": "#/components/schemas/Node"}, 0)
	if m.parts > maxDepth+2 {
		t.Errorf("a schema that refers to itself is made of %d parts", m.parts)
	}
}

// TestPublished writes policies for published documents, and plays the tests.
func TestPublished(t *testing.T) {
	suites := os.Getenv("SUITES_DIR")
	if suites != "" && !filepath.IsAbs(suites) {
		suites = filepath.Join("../..", suites)
	}
	for name, want := range map[string]struct {
		cases    int
		upstream string
	}{
		"museum.yaml":        {16, "https://redocly.com"},
		"petstore3.yaml":     {28, "https://petstore3.swagger.io"},
		"tictactoe31.json":   {4, ""},
		"uber2.json":         {8, "https://api.uber.com"},
		"typesense.yaml":     {40, "http://localhost:8108"},
		"xero-projects.yaml": {32, "https://api.xero.com"},
	} {
		t.Run(name, func(t *testing.T) {
			packed, err := os.Open(filepath.Join(suites, "data/openapi", name+".gz"))
			if err != nil {
				t.Skipf("the published documents are not here: %v (set SUITES_DIR)", err)
			}
			defer func() { _ = packed.Close() }() // it is only read
			plain, err := gzip.NewReader(packed)
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(plain)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			made, err := ForDocument(&Document{Name: name, Dir: dir,
				Files: []source.File{{Name: filepath.Join(dir, name), Data: data, Root: dir}}})
			if err != nil {
				t.Fatal(err)
			}
			if made.Cases != want.cases || made.Upstream != want.upstream {
				t.Errorf("%d cases, upstream %q, want %+v", made.Cases, made.Upstream, want)
			}
			testutil.WriteFile(t, filepath.Join(dir, name), string(data))
			for file, text := range made.Files {
				testutil.WriteFile(t, filepath.Join(dir, file), string(text))
			}
			summary, err := policytest.Run(context.Background(), policytest.Options{Paths: []string{dir}})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range summary.Results {
				if len(r.Problems) > 0 {
					t.Errorf("%s: %s", r.ID, r.Problems)
				}
			}
			if summary.Passed != made.Cases {
				t.Errorf("%d of %d cases pass", summary.Passed, made.Cases)
			}
		})
	}
}
