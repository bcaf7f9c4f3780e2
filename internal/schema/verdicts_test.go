package schema_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/schema"
)

// What Kubernetes says of a default that its own schema refuses is worded by VAL-3.
func TestDefaultsAreRefusedInOurWords(t *testing.T) {
	for _, c := range []struct {
		schema string
		want   []string
	}{
		{`{type: integer, minimum: 3, default: 1}`, []string{`Invalid value: 1: must be greater than or equal to 3`}},
		{`{type: integer, maximum: 3, exclusiveMaximum: true, default: 3}`,
			[]string{`Invalid value: 3: must be less than 3`}},
		{`{type: number, multipleOf: 3, default: 4}`, []string{`Invalid value: 4: must be a multiple of 3`}},
		{`{type: integer, format: int32, default: 3000000000}`,
			[]string{`Invalid value: must be between -2147483648 and 2147483647, inclusive`}},
		{`{type: string, minLength: 3, default: x}`, []string{`Invalid value: "x": must be at least 3 characters`}},
		{`{type: string, maxLength: 2, default: xyz}`, []string{`Too long: must be at most 2 characters`}},
		{`{type: string, enum: [a, b], default: x}`, []string{`Unsupported value: "x": supported values: "a", "b"`}},
		{`{type: string, pattern: ^a$, default: x}`,
			[]string{`Invalid value: "x": must match the regular expression '^a$'`}},
		{`{type: string, format: date-time, default: x}`, []string{`Invalid value: "x": must be a valid 'date-time'`}},
		{`{type: string, default: 3}`, []string{`Invalid value: "integer": must be of type string`}},
		{`{type: array, minItems: 2, default: [a], items: {type: string}}`,
			[]string{`Invalid value: 1: must have at least 2 items`}},
		{`{type: array, maxItems: 0, default: [a], items: {type: string}}`,
			[]string{`Too many: 1: must have at most 0 items`}},
		{`{type: object, minProperties: 1, additionalProperties: {type: string}, default: {}}`, []string{`Invalid value: 0: must have at least 1 property`}},
		{`{type: object, required: [x], properties: {x: {type: string}}, default: {}}`, []string{`Required value`}},
		{`{type: string, oneOf: [{pattern: a}, {pattern: b}], default: ab}`, []string{`Invalid value: must match exactly one of the alternatives in 'oneOf', and matches 2`}},
		{`{type: string, oneOf: [{pattern: a}, {pattern: b}], default: c}`, []string{
			`Invalid value: "c": must match the regular expression 'a'`,
			`Invalid value: must match exactly one of the alternatives in 'oneOf', and matches none`,
		}},
		{`{type: string, anyOf: [{pattern: a}], default: c}`, []string{
			`Invalid value: "c": must match the regular expression 'a'`,
			`Invalid value: must match at least one of the alternatives in 'anyOf'`,
		}},
		{`{type: string, allOf: [{pattern: a}], default: b}`,
			[]string{`Invalid value: "b": must match the regular expression 'a'`}},
		{`{type: string, not: {pattern: a}, default: a}`,
			[]string{`Invalid value: must not match the schema in 'not'`}},
		{`{type: integer, x-kubernetes-validations: [{rule: self > 3}], default: 3}`,
			[]string{`Invalid value: 3: failed rule: self > 3`}},
	} {
		_, _, errs := schema.CompileCRD(definition(t, `{type: object, properties: {a: `+c.schema+`}}`))
		var got []string
		for _, err := range errs {
			if !strings.HasPrefix(err.Field,
				"spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[a].default") {
				t.Errorf("%s: field %s", c.schema, err.Field)
			}
			got = append(got, err.ErrorBody())
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.schema, got, c.want)
		}
	}
}
