package openapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/openapi"
	"github.com/admission-gateway/gateway/internal/schema"
)

// TestLargeSchemas has documents that say in a few lines what becomes much when references are replaced by what they
// refer to: it stays bounded.
func TestLargeSchemas(t *testing.T) {
	each := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, strings.ReplaceAll(format, "NEXT", fmt.Sprint(i+1)), i)
		}
		return b.String()
	}
	last := func(n int) string { return fmt.Sprintf("T%d: {type: object, properties: {end: {type: string}}}\n", n) }
	thing := "Thing: {$ref: '#/components/schemas/T0'}\n"
	for name, c := range map[string]struct {
		components string
	}{
		"a chain of references": {each(20, "T%d: {$ref: '#/components/schemas/TNEXT'}\n") + last(20) + thing},
		"diamonds of allOf": {
			each(20, "T%d: {allOf: [{$ref: '#/components/schemas/TNEXT'}, {allOf: [{$ref: '#/components/schemas/TNEXT'}, {$ref: '#/components/schemas/TNEXT'}]}]}\n") + last(20) + thing,
		},
		"diamonds of members": {
			each(30, "T%d: {type: object, properties: {a: {$ref: '#/components/schemas/TNEXT'}, b: {$ref: '#/components/schemas/TNEXT'}}}\n") + last(30) + thing,
		},
		"diamonds of alternatives": {
			each(30, "T%d: {anyOf: [{$ref: '#/components/schemas/TNEXT'}, {required: [a], allOf: [{$ref: '#/components/schemas/TNEXT'}]}]}\n") + last(30) +
				"Thing: {type: object, properties: {a: {$ref: '#/components/schemas/T0'}}}\n",
		},
		"a schema in each of its members": {
			"Thing:\n  type: object\n  properties:\n" + each(40, "    m%d: {$ref: '#/components/schemas/Thing'}\n"),
		},
		"heirs that hold each other": {
			"Thing: {$ref: '#/components/schemas/Base'}\nBase: {type: object, discriminator: {propertyName: kind}, properties: {kind: {type: string}, of: {$ref: '#/components/schemas/Base'}}}\n" +
				each(100, "H%d: {allOf: [{$ref: '#/components/schemas/Base'}, {properties: {b: {$ref: '#/components/schemas/Base'}}}]}\n"),
		},
		"many heirs": {"Thing: {type: object, properties: {a: {$ref: '#/components/schemas/Base'}}}\nBase: {type: object, discriminator: {propertyName: kind}, properties: {kind: {type: string}}}\n" + each(500, "H%d: {allOf: [{$ref: '#/components/schemas/Base'}, {required: [x]}]}\n")},
		"deep and inline": {"Thing: " + strings.Repeat("{type: object, properties: {a: ", 80) + "{type: string}" +
			strings.Repeat("}}", 80) + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			resources, _, found := read(t, things("3.1.0", c.components)).Resources(nil)
			if len(resources) != 1 || resources[0].Create == nil {
				t.Fatal("no schema")
			}
			if n := openapi.Models(resources[0].Create); n > 5000 {
				t.Errorf("%d models", n)
			}
			if n := openapi.Declared(resources[0].Create); n > 5000 {
				t.Errorf("%d schemas in Kubernetes' form", n)
			}
			if len(found) > 0 {
				t.Errorf("found %q", findings(found))
			}
			compiled(t, resources[0].Create)
		})
	}
}

// FuzzResources reads documents of any kind: whatever they say, reading them ends, and what becomes a schema compiles
// or is reported as wrong.
func FuzzResources(f *testing.F) {
	f.Add(`{"openapi":"3.1.0","paths":{"/a":{"post":{"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/A"}}}}}}},` +
		`"components":{"schemas":{"A":{"type":["object","null"],"properties":{"a":{"oneOf":[{"$ref":"#/components/schemas/A"},{"const":1}],"default":{}}},` +
		`"discriminator":{"propertyName":"k","mapping":{"x":"#/components/schemas/B"}}},"B":{"allOf":[{"$ref":"#/components/schemas/A"}]}}}}`)
	f.Add(`{"openapi":"3.0.0","servers":[{"url":"/a/{b}","variables":{"b":{"default":"c"}}}],"paths":{"/x/{y}":{"$ref":"#/paths/~1z"},"/z":{"put":{"requestBody":{"$ref":"#/z"}}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := openapi.Parse([]byte(text))
		if err != nil {
			return
		}
		defer d.Release()
		resources, _, found := d.Resources(nil)
		refused := slices.ContainsFunc(found, func(f openapi.Finding) bool { return f.Error })
		for _, r := range resources {
			for _, s := range []*openapi.Schema{r.Create, r.Update, r.Read} {
				if s == nil {
					continue
				}
				_, _, errs := s.Compile(schema.Options{})
				for _, err := range errs {
					if s.Where(err.Field) == "" && !refused {
						t.Errorf("%v has no place", err)
					}
				}
			}
		}
	})
}
