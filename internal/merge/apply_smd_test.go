package merge_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/merge"
	"github.com/admission-gateway/gateway/internal/merge/mergetest"
)

// A world is a type in both forms.
type world struct {
	ours   *merge.Type
	theirs typed.ParseableType
}

// generator makes types and values of them.
type generator struct {
	mergetest.Generator
	schema *schema.Schema
}

func newGenerator(one, two uint64) *generator {
	return &generator{Generator: mergetest.Generator{Rand: rand.New(rand.NewPCG(one, two)), Odd: 5}}
}

func (g *generator) world() world {
	g.schema = &schema.Schema{Types: typed.DeducedParseableType.Schema.Types}
	ours, theirs := g.object(3)
	return world{ours, typed.ParseableType{Schema: g.schema, TypeRef: theirs}}
}

func (g *generator) reference(depth int) (*merge.Type, schema.TypeRef) {
	if depth == 0 {
		return g.scalar()
	}
	switch g.IntN(9) {
	case 0, 1, 2:
		return g.object(depth - 1)
	case 3, 4, 5:
		return g.list(depth - 1)
	case 6:
		name := "__untyped_deduced_"
		return merge.Deduced(), schema.TypeRef{NamedType: &name}
	}
	return g.scalar()
}

func (g *generator) scalar() (*merge.Type, schema.TypeRef) {
	kinds := []struct {
		ours   merge.Scalar
		theirs schema.Scalar
	}{{merge.Numeric, schema.Numeric}, {merge.Text, schema.String}, {merge.Boolean, schema.Boolean},
		{merge.Any, schema.Untyped}}
	k := kinds[g.IntN(len(kinds))]
	return &merge.Type{Scalar: k.ours}, schema.TypeRef{Inlined: schema.Atom{Scalar: &k.theirs}}
}

func (g *generator) object(depth int) (*merge.Type, schema.TypeRef) {
	o, m := &merge.Object{}, &schema.Map{}
	if g.IntN(25) == 0 {
		o.Atomic, m.ElementRelationship = true, schema.Atomic
	}
	var fields []merge.Field
	for _, name := range []string{"a", "b", "k", "l"} {
		if g.IntN(4) == 0 {
			continue
		}
		ours, theirs := g.reference(depth)
		fields = append(fields, merge.Field{name, ours})
		m.Fields = append(m.Fields, schema.StructField{Name: name, Type: theirs})
	}
	o.SetFields(fields)
	if g.IntN(3) == 0 {
		o.Rest, m.ElementType = g.reference(depth)
	}
	return &merge.Type{Object: o}, schema.TypeRef{Inlined: schema.Atom{Map: m}}
}

func (g *generator) list(depth int) (*merge.Type, schema.TypeRef) {
	l, t := &merge.List{}, &schema.List{ElementRelationship: schema.Atomic}
	switch g.IntN(12) {
	case 0:
		l.Items, t.ElementType = g.reference(depth)
	case 1, 2, 3:
		l.Relation, t.ElementRelationship = merge.Associative, schema.Associative
		l.Items, t.ElementType = g.scalar()
	default:
		l.Relation, t.ElementRelationship = merge.Associative, schema.Associative
		l.Items, t.ElementType = g.object(depth)
		for i, name := range []string{"k", "l"} {
			if i == 0 || g.IntN(3) == 0 {
				l.Keys = append(l.Keys, merge.Key{Name: document.NewName(name)})
				t.Keys = append(t.Keys, name)
			}
		}
		if g.IntN(2) == 0 {
			inner := t.ElementType.Inlined.Map
			for i := range inner.Fields {
				if inner.Fields[i].Name == "k" {
					inner.Fields[i].Default = "x"
					d, _ := document.Parse([]byte(`"x"`), document.Limits{})
					l.Keys[0].Default = d.Root()
				}
			}
		}
	}
	return &merge.Type{List: l}, schema.TypeRef{Inlined: schema.Atom{List: t}}
}

