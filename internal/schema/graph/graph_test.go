package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/graph"
)

// compile compiles the component S of a document, with its findings as they read.
func compile(t testing.TB, dialect graph.Dialect, components string) (*graph.Schema, []string) {
	t.Helper()
	d, err := document.Parse([]byte(`{"components":{"schemas":`+components+`}}`), document.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", components, err)
	}
	t.Cleanup(d.Release)
	n, err := graph.Resolve(d.Root(), "#/components/schemas/S")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	s := graph.NewCompiler(d.Root(), dialect, func(f graph.Finding) {
		severity := "warning"
		if f.Error {
			severity = "error"
		}
		found = append(found, fmt.Sprintf("%s: %s: %s", severity,
			strings.TrimPrefix(f.At.Path(), "components.schemas."), f.Message))
	}).Compile(n)
	slices.Sort(found)
	return s, found
}

// said is what is wrong with a value.
func said(t testing.TB, s *graph.Schema, value string, use graph.Use) []string {
	t.Helper()
	v, err := document.Parse([]byte(value), document.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	defer v.Release()
	r := s.Check(v.Root(), use)
	var all []string
	for _, f := range r.Failures {
		all = append(all, f.Err.Error())
	}
	return all
}

func TestFailures(t *testing.T) {
	const pets = `"Cat":{"type":"object","required":["kind"],"properties":{"kind":{"type":"string","enum":["cat","lion"]},"lives":{"type":"integer"}}},
		"Dog":{"type":"object","required":["kind"],"properties":{"kind":{"const":"dog"},"barks":{"type":"boolean"}}}`
	const shapes = `"Base":{"type":"object","discriminator":{"propertyName":"kind"},"required":["kind"],"properties":{"kind":{"type":"string"}}},
		"Circle":{"allOf":[{"$ref":"#/components/schemas/Base"},{"properties":{"radius":{"type":"number"}},"required":["radius"]}]}`
	for _, tt := range []struct {
		name    string
		dialect graph.Dialect
		schemas string
		use     graph.Use
		value   string
		want    []string
	}{
		{name: "type", schemas: `{"S":{"type":"string"}}`, value: `1`,
			want: []string{`<nil>: Invalid value: "integer": must be of type string`}},
		{name: "null", schemas: `{"S":{"properties":{"a":{"type":"string"}}}}`, value: `{"a":null}`,
			want: []string{`a: Invalid value: "null": must be of type string`}},
		{name: "nullable in 3.0", dialect: graph.OpenAPI30,
			schemas: `{"S":{"type":"string","enum":["a"],"nullable":true}}`, value: `null`},
		{name: "nullable beside a reference in allOf", dialect: graph.OpenAPI30, schemas: `{"S":{"nullable":true,"allOf":[{"$ref":"#/components/schemas/T"}]},"T":{"type":"object"}}`, value: `null`},
		{name: "null in no alternative", dialect: graph.OpenAPI30,
			schemas: `{"S":{"oneOf":[{"type":"object"},{"type":"string","maxLength":3}]}}`, value: `null`,
			want: []string{
				`<nil>: Invalid value: must match exactly one of the alternatives in 'oneOf', and matches none`, `<nil>: Invalid value: "null": must be of type object`,
			}},
		{name: "nullable says nothing in JSON Schema", schemas: `{"S":{"type":"string","nullable":true}}`,
			value: `null`, want: []string{`<nil>: Invalid value: "null": must be of type string`}},
		{name: "nothing counts beside $ref in 3.0", dialect: graph.OpenAPI30,
			schemas: `{"S":{"$ref":"#/components/schemas/T","type":"string"},"T":{"type":"integer"}}`, value: `1`},
		{name: "exclusiveMinimum in 3.0", dialect: graph.OpenAPI30, schemas: `{"S":{"minimum":1,"exclusiveMinimum":true,"maximum":3,"exclusiveMaximum":false}}`, value: `1.0`, want: []string{`<nil>: Invalid value: 1.0: must be greater than 1`}},
		{name: "exclusiveMinimum in 3.1", dialect: graph.OpenAPI31, schemas: `{"S":{"minimum":1,"exclusiveMinimum":2}}`,
			value: `2`, want: []string{`<nil>: Invalid value: 2: must be greater than 2`}},
		{name: "exact numbers", schemas: `{"S":{"maximum":9007199254740992,"multipleOf":0.01}}`, value: `9007199254740992.001`, want: []string{`<nil>: Invalid value: 9007199254740992.001: must be less than or equal to 9007199254740992`, `<nil>: Invalid value: 9007199254740992.001: must be a multiple of 0.01`}},
		{name: "whole numbers", schemas: `{"S":{"items":{"type":"integer"}}}`,
			value: `[1e3, 1.0, 100000000000000000000, 1.5]`,
			want:  []string{`[3]: Invalid value: "number": must be of type integer`}},
		{name: "formats of numbers", dialect: graph.OpenAPI30, schemas: `{"S":{"items":{"type":"integer","format":"int32"}}}`, value: `[2147483647, 2147483648]`, want: []string{`[1]: Invalid value: 2147483648: must be between -2147483648 and 2147483647, inclusive`}},
		{name: "int64", dialect: graph.OpenAPI30, schemas: `{"S":{"items":{"type":"integer","format":"int64"}}}`, value: `[9223372036854775807, 9223372036854775808]`, want: []string{`[1]: Invalid value: 9223372036854775808: must be between -9223372036854775808 and 9223372036854775807, inclusive`}},
		{name: "format", dialect: graph.OpenAPI30, schemas: `{"S":{"format":"uuid"}}`, value: `"x"`,
			want: []string{`<nil>: Invalid value: "x": must be a valid 'uuid'`}},
		{name: "format is an annotation", schemas: `{"S":{"format":"uuid"}}`, value: `"x"`},
		{name: "members", schemas: `{"S":{"type":"object","required":["a","b"],"properties":{"a":{"maxLength":2}},"additionalProperties":{"type":"integer"},"maxProperties":2}}`, value: `{"a":"abc","x/y":"z","q":1}`,
			want: []string{`<nil>: Too many: 3: must have at most 2 properties`,
				`a: Too long: must be at most 2 characters`, `[x/y]: Invalid value: "string": must be of type integer`,
				`b: Required value`}},
		{name: "closed", schemas: `{"S":{"properties":{"o":{"properties":{"a":{}},"additionalProperties":false}}}}`, value: `{"o":{"a":1,"b":2}}`, want: []string{`o: Invalid value: "b": may not be set: the schema allows no other properties than its own`}},
		{name: "patternProperties", schemas: `{"S":{"patternProperties":{"^x-":{"type":"string"}},"additionalProperties":false}}`, value: `{"x-a":1,"b":1}`, want: []string{`[x-a]: Invalid value: "integer": must be of type string`, `b: Invalid value: "b": may not be set: the schema allows no other properties than its own`}},
		{name: "propertyNames", schemas: `{"S":{"propertyNames":{"pattern":"^[a-z]+$"}}}`, value: `{"a":1,"B":2}`, want: []string{`[B]: Invalid value: "B": must have a name that matches the regular expression '^[a-z]+$'`}},
		{name: "dependentRequired", schemas: `{"S":{"dependentRequired":{"a":["b"]}}}`, value: `{"a":1}`,
			want: []string{`b: Required value`}},
		{name: "unevaluatedProperties", schemas: `{"S":{"allOf":[{"properties":{"a":{}}}],"if":{"required":["b"]},"then":{"properties":{"b":{}}},"unevaluatedProperties":false}}`, value: `{"a":1,"b":2,"c":3}`, want: []string{`c: Invalid value: "c": may not be set: the schema allows no other properties than its own`}},
		{name: "items", schemas: `{"S":{"prefixItems":[{"type":"string"}],"items":false,"minItems":3}}`, value: `[1,2]`, want: []string{`<nil>: Invalid value: 2: must have at least 3 items`, `[0]: Invalid value: "integer": must be of type string`, `[1]: Invalid value: 2: may not be set: the schema allows no other items than its own`}},
		{name: "contains", schemas: `{"S":{"contains":{"type":"string"},"minContains":2}}`, value: `["a",1]`, want: []string{`<nil>: Invalid value: must have at least 2 that match the schema in 'contains', and has 1`}},
		{name: "uniqueItems", schemas: `{"S":{"uniqueItems":true}}`, value: `[1,{"a":[1]},1.0,{"a":[1e0]}]`,
			want: []string{`[2]: Duplicate value: 1.0`, `[3]: Duplicate value: {"a":[1e0]}`}},
		{name: "uniqueItems of many", schemas: `{"S":{"uniqueItems":true}}`, value: `[1,2,3,4,5,6,7,8,9,10,"a",5.0]`,
			want: []string{`[11]: Duplicate value: 5.0`}},
		{name: "places in lists of lists",
			schemas: `{"S":{"items":{"items":{"allOf":[{"properties":{"n":{"type":"integer"}}}]}}}}`,
			value:   `[[],[{"n":1},{"n":"x"}]]`,
			want:    []string{`[1][1].n: Invalid value: "string": must be of type integer`}},
		{name: "types as alternatives", schemas: `{"S":{"anyOf":[{"type":"string"},{"type":"integer"}]}}`,
			value: `true`, want: []string{`<nil>: Invalid value: "boolean": must be of type integer or string`}},
		{name: "null as one of two", schemas: `{"S":{"oneOf":[{"type":"null"},{"type":"string","maxLength":1}]}}`,
			value: `"ab"`, want: []string{`<nil>: Too long: must be at most 1 character`}},
		{name: "the alternative that comes closest", schemas: `{"S":{"anyOf":[{"type":"string"},{"type":"object","required":["a"],"properties":{"a":{"type":"integer"}}}]}}`, value: `{"a":"x"}`, want: []string{`<nil>: Invalid value: must match at least one of the alternatives in 'anyOf'`, `a: Invalid value: "string": must be of type integer`}},
		{name: "members as alternatives", schemas: `{"S":{"oneOf":[{"required":["a"]},{"required":["b"]}]}}`,
			value: `{"a":1,"b":2}`,
			want:  []string{"<nil>: Invalid value: must have exactly one of `a` and `b`, and has 2"}},
		{name: "not", schemas: `{"S":{"not":{"type":"string"}}}`, value: `"a"`,
			want: []string{`<nil>: Invalid value: must not match the schema in 'not'`}},
		{name: "recursion", schemas: `{"S":{"properties":{"next":{"$ref":"#/components/schemas/S"},"n":{"type":"integer"}}}}`, value: `{"next":{"next":{"n":"x"}}}`, want: []string{`next.next.n: Invalid value: "string": must be of type integer`}},
		{name: "a schema that refers to itself",
			schemas: `{"S":{"allOf":[{"$ref":"#/components/schemas/S"},{"type":"string"}]}}`, value: `1`,
			want: []string{`<nil>: Invalid value: "integer": must be of type string`}},
		{name: "discriminator by enum", dialect: graph.OpenAPI30, schemas: `{"S":{"discriminator":{"propertyName":"kind"},"oneOf":[{"$ref":"#/components/schemas/Cat"},{"$ref":"#/components/schemas/Dog"}]},` + pets + `}`, value: `{"kind":"lion","lives":"x"}`, want: []string{`lives: Invalid value: "string": must be of type integer`}},
		{name: "discriminator without match", dialect: graph.OpenAPI30, schemas: `{"S":{"discriminator":{"propertyName":"kind"},"oneOf":[{"$ref":"#/components/schemas/Cat"},{"$ref":"#/components/schemas/Dog"}]},` + pets + `}`, value: `{"kind":"Cat"}`, want: []string{`kind: Unsupported value: "Cat": supported values: "cat", "lion", "dog"`}},
		{name: "discriminator that is missing", dialect: graph.OpenAPI30, schemas: `{"S":{"discriminator":{"propertyName":"kind"},"oneOf":[{"$ref":"#/components/schemas/Cat"},{"$ref":"#/components/schemas/Dog"}]},` + pets + `}`, value: `{}`, want: []string{`kind: Required value`}},
		{name: "discriminator that may be missing", dialect: graph.OpenAPI31, schemas: `{"S":{"discriminator":{"propertyName":"kind","defaultMapping":"A"},"oneOf":[{"$ref":"#/components/schemas/A"},{"$ref":"#/components/schemas/B"}]},"A":{"type":"object","required":["n"]},"B":{"type":"object","required":["kind"]}}`, value: `{"n":1}`},
		{name: "discriminator with mapping", dialect: graph.OpenAPI30, schemas: `{"S":{"discriminator":{"propertyName":"kind","mapping":{"c":"#/components/schemas/A","d":"B"}},"oneOf":[{"$ref":"#/components/schemas/A"},{"$ref":"#/components/schemas/B"}]},"A":{"type":"object","properties":{"n":{"type":"integer"}}},"B":{"type":"object"}}`, value: `{"kind":"c","n":"x"}`, want: []string{`n: Invalid value: "string": must be of type integer`}},
		{name: "discriminator by name", dialect: graph.OpenAPI30, schemas: `{"S":{"discriminator":{"propertyName":"kind"},"anyOf":[{"$ref":"#/components/schemas/A"},{"$ref":"#/components/schemas/B"}]},"A":{"type":"object","properties":{"n":{"type":"integer"}}},"B":{"type":"object"}}`, value: `{"kind":"A","n":"x"}`, want: []string{`n: Invalid value: "string": must be of type integer`}},
		{name: "discriminator of schemas that extend", dialect: graph.OpenAPI30,
			schemas: `{"S":{"$ref":"#/components/schemas/Base"},` + shapes + `}`,
			value:   `{"kind":"Circle","radius":"x"}`,
			want:    []string{`radius: Invalid value: "string": must be of type number`}},
		{name: "one that extends", dialect: graph.OpenAPI30, schemas: `{"S":{"$ref":"#/components/schemas/Circle"},` +
			shapes + `}`, value: `{"kind":"any","radius":1}`},
		{name: "a base that nothing of that name extends", dialect: graph.OpenAPI30,
			schemas: `{"S":{"$ref":"#/components/schemas/Base"},` + shapes + `}`, value: `{"kind":"Square"}`,
			want: []string{`kind: Unsupported value: "Square": supported values: "Base", "Circle"`}},
		{name: "readOnly may be missing in requests", dialect: graph.OpenAPI30, schemas: `{"S":{"required":["id"],"allOf":[{"$ref":"#/components/schemas/T"}]},"T":{"required":["id","n"],"properties":{"id":{"type":"string","readOnly":true},"n":{}}}}`, value: `{}`, want: []string{`n: Required value`}},
		{name: "readOnly by a schema around", dialect: graph.OpenAPI30,
			schemas: `{"S":{"properties":{"id":{"readOnly":true}},"allOf":[{"required":["id"]}]}}`, value: `{}`},
		{name: "readOnly is required in answers", dialect: graph.OpenAPI30, use: graph.Answers, schemas: `{"S":{"required":["id","secret"],"properties":{"id":{"readOnly":true},"secret":{"writeOnly":true}}}}`, value: `{}`, want: []string{`id: Required value`}},
		{name: "writeOnly may be missing in results of patches", dialect: graph.OpenAPI30, use: graph.Patched, schemas: `{"S":{"required":["id","secret"],"properties":{"id":{"readOnly":true},"secret":{"writeOnly":true}}}}`, value: `{}`},
		{name: "expressions of ECMA-262", schemas: `{"S":{"items":{"pattern":"^[\\s\\u00e4]\\cA\\/[^]$"}}}`, value: `["\u00a0\u0001/\n","ä\u0001/x","x\u0001/x"]`, want: []string{"[2]: Invalid value: \"x\\x01/x\": must match the regular expression '^[\\s\\u00e4]\\cA\\/[^]$'"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := compile(t, tt.dialect, tt.schemas)
			if got := said(t, s, tt.value, tt.use); !slices.Equal(got, tt.want) {
				t.Errorf("%s\nsaid %q\nwant %q", tt.value, got, tt.want)
			}
		})
	}
}

func TestFindings(t *testing.T) {
	for _, tt := range []struct {
		dialect graph.Dialect
		schema  string
		want    []string
	}{
		{schema: `{"required":"desk"}`, want: []string{"error: S.required: must be a list of names of properties"}},
		{schema: `{"required":{"a":true}}`, want: []string{"error: S.required: must be a list of names of properties"}},
		{schema: `{"required":[1]}`, want: []string{"error: S.required[0]: must be the name of a property"}},
		{schema: `{"pattern":5}`, want: []string{"error: S.pattern: must be a string"}},
		{schema: `{"enum":"a"}`, want: []string{"error: S.enum: must be a list of values"}},
		{schema: `{"additionalProperties":"no"}`, want: []string{"error: S.additionalProperties: must be a schema: an object, or 'true' or 'false'"}},
		{schema: `null`, want: []string{"warning: S: is null and says nothing: leave it out"}},
		{schema: `{"not":null,"required":null,"properties":{"a":null},"const":null}`, want: []string{
			"warning: S.not: is null and says nothing: leave it out",
			"warning: S.properties.a: is null and says nothing: leave it out",
			"warning: S.required: is null and says nothing: leave it out",
		}},
		{schema: `{"not":"text"}`, want: []string{"error: S.not: must be a schema: an object, or 'true' or 'false'"}},
		{schema: `{"nullable":"maybe"}`, dialect: graph.OpenAPI30,
			want: []string{"warning: S.nullable: must be 'true' or 'false'"}},
		{schema: `{"maxLength":"x","minItems":-1,"minProperties":1.5}`,
			want: []string{"error: S.maxLength: must be an integer of at least 0",
				"error: S.minItems: must be an integer of at least 0",
				"error: S.minProperties: must be an integer of at least 0"}},
		{schema: `{"minimum":"1","multipleOf":0}`,
			want: []string{"error: S.minimum: must be a number",
				"error: S.multipleOf: must be a number greater than 0, of at most 19 digits"}},
		{schema: `{"type":"text"}`, want: []string{"error: S.type: must be a type of JSON Schema, such as 'string'"}},
		{schema: `{"type":[]}`, want: []string{"error: S.type: must name at least one type"}},
		{schema: `{"uniqueItems":"yes"}`, want: []string{"error: S.uniqueItems: must be 'true' or 'false'"}},
		{schema: `{"properties":[],"items":[{}]}`, want: []string{"error: S.items: must be one schema: a list of schemas is 'prefixItems' in JSON Schema 2020-12", "error: S.properties: must be an object"}},
		{schema: `{"allOf":{}}`, want: []string{"error: S.allOf: must be a list of at least one schema"}},
		{schema: `{"$ref":"#/components/schemas/T"}`, want: []string{"error: S.$ref: must point to something in the document, not '#/components/schemas/T'"}},
		{schema: `{"$ref":"other.json"}`, want: []string{"error: S.$ref: must be a reference within the document or to a file of its folder, such as '#/components/schemas/Order' or 'order.yaml#/Order', not 'other.json'"}},
		{schema: `{"$ref":"#/components/schemas/S"}`, want: []string{"warning: S: must not refer to itself by way of '$ref' and 'allOf' alone; this is not enforced"}},
		{schema: `{"not":{"$ref":"#/components/schemas/S"}}`,
			want: []string{"error: S: must not refer to itself by way of 'not' or 'if'"}},
		{schema: `{"pattern":"(?=a)b"}`, want: []string{"warning: S.pattern: is not enforced, because the expression is not one of RE2: invalid or unsupported Perl syntax: `(?=`"}},
		{schema: `{"format":"moon"}`, dialect: graph.OpenAPI31,
			want: []string{"warning: S.format: the format 'moon' is not enforced"}},
		{schema: `{"$ref":"#/components/schemas/S/properties/a","type":"string","properties":{"a":{}}}`, dialect: graph.OpenAPI30, want: []string{
			"warning: S.properties: does not count beside '$ref' in OpenAPI 3.0: put both into an 'allOf'", "warning: S.type: does not count beside '$ref' in OpenAPI 3.0: put both into an 'allOf'"}},
		{schema: `{"divisibleBy":2,"x-internal":true,"title":"T"}`,
			want: []string{"warning: S.divisibleBy: the keyword 'divisibleBy' is not enforced"}},
		{schema: `{"discriminator":"kind"}`, dialect: graph.OpenAPI30, want: []string{"warning: S.discriminator: must have the name of a property as `propertyName`; the alternatives are told apart without it"}},
		{schema: `{"discriminator":{"propertyName":"kind","defaultMapping":"T"},"oneOf":[{"type":"object"},{"type":"string"}]}`, dialect: graph.OpenAPI31, want: []string{
			"warning: S.discriminator.defaultMapping: the alternatives are told apart by their schemas, whatever the discriminator names"}},
		{schema: `{"properties":{"kind":{"enum":["a"]}},"discriminator":{"propertyName":"kind","mapping":{"b":"#/components/schemas/S/items"}},"oneOf":[{"properties":{"kind":{"enum":["b"]}}},{"properties":{"kind":{"enum":["c"]}}}]}`, dialect: graph.OpenAPI31, want: []string{
			"warning: S.discriminator: names no value that the property 'kind' may have; the alternatives are told apart without it"}},
	} {
		t.Run(tt.schema, func(t *testing.T) {
			if _, got := compile(t, tt.dialect, `{"S":`+tt.schema+`}`); !slices.Equal(got, tt.want) {
				t.Errorf("found %q\nwant %q", got, tt.want)
			}
		})
	}
}

// Alternatives that lead to alternatives for ever are refused, not followed.
func TestWorkIsBounded(t *testing.T) {
	s, found := compile(t, graph.Draft2020, `{"S":{"oneOf":[
		{"type":"object","properties":{"a":{"$ref":"#/components/schemas/S"}},"required":["a","x"]},
		{"type":"object","properties":{"a":{"$ref":"#/components/schemas/S"}},"required":["a","y"]},
		{"type":"integer"}]}}`)
	if len(found) > 0 {
		t.Fatal(found)
	}
	want := []string{"<nil>: Invalid value: must take less work to validate: the alternatives of the schema that the value may match are too many"}
	if got := said(t, s, strings.Repeat(`{"a":`, 40)+"1"+strings.Repeat("}", 40), graph.Requests); !slices.Equal(got,
		want) {
		t.Errorf("said %q\nwant %q", got, want)
	}
	if got := said(t, s, `{"a":{"a":1,"x":1},"y":1}`, graph.Requests); got != nil {
		t.Errorf("said %q of a value that is right", got)
	}
}

// Failures are kept up to a bound, and counted beyond it.
func TestFailuresAreBounded(t *testing.T) {
	s, _ := compile(t, graph.Draft2020, `{"S":{"items":{"type":"string"}}}`)
	v, err := document.Parse([]byte("["+strings.Repeat("1,", 999)+"1]"), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Release()
	if r := s.Check(v.Root(), graph.Requests); len(r.Failures) != graph.MaxFailures ||
		r.More != 1000-graph.MaxFailures {
		t.Errorf("%d failures and %d more", len(r.Failures), r.More)
	}
}

const order = `{"id":"o-2041","customer":{"name":"Iris Engel","email":"iris@example.com","vip":true},"currency":"EUR","tags":["b2b","rush","eu"],
	"lines":[{"kind":"item","sku":"tea-001","quantity":3,"unitPriceCents":450},{"kind":"item","sku":"tea-002","quantity":1,"unitPriceCents":1250,"note":"gift"},
	{"kind":"discount","percent":12.5}],"shipping":{"method":"express","address":{"street":"Am Hafen 3","city":"Hamburg","zip":"20457","country":"DE"}},"notes":"leave at the door"}`

const orders = `{"S":{"type":"object","required":["id","customer","lines"],"additionalProperties":false,"properties":{
	"id":{"type":"string","pattern":"^o-[0-9]+$"},"customer":{"$ref":"#/components/schemas/Customer"},"currency":{"type":"string","enum":["EUR","USD","GBP"]},
	"tags":{"type":"array","uniqueItems":true,"items":{"type":"string","maxLength":20}},
	"lines":{"type":"array","minItems":1,"items":{"oneOf":[{"$ref":"#/components/schemas/Item"},{"$ref":"#/components/schemas/Discount"}],"discriminator":{"propertyName":"kind"}}},
	"shipping":{"type":"object","properties":{"method":{"type":"string"},"address":{"allOf":[{"$ref":"#/components/schemas/Address"}],"unevaluatedProperties":false}}},"notes":{"type":["string","null"]}}},
	"Customer":{"type":"object","required":["name"],"properties":{"name":{"type":"string","minLength":1},"email":{"type":"string","format":"email"},"vip":{"type":"boolean"}}},
	"Item":{"type":"object","required":["kind","sku"],"properties":{"kind":{"const":"item"},"sku":{"type":"string"},"quantity":{"type":"integer","minimum":1,"maximum":1000},"unitPriceCents":{"type":"integer","format":"int64"}}},
	"Discount":{"type":"object","required":["kind"],"properties":{"kind":{"const":"discount"},"percent":{"type":"number","multipleOf":0.5,"exclusiveMaximum":100}}},
	"Address":{"type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"},"zip":{"type":"string"},"country":{"type":"string","minLength":2,"maxLength":2}}}}`

// A value that is right is found to be so without allocating.
func TestRightValuesAllocateNothing(t *testing.T) {
	s, found := compile(t, graph.OpenAPI31, orders)
	if len(found) > 0 {
		t.Fatal(found)
	}
	v, err := document.Parse([]byte(order), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Release()
	if r := s.Check(v.Root(), graph.Requests); !r.Valid() {
		t.Fatal(r.Failures)
	}
	if n := testing.AllocsPerRun(100, func() { s.Check(v.Root(), graph.Requests) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCheck(b *testing.B) {
	s, _ := compile(b, graph.OpenAPI31, orders)
	v, err := document.Parse([]byte(order), document.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	defer v.Release()
	b.SetBytes(int64(len(order)))
	b.ReportAllocs()
	for b.Loop() {
		s.Check(v.Root(), graph.Requests)
	}
}
