package graph_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/graph"
)

// The short way says of no value that it is right of which the walk says what is wrong, whatever the values are used
// for.
func TestFits(t *testing.T) {
	valid := 0
	for seed := range uint64(2000) {
		valid += fitsAsWalked(t, seed)
	}
	if valid < 5000 {
		t.Errorf("only %d values are right", valid)
	}
}

// What is right at a glance is right by the keywords: at the bounds of integers and sizes, for numbers and strings of
// any spelling.
func TestGlances(t *testing.T) {
	values := []string{
		`null`, `true`, `0`, `-0`, `1`, `2`, `3`, `-1`, `1.0`, `1.5`, `2e0`, `1e30`, `2147483647`, `2147483648`,
		`-2147483649`,
		`999999999999999999`, `9223372036854775807`, `9223372036854775808`, `""`, `"a"`, `"ab"`, `"abc"`, `"é"`, `"éé"`,
		`"\u00e9é"`,
		`"abcdefghi"`, `"\n"`, `{}`, `[]`,
	}
	for _, of := range []struct {
		dialect graph.Dialect
		schema  string
		right   int // of the values
	}{
		{graph.Draft2020, `{"type":"string"}`, 9},
		{graph.Draft2020, `{"type":"string","minLength":2}`, 5},
		{graph.Draft2020, `{"type":"string","maxLength":2}`, 7},
		{graph.Draft2020, `{"type":"string","minLength":1,"maxLength":1}`, 3},
		{graph.Draft2020, `{"type":"string","pattern":"b"}`, 3},
		{graph.Draft2020, `{"type":["string","null"],"enum":["a",null]}`, 2},
		{graph.Draft2020, `{"type":["boolean","string"],"maxLength":1}`, 5},
		{graph.Draft2020, `{"type":"integer"}`, 15},
		{graph.Draft2020, `{"type":"number"}`, 16},
		{graph.Draft2020, `{"type":"integer","minimum":1,"maximum":2}`, 4},
		{graph.Draft2020, `{"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":3}`, 2},
		{graph.Draft2020, `{"type":"number","minimum":0.5,"maximum":2.5}`, 5},
		{graph.Draft2020, `{"type":"integer","maximum":9223372036854775807}`, 13},
		{graph.Draft2020, `{"type":"integer","maximum":1e40}`, 15},
		{graph.Draft2020, `{"type":"integer","multipleOf":2}`, 7},
		{graph.Draft2020, `{"type":"integer","enum":[1,2]}`, 4},
		{graph.OpenAPI30, `{"type":"integer","format":"int32"}`, 9},
		{graph.OpenAPI30, `{"type":"integer","minimum":1,"exclusiveMinimum":true,"nullable":true}`, 10},
	} {
		d, err := document.Parse([]byte(`{"type":"object","properties":{"of":`+of.schema+`}}`), document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		s := graph.NewCompiler(d.Root(), of.dialect, func(graph.Finding) {}).Compile(d.Root())
		right := 0
		for _, value := range values {
			v, err := document.Parse([]byte(`{"of":`+value+`}`), document.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			got, want := s.Check(v.Root(), graph.Requests), s.Walk(v.Root(), graph.Requests)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s of %s: got %v, want %v", of.schema, value, got, want)
			}
			if want.Valid() {
				right++
			}
			v.Release()
		}
		if right != of.right {
			t.Errorf("%s: %d values are right, want %d", of.schema, right, of.right)
		}
		d.Release()
	}
}

func FuzzFits(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { fitsAsWalked(t, seed) })
}

func fitsAsWalked(t *testing.T, seed uint64) (valid int) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, seed+2)), least: len(components)}
	root, isObject := g.schema(4).(map[string]any)
	if !isObject {
		return 0
	}
	g.extend(root)
	raw, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	d, err := document.Parse(raw, document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	dialect := [...]graph.Dialect{graph.OpenAPI30, graph.OpenAPI31, graph.Draft2020}[g.IntN(3)]
	s := graph.NewCompiler(d.Root(), dialect, func(graph.Finding) {}).Compile(d.Root())
	for range 12 {
		v, err := document.Parse(g.value(3), document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for _, use := range []graph.Use{graph.Requests, graph.Patched, graph.Answers, graph.Partial} {
			got, want := s.Check(v.Root(), use), s.Walk(v.Root(), use)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("seed %d: %s\nvalue %s for use %d: got %v, want %v", seed, raw, v.Root().Raw(), use, got, want)
			}
			if want.Valid() {
				valid++
			}
		}
		v.Release()
	}
	return valid
}

// extend adds keywords of OpenAPI to a schema and the schemas in it.
func (g *generator) extend(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, found := v["type"]; found {
			for _, keyword := range []string{"nullable", "readOnly", "writeOnly"} {
				if g.chance(6) {
					v[keyword] = true
				}
			}
			if g.chance(6) {
				v["format"] = []string{"int32", "float", "byte", "date", "uuid"}[g.IntN(5)]
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			g.extend(v[name])
		}
	case []any:
		for _, inside := range v {
			g.extend(inside)
		}
	}
}