// merge does what Kubernetes' ApplyConfiguration patcher does with typed values.
func (w world) merge(live, patch any) (any, error) {
	p, err := w.theirs.FromUnstructured(patch)
	if err != nil {
		return nil, fmt.Errorf("patch: %w", err)
	}
	if atomics := atomicsIn(nil, p.Schema(), p.TypeRef(), patch); len(atomics) > 0 {
		return nil, fmt.Errorf("atomics: %d", len(atomics))
	}
	l, err := w.theirs.FromUnstructured(live, typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	merged, err := l.Merge(p)
	if err != nil {
		return nil, fmt.Errorf("merge: %w", err)
	}
	return merged.AsValue().Unstructured(), nil
}

// atomicsIn is findAtomics of k8s.io/apiserver's patcher, which is not exported.
func atomicsIn(path fieldpath.Path, s *schema.Schema, tr schema.TypeRef, v any) (found []string) {
	a, ok := s.Resolve(tr)
	if !ok {
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		if a.Map == nil {
			return nil
		}
		if a.Map.ElementRelationship == schema.Atomic {
			found = append(found, path.String())
		}
		for key, val := range v {
			if f, ok := a.Map.FindField(key); ok {
				found = append(found, atomicsIn(append(path.Copy(), fieldpath.PathElement{FieldName: &key}), s, f.Type,
					val)...)
			}
		}
	case []any:
		if a.List == nil {
			return nil
		}
		if a.List.ElementRelationship == schema.Atomic {
			found = append(found, path.String())
		}
		for i, val := range v {
			found = append(found, atomicsIn(append(path.Copy(), fieldpath.PathElement{Index: &i}), s,
				a.List.ElementType, val)...)
		}
	}
	return found
}

// against compares one merge with Kubernetes' libraries.
func (w world) against(t *testing.T, live, patch any) (merged bool) {
	t.Helper()
	liveText, patchText := encoded(t, live), encoded(t, patch)
	d, p := parsed(t, liveText), parsed(t, patchText)
	defer d.Release()
	defer p.Release()
	want, wantErr := w.merge(decoded(t, liveText), decoded(t, patchText))
	_, err := w.ours.Apply(d, p.Root())
	result := d.AppendTo(nil)
	describe := func() string {
		return fmt.Sprintf("live  %s\npatch %s\ngot   %s, %v\nwant  %s, %v", liveText, patchText, result, err,
			encoded(t, want), wantErr)
	}
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("one of them fails:\n%s", describe())
	}
	if err != nil {
		if string(result) != string(liveText) {
			t.Fatalf("a merge that fails changed the document:\n%s", describe())
		}
		stage, _, _ := strings.Cut(wantErr.Error(), ":")
		prefix := map[string]string{"patch": "failed to convert patch", "live": "failed to convert original",
			"atomics": "invalid ApplyConfiguration"}[stage]
		if prefix == "" || !strings.HasPrefix(err.Error(), prefix) {
			t.Fatalf("they fail for different reasons:\n%s", describe())
		}
		return false
	}
	if !reflect.DeepEqual(decoded(t, result), decoded(t, encoded(t, want))) {
		t.Fatalf("they differ:\n%s", describe())
	}
	return true
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func decoded(t *testing.T, raw []byte) any {
	t.Helper()
	var v any
	if err := utiljson.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func parsed(t *testing.T, raw []byte) *document.Document {
	t.Helper()
	d, err := document.Parse(raw, document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestApplyLikeStructuredMergeDiff: random values of random types come out as Kubernetes' libraries merge them, and
// fail for the same reason.
func TestApplyLikeStructuredMergeDiff(t *testing.T) {
	g := newGenerator(1, 2)
	merged := 0
	for range 3000 {
		w := g.world()
		for range 5 {
			if w.against(t, g.Value(w.ours, 5), g.Value(w.ours, 5)) {
				merged++
			}
		}
	}
	if merged < 3000 {
		t.Errorf("only %d of 15000 merges came to a result", merged)
	}
}

// FuzzApply is the same with types and values that the fuzzer chooses.
func FuzzApply(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, one, two uint64) {
		g := newGenerator(one, two)
		w := g.world()
		for range 5 {
			w.against(t, g.Value(w.ours, 5), g.Value(w.ours, 5))
		}
	})
}
