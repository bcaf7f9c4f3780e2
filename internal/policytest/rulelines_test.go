package policytest

import (
	"slices"
	"testing"

	"github.com/admission-gateway/gateway/internal/explanation"
	"github.com/admission-gateway/gateway/policies/source"
)

// TestLinesOfRules: an explanation says in which file and line a rule of a schema is.
func TestLinesOfRules(t *testing.T) {
	definition := `# a definition
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: parts.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Part, plural: parts}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {size: {type: integer}}
            x-kubernetes-validations:
            - rule: self.size > 1
              message: must be large
            - message: must be small
              rule: self.size < 9
`
	q := &ExplainRequest{Files: []source.File{{Name: "parts.yaml", Data: []byte(definition)}}}
	q.Case.Object = []byte(`{"apiVersion":"example.com/v1","kind":"Part","metadata":{"name":"a","namespace":"b"},"spec":{"size":9}}`)
	told, err := Explain(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for _, s := range told.Steps {
		for _, e := range s.Expressions {
			if e.File != "parts.yaml" {
				t.Errorf("%s is in the file '%s'", e.Text, e.File)
			}
			lines[e.Text] = e.Line
		}
	}
	if len(lines) != 2 || lines["self.size > 1"] != 21 || lines["self.size < 9"] != 24 {
		t.Errorf("the rules are in the lines %v", lines)
	}
	at := slices.IndexFunc(told.Steps, func(s explanation.Step) bool { return len(s.Expressions) > 0 })
	if at < 0 || told.Steps[at].Name != "Schema" {
		t.Errorf("the steps are %+v", told.Steps)
	}
}
