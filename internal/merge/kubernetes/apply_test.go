package kubernetes

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admission-gateway/gateway/internal/merge/mergetest"
)

// TestApplyLikeKubernetes: apply configurations of built-in kinds are merged as Kubernetes' patcher of
// MutatingAdmissionPolicies merges them, and refused with its words.
func TestApplyLikeKubernetes(t *testing.T) {
	g := mergetest.Generator{Rand: rand.New(rand.NewPCG(5, 6)), Odd: 1}
	converter := applyconfigurations.NewTypeConverter(scheme.Scheme)
	merged, refused := 0, 0
	for range 4000 {
		k := kinds[g.IntN(len(kinds))]
		typ := TypeOf(k.kind)
		object, ok := g.Value(typ, 7).(map[string]any)
		configuration, isObject := g.Applicable(typ, g.Value(typ, 4)).(map[string]any)
		if !ok || !isObject {
			continue
		}
		for _, o := range []map[string]any{object, configuration} {
			o["apiVersion"], o["kind"] = k.kind.GroupVersion().String(), k.kind.Kind
		}
		objectText, configurationText := encode(t, object), encode(t, configuration)
		d, p := parse(t, objectText), parse(t, configurationText)
		_, err := typ.Apply(d, p.Root())
		got := d.AppendTo(nil)
		want, wantErr := patch.ApplyStructuredMergeDiff(converter,
			&unstructured.Unstructured{Object: decode(t, objectText)}, &unstructured.Unstructured{Object: decode(t, configurationText)})
		switch {
		case (err == nil) != (wantErr == nil):
			t.Fatalf("one of them fails:\nobject %s\nconfiguration %s\ngot  %v\nwant %v", objectText, configurationText, err, wantErr)
		case err != nil:
			refused++
			// A value is shown as it is written, not as Go holds it, and atomics come in any order there.
			if first, _, _ := strings.Cut(err.Error(), ":"); !strings.HasPrefix(wantErr.Error(), first) {
				t.Fatalf("they fail for different reasons:\ngot  %v\nwant %v", err, wantErr)
			}
		case !reflect.DeepEqual(decode(t, got), decode(t, encode(t, want))):
			t.Fatalf("they differ:\nobject %s\nconfiguration %s\ngot  %s\nwant %s", objectText, configurationText, got, encode(t, want))
		default:
			merged++
		}
	}
	if merged < 1000 || refused < 100 {
		t.Errorf("%d merged and %d refused", merged, refused)
	}
}
