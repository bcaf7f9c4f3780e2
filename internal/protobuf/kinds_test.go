package protobuf

import (
	"bytes"
	"encoding/json"
	"math/rand"
	"reflect"
	"sync"
	"testing"

	apiextensionsfuzzer "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/fuzzer"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	kjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	kprotobuf "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"
)

var generous = Limits{Bytes: 3 << 20, Depth: 64, Accepted: "application/json"}

// The kinds are in client-go's scheme, and CustomResourceDefinitions.
func TestKindsAreThoseOfClientGo(t *testing.T) {
	ours, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	theirs := runtime.NewScheme()
	metav1.AddToGroupVersion(theirs, schema.GroupVersion{Version: "v1"})
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(theirs); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := ours.AllKnownTypes(), theirs.AllKnownTypes(); !reflect.DeepEqual(got, want) {
		t.Errorf("%d kinds, want %d", len(got), len(want))
	}
}

// randomObjects fills objects of all kinds with what protobuf and JSON can carry.
func randomObjects(seed int64) *randfill.Filler {
	funcs := fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, apiextensionsfuzzer.Funcs, func(serializer.CodecFactory) []any {
		return []any{
			func(r *runtime.RawExtension, c randfill.Continue) {
				if c.Bool() {
					r.Raw = []byte(`{"apiVersion":"example.com/v1","kind":"Widget","size":9007199254740993,"of":"<a&b>"}`)
				}
			},
			func(r **runtime.RawExtension, c randfill.Continue) {
				if c.Bool() { // one with nothing in it is null in JSON, and then none
					*r = &runtime.RawExtension{Raw: []byte(`{"a":[]}`)}
				}
			},
			func(s *intstr.IntOrString, c randfill.Continue) {
				if *s = intstr.FromInt32(c.Int31()); c.Bool() {
					*s = intstr.FromString(c.String(0))
				}
			},
			func(q *resource.Quantity, c randfill.Continue) {
				*q = resource.MustParse([]string{"0", "1", "100m", "1500m", "1Gi", "12e6", "-3", "0.000001", "1e3",
					"9223372036854775807", "1n"}[c.Intn(11)])
			},
			func(j *apiextensionsv1.JSON, c randfill.Continue) {
				j.Raw = []byte([]string{`{"a":[1,2.50]}`, `"x"`}[c.Intn(2)])
			},
			func(s *apiextensionsv1.JSONSchemaProps, c randfill.Continue) { // which has itself in it, without end
				c.Fill(&s.Description)
				c.Fill(&s.Default)
				c.Fill(&s.Enum)
				c.Fill(&s.MaxLength)
				c.Fill(&s.Maximum)
				c.Fill(&s.Required)
				c.Fill(&s.XPreserveUnknownFields)
				c.Fill(&s.XValidations)
				if c.Intn(3) == 0 {
					c.Fill(&s.Not)
					s.Properties = map[string]apiextensionsv1.JSONSchemaProps{"a": {Type: "string"},
						"b.c": {Format: "date"}}
					s.Items = &apiextensionsv1.JSONSchemaPropsOrArray{
						Schema: &apiextensionsv1.JSONSchemaProps{Type: "integer"}}
					s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true}
				}
			},
			func(s *string, c randfill.Continue) {
				*s = []string{"", "a", "team-a", "\u0000\u001f\"\\", "é\u2028\U0001F600", "<b>&amp;",
					"k8s\x00"}[c.Intn(7)]
			},
		}
	})
	return fuzzer.FuzzerFor(funcs, rand.NewSource(seed), scheme.Codecs)
}

// kinds are all kinds that can be written as protobuf.
func kinds(t testing.TB) (*runtime.Scheme, []schema.GroupVersionKind) {
	s, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	var all []schema.GroupVersionKind
	for kind := range s.AllKnownTypes() {
		if o, err := s.New(kind); err == nil && kind.Version != runtime.APIVersionInternal &&
			kind.Kind != "WatchEvent" {
			if _, ok := o.(object); ok {
				all = append(all, kind)
			}
		}
	}
	return s, all
}

// An API server reads of the JSON what it would have read of the protobuf, for objects of every
// kind (RES-7).
func TestServerReadsTheSame(t *testing.T) {
	s, all := kinds(t)
	if len(all) < 500 {
		t.Fatalf("there are only %d kinds", len(all))
	}
	binary := kprotobuf.NewSerializer(s, s)
	text := kjson.NewSerializerWithOptions(kjson.DefaultMetaFactory, s, s, kjson.SerializerOptions{Strict: true})
	var reader Reader
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		random := randomObjects(int64(round))
		for _, kind := range all {
			o, err := s.New(kind)
			if err != nil {
				t.Fatal(err)
			}
			if round > 0 {
				random.Fill(o)
			}
			o.GetObjectKind().SetGroupVersionKind(kind)
			var body bytes.Buffer
			if err := binary.Encode(o, &body); err != nil {
				t.Fatal(err)
			}
			direct, _, err := binary.Decode(body.Bytes(), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			direct.GetObjectKind().SetGroupVersionKind(kind)
			m, err := reader.Read(body.Bytes(), generous)
			if err != nil {
				t.Errorf("%v: %v", kind, err)
				continue
			}
			written, err := m.JSON()
			if err != nil {
				t.Errorf("%v: %v", kind, err)
				continue
			}
			through, _, err := text.Decode(written, nil, nil)
			if err != nil {
				t.Errorf("%v: the server cannot read %s: %v", kind, written, err)
				continue
			}
			through.GetObjectKind().SetGroupVersionKind(kind)
			want, _ := json.Marshal(direct)
			got, _ := json.Marshal(through)
			if !bytes.Equal(got, want) || !equality.Semantic.DeepEqual(direct, through) {
				t.Errorf("%v: the server reads\n%s\nwant\n%s\n%s", kind, got, want, diff.Diff(direct, through))
			}
			if int64(len(written)) > m.Memory {
				t.Errorf("%v: %d bytes of JSON are estimated as %d", kind, len(written), m.Memory)
			}
		}
	}
}

// Many read at once what was not read before.
func TestReadersAtOnce(t *testing.T) {
	var reader Reader
	_, all := kinds(t)
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			for _, kind := range all {
				m, err := reader.Read(envelope(kind.GroupVersion().String(), kind.Kind, nil), generous)
				if err == nil {
					_, err = m.JSON()
				}
				if err != nil {
					t.Errorf("%v: %v", kind, err)
				}
			}
		})
	}
	done.Wait()
}
