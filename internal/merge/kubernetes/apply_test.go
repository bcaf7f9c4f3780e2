package kubernetes

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/admission-gateway/gateway/internal/merge"
	"github.com/admission-gateway/gateway/internal/merge/mergetest"
)

// TestApplyLikeKubernetes: apply configurations of built-in kinds are merged as Kubernetes' patcher
// of MutatingAdmissionPolicies merges them, and refused with its words. Objects may have fields
// that our types do not name, because a newer API server knows them.
func TestApplyLikeKubernetes(t *testing.T) {
	g := mergetest.Generator{Rand: rand.New(rand.NewPCG(5, 6)), Odd: 1}
	own := applyconfigurations.NewTypeConverter(scheme.Scheme)
	later := newerServer{own, laterTypes(structuredTypes(t))}
	merged, refused, newer := 0, 0, 0
	for range 4000 {
		k := kinds[g.IntN(len(kinds))]
		typ := TypeOf(k.kind)
		object, ok := g.Value(typ, 7).(map[string]any)
		configuration, isObject := g.Applicable(typ, g.Value(typ, 4)).(map[string]any)
		if !ok || !isObject {
			continue
		}
		added := 0
		addLater(g, typ, object, &added)
		for _, o := range []map[string]any{object, configuration} {
			o["apiVersion"], o["kind"] = k.kind.GroupVersion().String(), k.kind.Kind
		}
		objectText, configurationText := encode(t, object), encode(t, configuration)
		d, p := parse(t, objectText), parse(t, configurationText)
		_, err := typ.Apply(d, p.Root())
		got := d.AppendTo(nil)
		// What the gateway does not know it cannot merge, so a configuration is checked against the
		// types that it knows.
		_, wantErr := own.ObjectToTyped(&unstructured.Unstructured{Object: decode(t, configurationText)})
		if wantErr != nil {
			wantErr = fmt.Errorf("failed to convert patch object to typed object: %w", wantErr)
		}
		var want runtime.Object
		if wantErr == nil {
			want, wantErr = patch.ApplyStructuredMergeDiff(later,
				&unstructured.Unstructured{Object: decode(t, objectText)},
				&unstructured.Unstructured{Object: decode(t, configurationText)})
		}
		switch {
		case (err == nil) != (wantErr == nil):
			t.Fatalf("one of them fails:\nobject %s\nconfiguration %s\ngot  %v\nwant %v", objectText, configurationText,
				err, wantErr)
		case err != nil:
			refused++
			// A value is shown as it is written, not as Go holds it, and atomics come in any order there.
			if first, _, _ := strings.Cut(err.Error(), ":"); !strings.HasPrefix(wantErr.Error(), first) {
				t.Fatalf("they fail for different reasons:\ngot  %v\nwant %v", err, wantErr)
			}
		case !reflect.DeepEqual(decode(t, got), decode(t, encode(t, want))):
			t.Fatalf("they differ:\nobject %s\nconfiguration %s\ngot  %s\nwant %s", objectText, configurationText, got,
				encode(t, want))
		default:
			merged++
			newer += min(added, 1)
		}
	}
	if merged < 1000 || refused < 100 || newer < 500 {
		t.Errorf("%d merged, %d of them with fields of a newer server, and %d refused", merged, newer, refused)
	}
}

// newerServer converts objects by the types of an API server whose kinds have further fields.
type newerServer struct {
	managedfields.TypeConverter // of this version, which knows the name of each kind's type

	types *schema.Schema
}

// ObjectToTyped implements managedfields.TypeConverter.
func (s newerServer) ObjectToTyped(o runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	u := o.(*unstructured.Unstructured)
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(u.GroupVersionKind())
	known, err := s.TypeConverter.ObjectToTyped(empty)
	if err != nil {
		return nil, err
	}
	return typed.ParseableType{Schema: s.types, TypeRef: known.TypeRef()}.FromUnstructured(u.Object, options...)
}

// The fields that every struct of the newer server has, in each form that a field can have.
const (
	laterText  = "laterText"
	laterMap   = "laterMap"
	laterBlock = "laterBlock"
	laterItems = "laterItems"
	laterSet   = "laterSet"
)

// laterTypes are the types with further fields in each struct.
func laterTypes(s *schema.Schema) *schema.Schema {
	text, block, item := schema.String, "later.Block", "later.Item"
	textRef := schema.TypeRef{Inlined: schema.Atom{Scalar: &text}}
	structOf := func(relation schema.ElementRelationship) schema.Atom {
		return schema.Atom{Map: &schema.Map{ElementRelationship: relation, Fields: []schema.StructField{
			{Name: "name", Type: textRef}, {Name: "value", Type: textRef},
		}}}
	}
	further := []schema.StructField{
		{Name: laterText, Type: textRef},
		{Name: laterMap, Type: schema.TypeRef{Inlined: schema.Atom{Map: &schema.Map{ElementType: textRef}}}},
		{Name: laterBlock, Type: schema.TypeRef{NamedType: &block}},
		{Name: laterItems, Type: schema.TypeRef{Inlined: schema.Atom{List: &schema.List{
			ElementType: schema.TypeRef{NamedType: &item}, ElementRelationship: schema.Associative,
			Keys: []string{"name"},
		}}}},
		{Name: laterSet, Type: schema.TypeRef{Inlined: schema.Atom{List: &schema.List{ElementType: textRef,
			ElementRelationship: schema.Associative}}}},
	}
	later := &schema.Schema{Types: []schema.TypeDef{{Name: block, Atom: structOf(schema.Atomic)},
		{Name: item, Atom: structOf(schema.Separable)}}}
	for _, d := range s.Types {
		if m := d.Map; m != nil && !strings.HasPrefix(d.Name, "__") {
			d.Map = &schema.Map{
				Fields: append(slices.Clone(m.Fields), further...), Unions: m.Unions, ElementType: m.ElementType,
				ElementRelationship: m.ElementRelationship,
			}
		}
		later.Types = append(later.Types, d)
	}
	return later
}

// addLater gives structs at any depth of a value fields that only the newer server knows, in place of any that the
// generator made up.
func addLater(g mergetest.Generator, t *merge.Type, v any, added *int) {
	switch v := v.(type) {
	case map[string]any:
		if t.Object == nil {
			return
		}
		for name, inner := range v {
			if of := t.Object.Member(name); of != nil {
				addLater(g, of, inner, added)
			} else {
				delete(v, name)
			}
		}
		if !t.Object.Grows || g.IntN(6) != 0 {
			return
		}
		*added++
		block := map[string]any{"name": "x", "value": "y"}
		name := []string{laterText, laterMap, laterBlock, laterItems, laterSet}[g.IntN(5)]
		v[name] = map[string]any{
			laterText: "x", laterMap: map[string]any{"k": "x"}, laterBlock: block, laterItems: []any{block},
			laterSet: []any{"x", "y"},
		}[name]
	case []any:
		for _, item := range v {
			if t.List != nil {
				addLater(g, t.List.Items, item, added)
			}
		}
	}
}
