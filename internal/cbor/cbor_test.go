package cbor

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	kcbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	kjsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/admission-gateway/gateway/internal/status"
)

var generous = Limits{Bytes: 64 << 20, Depth: 64}

// answer is the result of a body: JSON, or the reason and message of the refusal.
func answer(data []byte, limits Limits) string {
	b, err := Read(data, limits)
	var text []byte
	if err == nil {
		text, err = b.JSON()
	}
	var refused *status.Error
	switch {
	case errors.As(err, &refused):
		return string(refused.ErrStatus.Reason) + ": " + refused.ErrStatus.Message
	case err != nil:
		return err.Error()
	}
	return string(text)
}

func TestRead(t *testing.T) {
	const lead = "BadRequest: the body must be CBOR that can be read in one way only: "
	for _, c := range []struct{ name, body, want string }{
		{"an object as clients send it", "d9d9f7 a2 4161 01 4162 f5", `{"a":1,"b":true}`},
		{"without the mark", "a1 6161 01", `{"a":1}`},
		{"text", "65 c3a93c2261", `"é<\"a"`},
		{"numbers", "88 00 20 1bffffffffffffff7f" + "",
			lead + "whole numbers must have at most 64 bits with their sign"},
		{"the largest", "82 1b7fffffffffffffff 3b7fffffffffffffff", `[9223372036854775807,-9223372036854775808]`},
		{"the least that is too small", "3b8000000000000000",
			lead + "whole numbers must have at most 64 bits with their sign"},
		{"fractions", "85 f93c00 f93e00 fa7f7fffff fb0000000000000001 f98000",
			`[1.0,1.5,3.4028234663852886e+38,5e-324,-0.0]`},
		{"what is no number", "f97e00", lead + "cbor: data item of cbor type primitives is not accepted by protocol: floating-point NaN"},
		{"infinite", "f97c00", lead + "cbor: data item of cbor type primitives is not accepted by protocol: floating-point infinity"},
		{"null", "f6", `null`},
		{"undefined", "f7", lead + "cbor: data item of cbor type primitives is not accepted by protocol: simple value 23 is not recognized"},
		{"bytes in base64", "d6 43 00ff10", `"AP8Q"`},
		{"bytes in base64url", "d5 42 fbff", `"-_8"`},
		{"bytes in base16", "d7 42 fbff", `"fbff"`},
		{"bytes that are no text", "43 00ff10", lead + "strings must be UTF-8"},
		{"text that is none", "61 ff", lead + "strings must be UTF-8"},
		{"a string in parts", "7f 6161 6162 ff", `"ab"`},
		{"parts of another type", "7f 4161 ff", lead + "a string must be of strings of its own type"},
		{"parts in parts", "7f 7f 6161 ff ff", lead + "a string must be of strings of its own type"},
		{"an array without a length", "9f 01 02 ff", `[1,2]`},
		{"a map without a length", "bf 6161 01 ff", `{"a":1}`},
		{"half a member", "bf 6161 ff", lead + "it has a value of no type"},
		{"a break alone", "ff", lead + "it has a value of no type"},
		{"a tag", "c1 00", lead + "it must not have a tag 1"},
		{"a large number", "c2 41 01", lead + "it must not have a tag 2"},
		{"the mark inside", "81 d9d9f7 00", lead + "it must not have a tag 55799"},
		{"a tag of text", "d6 6161", lead + "the tag 22 must be of a byte string"},
		{"a tag of a tag", "d6 d6 4161", lead + "the tag 22 must be of a byte string"},
		{"a key with a tag", "a1 d6 4161 00",
			lead + "the keys of maps must be strings of a known length, without a tag"},
		{"a key in parts", "a1 7f 6161 ff 00",
			lead + "the keys of maps must be strings of a known length, without a tag"},
		{"a number as key", "a1 01 01", lead + "the keys of maps must be strings of a known length, without a tag"},
		{"a key twice", "a2 6161 01 6161 02", lead + "cbor: found duplicate map key \"a\" at map element index 1"},
		{"a key twice, in two types", "a2 6161 01 4161 02",
			lead + "cbor: found duplicate map key \"a\" at map element index 1"},
		{"two values", "00 00", lead + "it must end after the first value"},
		{"nothing", "", lead + "it ends within a value"},
		{"the mark alone", "d9d9f7", lead + "it ends within a value"},
		{"cut in a head", "19 00", lead + "it ends within a value"},
		{"longer than it is", "5b7fffffffffffffff 00", lead + "it ends within a value"},
		{"an array longer than it is", "9b7fffffffffffffff 00", lead + "it ends within a value"},
		{"a map longer than it is", "bbffffffffffffffff 6161 00", lead + "it ends within a value"},
		{"a reserved head", "1c", lead + "it has a value of no type"},
		{"deep", strings.Repeat("81", 100) + "00", lead + "values must be nested at most 64 levels deep"},
		{"too large", "d6 58ff" + strings.Repeat("00", 255), "RequestEntityTooLarge: the object in the CBOR body must be at most 100 bytes as JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			body, err := hex.DecodeString(strings.ReplaceAll(c.body, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			limits := generous
			if c.name == "too large" {
				limits.Bytes = 100
			}
			if got := answer(body, limits); !strings.HasPrefix(got, c.want) || strings.HasPrefix(c.want, "{") &&
				got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A few bytes of CBOR can be large objects; nothing is made of any that would take more than a bounded multiple.
func TestAmplification(t *testing.T) {
	const n = 400_000
	listOf := func(item string) []byte {
		return append(append([]byte{0x9f}, strings.Repeat(item, n/len(item))...), breakByte)
	}
	for name, body := range map[string][]byte{
		"numbers":     listOf("\x00"),
		"large ones":  listOf("\x19\xff\xff"),
		"fractions":   listOf("\xf9\x3e\x00"),
		"empty maps":  listOf("\xa0"),
		"small maps":  listOf("\xa1\x61a\x00"),
		"empty lists": listOf("\x80"),
		"empty texts": listOf("\x60"),
		"controls":    append([]byte{0x7a, 0, 6, 0x1a, 0x80}, make([]byte, n)...),
		"bytes":       append([]byte{0xd7, 0x5a, 0, 6, 0x1a, 0x80}, make([]byte, n)...),
		"chunks":      append([]byte{0x7f}, append(bytes.Repeat([]byte("\x61a"), n/2), breakByte)...),
	} {
		t.Run(name, func(t *testing.T) {
			answer([]byte{0xa0}, generous)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := answer(body, generous)
			runtime.ReadMemStats(&after)
			allocated := int64(after.TotalAlloc - before.TotalAlloc)
			t.Logf("%d bytes: %.1f times as much allocated: %.80s", len(body), float64(allocated)/float64(len(body)),
				got)
			if allocated > 120*int64(len(body)) {
				t.Errorf("%d bytes made %d", len(body), allocated)
			}
			if b, err := Read(body, generous); err == nil && allocated > 2*b.Memory {
				t.Errorf("%d bytes made %d, and %d were asked for", len(body), allocated, b.Memory)
			}
		})
	}
}

func samples(t testing.TB) (bodies [][]byte) {
	three := int64(3)
	for _, o := range []kruntime.Object{
		&corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Name: "p", CreationTimestamp: metav1.Unix(1e9, 0),
				Labels: map[string]string{"a": "<é>"}, ManagedFields: []metav1.ManagedFieldsEntry{
					{Manager: "m", FieldsV1: metav1.NewFieldsV1(`{"f:a":{"f:b":{}}}`)},
				}},
			Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &three, Containers: []corev1.Container{{
				Name:      "c",
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1500m")}},
				LivenessProbe: &corev1.Probe{
					ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}},
			}}},
		},
		&corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			Data: map[string][]byte{"a": {0, 255}, "b": nil}},
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"data": map[string]any{"x": "y"}, "n": []any{int64(1), 1.0, 1.5, nil, true}}},
	} {
		var b bytes.Buffer
		if err := kcbor.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(o, &b); err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, b.Bytes())
	}
	return bodies
}

