package schema_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetes "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/schema/meta"
)

// META-1: an update may do to metadata what k8s.io/apiserver lets it do, for any metadata that it
// may find stored.
func TestMetadataOfUpdatesAgreesWithKubernetes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := definitionOf(t)
	for range 5000 {
		metadataUpdate(t, s, r)
	}
}

// FuzzMetadataOfUpdates does the same.
func FuzzMetadataOfUpdates(f *testing.F) {
	for i := range uint64(20) {
		f.Add(i, i*i)
	}
	s := definitionOf(f)
	f.Fuzz(func(t *testing.T, one, other uint64) { metadataUpdate(t, s, rand.New(rand.NewPCG(one, other))) })
}

// metadataUpdate compares one update.
func metadataUpdate(t *testing.T, s *schema.Schema, r *rand.Rand) {
	t.Helper()
	old, sent := storedMetadata(r), sentMetadata(r)
	if r.IntN(4) == 0 {
		sent = old
	}
	wantObject, wantErrs := libraryUpdate(t, old, sent)
	gotObject, gotErrs := gatewayUpdate(t, s, old, sent)
	if !slices.Equal(gotErrs, wantErrs) {
		t.Fatalf("stored %s\nsent   %s\n got %q\nwant %q", encoded(t, old), encoded(t, sent), gotErrs, wantErrs)
	}
	if len(wantErrs) == 0 && gotObject != wantObject {
		t.Fatalf("stored %s\nsent   %s\n got %s\nwant %s", encoded(t, old), encoded(t, sent), gotObject, wantObject)
	}
}

func definitionOf(t testing.TB) *schema.Schema {
	t.Helper()
	versions, _, errs := schema.CompileCRD(definition(t, `{type: object, x-kubernetes-preserve-unknown-fields: true}`))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return versions[0].Schema
}

// one is one of the values, or with nil among them none.
func one(r *rand.Rand, meta map[string]any, name string, values ...any) {
	if v := values[r.IntN(len(values))]; v != nil {
		meta[name] = v
	}
}

const (
	noon = "2024-05-01T12:00:00Z"
	one2 = "2024-05-01T13:00:00Z"
)

func storedMetadata(r *rand.Rand) map[string]any {
	meta := map[string]any{"name": "w", "namespace": "team-a", "uid": "u1", "creationTimestamp": noon,
		"resourceVersion": "1"}
	one(r, meta, "generation", int64(1), int64(2))
	one(r, meta, "finalizers", nil, []any{"example.com/a"}, []any{"example.com/a", "example.com/b"})
	if one(r, meta, "deletionTimestamp", nil, noon); meta["deletionTimestamp"] != nil {
		one(r, meta, "deletionGracePeriodSeconds", nil, int64(0), int64(30))
	}
	one(r, meta, "labels", nil, map[string]any{"a": "b"})
	return meta
}

func sentMetadata(r *rand.Rand) map[string]any {
	meta := map[string]any{"name": "w", "namespace": "team-a", "resourceVersion": "1"}
	one(r, meta, "uid", nil, nil, "u1", "", "u2")
	one(r, meta, "creationTimestamp", nil, noon, one2)
	one(r, meta, "deletionTimestamp", nil, nil, nil, noon, one2)
	one(r, meta, "deletionGracePeriodSeconds", nil, nil, nil, int64(0), int64(30), int64(60))
	one(r, meta, "generation", nil, int64(1), int64(3), int64(-1))
	one(r, meta, "finalizers", nil, nil, []any{"example.com/a"}, []any{"example.com/b"},
		[]any{"example.com/c", "example.com/a"}, []any{"a b"})
	one(r, meta, "labels", nil, nil, map[string]any{"a": "c"}, map[string]any{"a b": "c"}, map[string]any{"a": "c d"})
	one(r, meta, "annotations", nil, nil, map[string]any{"a": "c d"}, map[string]any{"a/b/c": ""})
	one(r, meta, "ownerReferences", nil, nil,
		[]any{map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "x"}},
		[]any{map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": ""}},
		[]any{map[string]any{"apiVersion": "v1", "kind": "Event", "name": "s", "uid": "x"}})
	return meta
}

