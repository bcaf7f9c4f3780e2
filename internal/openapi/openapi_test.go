package openapi_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/openapi"
	"github.com/admission-gateway/gateway/internal/schema"
)

// read parses a document in YAML.
func read(t testing.TB, text string) *openapi.Document {
	t.Helper()
	objects, errs := manifest.Read("api.yaml", []byte(text))
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	d, err := openapi.Parse(objects[0].JSON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Release)
	return d
}

// things is a document whose things are the component Thing.
func things(version, components string) string {
	return "openapi: " + version + `
info: {title: Things, version: "1"}
paths:
  /things:
    post: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Thing'}}}}, responses: {}}
  /things/{id}:
    get: {responses: {"200": {description: ok, content: {application/json: {schema: {$ref: '#/components/schemas/Thing'}}}}}}
components:
  schemas:
    ` + strings.ReplaceAll(strings.TrimSpace(components), "\n", "\n    ") + "\n"
}

func findings(found []openapi.Finding) (all []string) {
	for _, f := range found {
		line := f.Path + ": "
		switch {
		case f.Gap:
			line += "gap: "
		case f.Note:
			line += "note: "
		case !f.Error:
			line += "warning: "
		}
		all = append(all, line+f.Message)
	}
	return all
}

func compiled(t testing.TB, s *openapi.Schema) *schema.Schema {
	t.Helper()
	if s == nil {
		return nil
	}
	c, _, errs := s.Compile(schema.Options{})
	if len(errs) > 0 {
		t.Fatalf("%v at %s", errs, s.Where(errs[0].Field))
	}
	return c
}