// FuzzJSON: the JSON of a body is what Kubernetes' decoder reads from it, as an object without a
// type and as one of its own kinds, and what the server's decoder refuses is refused.
func FuzzJSON(f *testing.F) {
	for _, body := range samples(f) {
		f.Add(body)
	}
	for _, body := range []string{"a261610161416102", "bf6161019f0102ffff", "d65818", "fb7ff8000000000000",
		"c11a514b67b0", "a1d64c52756e41734e6f6e526f6f7400"} {
		raw, err := hex.DecodeString(body)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	typed := kcbor.NewSerializer(scheme.Scheme, scheme.Scheme)
	plain := kjsonserializer.NewSerializerWithOptions(kjsonserializer.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
		kjsonserializer.SerializerOptions{})
	f.Fuzz(func(t *testing.T, body []byte) {
		b, err := Read(body, generous)
		var text []byte
		if err == nil {
			text, err = b.JSON()
		}
		var refused *status.Error
		if err != nil {
			if !errors.As(err, &refused) {
				t.Fatalf("refused without words: %v", err)
			}
			return
		}
		var want, got any
		if err := direct.Unmarshal(body, &want); err != nil {
			t.Fatalf("the decoder refuses what was read as %s: %v", text, err)
		}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &got); err != nil {
			t.Fatalf("%s is no JSON: %v", text, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %#v\nwant %#v", got, want)
		}
		if slow, err := json.Marshal(want); err != nil || int64(len(text)+len(slow)) > 2*b.Memory {
			t.Errorf("%d bytes of JSON, and %d of memory: %v", len(text), b.Memory, err)
		}
		stored, _, err := typed.Decode(body, nil, nil)
		if err != nil {
			return
		}
		judged, _, err := plain.Decode(text, nil, nil)
		if err != nil {
			t.Fatalf("the server reads %+v, and refuses %s: %v", stored, text, err)
		}
		a, errA := json.Marshal(stored)
		j, errJ := json.Marshal(judged)
		if errA != nil || errJ != nil || !bytes.Equal(a, j) {
			t.Errorf("stored %s %v\njudged %s %v", a, errA, j, errJ)
		}
	})
}
