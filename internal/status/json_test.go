package status

import (
	"bytes"
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func mustMarshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ERR-1: AppendJSON is encoding/json, byte for byte.
func TestAppendJSONAgainstEncodingJSON(t *testing.T) {
	seven := int64(7)
	typeMeta := metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	for _, s := range []metav1.Status{
		{TypeMeta: typeMeta},
		{TypeMeta: typeMeta, Details: &metav1.StatusDetails{}},
		{TypeMeta: typeMeta, Status: "Failure", Message: "a \"b\" <c> & \u2028 \x01\b\f\n\r\t\\ ä \xff é",
			Reason: "Expired", Code: 410,
			ListMeta: metav1.ListMeta{ResourceVersion: "12", Continue: "abc", RemainingItemCount: &seven,
				ShardInfo: &metav1.ShardInfo{Selector: "s"}}},
		{TypeMeta: typeMeta, Status: "Failure", Code: 422,
			Details: &metav1.StatusDetails{Name: "o1", Group: "g", Kind: "K", UID: "u", RetryAfterSeconds: 3,
				Causes: []metav1.StatusCause{{}, {Type: "FieldValueInvalid", Message: "m", Field: "spec.a"},
					{Message: "only"}}}},
	} {
		if got, want := AppendJSON(nil, &s), mustMarshal(t, s); !bytes.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	if got, want := string(AppendJSON([]byte("x"), &metav1.Status{})),
		`x{"kind":"Status","apiVersion":"v1","metadata":{}}`; got != want {
		t.Errorf("empty Status: got %s, want %s", got, want)
	}
}

func FuzzAppendJSON(f *testing.F) {
	f.Add("message", "reason", "name", "field", int32(400), int32(1))
	f.Add("\u2028\xff<>&\x7f", "", "\"", "\\", int32(0), int32(-1))
	f.Fuzz(func(t *testing.T, message, reason, name, fieldPath string, code, retry int32) {
		s := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Message: message,
			Reason:  metav1.StatusReason(reason), Code: code,
			Details: &metav1.StatusDetails{Name: name, UID: types.UID(reason), RetryAfterSeconds: retry,
				Causes: []metav1.StatusCause{{Message: message, Field: fieldPath}}}}
		if got, want := AppendJSON(nil, &s), mustMarshal(t, s); !bytes.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

func BenchmarkAppendJSON(b *testing.B) {
	s := TooManyRequests("must not be called more often than 10 times in 1 second", 1).ErrStatus
	dst := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendJSON(dst[:0], &s)
	}
}