// admitted returns what an object becomes, and what is wrong with it then.
func admitted(t testing.TB, s *schema.Schema, text string) (string, []string) {
	t.Helper()
	d, err := document.Parse([]byte(text), document.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer d.Release()
	if err := s.Prune(d, nil); err != nil {
		return "", []string{err.Error()}
	}
	defaults.Apply(d, s)
	f := cel.NewFrame(context.Background())
	defer f.Release()
	result := s.Validate(f, d.Root(), document.Node{})
	var messages []string
	for _, err := range result.Errors {
		messages = append(messages, err.Error())
	}
	return string(d.AppendTo(nil)), messages
}

// A case is a schema, what is found about it, and objects with what they become and what is wrong with them.
type schemaCase struct {
	name, version, components string
	found                     []string
	objects                   []object
}

type object struct {
	text, want string // the same if want is empty
	wrong      []string
}

func TestSchemas(t *testing.T) {
	for _, c := range []schemaCase{
		{
			name: "members that are not named may be anything", version: "3.0.3",
			components: `Thing: {type: object, properties: {a: {type: string}}}`,
			objects: []object{{text: `{"a":"x","b":{"c":[null]}}`},
				{text: `{"a":1}`, wrong: []string{`a: Invalid value: "integer": must be of type string`}}},
		},
		{
			name: "closed", version: "3.0.3",
			components: `Thing: {type: object, additionalProperties: false, properties: {a: {type: string}, in: {type: object, additionalProperties: false}}}`,
			objects: []object{
				{text: `{"a":"x","in":{}}`},
				{text: `{"b":1,"in":{"c":1}}`, wrong: []string{
					`b: Invalid value: "b": may not be set: the schema allows no other properties than its own`,
					`in: Invalid value: "c": may not be set: the schema allows no other properties than its own`,
				}},
			},
		},
		{
			name: "a map, and one beside named members", version: "3.0.3",
			components: `
Thing:
  type: object
  properties:
    map: {type: object, additionalProperties: {type: integer, minimum: 1, default: 3}}
    mixed: {type: object, properties: {a: {type: string}}, additionalProperties: {$ref: '#/components/schemas/Size'}}
Size: {type: integer, maximum: 9}`,
			objects: []object{
				{text: `{"map":{"x":1},"mixed":{"a":"s","b":9}}`},
				{text: `{"map":{"y":null}}`, wrong: []string{`map[y]: Invalid value: "null": must be of type integer`}},
				{text: `{"map":{"x":0},"mixed":{"a":1,"b":10}}`, wrong: []string{
					`map[x]: Invalid value: 0: must be greater than or equal to 1`,
					`mixed.a: Invalid value: "integer": must be of type string`,
					`mixed[b]: Invalid value: 10: must be less than or equal to 9`,
				}},
			},
		},
		{
			name: "null in version 3.0", version: "3.0.3",
			components: `
Thing:
  type: object
  properties:
    a: {type: string, nullable: true}
    b: {type: string}
    c: {allOf: [{$ref: '#/components/schemas/Name'}], nullable: true}
    d: {type: string, nullable: true, enum: [x, null]}
    e: {type: array, items: {type: integer, nullable: true}}
Name: {type: string, minLength: 2}`,
			objects: []object{
				{text: `{"a":null,"c":null,"d":null,"e":[null]}`},
				{text: `{"b":null}`, wrong: []string{`b: Invalid value: "null": must be of type string`}},
				{text: `{"c":"x","d":"y"}`, wrong: []string{`c: Invalid value: "x": must be at least 2 characters`,
					`d: Unsupported value: "y": supported values: "x"`}},
			},
		},
		{
			name: "null in version 3.1", version: "3.1.0",
			components: `
Thing:
  type: object
  properties:
    a: {type: [string, "null"], maxLength: 1}
    b: {anyOf: [{$ref: '#/components/schemas/Inner'}, {type: "null"}]}
    c: {oneOf: [{type: "null"}, {type: integer, minimum: 2}]}
    d: {type: "null"}
    e: {type: [integer, "null"], enum: [1, null]}
Inner: {type: object, required: [x], properties: {x: {type: string}}}`,
			objects: []object{
				{text: `{"a":null,"b":null,"c":null,"d":null,"e":null}`},
				{text: `{"a":"ab","b":{},"c":1,"d":1,"e":2}`, wrong: []string{
					`a: Too long: must be at most 1 character`,
					`b.x: Required value`,
					`c: Invalid value: 1: must be greater than or equal to 2`,
					`d: Invalid value: "integer": must be of type null`,
					`e: Unsupported value: 2: supported values: "1"`,
				}},
			},
		},
		{
			name: "several types", version: "3.1.0",
			components: `
Thing:
  type: object
  properties:
    a: {type: [string, integer], minLength: 2, minimum: 5}
    b: {type: [string, boolean]}
    c: {oneOf: [{type: string}, {type: number}]}
    d: {type: [object, string], properties: {x: {type: integer}}, maxLength: 1}
    e: {description: anything}
    f: true
    g: false`,
			objects: []object{
				{text: `{"a":"ab","b":true,"c":1.5,"d":{"x":1},"e":[],"f":{}}`},
				{text: `{"a":5,"b":"x","c":"y","d":"z"}`},
				{text: `{"a":4,"b":1,"c":true,"d":{"x":"1"},"g":1}`, wrong: []string{
					`a: Invalid value: 4: must be greater than or equal to 5`,
					`b: Invalid value: "integer": must be of type string or boolean`,
					`c: Invalid value: "boolean": must be of type number or string`,
					`d.x: Invalid value: "string": must be of type integer`,
					`g: Invalid value: must not match the schema in 'not'`,
				}},
				{text: `{"b":null,"d":"zz","e":null,"f":null}`, wrong: []string{
					`b: Invalid value: "null": must be of type string or boolean`,
					`d: Too long: must be at most 1 character`,
				}},
			},
		},
		{
			name: "composition", version: "3.0.3",
			components: `
Thing:
  allOf:
  - $ref: '#/components/schemas/Base'
  - type: object
    required: [b]
    properties:
      a: {maxLength: 3}
      b: {type: integer, minimum: 1, maximum: 10}
  properties:
    b: {maximum: 5}
    c: {allOf: [{type: string, pattern: ^a}, {pattern: z$}]}
Base: {type: object, required: [a], properties: {a: {type: string, minLength: 2}, d: {type: string, default: x}}}`,
			objects: []object{
				{text: `{"a":"ab","b":5,"c":"az"}`, want: `{"a":"ab","b":5,"c":"az","d":"x"}`},
				{text: `{"a":"abcd","b":6,"c":"z"}`, want: `{"a":"abcd","b":6,"c":"z","d":"x"}`, wrong: []string{
					`a: Too long: must be at most 3 characters`,
					`b: Invalid value: 6: must be less than or equal to 5`,
					`c: Invalid value: "z": must match the regular expression '^a'`,
				}},
				{text: `{}`, want: `{"d":"x"}`, wrong: []string{`a: Required value`, `b: Required value`}},
			},
		},
		{
			name: "alternatives", version: "3.1.0",
			components: `
Thing:
  type: object
  properties:
    one: {oneOf: [{$ref: '#/components/schemas/A'}, {$ref: '#/components/schemas/B'}]}
    any: {anyOf: [{type: object, required: [x]}, {type: array, items: {type: integer}}]}
    not: {type: string, not: {const: forbidden}}
    listed: {oneOf: [{const: a, title: the first}, {const: b}, {enum: [c]}]}
A: {type: object, required: [v], properties: {v: {type: string}}}
B: {type: object, required: [v], properties: {v: {type: integer}}}`,
			objects: []object{
				{text: `{"one":{"v":1},"any":[1],"not":"x","listed":"c"}`},
				{text: `{"one":{"v":"1"},"any":{"x":null}}`},
				{text: `{"one":{"v":true},"any":["1"],"not":"forbidden","listed":"d"}`, wrong: []string{
					`one: Invalid value: must match exactly one of the alternatives in 'oneOf', and matches none`,
					`one.v: Invalid value: "boolean": must be of type string`,
					`any: Invalid value: must match at least one of the alternatives in 'anyOf'`,
					`any[0]: Invalid value: "string": must be of type integer`,
					`not: Invalid value: must not match the schema in 'not'`,
					`listed: Unsupported value: "d": supported values: "a", "b", "c"`,
				}},
			},
		},
		{
			name: "alternatives that a discriminator names", version: "3.0.3",
			components: `
Thing:
  type: object
  properties:
    pet:
      oneOf: [{$ref: '#/components/schemas/Cat'}, {$ref: '#/components/schemas/Dog'}]
      discriminator: {propertyName: kind, mapping: {cat: '#/components/schemas/Cat', kitten: Cat}}
Cat: {type: object, required: [kind], properties: {kind: {type: string}, lives: {type: integer}}}
Dog: {type: object, required: [kind, pack], properties: {kind: {type: string}, pack: {type: integer}}}`,
			objects: []object{
				{text: `{"pet":{"kind":"kitten","lives":9,"pack":"x"}}`},
				{text: `{"pet":{"kind":"Dog","pack":1,"lives":"x"}}`},
				{text: `{"pet":{"kind":"Dog","lives":9}}`, wrong: []string{`pet.pack: Required value`}},
				{text: `{"pet":{"kind":"bird"}}`, wrong: []string{`pet.kind: Unsupported value: "bird": supported values: "cat", "kitten", "Cat", "Dog"`}},
				{text: `{"pet":{}}`, wrong: []string{`pet.kind: Required value`}},
			},
		},
		{
			name: "schemas that extend one with a discriminator", version: "3.0.3",
			components: `
Thing: {type: object, properties: {pet: {$ref: '#/components/schemas/Pet'}}}
Pet: {type: object, required: [kind], properties: {kind: {type: string}, name: {type: string}}, discriminator: {propertyName: kind}}
Cat: {allOf: [{$ref: '#/components/schemas/Pet'}, {type: object, required: [lives], properties: {lives: {type: integer}}}]}
Kitten: {allOf: [{$ref: '#/components/schemas/Cat'}, {properties: {lives: {minimum: 9}}}]}`,
			objects: []object{
				{text: `{"pet":{"kind":"Pet"}}`},
				{text: `{"pet":{"kind":"Kitten","lives":9}}`},
				{text: `{"pet":{"kind":"Cat"}}`, wrong: []string{`pet.lives: Required value`}},
				{text: `{"pet":{"kind":"Kitten","lives":8,"name":1}}`, wrong: []string{
					`pet.lives: Invalid value: 8: must be greater than or equal to 9`,
					`pet.name: Invalid value: "integer": must be of type string`,
					`pet.name: Invalid value: "integer": must be of type string`,
				}},
				{text: `{"pet":{"kind":"Fish"}}`,
					wrong: []string{`pet.kind: Unsupported value: "Fish": supported values: "Pet", "Cat", "Kitten"`}},
			},
		},
		{
			name: "numbers", version: "3.0.3",
			components: `
Thing:
  type: object
  properties:
    a: {type: integer, minimum: 1, exclusiveMinimum: true, maximum: 5, exclusiveMaximum: false}
    b: {type: number, multipleOf: 0.5}
    c: {type: integer, format: int32}
    d: {type: integer, format: int64}
    e: {type: number, format: float}
    f: {type: number, format: double}`,
			objects: []object{
				{text: `{"a":2,"b":1.5,"c":2147483647,"d":9223372036854775807,"e":1e38,"f":1e300}`},
				{text: `{"a":1,"b":1.4,"c":2147483648,"d":9223372036854775808,"e":1e39}`, wrong: []string{
					`a: Invalid value: 1: must be greater than 1`,
					`b: Invalid value: 1.4: must be a multiple of 0.5`,
					`c: Invalid value: 2147483648: must be between -2147483648 and 2147483647, inclusive`,
					`d: Invalid value: 9223372036854775808: must be between -9223372036854775808 and 9223372036854775807, inclusive`,
					`e: Invalid value: 1e39: must be within the range of the format 'float'`,
				}},
			},
		},
		{
			name: "numbers in version 3.1", version: "3.1.0",
			components: `Thing: {type: object, properties: {a: {type: number, exclusiveMinimum: 1, minimum: 1, exclusiveMaximum: 5, maximum: 9}, b: {const: 1}, c: {enum: [1, x, {y: [2]}, null]}}}`,
			objects: []object{
				{text: `{"a":1.1,"b":1,"c":{"y":[2]}}`}, {text: `{"c":null}`},
				{text: `{"a":5,"b":2,"c":2}`, wrong: []string{
					`a: Invalid value: 5: must be less than 5`, `b: Unsupported value: 2: supported values: "1"`,
					`c: Unsupported value: 2: supported values: "1", "x", "{\"y\":[2]}"`,
				}},
			},
		},
		{
			name: "texts and lists", version: "3.1.0",
			components: `
Thing:
  type: object
  minProperties: 1
  maxProperties: 4
  properties:
    mail: {type: string, format: email}
    at: {type: string, format: date-time}
    letter: {type: string, pattern: '^[\u0041-\u005A]$'}
    tags: {type: array, uniqueItems: true, minItems: 1, maxItems: 3, items: {type: string}}
    objects: {type: array, uniqueItems: true}
    all: {type: array, items: {type: string}}
    lists: {items: {type: string}}
    days: {type: array, format: date}`,
			objects: []object{
				{text: `{"mail":["a@example.com"],"days":"2024-05-01"}`, wrong: []string{
					`mail: Invalid value: "array": must be of type string`,
					`days: Invalid value: "string": must be of type array`,
				}},
				{text: `{"mail":"a@example.com","at":"2024-05-01T12:00:00Z","letter":"B","tags":["a","b"]}`},
				{text: `{"objects":[{"a":1},{"a":2},1,"1"],"all":["x"]}`},
				{text: `{}`, wrong: []string{`<nil>: Invalid value: 0: must have at least 1 property`}},
				{text: `{"mail":"a","at":"noon","letter":"b","tags":["a","a"]}`, wrong: []string{
					`mail: Invalid value: "a": must be a valid 'email'`,
					`at: Invalid value: "noon": must be a valid 'date-time'`,
					`letter: Invalid value: "b": must match the regular expression '^[\u0041-\u005A]$'`, `tags[1]: Duplicate value: "a"`,
				}},
				{text: `{"objects":[{"a":1,"b":2},{"b":2,"a":1}],"tags":[],"all":{},"lists":{}}`, wrong: []string{
					`objects[1]: Duplicate value: {"b":2,"a":1}`, `tags: Invalid value: 0: must have at least 1 item`,
					`all: Invalid value: "object": must be of type array`,
				}},
			},
		},
		{
			name: "what only the API sets, and what only clients do", version: "3.0.3",
			components: `
Thing:
  type: object
  required: [id, name, secret]
  properties:
    id: {type: string, readOnly: true, default: none}
    name: {type: string}
    secret: {type: string, writeOnly: true, default: s}`,
			objects: []object{
				{text: `{"name":"a"}`, want: `{"name":"a","secret":"s"}`},
				{text: `{"id":1,"secret":"x"}`,
					wrong: []string{`name: Required value`, `id: Invalid value: "integer": must be of type string`}},
			},
		},
		{
			name: "recursion", version: "3.1.0",
			components: `
Thing: {$ref: '#/components/schemas/Node'}
Node:
  type: object
  additionalProperties: false
  required: [name]
  properties: {name: {type: string}, children: {type: array, items: {$ref: '#/components/schemas/Node'}}}`,
			objects: []object{
				{text: `{"name":"a","children":[{"name":"b","children":[{"name":"c","children":[{"name":"d"}]}]}]}`},
				{text: `{"name":"a","children":[{"name":"b","children":[{"name":"c","children":[{"name":1}]}]}]}`, wrong: []string{
					`children[0].children[0].children[0].name: Invalid value: "integer": must be of type string`,
				}},
				{text: `{"name":"a","children":[{"name":"b","children":{}},{"nam":1}]}`, wrong: []string{
					`children[0].children: Invalid value: "object": must be of type array`,
					`children[1].name: Required value`,
					`children[1]: Invalid value: "nam": may not be set: the schema allows no other properties than its own`,
				}},
			},
		},
		{
			name: "what is not enforced is said", version: "3.1.0",
			components: `
Thing:
  type: object
  properties:
    a: {type: string, pattern: '(?=x)', format: moon}
    c: {type: string, default: 1, enum: [x, 1]}
    d: {type: string, minlength: 2}
    f: {type: string, default: xyz, maxLength: 2}`,
			found: []string{
				`components.schemas.Thing.properties.a.format: gap: the format 'moon' is not enforced`,
				`components.schemas.Thing.properties.a.pattern: gap: is not enforced, because the expression is not one of RE2: invalid or unsupported Perl syntax: ` + "`(?=`",
				`components.schemas.Thing.properties.c.default: warning: must be of the schema's type; the default is not applied`,
				`components.schemas.Thing.properties.c.enum[1]: warning: must be a value of the schema's type; it is left out of the enumeration`,
				`components.schemas.Thing.properties.d.minlength: warning: the keyword 'minlength' is not enforced`,
				`components.schemas.Thing.properties.f.default: warning: the default is not applied: Too long: must be at most 2 characters`,
			},
			objects: []object{{text: `{"a":"y","c":"x","d":""}`}},
		},
		{
			name: "keywords of JSON Schema 2020-12", version: "3.1.0",
			components: `
Thing:
  type: object
  patternProperties: {^x-: {type: string}}
  propertyNames: {maxLength: 6}
  if: {required: [a]}
  then: {required: [b]}
  unevaluatedProperties: false
  properties:
    a: {type: string}
    b: {type: array, prefixItems: [{type: string}], contains: {const: x}}`,
			objects: []object{
				{text: `{"a":"y","b":["a","x"],"x-long":"1"}`},
				{text: `{"a":"y","b":[1,2],"x-longer":1,"z":1}`, wrong: []string{
					`b: Invalid value: must have at least 1 that match the schema in 'contains', and has 0`,
					`b[0]: Invalid value: "integer": must be of type string`,
					`[x-longer]: Invalid value: "integer": must be of type string`,
					`[x-longer]: Invalid value: "x-longer": must have a name that matches the schema in 'propertyNames'`,
					`z: Invalid value: "z": may not be set: the schema allows no other properties than its own`,
				}},
				{text: `{"a":"y"}`, wrong: []string{`b: Required value`}},
			},
		},
		{
			name: "references beside which nothing counts", version: "3.0.3",
			components: "Thing: {type: object, properties: {a: {$ref: '#/components/schemas/A', description: x, maxLength: 1}, b: {$ref: '#/components/schemas/None'}, c: {$ref: other.yaml}}}\nA: {type: string}",
			found: []string{
				`components.schemas.Thing.properties.a.maxLength: warning: does not count beside '$ref' in OpenAPI 3.0: put both into an 'allOf'`,
				`components.schemas.Thing.properties.b.$ref: must point to something in the document, not '#/components/schemas/None'`,
				`components.schemas.Thing.properties.c.$ref: must be a reference within the document or to a file of its folder, such as '#/components/schemas/Order' or 'order.yaml#/Order', not 'other.yaml'`,
			},
			objects: []object{{text: `{"a":"long"}`}},
		},
		{
			name: "references beside which everything counts", version: "3.1.0",
			components: "Thing: {type: object, properties: {a: {$ref: '#/components/schemas/A', maxLength: 1}}}\nA: {type: string}",
			objects:    []object{{text: `{"a":"long"}`, wrong: []string{`a: Too long: must be at most 1 character`}}},
		},
		{
			name: "the gateway's keywords, and Kubernetes'", version: "3.0.3",
			components: `
Thing:
  type: object
  properties:
    a: {type: integer, default: 1}
    b: {type: integer, x-admission-gateway-default: {expression: self.a + 1}}
    c:
      type: array
      x-kubernetes-list-type: map
      x-kubernetes-list-map-keys: [name]
      items: {type: object, required: [name], properties: {name: {type: string}}}
    d: {type: object, x-admission-gateway-union: {members: [x]}, properties: {y: {type: string}}}
  x-kubernetes-validations:
  - {rule: "self.a < 5", message: "must be less than 5", fieldPath: .a}`,
			found: nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			resources, _, found := read(t, things(c.version, c.components)).Resources(nil)
			got := findings(found)
			slices.Sort(got)
			slices.Sort(c.found)
			if !slices.Equal(got, c.found) {
				t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.found, "\n"))
			}
			if len(c.objects) == 0 {
				return
			}
			s := compiled(t, resources[0].Create)
			for _, o := range c.objects {
				if o.want == "" {
					o.want = o.text
				}
				if got, wrong := admitted(t, s, o.text); got != o.want || !slices.Equal(wrong, o.wrong) {
					t.Errorf("%s:\n got %s\n%s\nwant %s\n%s", o.text, got, strings.Join(wrong, "\n"), o.want,
						strings.Join(o.wrong, "\n"))
				}
			}
		})
	}
}

// Keywords that are wrong are found where they stand in the document.
func TestKeywordsAreChecked(t *testing.T) {
	resources, _, _ := read(t, things("3.0.3", `
Thing:
  type: object
  properties: {in: {$ref: '#/components/schemas/In'}}
In:
  type: object
  properties: {y: {type: string}, "n": {type: integer, default: 0, maximum: 5}}
  x-admission-gateway-union: {members: [x]}
  x-kubernetes-validations: [{rule: self.z}]`)).Resources(nil)
	s := resources[0].Create
	_, _, errs := s.Compile(schema.Options{})
	if len(errs) != 1 || s.Where(errs[0].Field) != "components.schemas.In.x-kubernetes-validations[0].rule" {
		t.Errorf("got %v at %s", errs, s.Where(errs[0].Field))
	}
	for place, want := range map[string]string{
		"properties[in].properties[n].default": "components.schemas.In.properties.n.default",
		"properties[in]":                       "components.schemas.In",
		"nowhere":                              "components.schemas.Thing",
	} {
		if got := s.Where(place); got != want && !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", place, got, want)
		}
	}
}
