package schema

import (
	"bytes"
	"maps"
	"slices"
	"testing"
	"unicode"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/graph"
	"github.com/admission-gateway/gateway/internal/schema/schematest"
)

// What Prune does without a walk is what its walk does (VAL-7).
func TestSpellingChangesNothing(t *testing.T) {
	kept, misspelled := 0, 0
	for seed := range uint64(1500) {
		k, m := spellingChangesNothing(t, seed)
		kept += k
		misspelled += m
	}
	t.Logf("%d objects were kept at first sight, %d were refused", kept, misspelled)
	if kept < 500 || misspelled < 300 {
		t.Errorf("too few objects to say anything")
	}
}

func FuzzSpellingChangesNothing(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { spellingChangesNothing(t, seed) })
}

// spellingChangesNothing returns how many objects were kept at first sight, and how many were refused.
func spellingChangesNothing(t *testing.T, seed uint64) (kept, misspelled int) {
	g := schematest.New(seed)
	props := g.Schema()
	s, _, errs := CompileModel(described(g, props), Options{Check: graph.Anything()})
	if len(errs) > 0 {
		t.Fatalf("seed %d: %v", seed, errs)
	}
	if s.spelling == nil {
		t.Fatalf("seed %d: schema %s is one that Prune has to walk", seed, schematest.Text(props))
	}
	walking := *s
	walking.spelling = nil
	for _, sloppy := range []int{1000, 20, 5} {
		raw := misspell(g, g.Object(props, sloppy))
		fast, err := document.Parse(raw, document.Limits{})
		if err != nil {
			continue // two keys became one
		}
		slow, err := document.Parse(raw, document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		var got, want Unknown
		errFast, errSlow := s.Prune(fast, &got), walking.Prune(slow, &want)
		if (errFast == nil) != (errSlow == nil) || errFast != nil && errFast.Error() != errSlow.Error() {
			t.Fatalf("seed %d: schema %s\nobject %s\n got %v\nwant %v", seed, schematest.Text(props), raw, errFast,
				errSlow)
		}
		if errSlow != nil {
			misspelled++
		} else if s.spelling.IsKept(fast) {
			kept++
		}
		if slow.Edited() || fast.Edited() || got.Any() || want.Any() || got.Nulls() != nil || want.Nulls() != nil {
			t.Fatalf("seed %d: schema %s\nobject %s: something was taken out", seed, schematest.Text(props), raw)
		}
		if errSlow == nil && !(slow.Root().Marked(document.Complete) && fast.Root().Marked(document.Complete)) {
			t.Fatalf("seed %d: schema %s\nobject %s: something is left to be filled in", seed, schematest.Text(props),
				raw)
		}
		fast.Release()
		slow.Release()
	}
	return kept, misspelled
}

// described makes the model of a schema, as documents of OpenAPI have it. Some have names that differ in case alone.
func described(g *schematest.Generator, p *apiextensionsv1.JSONSchemaProps) *Model {
	m := &Model{Nullable: true, IsOpen: p.XPreserveUnknownFields != nil}
	if p.Type != "" {
		m.Types = []string{p.Type}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		sub := p.Properties[name]
		m.Properties = append(m.Properties, ModelProperty{Name: name, Model: described(g, &sub)})
		if name == "a" && g.IntN(4) == 0 {
			m.Properties = append(m.Properties,
				ModelProperty{Name: "A", Model: m.Properties[len(m.Properties)-1].Model})
		}
	}
	if p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil {
		m.Others = described(g, p.AdditionalProperties.Schema)
	}
	if p.Items != nil && p.Items.Schema != nil {
		m.Items = described(g, p.Items.Schema)
	}
	return m
}

// misspell changes the case of a letter of some texts.
func misspell(g *schematest.Generator, raw []byte) []byte {
	texts := bytes.Split(raw, []byte(`"`))
	for range g.IntN(4) {
		at := g.IntN(len(texts))
		if at%2 == 0 || bytes.HasSuffix(texts[at-1], []byte(`\`)) {
			continue
		}
		word := []rune(string(texts[at]))
		if len(word) > 0 {
			letter := &word[g.IntN(len(word))]
			*letter = unicode.SimpleFold(*letter)
		}
		texts[at] = []byte(string(word))
	}
	return bytes.Join(texts, []byte(`"`))
}
