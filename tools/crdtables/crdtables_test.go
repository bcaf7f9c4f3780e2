package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPages compares the pages of docs/policies with the definitions in policies/crds.
func TestPages(t *testing.T) {
	pages, err := render("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 5 {
		t.Errorf("%d pages have tables, want one for each of our kinds", len(pages))
	}
	definitions, err := filepath.Glob("../../policies/crds/*.yaml")
	if err != nil || len(definitions) < 5 {
		t.Fatal(definitions, err)
	}
	all := ""
	for _, page := range pages {
		all += string(page)
	}
	for _, name := range definitions {
		if !strings.Contains(all, "<!-- fields of policies/crds/"+filepath.Base(name)+" -->\n\n| field |") {
			t.Errorf("no page of docs/policies has the fields of %s", filepath.Base(name))
		}
	}
	for path, want := range pages {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not what the definitions say: run 'make docs'", path)
		}
	}
}

func TestTable(t *testing.T) {
	repository := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(repository, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("policies/crds/as.yaml", `
spec:
  versions:
  - schema:
      openAPIV3Schema:
        type: object
        properties:
          kind: {type: string}
          spec:
            description: What is wanted.
            type: object
            required: [size]
            x-kubernetes-validations:
            - {message: may not be set beside `+"`size`"+`, fieldPath: .name}
            - {message: must have a size or a name}
            properties:
              size: {type: integer, minimum: 1, maximum: 9, description: How large.}
              name: {type: string, default: a}
              mode: {type: string, enum: [A, B], description: A or | B}
              parts:
                type: array
                maxItems: 3
                items:
                  type: object
                  properties:
                    key: {x-kubernetes-int-or-string: true}
              labels: {type: object, additionalProperties: {type: string}}
              free: {}
`)
	write("docs/policies/a.md", "# A\n\n<!-- fields of policies/crds/as.yaml -->\nold\n<!-- end of fields -->\n\nend\n")
	pages, err := render(repository)
	if err != nil {
		t.Fatal(err)
	}
	want := "# A\n\n<!-- fields of policies/crds/as.yaml -->\n" + `
| field | type | default | meaning |
|---|---|---|---|
| ` + "`spec` | object |  | What is wanted. Rules: must have a size or a name. |" + `
| ` + "`spec.size` | integer, 1 to 9 | required | How large. |" + `
| ` + "`spec.name` | string | `a` | Rules: may not be set beside `size`. |" + `
| ` + "`spec.mode` | `A`, `B` |  | A or \\| B |" + `
| ` + "`spec.parts` | list of object, at most 3 items |  |  |" + `
| ` + "`spec.parts[].key` | integer or string |  |  |" + `
| ` + "`spec.labels` | map |  |  |" + `
| ` + "`spec.free` | any |  |  |" + `

<!-- end of fields -->

end
`
	if got := string(pages[filepath.Join(repository, "docs/policies/a.md")]); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	write("policies/crds/as.yaml", "spec: {versions: [{schema: {openAPIV3Schema: {properties: {spec: {required: none}}}}}]}")
	if _, err := render(repository); err == nil || !strings.Contains(err.Error(), "policies/crds/as.yaml: spec: ") {
		t.Errorf("a field that cannot be read: %v", err)
	}
	write("policies/crds/as.yaml", "spec: {versions: [{schema: {openAPIV3Schema: {}}}]}")
	write("policies/crds/bs.yaml", "spec: {versions: [{schema: {openAPIV3Schema: {type: object}}}]}")
	if _, err := render(repository); err == nil || !strings.Contains(err.Error(), "policies/crds/bs.yaml") {
		t.Errorf("a definition without a page: %v", err)
	}
}
