package openapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/openapi"
	"github.com/admission-gateway/gateway/internal/schema"
)

// The verdict on an object is the verdict of a validator of JSON Schema 2020-12, the dialect of
// OpenAPI 3.1, for random schemas of what is enforced. The generator avoids what the gateway means
// to do differently: nulls that the schema does not allow are dropped, a schema that names members
// means an object, and formats and discriminators are the gateway's own.
func TestAgreesWithJSONSchema(t *testing.T) {
	compared, valid := 0, 0
	for seed := range uint64(3000) {
		c, v := agrees(t, seed)
		compared, valid = compared+c, valid+v
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d objects compared, %d of them valid", compared, valid)
	if compared < 5000 || valid < compared/10 || valid > compared*9/10 {
		t.Error("too few objects to say anything")
	}
}

func FuzzAgreesWithJSONSchema(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { agrees(t, seed) })
}

func agrees(t *testing.T, seed uint64) (compared, valid int) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, seed+1))}
	components := map[string]any{"Thing": g.object(3)}
	for _, name := range refs {
		components[name] = g.schema(2)
	}
	raw, err := json.Marshal(map[string]any{
		"openapi": "3.1.0", "info": map[string]any{"title": "t", "version": "1"},
		"paths": map[string]any{
			"/things": map[string]any{"post": map[string]any{"requestBody": map[string]any{"content": map[string]any{
				"application/json": map[string]any{"schema": map[string]any{"$ref": "#/components/schemas/Thing"}}}}}}},
		"components": map[string]any{"schemas": components},
	})
	if err != nil {
		t.Fatal(err)
	}
	library := jsonschema.NewCompiler()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if err := library.AddResource("doc.json", parsed); err != nil {
		t.Fatal(err)
	}
	want, err := library.Compile("doc.json#/components/schemas/Thing")
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	d, err := openapi.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	resources, _, found := d.Resources(nil)
	if len(found) > 0 || resources[0].Create == nil {
		return 0, 0 // something is not enforced
	}
	s := resources[0].Create
	got, _, errs := s.Compile(schema.Options{})
	if len(errs) > 0 {
		t.Fatalf("%s: %v", raw, errs)
	}
	for range 8 {
		text := g.value(3, true)
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		wrong := want.Validate(instance)
		ours := takes(t, got, text)
		if ours != (wrong == nil) {
			t.Errorf("%s\nobject %s: valid %v, and to the library: %v", raw, text, ours, wrong)
		}
		compared++
		if ours {
			valid++
		}
	}
	return compared, valid
}

func takes(t *testing.T, s *schema.Schema, text []byte) bool {
	d, err := document.Parse(text, document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	if err := s.Prune(d, nil); err != nil {
		t.Fatal(err)
	}
	f := cel.NewFrame(context.Background())
	defer f.Release()
	result := s.Validate(f, d.Root(), document.Node{})
	return result.Valid()
}

// generator makes schemas and values of few names and numbers, so that they meet.
type generator struct{ *rand.Rand }

var (
	refs   = []string{"A", "B", "C"}
	words  = []string{"a", "b", "c"}
	values = []any{"a", "b", "", 1, 2, 3.5, true, false}
)

func (g *generator) one(n int) bool { return g.IntN(n) == 0 }

func (g *generator) ref() map[string]any {
	return map[string]any{"$ref": "#/components/schemas/" + refs[g.IntN(len(refs))]}
}

func (g *generator) schema(depth int) any {
	if depth <= 0 {
		return g.scalar()
	}
	switch g.IntN(12) {
	case 0, 1, 2:
		return g.object(depth - 1)
	case 3:
		s := map[string]any{"type": "array", "items": g.schema(depth - 1)}
		g.counts(s, "Items")
		if g.one(3) {
			s["uniqueItems"] = true
		}
		return s
	case 4:
		return g.ref()
	case 5:
		s := g.ref()
		if g.one(2) {
			s["description"] = "d"
		}
		return s
	case 6:
		return map[string]any{"allOf": []any{g.schema(depth - 1), g.schema(depth - 1)}}
	case 7:
		return map[string]any{"anyOf": g.several(depth - 1)}
	case 8:
		return map[string]any{"oneOf": g.several(depth - 1)}
	case 9:
		return map[string]any{"not": g.scalar()}
	}
	return g.scalar()
}

func (g *generator) several(depth int) []any {
	list := []any{g.schema(depth)}
	for range g.IntN(3) {
		list = append(list, g.schema(depth))
	}
	return list
}

func (g *generator) object(depth int) map[string]any {
	s := map[string]any{"type": "object"}
	properties := map[string]any{}
	for _, name := range words {
		if g.one(2) {
			properties[name] = g.schema(depth)
		}
	}
	if len(properties) > 0 {
		s["properties"] = properties
	}
	if g.one(3) {
		s["required"] = []string{words[g.IntN(len(words))]}
	}
	switch g.IntN(5) {
	case 0:
		s["additionalProperties"] = false
	case 1:
		s["additionalProperties"] = g.schema(depth - 1)
	}
	if g.one(5) {
		g.counts(s, "Properties")
	}
	return s
}

func (g *generator) counts(s map[string]any, of string) {
	if g.one(2) {
		s["min"+of] = g.IntN(3)
	}
	if g.one(3) {
		s["max"+of] = g.IntN(3)
	}
}

func (g *generator) scalar() map[string]any {
	switch g.IntN(9) {
	case 0, 1:
		s := map[string]any{"type": "string"}
		g.counts(s, "Length")
		if g.one(3) {
			s["pattern"] = "^[ab]"
		}
		return s
	case 2:
		return map[string]any{"type": "integer", "minimum": g.IntN(3)}
	case 3:
		return map[string]any{"type": "number", "exclusiveMaximum": g.IntN(5), "multipleOf": 0.5}
	case 4:
		return map[string]any{"type": "boolean"}
	case 5:
		return map[string]any{"enum": []any{values[g.IntN(len(values))], values[g.IntN(len(values))]}}
	case 6:
		return map[string]any{"const": values[g.IntN(len(values))]}
	case 7:
		return map[string]any{"type": []string{"string", "integer"}, "minimum": 2, "maxLength": 1}
	}
	return map[string]any{}
}

// value is a value without null; an object if one is asked for.
func (g *generator) value(depth int, object bool) []byte {
	kind := g.IntN(6)
	switch {
	case object || depth > 0 && kind < 2:
		b := []byte("{")
		for _, name := range words {
			if g.one(2) {
				if len(b) > 1 {
					b = append(b, ',')
				}
				b = append(b, fmt.Sprintf("%q:%s", name, g.value(depth-1, false))...)
			}
		}
		return append(b, '}')
	case depth > 0 && kind == 2:
		b := []byte("[")
		for i := range g.IntN(3) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, g.value(depth-1, false)...)
		}
		return append(b, ']')
	}
	raw, _ := json.Marshal(values[g.IntN(len(values))])
	return raw
}