func encoded(t *testing.T, meta map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(meta)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// gatewayUpdate gives the metadata of an update, and the fields of what is wrong with it.
func gatewayUpdate(t *testing.T, s *schema.Schema, old, sent map[string]any) (string, []string) {
	t.Helper()
	const envelope = `{"apiVersion":"lab.example.com/v1","kind":"Widget","metadata":`
	before, d := parsed(t, envelope+encoded(t, old)+`}`), parsed(t, envelope+encoded(t, sent)+`}`)
	if err := s.Prune(d, nil); err != nil {
		t.Fatal(err)
	}
	meta.Carry(d, before.Root())
	result := s.Validate(nil, d.Root(), before.Root())
	errs := append(meta.ValidateUpdate(d.Root(), before.Root()), result.Errors...)
	return canonical(t, d), fieldsOf(errs)
}

func canonical(t *testing.T, d *document.Document) string {
	t.Helper()
	meta, _ := d.Root().Get("metadata")
	var decoded metav1.ObjectMeta
	if err := json.Unmarshal(meta.Raw(), &decoded); err != nil {
		t.Fatal(err)
	}
	decoded.ResourceVersion = ""
	raw, err := json.Marshal(decoded)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func fieldsOf(errs field.ErrorList) []string {
	var fields []string
	for _, err := range errs {
		fields = append(fields, err.Field)
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// libraryUpdate returns the update's result by k8s.io/apiserver.
func libraryUpdate(t *testing.T, old, sent map[string]any) (string, []string) {
	t.Helper()
	object := func(meta map[string]any) *unstructured.Unstructured {
		copied := runtime.DeepCopyJSON(map[string]any{"metadata": meta})
		u := &unstructured.Unstructured{Object: copied}
		u.SetAPIVersion("lab.example.com/v1")
		u.SetKind("Widget")
		return u
	}
	stored, updated := object(old), object(sent)
	ctx := request.WithNamespace(context.Background(), "team-a")
	err := rest.BeforeUpdate(strategy{}, ctx, updated, stored)
	var invalid *apierrors.StatusError
	if errors.As(err, &invalid) {
		var fields []string
		for _, cause := range invalid.ErrStatus.Details.Causes {
			fields = append(fields, cause.Field)
		}
		slices.Sort(fields)
		return "", slices.Compact(fields)
	}
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(updated.Object)
	if err != nil {
		t.Fatal(err)
	}
	return canonical(t, parsed(t, string(raw))), nil
}

// strategy is for a namespaced resource without rules of its own.
type strategy struct{ rest.RESTUpdateStrategy }

func (strategy) ObjectKinds(runtime.Object) ([]kubernetes.GroupVersionKind, bool, error) {
	return []kubernetes.GroupVersionKind{{Group: "lab.example.com", Version: "v1", Kind: "Widget"}}, false, nil
}
func (strategy) NamespaceScoped() bool                                            { return true }
func (strategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}
func (strategy) Canonicalize(runtime.Object)                                      {}
func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
func (strategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

// Metadata that no API server would have stored gives a client no way to what is the system's.
func TestMetadataOfUpdatesOnOddObjects(t *testing.T) {
	for _, c := range []struct {
		name, stored, sent, want string
		errs                     []string
	}{
		{"nothing stored", `{}`, `{"metadata":{"uid":"x","generation":7,"creationTimestamp":"2024-05-01T12:00:00Z","managedFields":[],"labels":{}}}`,
			`{"metadata":{"uid":"x","labels":{}}}`, []string{"metadata.uid: Invalid value: \"x\": field is immutable"}},
		{"metadata left out", `{"metadata":{"uid":"u","generation":2}}`, `{}`,
			`{"metadata":{"uid":"u","generation":2}}`, nil},
		{"a deletion taken back", `{"metadata":{"deletionTimestamp":"2024-05-01T12:00:00Z","deletionGracePeriodSeconds":3,"finalizers":["example.com/a"]}}`,
			`{"metadata":{"finalizers":[]}}`, `{"metadata":{"finalizers":[],"deletionTimestamp":"2024-05-01T12:00:00Z","deletionGracePeriodSeconds":3}}`, nil},
		{"a deletion postponed", `{"metadata":{"deletionTimestamp":"2024-05-01T12:00:00Z"}}`,
			`{"metadata":{"deletionTimestamp":"2034-05-01T12:00:00Z"}}`,
			`{"metadata":{"deletionTimestamp":"2024-05-01T12:00:00Z"}}`, nil},
		{"a deletion made up", `{"metadata":{}}`, `{"metadata":{"deletionTimestamp":"2034-05-01T12:00:00Z"}}`,
			`{"metadata":{"deletionTimestamp":"2034-05-01T12:00:00Z"}}`,
			[]string{`metadata.deletionTimestamp: Invalid value: "2034-05-01T12:00:00Z": field is immutable`}},
		{"unreadable", `{"metadata":{"uid":3,"finalizers":7}}`, `{"metadata":{"uid":"u"}}`, `{"metadata":{"uid":"u"}}`,
			[]string{`metadata.uid: Invalid value: "u": field is immutable`}},
		{"a finalizer added late", `{"metadata":{"deletionTimestamp":"2024-05-01T12:00:00Z"}}`,
			`{"metadata":{"finalizers":["example.com/late"]}}`,
			`{"metadata":{"finalizers":["example.com/late"],"deletionTimestamp":"2024-05-01T12:00:00Z"}}`,
			[]string{`metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "example.com/late"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			old, d := parsed(t, c.stored), parsed(t, c.sent)
			meta.Carry(d, old.Root())
			got := string(d.AppendTo(nil))
			if errs := lines(meta.ValidateUpdate(d.Root(), old.Root())); got != c.want || !slices.Equal(errs, c.errs) {
				t.Errorf("got  %s %q\nwant %s %q", got, errs, c.want, c.errs)
			}
		})
	}
}
