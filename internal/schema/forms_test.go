package schema

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"

	"github.com/admission-gateway/gateway/internal/document"
)

// What is right at a glance is right by its keywords, and of scalars without patterns, formats, enumerations and
// multiples the glance knows which integers and short strings are right (VAL-1).
func TestGlances(t *testing.T) {
	whole, half := func(f float64) *float64 { return &f }, 0.5
	length := func(i int64) *int64 { return &i }
	shapes := []struct {
		props  apiextensions.JSONSchemaProps
		glance []string // the values that are right at a glance
	}{
		{apiextensions.JSONSchemaProps{Type: "string"}, []string{`""`, `"a"`, `"ab"`, `"abcdé"`, `"\n"`}},
		{apiextensions.JSONSchemaProps{Type: "string", MinLength: length(1), MaxLength: length(2)},
			[]string{`"a"`, `"ab"`}},
		{apiextensions.JSONSchemaProps{Type: "string", MinLength: length(2)}, []string{`"abcdé"`}},
		{apiextensions.JSONSchemaProps{Type: "string", MaxLength: length(2)}, []string{`""`, `"a"`, `"ab"`}},
		{apiextensions.JSONSchemaProps{Type: "string", Pattern: "a"}, nil},
		{apiextensions.JSONSchemaProps{Type: "string", Format: "date"}, nil},
		{apiextensions.JSONSchemaProps{Type: "string", Enum: []apiextensions.JSON{"a"}}, nil},
		{apiextensions.JSONSchemaProps{Type: "boolean"}, []string{`true`}},
		{apiextensions.JSONSchemaProps{Type: "number"},
			[]string{`0`, `-0`, `1`, `2`, `-3`, `1.5`, `1e2`, `999999999999999999`, `9999999999999999999`}},
		{apiextensions.JSONSchemaProps{Type: "integer"}, []string{`0`, `-0`, `1`, `2`, `-3`, `999999999999999999`}},
		{apiextensions.JSONSchemaProps{Type: "integer", Format: "int32"}, []string{`0`, `-0`, `1`, `2`, `-3`}},
		{apiextensions.JSONSchemaProps{Type: "integer", Minimum: &half}, []string{`1`, `2`, `999999999999999999`}},
		{apiextensions.JSONSchemaProps{Type: "integer", Minimum: whole(1), ExclusiveMinimum: true, Maximum: whole(2)},
			[]string{`2`}},
		{apiextensions.JSONSchemaProps{Type: "number", Minimum: whole(0), Maximum: whole(2), ExclusiveMaximum: true},
			[]string{`0`, `-0`, `1`}},
		{apiextensions.JSONSchemaProps{Type: "number", Maximum: whole(1e300)}, nil},
		{apiextensions.JSONSchemaProps{Type: "integer", MultipleOf: whole(2)}, nil},
		{apiextensions.JSONSchemaProps{XIntOrString: true, MaxLength: length(1)},
			[]string{`""`, `"a"`, `0`, `-0`, `1`, `2`, `-3`, `999999999999999999`}},
		{apiextensions.JSONSchemaProps{}, []string{
			`true`, `0`, `-0`, `1`, `2`, `-3`, `1.5`, `1e2`, `999999999999999999`, `9999999999999999999`, `""`, `"a"`,
			`"ab"`, `"abcdé"`, `"\n"`,
		}},
	}
	values := []string{
		`null`, `true`, `0`, `-0`, `1`, `2`, `-3`, `1.5`, `1e2`, `999999999999999999`, `9999999999999999999`, `""`,
		`"a"`, `"ab"`, `"abcdé"`, `"\n"`, `{}`, `[]`,
	}
	for i := range shapes {
		s, err := newCompiler().shape(&shapes[i].props, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]bool{}
		for _, raw := range shapes[i].glance {
			want[raw] = true
		}
		w := &validator{probing: 1}
		for _, raw := range values {
			d, err := document.Parse([]byte(raw), document.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			c, glance := d.Root().Cursor(), glanceOf(s)
			if got := glance.Takes(&c); got != want[raw] {
				t.Errorf("schema %d takes %s at a glance: %t", i, raw, got)
			} else if got && !w.right(s, d.Root()) {
				t.Errorf("schema %d takes %s at a glance, which is wrong", i, raw)
			}
			d.Release()
		}
	}
}
