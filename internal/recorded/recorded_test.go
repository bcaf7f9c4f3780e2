package recorded

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/identity"
)

const archive = `{"log": {"version": "1.2", "entries": [
{"request": {"method": "GET", "url": "https://shop.example.com/orders?limit=2", "headers": [{"name": ":authority", "value": "shop"}, {"name": "X-Team", "value": "a"}]}},
{"request": {"method": "POST", "url": "https://shop.example.com/orders", "headers": [{"name": "Content-Type", "value": "application/json"},
 {"name": "Host", "value": "x"}, {"name": "Impersonate-User", "value": "root"}, {"name": "X-Remote-User", "value": "root"}], "postData": {"mimeType": "text/plain", "text": "{}"}}},
{"request": {"method": "PUT", "url": "/a", "postData": {"mimeType": "application/json", "text": "e30=", "encoding": "base64"}}},
{"request": {"method": "PUT", "url": "/a", "postData": {"mimeType": "application/json", "text": "?", "encoding": "base64"}}},
{"request": {"url": "/a"}}]}}`

func TestHAR(t *testing.T) {
	for _, test := range []struct {
		name, data string
		entry      int
		want       *Request
		problem    string
	}{
		{"a read", archive, 1, &Request{Method: "GET", Target: "/orders?limit=2", Origin: "https://shop.example.com",
			Headers: [][2]string{{"X-Team", "a"}}}, ""},
		{"a write without a user", archive, 2,
			&Request{Method: "POST", Target: "/orders", Origin: "https://shop.example.com",
				ContentType: "application/json", Body: []byte("{}")}, ""},
		{"base64", archive, 3, &Request{Method: "PUT", Target: "/a", ContentType: "application/json",
			Body: []byte("{}")}, ""},
		{"no base64", archive, 4, nil, "the entry 4 cannot be used: the body of the entry is no base64: illegal base64 data at input byte 0"},
		{"no method", archive, 5, nil, "the entry 5 cannot be used: the entry has no method, or no URL that can be read"},
		{"no such entry", archive, 6, nil, "has the entries 1 to 5, and not 6"},
		{"before the first", archive, 0, nil, "has the entries 1 to 5, and not 0"},
		{"empty", `{"log": {}}`, 1, nil, "must be an HTTP archive with entries"},
		{"no archive", `[]`, 1, nil, "must be an HTTP archive: json: cannot unmarshal array into Go value of type struct { Log struct { Entries []json.RawMessage } }"},
	} {
		got, err := HAR([]byte(test.data), test.entry)
		check(t, test.name, got, err, test.want, test.problem)
	}
}

