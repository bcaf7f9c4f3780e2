package graph_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	library "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/graph"
)

// The verdict on a random value is the verdict of another validator of JSON Schema 2020-12.
func TestAgainstLibrary(t *testing.T) {
	compared, valid := 0, 0
	for seed := range uint64(3000) {
		c, v := againstLibrary(t, seed)
		compared, valid = compared+c, valid+v
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d values compared, %d of them valid", compared, valid)
	if compared < 20_000 || valid < compared/10 || valid > compared*9/10 {
		t.Error("too few values to say anything")
	}
}

func FuzzAgainstLibrary(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { againstLibrary(t, seed) })
}

func againstLibrary(t *testing.T, seed uint64) (compared, valid int) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, seed+1))}
	defs := map[string]any{}
	for i, name := range components {
		g.least = i + 1
		defs[name] = g.schema(3)
	}
	g.least = 0
	root, isObject := g.schema(4).(map[string]any)
	if !isObject {
		root = map[string]any{"allOf": []any{true}}
	}
	root["$defs"] = defs
	raw, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	c := library.NewCompiler()
	parsed, err := library.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("doc.json", parsed); err != nil {
		t.Fatal(err)
	}
	want, err := c.Compile("doc.json")
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	d, err := document.Parse(raw, document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	got := graph.NewCompiler(d.Root(), graph.Draft2020, func(f graph.Finding) {
		t.Errorf("%s\n%s: %s", raw, f.At.Path(), f.Message)
	}).Compile(d.Root())
	for range 12 {
		text := g.value(3)
		instance, err := library.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		wrong := want.Validate(instance)
		v, err := document.Parse(text, document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		r := got.Check(v.Root(), graph.Requests)
		if r.Valid() != (wrong == nil) {
			t.Errorf("%s\nvalue %s: valid %v (%v), and to the library: %v", raw, text, r.Valid(), r.Failures, wrong)
		}
		for _, f := range r.Failures {
			if f.Err.Detail == "" && f.Err.Type != "FieldValueRequired" && f.Err.Type != "FieldValueDuplicate" &&
				f.Err.Type != "FieldValueNotSupported" {
				t.Errorf("%s\nvalue %s: %v says nothing", raw, text, f.Err)
			}
		}
		v.Release()
		compared++
		if r.Valid() {
			valid++
		}
	}
	return compared, valid
}

// generator makes schemas and values of few names and numbers, so that they meet.
type generator struct {
	*rand.Rand
	least int // the first component that may be referred to for the same value: none leads back to itself
}

var (
	components = []string{"A", "B", "C"}
	members    = []string{"a", "b", "c"}
	scalars    = []string{`"a"`, `"b"`, `"bb"`, `""`, `1`, `1.0`, `2`, `3.5`, `-1`, `1e1`, `true`, `false`, `null`,
		`0.3`, `9007199254740993`, `"\u0061"`}
	types = []string{"string", "integer", "number", "boolean", "object", "array", "null"}
)

func (g *generator) chance(n int) bool { return g.IntN(n) == 0 }

func (g *generator) scalar() any { return json.RawMessage(scalars[g.IntN(len(scalars))]) }

func (g *generator) list(least, most int, one func() any) []any {
	all := []any{}
	for range least + g.IntN(most-least+1) {
		all = append(all, one())
	}
	return all
}

func (g *generator) names(most int) []string {
	all := []string{}
	for _, name := range members {
		if len(all) < most && g.chance(2) {
			all = append(all, name)
		}
	}
	return all
}

// inside is a schema of a member or item, which may refer to any component.
func (g *generator) inside(depth int) any {
	least := g.least
	g.least = 0
	defer func() { g.least = least }()
	return g.schema(depth)
}

func (g *generator) schema(depth int) any {
	if g.chance(14) {
		return g.chance(2)
	}
	s := map[string]any{}
	if depth <= 0 {
		g.keyword(s, g.IntN(12), depth)
		return s
	}
	for range 1 + g.IntN(4) {
		g.keyword(s, g.IntN(34), depth-1)
	}
	return s
}

func (g *generator) keyword(s map[string]any, which, depth int) {
	same := func() any { return g.schema(depth) }
	inside := func() any { return g.inside(depth) }
	properties := func(one func() any) map[string]any {
		all := map[string]any{}
		for _, name := range g.names(3) {
			all[name] = one()
		}
		return all
	}
	switch which {
	case 0, 1:
		s["type"] = types[g.IntN(len(types))]
	case 2:
		s["type"] = []string{types[g.IntN(3)], types[3+g.IntN(4)]}
	case 3:
		s["enum"] = g.list(1, 3, g.scalar)
	case 4:
		s["const"] = g.scalar()
	case 5:
		s["minLength"], s["maxLength"] = g.IntN(2), 1+g.IntN(2)
	case 6:
		s["pattern"] = []string{"^a", "b$", "^b+$", "^$", `\S`}[g.IntN(5)]
	case 7:
		s["minimum"] = g.IntN(4) - 1
	case 8:
		s["exclusiveMaximum"] = g.IntN(12)
	case 9:
		s["multipleOf"] = []any{1, 2, 0.1, 0.5}[g.IntN(4)]
	case 10:
		s["required"] = g.names(2)
	case 11:
		s["maxProperties"], s["minItems"] = g.IntN(3), g.IntN(2)
	case 12, 13, 14, 15:
		s["properties"] = properties(inside)
	case 16:
		s["patternProperties"] = map[string]any{"[ab]": inside()}
	case 17, 18:
		s["additionalProperties"] = inside()
	case 19:
		s["propertyNames"] = g.schema(0)
	case 20:
		s["dependentRequired"] = map[string]any{members[g.IntN(3)]: g.names(2)}
	case 21:
		s["dependentSchemas"] = properties(same)
	case 22:
		s["items"] = inside()
	case 23:
		s["prefixItems"] = g.list(1, 2, inside)
	case 24:
		s["contains"] = inside()
		if g.chance(2) {
			s["minContains"], s["maxContains"] = g.IntN(2), 1+g.IntN(2)
		}
	case 25:
		s["uniqueItems"] = true
	case 26:
		s["unevaluatedProperties"] = inside()
	case 27:
		s["unevaluatedItems"] = inside()
	case 28:
		s["allOf"] = g.list(1, 2, same)
	case 29:
		s["anyOf"] = g.list(1, 3, same)
	case 30:
		s["oneOf"] = g.list(1, 3, same)
	case 31:
		s["not"] = same()
	case 32:
		s["if"], s["then"], s["else"] = same(), same(), same()
	case 33:
		if g.least < len(components) {
			s["$ref"] = "#/$defs/" + components[g.least+g.IntN(len(components)-g.least)]
		}
	}
}

func (g *generator) value(depth int) []byte {
	if depth <= 0 || g.chance(4) {
		return []byte(scalars[g.IntN(len(scalars))])
	}
	var b bytes.Buffer
	if g.chance(3) {
		b.WriteByte('[')
		for i := range g.IntN(4) {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(g.value(depth - 1))
		}
		b.WriteByte(']')
		return b.Bytes()
	}
	b.WriteByte('{')
	for i, name := range g.names(3) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + name + `":`)
		b.Write(g.value(depth - 1))
	}
	b.WriteByte('}')
	return b.Bytes()
}
