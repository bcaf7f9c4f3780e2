// Package versions holds the gateway's conversion between versions of Kubernetes' own kinds against kube-apiserver's
// own.
package versions

import (
	"bytes"
	"encoding/json"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/meta"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	_ "k8s.io/kubernetes/pkg/apis/storagemigration/install"
	"sigs.k8s.io/randfill"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/versions"
)

// A pair are two versions of a resource.
type pair struct {
	from, to schema.GroupVersionResource
	kind     string
}

// pairs are the versions that the gateway converts between.
func pairs() (all []pair) {
	kinds := map[schema.GroupKind][]schema.GroupVersionKind{}
	for kind, of := range legacyscheme.Scheme.AllKnownTypes() {
		if _, isObject := reflect.New(of).Interface().(metav1.Object); isObject &&
			kind.Version != runtime.APIVersionInternal {
			kinds[kind.GroupKind()] = append(kinds[kind.GroupKind()], kind)
		}
	}
	empty, err := document.Parse([]byte("{}"), document.Limits{})
	if err != nil {
		panic(err)
	}
	for _, versionsOf := range kinds {
		for _, from := range versionsOf {
			for _, to := range versionsOf {
				a, _ := meta.UnsafeGuessKindToResource(from)
				b, _ := meta.UnsafeGuessKindToResource(to)
				if _, kind, isKnown, _ := versions.Convert(empty, a, b); isKnown && from != to {
					all = append(all, pair{a, b, kind})
				}
			}
		}
	}
	core, modern := schema.GroupVersionResource{Version: "v1", Resource: "events"},
		schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
	all = append(all, pair{core, modern, "Event"}, pair{modern, core, "Event"})
	slices.SortFunc(all, func(a, b pair) int {
		return strings.Compare(a.from.String()+a.to.String(), b.from.String()+b.to.String())
	})
	return all
}

// funcs make metrics of the CPU often, which are converted in a way of their own.
func funcs(serializer.CodecFactory) []any {
	return []any{
		func(m *autoscalingv2.MetricSpec, c randfill.Continue) {
			if c.FillNoCustom(m); m.Resource != nil && c.Bool() {
				m.Type, m.Resource.Name = autoscalingv2.ResourceMetricSourceType, corev1.ResourceCPU
			}
		},
		func(m *autoscalingv2.MetricStatus, c randfill.Continue) {
			if c.FillNoCustom(m); m.Resource != nil && c.Bool() {
				m.Type, m.Resource.Name = autoscalingv2.ResourceMetricSourceType, corev1.ResourceCPU
			}
		},
	}
}

// TestAsTheServer: what the gateway makes of an object in another version is what kube-apiserver makes of it.
func TestAsTheServer(t *testing.T) {
	rounds := 300 // objects for each pair of versions
	if testing.Short() {
		rounds = 60
	}
	all := pairs()
	if len(all) < 40 {
		t.Fatalf("there are %d pairs", len(all))
	}
	for _, p := range all {
		t.Run(p.from.Resource+"/"+p.from.Version+" to "+p.to.Version, func(t *testing.T) {
			made := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, funcs), rand.NewSource(1),
				legacyscheme.Codecs)
			for i := range rounds {
				from, err := legacyscheme.Scheme.New(p.from.GroupVersion().WithKind(p.kind))
				if err != nil {
					t.Fatal(err)
				}
				made.Fill(from)
				if i%2 == 0 {
					legacyscheme.Scheme.Default(from)
				}
				if i%3 == 0 { // as the server gives it, which keeps things in annotations
					from = served(t, served(t, from, p.to, p.kind), p.from, p.kind)
				}
				from.GetObjectKind().SetGroupVersionKind(p.from.GroupVersion().WithKind(p.kind))
				text, err := json.Marshal(from)
				if err != nil {
					t.Fatal(err)
				}
				compare(t, text, served(t, decoded(t, text, p.from, p.kind), p.to, p.kind), p)
				if t.Failed() {
					return
				}
			}
		})
	}
}

// served is an object as the server converts it.
func served(t *testing.T, o runtime.Object, to schema.GroupVersionResource, kind string) runtime.Object {
	t.Helper()
	group := to.Group
	if kind == "Event" {
		group = "" // of both groups, inside the server
	}
	internal, err := legacyscheme.Scheme.New(schema.GroupVersionKind{Group: group, Version: runtime.APIVersionInternal,
		Kind: kind})
	if err != nil {
		t.Fatal(err)
	}
	converted, err := legacyscheme.Scheme.New(to.GroupVersion().WithKind(kind))
	if err != nil {
		t.Fatal(err)
	}
	if err := legacyscheme.Scheme.Convert(o, internal, nil); err != nil {
		t.Fatal(err)
	}
	if err := legacyscheme.Scheme.Convert(internal, converted, nil); err != nil {
		t.Fatal(err)
	}
	converted.GetObjectKind().SetGroupVersionKind(to.GroupVersion().WithKind(kind))
	return converted
}

func decoded(t *testing.T, text []byte, of schema.GroupVersionResource, kind string) runtime.Object {
	t.Helper()
	o, err := legacyscheme.Scheme.New(of.GroupVersion().WithKind(kind))
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(o); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return o
}

func compare(t *testing.T, text []byte, want runtime.Object, p pair) {
	t.Helper()
	d, err := document.Parse(text, document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	converted, _, _, err := versions.Convert(d, p.from, p.to)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	defer converted.Release()
	got := converted.AppendTo(nil)
	a, errA := json.Marshal(decoded(t, got, p.to, p.kind))
	b, errB := json.Marshal(want)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("of  %s\ngot  %s %v\nwant %s %v", text, a, errA, b, errB)
	}
}