func TestAudit(t *testing.T) {
	const log = `{"kind":"Event","auditID":"1","stage":"RequestReceived","verb":"create","requestURI":"/api/v1/namespaces/a/pods","user":{"username":"alice"}}
no event
{"kind":"Event","auditID":"1","stage":"ResponseComplete","verb":"create","requestURI":"/api/v1/namespaces/a/pods","user":{"username":"alice","groups":["team-a"]},"requestObject":{"kind":"Pod"}}
{"kind":"Event","auditID":"2","verb":"patch","requestURI":"/p","user":{"username":"alice"},"impersonatedUser":{"username":"bob","groups":["b"]},"requestObject":[{"op":"remove","path":"/a"}]}
{"kind":"Event","auditID":"3","verb":"patch","requestURI":"/p","user":{"username":"alice"},"requestObject":{"a":1}}
{"kind":"Event","auditID":"4","verb":"delete","requestURI":"/p","user":{"username":"alice"}}
{"kind":"Event","auditID":"5","verb":"update","requestURI":"/p","user":{"username":"alice"}}
{"kind":"Event","auditID":"6","verb":"dance","requestURI":"/p","user":{"username":"alice"},"requestObject":{}}
`
	for _, test := range []struct {
		name, log, id string
		want          *Request
		problem       string
	}{
		{"the first with an object", log, "", &Request{Method: "POST", Target: "/api/v1/namespaces/a/pods",
			User: &identity.User{Name: "alice", Groups: []string{"team-a"}}, Body: []byte(`{"kind":"Pod"}`),
			ContentType: "application/json", AuditID: "1", Stage: "ResponseComplete", Verb: "create"}, ""},
		{"as another user", log, "2",
			&Request{Method: "PATCH", Target: "/p", User: &identity.User{Name: "bob", Groups: []string{"b"}},
				Body: []byte(`[{"op":"remove","path":"/a"}]`), ContentType: "application/json-patch+json", AuditID: "2",
				Verb: "patch"}, ""},
		{"a patch of some type", log, "3", &Request{
			Method: "PATCH", Target: "/p", User: &identity.User{Name: "alice"}, Body: []byte(`{"a":1}`),
			ContentType: "application/merge-patch+json",
			AuditID:     "3", Verb: "patch",
			Unknown: "an audit event does not say the type of a patch: it is taken for a merge patch",
		}, ""},
		{"a deletion", log, "4", &Request{Method: "DELETE", Target: "/p", User: &identity.User{Name: "alice"},
			AuditID: "4", Verb: "delete"}, ""},
		{"without the object", log, "5", nil, "has no event with a requestObject: the audit Policy must record the level Request or RequestResponse"},
		{"another verb", log, "6", nil, "the event '6' has the verb 'dance', which is none of the API's"},
		{"no such event", log, "7", nil, "has no event with the id '7'"},
		{"no log", "a\nb\n", "", nil, "must have events of audit.k8s.io, one a line"},
	} {
		got, err := Audit(strings.NewReader(test.log), test.id)
		check(t, test.name, got, err, test.want, test.problem)
	}
	if _, err := Audit(strings.NewReader(strings.Repeat("x", maxRecord+1)), ""); err == nil ||
		err.Error() != "cannot be read: bufio.Scanner: token too long" {
		t.Errorf("a line without end: %v", err)
	}
}

// TestEvent: an event has all that is known of a request.
func TestEvent(t *testing.T) {
	const text = `{"kind":"Event","auditID":"1","stage":"ResponseComplete","verb":"update","requestURI":"/p?a=b","responseStatus":{"code":200},
"user":{"username":"alice","uid":"7","groups":["a","b"],"extra":{"scope":["x","y"]}},
"requestObject":{"n":2},"oldObject":{"n":1},"responseObject":{"n":2,"kind":"A"}}`
	want := Request{
		Method: "PUT", Target: "/p?a=b", ContentType: "application/json", Body: []byte(`{"n":2}`),
		Old: []byte(`{"n":1}`), Answer: []byte(`{"n":2,"kind":"A"}`), Code: 200,
		User: &identity.User{Name: "alice", UID: "7", Groups: []string{"a", "b"},
			Extra: map[string][]string{"scope": {"x", "y"}}},
		AuditID: "1", Stage: "ResponseComplete", Verb: "update",
	}
	got, err := Event([]byte(text), document.Limits{})
	check(t, "an update", got, err, &want, "")
	for text, problem := range map[string]string{
		`{"kind":"Policy"}`:                      "it is no audit event",
		`{"kind":"Event","verb":"create"}`:       "the event has no requestURI",
		`[]`:                                     "it is no audit event",
		`{"kind":"Event","requestURI":[],"a":1}`: "the event has no requestURI",
	} {
		got, err := Event([]byte(text), document.Limits{})
		check(t, text, got, err, nil, problem)
	}
	var unreadable *document.Error
	if _, err := Event([]byte(`{"kind":"Event","kind":"Event"}`), document.Limits{}); !errors.As(err, &unreadable) {
		t.Errorf("a key that is there twice: %v", err)
	}
}

func check(t *testing.T, name string, got *Request, err error, want *Request, problem string) {
	t.Helper()
	said := ""
	if err != nil {
		said = err.Error()
	}
	if said != problem || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, %q\nwant %+v, %q", name, got, said, want, problem)
	}
}
