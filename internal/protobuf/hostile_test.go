package protobuf

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	runtimes "runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kprotobuf "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admission-gateway/gateway/internal/status"
)

// bodyOf is a body as a client sends it.
func bodyOf(t testing.TB, o runtime.Object) []byte {
	var b bytes.Buffer
	if err := kprotobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(o, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// lengthy is a field whose value has its length before it.
func lengthy(number int, value ...byte) []byte {
	b := binary.AppendUvarint(nil, uint64(number<<3|wireBytes))
	return append(binary.AppendUvarint(b, uint64(len(value))), value...)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// envelope is a body of a kind with any bytes in it.
func envelope(apiVersion, kind string, raw []byte) []byte {
	return join(magic[:], lengthy(1, join(lengthy(1, []byte(apiVersion)...), lengthy(2, []byte(kind)...))...),
		lengthy(2, raw...))
}

// answer is the result of a body: JSON, or the code and message of the refusal.
func answer(r *Reader, body []byte, limits Limits) string {
	m, err := r.Read(body, limits)
	var text []byte
	if err == nil {
		text, err = m.JSON()
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
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "p1", Labels: map[string]string{"b": "2", "a": "<1>"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name:      "c",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1500m")}},
		}}},
	}
	named := lengthy(1, []byte("p")...)
	const lead = "BadRequest: the body must be protobuf that can be read in one way only: "
	for _, c := range []struct {
		name string
		body []byte
		want string
	}{
		{"a pod", bodyOf(t, pod), `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p1","labels":{"a":"<1>","b":"2"}},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1500m"}}}]},"status":{}}`},
		{"nothing in it", envelope("v1", "ConfigMap", nil), `{"kind":"ConfigMap","apiVersion":"v1","metadata":{}}`},
		{"options in the version of what is deleted", envelope("example.com/v7", "DeleteOptions", nil),
			`{"kind":"DeleteOptions","apiVersion":"example.com/v7"}`},
		{"no magic", []byte("{}"), "BadRequest: the body must be Kubernetes' protobuf, which begins with the bytes 'k8s' and 0"},
		{"magic alone", magic[:], "BadRequest: the protobuf body must say in its envelope which `apiVersion` and `kind` it is of"},
		{"no version", envelope("", "Pod", nil), "BadRequest: the protobuf body must say in its envelope which `apiVersion` and `kind` it is of"},
		{"an odd version", envelope("a/b/c", "Pod", nil), "BadRequest: the protobuf body must say in its envelope which `apiVersion` and `kind` it is of"},
		{"another encoding", join(envelope("v1", "Pod", nil), lengthy(3, []byte("gzip")...)), "BadRequest: the object in the protobuf body must be protobuf without any other encoding"},
		{"another type", join(envelope("v1", "Pod", nil), lengthy(4, []byte("application/json")...)), "BadRequest: the object in the protobuf body must be protobuf without any other encoding"},
		{"a kind that is not built in", envelope("example.com/v1", "Widget", nil), "UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: application/json"},
		{"a kind without protobuf", envelope("v1", "WatchEvent", nil), `{"type":"","object":null}`},
		{"an internal kind", envelope("__internal", "WatchEvent", nil), "UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: application/json"},
		{"a field of the envelope that is not known", join(envelope("v1", "Pod", nil), lengthy(9)),
			lead + "it must not have a field 9, which this version of the gateway does not know"},
		{"two objects in one envelope", join(envelope("v1", "Pod", nil), lengthy(2)),
			lead + "it must not have two fields `raw`"},
		{"a field that is not known", envelope("v1", "Pod", lengthy(2, join(lengthy(2, named...), lengthy(2, join(named, lengthy(99))...))...)), lead + "`spec.containers[1]` must not have a field 99, which this version of the gateway does not know"},
		{"a number beyond the numbers of fields", envelope("v1", "Pod", lengthy(1<<28)), lead + "it must not have a field 268435456, which this version of the gateway does not know"},
		{"the field 0", envelope("v1", "Pod", []byte{2, 0}),
			lead + "it must not have a field 0, which this version of the gateway does not know"},
		{"metadata twice", envelope("v1", "Pod", join(lengthy(1, named...), lengthy(1))),
			lead + "it must not have two fields `metadata`"},
		{"another wire type", envelope("v1", "Pod", []byte{1 << 3, 1}),
			lead + "`metadata` must be of the wire type 2, not 0"},
		{"a group", envelope("v1", "Pod", []byte{1<<3 | 3, 1<<3 | 4}),
			lead + "`metadata` must be of the wire type 2, not 3"},
		{"longer than it is", envelope("v1", "Pod", []byte{1<<3 | 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
			0x7f}), lead + "`metadata` must be as long as it says"},
		{"a number without an end", envelope("v1", "Pod", lengthy(2, 4<<3, 0xff)),
			lead + "`spec.terminationGracePeriodSeconds` must be a number that ends"},
		{"cut in a tag", envelope("v1", "Pod", []byte{0x80}), lead + "it ends within a field"},
		{"no UTF-8", envelope("v1", "Pod", lengthy(1, lengthy(11, join(lengthy(1, 'a'), lengthy(2, 0xff))...)...)),
			lead + "`metadata.labels[0].value` must be UTF-8"},
		{"an exponent that takes forever", envelope("v1", "Pod", lengthy(2, lengthy(2, lengthy(8, lengthy(1, join(lengthy(1, 'a'), lengthy(2, lengthy(1, []byte("1e-99999999")...)...))...)...)...)...)), lead + "`spec.containers[0].resources.limits[0].value.string` must be a quantity of at most 256 characters with an exponent between -256 and 256"},
		{"no quantity", envelope("v1", "Pod", lengthy(2, lengthy(2, lengthy(8, lengthy(1, join(lengthy(1, 'a'), lengthy(2, lengthy(1, 'x')...))...)...)...)...)), lead + "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
		{"no JSON inside", envelope("apps/v1", "ControllerRevision", lengthy(2, lengthy(1, []byte("{")...)...)), lead + "json: error calling MarshalJSON for type runtime.RawExtension: unexpected end of JSON input"},
		{"deep schemas", envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", nested(100)), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r Reader
			got := answer(&r, c.body, generous)
			if c.name == "deep schemas" {
				if !strings.HasSuffix(got, " messages must be nested at most 64 levels deep") {
					t.Errorf("got %s", got)
				}
				return
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// nested is a definition whose schema has n schemas in each other.
func nested(n int) []byte {
	var schema []byte
	for range n {
		schema = lengthy(28, schema...) // not
	}
	version := join(lengthy(1, []byte("v1")...), lengthy(4, lengthy(1, schema...)...))
	return lengthy(2, lengthy(7, version...)...)
}

// A few bytes of protobuf can be large objects; nothing is made of any that would take more than a bounded multiple.
func TestAmplification(t *testing.T) {
	const n = 200_000
	items := func(number int) []byte { return bytes.Repeat(lengthy(number), n) }
	spec := func(raw []byte) []byte { return envelope("v1", "Pod", lengthy(2, raw...)) }
	for name, body := range map[string][]byte{
		"empty containers": spec(items(2)),
		"empty volumes":    spec(items(1)),
		"empty owners":     envelope("v1", "Pod", lengthy(1, items(13)...)),
		"empty labels":     envelope("v1", "Pod", lengthy(1, items(11)...)),
		"empty finalizers": envelope("v1", "Pod", lengthy(1, items(14)...)),
		"packed numbers":   spec(lengthy(14, lengthy(4, make([]byte, n)...)...)),
		"control characters": envelope("v1", "ConfigMap",
			lengthy(2, join(lengthy(1, 'a'), lengthy(2, make([]byte, n)...))...)),
		"bytes":            envelope("v1", "ConfigMap", lengthy(3, join(lengthy(1, 'a'), lengthy(2, make([]byte, n)...))...)),
		"empty conditions": envelope("v1", "Pod", lengthy(3, items(2)...)),
	} {
		t.Run(name, func(t *testing.T) {
			var r Reader
			answer(&r, envelope("v1", "Pod", nil), generous)
			answer(&r, envelope("v1", "ConfigMap", nil), generous)
			var before, after runtimes.MemStats
			runtimes.ReadMemStats(&before)
			got := answer(&r, body, generous)
			runtimes.ReadMemStats(&after)
			allocated := int64(after.TotalAlloc - before.TotalAlloc)
			t.Logf("%d bytes: %.1f times as much allocated: %.80s", len(body), float64(allocated)/float64(len(body)),
				got)
			if allocated > 60*int64(len(body)) {
				t.Errorf("%d bytes made %d", len(body), allocated)
			}
		})
	}
}

// The reader reads what the scheme reads, refuses garbage in words, and never panics.
func FuzzRead(f *testing.F) {
	f.Add(bodyOf(f, &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}}}))
	f.Add(bodyOf(f, &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		Data: map[string][]byte{"a": {0}}}))
	f.Add(envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", nested(4)))
	f.Add(envelope("resource.k8s.io/v1", "ResourceClaim", lengthy(2, lengthy(1)...)))
	f.Add([]byte("k8s\x00garbage"))
	r := &Reader{}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := r.Read(body, generous)
		var text []byte
		if err == nil {
			text, err = m.JSON()
		}
		var refused *status.Error
		if err != nil {
			if !errors.As(err, &refused) {
				t.Fatalf("refused without words: %v", err)
			}
			return
		}
		direct, kind, err := kprotobuf.NewSerializer(r.scheme, r.scheme).Decode(body, nil, nil)
		if err != nil {
			if m.kind.Kind == "DeleteOptions" {
				return
			}
			t.Fatalf("the server refuses what was read: %v", err)
		}
		direct.GetObjectKind().SetGroupVersionKind(*kind)
		want, err := json.Marshal(direct)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		json.HTMLEscape(&got, text)
		if got.String() != string(want) {
			t.Errorf("got  %s\nwant %s", &got, want)
		}
	})
}
