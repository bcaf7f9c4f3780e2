package jsonschema_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/jsonschema"
)

// The short way says of no value that it is right of which the walk says what is wrong, whatever the values are used for.
func TestFits(t *testing.T) {
	valid := 0
	for seed := range uint64(2000) {
		valid += fitsAsWalked(t, seed)
	}
	if valid < 5000 {
		t.Errorf("only %d values are right", valid)
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
	dialect := [...]jsonschema.Dialect{jsonschema.OpenAPI30, jsonschema.OpenAPI31, jsonschema.Draft2020}[g.IntN(3)]
	s := jsonschema.NewCompiler(d.Root(), dialect, func(jsonschema.Finding) {}).Compile(d.Root())
	for range 12 {
		v, err := document.Parse(g.value(3), document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for _, use := range []jsonschema.Use{jsonschema.Requests, jsonschema.Patched, jsonschema.Answers, jsonschema.Partial} {
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
