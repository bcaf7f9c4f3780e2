package policies

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/finding"
)

// TestColumns: a finding about an OpenAPI document has the line and the column of what is wrong, in the file that has
// it.
func TestColumns(t *testing.T) {
	const (
		inYAML = "openapi: 3.0.3\ninfo: {title: Desks, version: '1'}\npaths:\n  /desks:\n    post:\n      requestBody:\n        content:\n          application/json: {schema: SCHEMA}\n"
		inJSON = `{"openapi":"3.0.3","info":{"title":"Büros","version":"1"},"paths":{"/desks":{"post":{"requestBody":{"content":{"application/json":{"schema":SCHEMA}}}}}}}`
		wrong  = `{type: object, properties: {"größe": {type: string}, code: {type: string, pattern: 5}}}`
		want   = "paths[/desks].post.requestBody.content[application/json].schema.properties.code.pattern: must be a string\n"
	)
	inFlow := strings.NewReplacer("type: ", `"type":`, ": {", ":{", "object", `"object"`, ": 5", ":5", "string",
		`"string"`, "properties", `"properties"`,
		"code", `"code"`, "pattern", `"pattern"`, ", ", ",").Replace(wrong)
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"YAML": {map[string]string{"a.yaml": strings.Replace(inYAML, "SCHEMA", wrong, 1)}, "a.yaml:8:112: " + want},
		"JSON in one line": {map[string]string{"a.json": strings.Replace(inJSON, "SCHEMA", inFlow, 1)},
			"a.json:1:222: " + want},
		"JSON in lines": {map[string]string{"a.json": strings.Replace(inJSON, "SCHEMA",
			strings.Replace(inFlow, `"pattern"`, "\r\n\t\"pattern\" ", 1), 1)}, "a.json:2:2: " + want},
		"no JSON":        {map[string]string{"a.json": strings.Replace(inJSON, "SCHEMA", "]", 1)}, "a.json:1:141: paths[/desks].post.requestBody.content[application/json].schema: must be valid JSON: a value must not begin with ']'\n"},
		"a member twice": {map[string]string{"a.json": strings.Replace(inJSON, "SCHEMA", `{"type":"object","type":"object"}`, 1)}, "a.json:1:158: paths[/desks].post.requestBody.content[application/json].schema.type: must not be set twice; it is set on line 1 already\n"},
		"a file of a folder": {
			map[string]string{"a.yaml": strings.Replace(inYAML, "SCHEMA", "{$ref: 'parts/desk.json'}", 1),
				"parts/desk.json": inFlow}, "parts/desk.json:1:82: properties.code.pattern: must be a string\n",
		},
		"an overlay": {
			map[string]string{
				"a.yaml": strings.Replace(inYAML, "SCHEMA", "{type: object}", 1),
				"b.yaml": "overlay: 1.0.0\ninfo: {title: o, version: '1'}\nactions:\n- target: $.paths['/desks'].post.requestBody.content['application/json'].schema\n  update: {properties: {code: {type: string, pattern: 5}}}\n",
			}, "b.yaml:5:46: " + want,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := testutil.WriteFiles(t, c.files)
			var got bytes.Buffer
			if err := finding.Write(&got, finding.Text, Check([]string{dir}), nil); err != nil {
				t.Fatal(err)
			}
			if text := strings.ReplaceAll(got.String(), dir+string(filepath.Separator), ""); text != c.want {
				t.Errorf("got  %swant %s", text, c.want)
			}
		})
	}
}

// TestColumnsInFormats: each format has the column.
func TestColumnsInFormats(t *testing.T) {
	found := []Finding{{File: "a.json", Line: 1, Column: 216, Field: "paths", Message: "must be a string"}}
	for format, want := range map[finding.Format]string{
		finding.Text:   "a.json:1:216: paths: must be a string\n",
		finding.JSON:   "\"line\": 1,\n      \"column\": 216,\n",
		finding.SARIF:  "\"startLine\": 1,\n                  \"startColumn\": 216\n",
		finding.GitHub: "::error file=a.json,line=1,col=216::paths: must be a string\n",
	} {
		var got bytes.Buffer
		if err := finding.Write(&got, format, found, nil); err != nil || !strings.Contains(got.String(), want) {
			t.Errorf("%s: got %s (%v), want %s", format, got.String(), err, want)
		}
	}
}
