package schema_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
)

func errorTexts(errs field.ErrorList) []string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}

// TestDerivedRuleMessages: VAL-2, VAL-4: what is said by rules whose authors gave no message, and what is added to the
// messages of others.
func TestDerivedRuleMessages(t *testing.T) {
	const spec = `{type: object, x-kubernetes-validations: [%s], properties: {size: {type: integer}, max: {type: integer}, type: {type: string},
		header: {type: object, properties: {name: {type: string}}}, tags: {type: array, items: {type: string}},
		parts: {type: array, items: {type: object, properties: {name: {type: string}, weight: {type: integer}}}}}}`
	for _, c := range []struct {
		name, rule, spec, old   string
		want, details, warnings []string
	}{
		{name: "a comparison", rule: `{rule: self.size <= 10}`, spec: `{"size":12}`,
			want: []string{"spec.size: Invalid value: 12: must be less than or equal to 10"}},
		{name: "a comparison of fields", rule: `{rule: self.size <= self.max}`, spec: `{"size":12,"max":3}`,
			want: []string{"spec.size: Invalid value: 12: must be less than or equal to `max`"}},
		{name: "a message of the author's", rule: `{rule: self.size <= 10, message: must be small}`,
			spec: `{"size":12}`,
			want: []string{"spec: Invalid value: must be small"}},
		{name: "a field path of the author's", rule: `{rule: self.size <= 10, fieldPath: .max}`, spec: `{"size":12}`,
			want: []string{"spec.max: Invalid value: 12: must be less than or equal to 10"}},
		{name: "a reason of the author's", rule: `{rule: has(self.header), reason: FieldValueForbidden}`,
			spec: `{"size":12}`,
			want: []string{"spec.header: Forbidden: must be set"}},
		{name: "a required field", rule: `{rule: "self.type != 'Header' || has(self.header)"}`,
			spec: `{"type":"Header"}`,
			want: []string{"spec.header: Required value: must be set when `type` is 'Header'"}},
		{name: "several conjuncts", rule: `{rule: "self.size <= 10 && has(self.max)"}`, spec: `{"size":12}`,
			want: []string{"spec.size: Invalid value: 12: must be less than or equal to 10",
				"spec.max: Required value"}},
		{name: "items", rule: `{rule: "self.tags.all(t, t in ['a', 'b'])"}`, spec: `{"tags":["a","c"]}`,
			want: []string{"spec.tags: Invalid value: must contain only items that are 'a' or 'b'",
				`spec.tags[1]: Unsupported value: "c": supported values: "a", "b"`}},
		{name: "items and a message of the author's", rule: `{rule: "self.parts.all(p, self.parts.exists_one(q, q.name == p.name))", message: names must be unique}`,
			spec:    `{"parts":[{"name":"a"},{"name":"b"},{"name":"a"}]}`,
			want:    []string{"spec: Invalid value: names must be unique"},
			details: []string{`spec.parts[0].name: Duplicate value: "a"`, `spec.parts[2].name: Duplicate value: "a"`}},
		{name: "what has no words", rule: `{rule: "1 > 2"}`, spec: `{}`,
			want: []string{"spec: Invalid value: failed rule: 1 > 2"}},
		{name: "a transition", rule: `{rule: self.size == oldSelf.size}`, spec: `{"size":12}`, old: `{"size":11}`,
			want: []string{"spec.size: Invalid value: 12: field is immutable"}},
		{name: "a warning", rule: `{rule: self.size <= 10}`, spec: `{"size":12}`, old: `{"size":12}`,
			warnings: []string{"spec.size: Invalid value: 12: must be less than or equal to 10"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := compiled(t, strings.ReplaceAll(spec, "%s", c.rule))
			frame := cel.NewFrame(t.Context())
			defer frame.Release()
			var old document.Node
			if c.old != "" {
				old = parsed(t, `{`+head+`,"spec":`+c.old+`}`).Root()
			}
			r := s.Validate(frame, parsed(t, `{`+head+`,"spec":`+c.spec+`}`).Root(), old)
			if got := errorTexts(r.Errors); !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if got := errorTexts(r.Details); !slices.Equal(got, c.details) {
				t.Errorf("details: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.details, "\n"))
			}
			if !slices.Equal(r.Warnings, c.warnings) {
				t.Errorf("warnings: got %q, want %q", r.Warnings, c.warnings)
			}
		})
	}
}
