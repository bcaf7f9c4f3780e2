package audit

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	authnv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/resource"
)

var received = time.Date(2026, 3, 4, 5, 6, 7, 890_123_456, time.FixedZone("", 3600))

func fullEvent() *Event {
	return &Event{
		ID: "0b8c", Level: RequestResponse, Stage: ResponseComplete,
		Target: "/apis/shop/v1/namespaces/team-a/orders?x=<1>",
		Info: &resource.Info{
			Verb: resource.VerbCreate, IsResource: true, Group: "shop", Version: "v1", Resource: "orders",
			Namespace:   "team-a",
			Subresource: "status",
		},
		User: &identity.User{
			Name: "ci", UID: "7", Groups: []string{"a", "b\"c"},
			Extra: map[string][]string{"z": {"1", "2"}, "a": {}},
		},
		Sources: []string{"10.0.0.1", "::1"}, Agent: string(bytes.Repeat([]byte("a"), 1030)),
		Object:        Reference{Namespace: "not this", Name: "o-1", UID: "u", ResourceVersion: "12"},
		Answer:        Response{403, &Status{"Failure", "no\nway", "Forbidden", []byte(`{"name":"o-1"}`)}},
		RequestObject: []byte("{\n  \"a\": 1.00\n}"), ResponseObject: []byte(`{"kind":"Status"}`),
		Received: received, At: received.Add(1500 * time.Microsecond),
		Configuration: "0a1b", Policies: "2c3d",
		Annotations: []Annotation{{"a/b", "1"}, {"c/d", "\u2028"}},
	}
}

// What Kubernetes' own type reads of an event, strictly.
func TestEventIsKubernetes(t *testing.T) {
	line := fullEvent().Append(nil)
	if n := bytes.IndexByte(line, '\n'); n != len(line)-1 {
		t.Fatalf("the line ends at %d of %d bytes", n, len(line))
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	var got auditv1.Event
	if err := d.Decode(&got); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	micro := func(t time.Time) metav1.MicroTime { return metav1.NewMicroTime(t.Truncate(time.Microsecond).Local()) }
	want := auditv1.Event{
		TypeMeta: metav1.TypeMeta{Kind: "Event", APIVersion: "audit.k8s.io/v1"},
		Level:    auditv1.LevelRequestResponse, AuditID: "0b8c", Stage: auditv1.StageResponseComplete,
		RequestURI: "/apis/shop/v1/namespaces/team-a/orders?x=<1>", Verb: "create",
		User: authnv1.UserInfo{
			Username: "ci", UID: "7", Groups: []string{"a", "b\"c"},
			Extra: map[string]authnv1.ExtraValue{"z": {"1", "2"}, "a": {}},
		},
		SourceIPs: []string{"10.0.0.1", "::1"}, UserAgent: string(bytes.Repeat([]byte("a"), 1024)) + "...TRUNCATED",
		ObjectRef: &auditv1.ObjectReference{
			Resource: "orders", Namespace: "team-a", Name: "o-1", UID: "u", APIGroup: "shop", APIVersion: "v1",
			ResourceVersion: "12", Subresource: "status",
		},
		ResponseStatus: &metav1.Status{
			Status: "Failure", Message: "no\nway", Reason: "Forbidden", Details: &metav1.StatusDetails{Name: "o-1"},
			Code: 403,
		},
		RequestObject:            &runtime.Unknown{Raw: []byte(`{  "a": 1.00}`), ContentType: "application/json"},
		ResponseObject:           &runtime.Unknown{Raw: []byte(`{"kind":"Status"}`), ContentType: "application/json"},
		RequestReceivedTimestamp: micro(received), StageTimestamp: micro(received.Add(1500 * time.Microsecond)),
		Annotations: map[string]string{ConfigurationHash: "0a1b", PoliciesHash: "2c3d", "a/b": "1", "c/d": "\u2028"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestLeastEvent(t *testing.T) {
	e := Event{
		ID: "1", Level: Metadata, Target: "/healthz", Info: &resource.Info{Verb: resource.VerbGet, Path: "/healthz"},
		User:     &identity.User{},
		Received: received, At: received,
	}
	want := `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"1","stage":"RequestReceived",` +
		`"requestURI":"/healthz","verb":"get","user":{},"requestReceivedTimestamp":"2026-03-04T04:06:07.890123Z",` +
		`"stageTimestamp":"2026-03-04T04:06:07.890123Z"}` + "\n"
	if got := string(e.Append(nil)); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	e := fullEvent()
	e.User.Extra = nil
	var line []byte
	line = e.Append(line)
	if n := testing.AllocsPerRun(100, func() { line = e.Append(line[:0]) }); n > 1 { // the long User-Agent
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAppend(b *testing.B) {
	e := fullEvent()
	e.User.Extra, e.Agent = nil, "kubectl/v1.37"
	var line []byte
	for b.Loop() {
		line = e.Append(line[:0])
	}
}

// FuzzTime: times are written as package time writes them.
func FuzzTime(f *testing.F) {
	for _, seconds := range []int64{0, -1, 1764184528, 253402300799, 253402300800, -62135596800, -99999999999} {
		f.Add(seconds, int64(123456789))
	}
	f.Add(int64(1764184528), int64(999))
	f.Fuzz(func(t *testing.T, seconds, nanoseconds int64) {
		at := time.Unix(seconds, nanoseconds).In(time.FixedZone("", 5400))
		got, want := string(appendTime([]byte("at "), at)), at.UTC().Format("at 2006-01-02T15:04:05.000000Z07:00")
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
