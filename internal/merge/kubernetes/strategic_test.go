package kubernetes

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/merge/mergetest"
)

// kinds are some whose fields are merged in every way.
var kinds = []struct {
	kind  schema.GroupVersionKind
	model any
}{
	{schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, corev1.Pod{}},
	{schema.GroupVersionKind{Version: "v1", Kind: "Service"}, corev1.Service{}},
	{schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}, corev1.ServiceAccount{}},
	{schema.GroupVersionKind{Version: "v1", Kind: "Node"}, corev1.Node{}},
	{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, appsv1.Deployment{}},
	{schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}, networkingv1.Ingress{}},
}

// patched returns the result of a patch by Kubernetes' library. It panics for some patches, and
// leaves directives in values that it merges with nothing.
func patched(object, patch map[string]any, model any) (result map[string]any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	result, err = strategicpatch.StrategicMergeMapPatch(object, patch, model)
	return clean(result), err
}

func clean(m map[string]any) map[string]any {
	for key, v := range m {
		if strings.HasPrefix(key, "$") {
			delete(m, key)
			continue
		}
		cleanValue(v)
	}
	return m
}

func cleanValue(v any) {
	switch v := v.(type) {
	case map[string]any:
		clean(v)
	case []any:
		for _, item := range v {
			cleanValue(item)
		}
	}
}

// ofLibrary reports the failures that only arise because the library knows nothing but structs.
func ofLibrary(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "unable to find api field") ||
		strings.Contains(err.Error(), "data type is not struct") ||
		strings.Contains(err.Error(), "no elements in any of the given slices") ||
		strings.Contains(err.Error(), "expected slice or array type") ||
		strings.HasPrefix(err.Error(), "panic: "))
}

func strategic(t *testing.T, g mergetest.Generator) (applied bool) {
	t.Helper()
	k := kinds[g.IntN(len(kinds))]
	typ := TypeOf(k.kind)
	object, ok := g.Value(typ, 7).(map[string]any)
	if !ok {
		return false
	}
	patch := g.Patch(typ, object, 7)
	objectText, patchText := encode(t, object), encode(t, patch)
	d, p := parse(t, objectText), parse(t, patchText)
	err := typ.Patch(d, p.Root())
	got := d.AppendTo(nil)
	want, wantErr := patched(decode(t, objectText), decode(t, patchText), k.model)
	if ofLibrary(wantErr) {
		return false
	}
	describe := func() string {
		return fmt.Sprintf("%s\nobject %s\npatch  %s\ngot    %s, %v\nwant   %s, %v", k.kind.Kind, objectText, patchText,
			got, err, encode(t, want), wantErr)
	}
	switch {
	case (err == nil) != (wantErr == nil):
		t.Fatalf("one of them fails:\n%s", describe())
	case err != nil:
		if string(got) != string(objectText) {
			t.Fatalf("a patch that fails changed the object:\n%s", describe())
		}
		return false
	case !reflect.DeepEqual(decode(t, got), decode(t, encode(t, want))):
		t.Fatalf("they differ:\n%s", describe())
	}
	return true
}

// TestStrategicLikeKubernetes: random patches of random objects of built-in kinds give what Kubernetes' library gives
// (RW-2).
func TestStrategicLikeKubernetes(t *testing.T) {
	g := mergetest.Generator{Rand: rand.New(rand.NewPCG(3, 4))}
	applied := 0
	const patches = 6000
	for range patches {
		if strategic(t, g) {
			applied++
		}
	}
	if applied < patches/2 {
		t.Errorf("only %d of %d patches were applied by both", applied, patches)
	}
}

// FuzzStrategic is the same with objects and patches that the fuzzer chooses.
func FuzzStrategic(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, one, two uint64) {
		g := mergetest.Generator{Rand: rand.New(rand.NewPCG(one, two))}
		for range 5 {
			strategic(t, g)
		}
	})
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func decode(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := utiljson.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func parse(t *testing.T, raw []byte) *document.Document {
	t.Helper()
	d, err := document.Parse(raw, document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}
