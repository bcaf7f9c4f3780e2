package kubernetes

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

var update = flag.Bool("update", false, "write types.txt anew")

// TestFile: the file says what client-go and the structs of k8s.io/api say.
func TestFile(t *testing.T) {
	want := generate(t)
	if *update {
		if err := os.WriteFile("types.txt", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != text {
		t.Error("types.txt is not what client-go and k8s.io/api say: run go test ./internal/merge/kubernetes -update")
	}
	if _, err := read(want); err != nil {
		t.Error(err)
	}
}

// TestKinds: every kind that client-go can apply is found.
func TestKinds(t *testing.T) {
	found := 0
	for kind := range scheme.Scheme.AllKnownTypes() {
		named := strings.HasSuffix(kind.Kind, "List") || strings.HasSuffix(kind.Kind, "Options") ||
			kind.Version == runtime.APIVersionInternal
		if !named && TypeOf(kind) != nil {
			found++
		}
	}
	if found < 120 {
		t.Errorf("only %d kinds", found)
	}
	for _, kind := range []runtimeschema.GroupVersionKind{
		{Version: "v1", Kind: "Pod"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, {Group: "internal.apiserver.k8s.io",
			Version: "v1alpha1", Kind: "StorageVersion"},
	} {
		if TypeOf(kind) == nil {
			t.Errorf("no type of %v", kind)
		}
	}
	if TypeOf(runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Pod"}) != nil {
		t.Error("a kind of another group has a type")
	}
	if ObjectMeta() == nil {
		t.Error("no metadata")
	}
}

// structuredTypes is the schema by which client-go merges.
func structuredTypes(t *testing.T) *schema.Schema {
	t.Helper()
	o := &corev1.ConfigMap{}
	o.APIVersion, o.Kind = "v1", "ConfigMap"
	value, err := applyconfigurations.NewTypeConverter(scheme.Scheme).ObjectToTyped(o)
	if err != nil {
		t.Fatal(err)
	}
	return value.Schema()
}

func generate(t *testing.T) string {
	t.Helper()
	w := writer{types: structuredTypes(t), patches: map[fieldOf]strategicpatch.PatchMeta{}}
	groups := map[string]string{}
	seen := map[string]bool{}
	for kind := range scheme.Scheme.AllKnownTypes() {
		name, err := scheme.Scheme.ToOpenAPIDefinitionName(kind)
		if err != nil || kind.Version == runtime.APIVersionInternal {
			continue
		}
		if _, ok := w.types.FindNamedType(name); !ok {
			continue
		}
		if group, ok := strings.CutSuffix(short(name), "."+kind.Version+"."+kind.Kind); ok && !strings.HasPrefix(group,
			"meta") {
			groups[kind.Group] = group
		}
		o, err := scheme.Scheme.New(kind)
		if err != nil {
			t.Fatal(err)
		}
		w.patchesOf(schema.TypeRef{NamedType: &name}, reflect.TypeOf(o).Elem(), seen)
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		fmt.Fprintf(&w.out, "group %q %s\n", group, groups[group])
	}
	names := make([]string, 0, len(w.types.Types))
	for _, d := range w.types.Types {
		if !strings.HasPrefix(d.Name, "__") {
			names = append(names, d.Name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		w.typeDef(t, name)
	}
	return w.out.String()
}

type writer struct {
	out     strings.Builder
	types   *schema.Schema
	patches map[fieldOf]strategicpatch.PatchMeta
}

// fieldOf is a field of a named type.
type fieldOf struct{ typeName, field string }

// patchesOf collects how strategic merge patches treat the fields of a type and of the types in it.
func (w *writer) patchesOf(ref schema.TypeRef, goType reflect.Type, seen map[string]bool) {
	for goType.Kind() == reflect.Pointer {
		goType = goType.Elem()
	}
	a, ok := w.types.Resolve(ref)
	if !ok {
		return
	}
	switch {
	case a.List != nil && goType.Kind() == reflect.Slice:
		w.patchesOf(a.List.ElementType, goType.Elem(), seen)
	case a.Map != nil && goType.Kind() == reflect.Map:
		w.patchesOf(a.Map.ElementType, goType.Elem(), seen)
	case a.Map != nil && goType.Kind() == reflect.Struct && ref.NamedType != nil && !seen[*ref.NamedType]:
		seen[*ref.NamedType] = true
		from := strategicpatch.PatchMetaFromStruct{T: goType}
		for _, f := range a.Map.Fields {
			sub, meta, err := from.LookupPatchMetadataForStruct(f.Name)
			if err != nil {
				continue
			}
			w.patches[fieldOf{*ref.NamedType, f.Name}] = meta
			w.patchesOf(f.Type, sub.(strategicpatch.PatchMetaFromStruct).T, seen)
		}
	}
}

func short(name string) string {
	for _, prefix := range []string{"io.k8s.api.", "io.k8s.apimachinery.pkg.apis.", "io.k8s.apimachinery.pkg."} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return rest
		}
	}
	return name
}

func (w *writer) typeDef(t *testing.T, name string) {
	t.Helper()
	d, _ := w.types.FindNamedType(name)
	switch {
	case d.Scalar != nil && d.List == nil && d.Map == nil && *d.Scalar == schema.Untyped:
		fmt.Fprintf(&w.out, "%s any\n", short(name))
	case d.Map != nil && d.Scalar == nil && d.List == nil:
		fmt.Fprintf(&w.out, "%s object", short(name))
		if d.Map.ElementRelationship == schema.Atomic {
			w.out.WriteString(" atomic")
		}
		w.out.WriteString("\n")
		fields := slices.Clone(d.Map.Fields)
		slices.SortFunc(fields, func(a, b schema.StructField) int { return strings.Compare(a.Name, b.Name) })
		for _, f := range fields {
			w.field(t, name, f)
		}
		if (d.Map.ElementType != schema.TypeRef{}) {
			fmt.Fprintf(&w.out, "\t* %s\n", w.typeRef(t, d.Map.ElementType))
		}
	default:
		t.Fatalf("%s: a form of type that types.txt has no words for", name)
	}
}

func (w *writer) field(t *testing.T, of string, f schema.StructField) {
	t.Helper()
	fmt.Fprintf(&w.out, "\t%s %s", f.Name, w.typeRef(t, f.Type))
	switch f.Default.(type) {
	case string, int, bool:
		raw, err := json.Marshal(f.Default)
		if err != nil || strings.Contains(string(raw), " ") {
			t.Fatalf("%s.%s: default %s, %v", of, f.Name, raw, err)
		}
		fmt.Fprintf(&w.out, " default=%s", raw)
	}
	meta := w.patches[fieldOf{of, f.Name}]
	a, _ := w.types.Resolve(f.Type)
	switch strategies := meta.GetPatchStrategies(); {
	case a.List != nil && slices.Contains(strategies, "merge"):
		w.out.WriteString(" merge")
		if key := meta.GetPatchMergeKey(); key != "" {
			w.out.WriteString("=" + key)
		}
	case a.Map != nil && slices.Contains(strategies, "replace"):
		w.out.WriteString(" replace")
	}
	w.out.WriteString("\n")
}

func (w *writer) typeRef(t *testing.T, r schema.TypeRef) string {
	t.Helper()
	prefix := ""
	if r.ElementRelationship != nil {
		prefix = map[schema.ElementRelationship]string{schema.Separable: "+",
			schema.Atomic: "!"}[*r.ElementRelationship]
	}
	if r.NamedType != nil {
		switch *r.NamedType {
		case "__untyped_atomic_":
			return "opaque"
		case "__untyped_deduced_":
			return "deduced"
		}
		return prefix + short(*r.NamedType)
	}
	a := r.Inlined
	switch {
	case a.Scalar != nil && a.List == nil && a.Map == nil:
		return map[schema.Scalar]string{schema.Numeric: "number", schema.String: "string", schema.Boolean: "boolean",
			schema.Untyped: "any"}[*a.Scalar]
	case a.Scalar != nil && a.List != nil && a.Map != nil && *a.Map.ElementType.NamedType == "__untyped_deduced_":
		return "deduced"
	case a.List != nil:
		keys := ""
		if a.List.ElementRelationship == schema.Associative {
			if keys = strings.Join(a.List.Keys, ","); keys == "" {
				keys = "*"
			}
		}
		return "[" + keys + "]" + w.typeRef(t, a.List.ElementType)
	case a.Map != nil && len(a.Map.Fields) == 0:
		atomic := ""
		if a.Map.ElementRelationship == schema.Atomic {
			atomic = "!"
		}
		return "{" + atomic + "}" + w.typeRef(t, a.Map.ElementType)
	}
	t.Fatalf("a form of type that types.txt has no words for: %+v", a)
	return ""
}
