package proxy

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	memory "github.com/admission-gateway/gateway/internal/backend"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// answering is a fault that answers instead of doing anything.
func answering(code int, contentType, body string) memory.Fault {
	return memory.Fault{Answer: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	})}
}

// TestFaultsOfWrites has the backend die before, during and after each step of every kind of write:
// each outcome is a correct answer, each write arrives at most once if it was not refused, and what
// is stored is the object before or the whole of what was admitted (RW-3, ERR-1, ERR-4).
func TestFaultsOfWrites(t *testing.T) {
	const stored = `{"apiVersion":"example.com/v1","kind":"Ledger","metadata":{"name":"l1","namespace":"team-a","uid":"u","creationTimestamp":"2024-05-17T09:30:00Z","generation":1},` +
		`"spec":{"entries":{},"copies":1,"count":0},"status":{"phase":"Ready"}}`
	const path = ledgersPath + "/l1"
	partial := []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nETag: \"9\"\r\nContent-Length: 1000\r\n\r\n{\"metadata\":")
	writes := []struct {
		name, method, path, contentType, body string
		writes                                string // the method that the backend sees
		wants                                 string // that is stored afterwards
	}{
		{"create", "POST", ledgersPath, "application/json", `{"metadata":{"name":"l2"},"spec":{"entries":{"new":1}}}`,
			"POST", `"new":1`},
		{"create with a name made", "POST", ledgersPath, "application/json",
			`{"metadata":{"generateName":"made-"},"spec":{"entries":{"new":1}}}`, "POST", `"new":1`},
		{"update", "PUT", path, "application/json", `{"metadata":{"name":"l1","resourceVersion":"1001"},"spec":{"entries":{"new":1}}}`, "PUT", `"new":1`},
		{"patch", "PATCH", path, "application/merge-patch+json", `{"spec":{"entries":{"new":1}}}`, "PUT", `"new":1`},
		{"update of the status", "PUT", path + "/status", "application/json",
			`{"metadata":{"name":"l1","resourceVersion":"1001"},"status":{"phase":"new"}}`, "PUT", `"phase":"new"`},
		{"patch of the scale", "PATCH", path + "/scale", "application/merge-patch+json", `{"spec":{"replicas":7}}`,
			"PUT", `"copies":7`},
	}
	const everyTime = 1 << 30
	tooSlow := memory.Fault{Delay: time.Hour} // until the client has its answer
	for _, f := range []struct {
		name    string
		onRead  bool
		times   int // how often it happens
		fault   memory.Fault
		code    int // 0 is success
		reason  metav1.StatusReason
		applied bool
		arrives int // how often the write reaches the backend
	}{
		{"the read breaks once", true, 1, memory.Fault{DropBefore: true}, 0, "", true, 1},
		{"the read breaks each time", true, everyTime, memory.Fault{DropBefore: true}, 502, "InternalError", false, 0},
		{"the read is answered in part", true, everyTime, memory.Fault{Raw: partial}, 502, "InternalError", false, 0},
		{"the read is answered with nonsense", true, everyTime, memory.Fault{Raw: []byte("nonsense\r\n\r\n")}, 502,
			"InternalError", false, 0},
		{"the read fails", true, everyTime, answering(500, "text/html", "<title>no</title>"), 500, "InternalError",
			false, 0},
		{"the read is refused", true, everyTime, answering(403, "text/plain", "no"), 403, "Forbidden", false, 0},
		{"the read is redirected", true, everyTime, answering(302, "text/plain", "there"), 502, "InternalError", false,
			0},
		{"the read finds no object", true, everyTime, answering(200, "application/json", `[]`), 502, "InternalError",
			false, 0},
		{"the read finds an object without a version", true, everyTime, answering(200, "application/json", stored), 500,
			"InternalError", false, 0},
		{"the read is too slow", true, 1, memory.Fault{Delay: 1300 * time.Millisecond}, 504, "Timeout", false, 0},
		{"the write breaks before it is done", false, 1, memory.Fault{DropBefore: true}, 504, "Timeout", false, 1},
		{"the write breaks after it is done", false, 1, memory.Fault{DropAfter: true}, 0, "", true, 1},
		{"the write is answered in part", false, 1, memory.Fault{Raw: partial}, 504, "Timeout", false, 1},
		{"the write is answered with nonsense", false, 1, memory.Fault{Raw: []byte("nonsense\r\n\r\n")}, 504, "Timeout",
			false, 1},
		{"the write fails", false, 1, answering(500, "text/plain", "no"), 500, "InternalError", false, 1},
		{"the write comes too often", false, 1, answering(429, "text/plain", "no"), 429, "TooManyRequests", false, 1},
		{"the write is not possible now", false, 1, answering(503, "text/plain", "no"), 503, "ServiceUnavailable",
			false, 1},
		{"the write is too slow", false, 1, tooSlow, 504, "Timeout", true, 1},
	} {
		for _, w := range writes {
			if f.onRead && w.writes == "POST" {
				continue
			}
			t.Run(f.name+"/"+w.name, func(t *testing.T) {
				t.Parallel()
				api := memory.New(memory.Options{})
				upstream, err := api.Start()
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = api.Close() })
				if _, err := api.Put(path, []byte(stored)); err != nil {
					t.Fatal(err)
				}
				c, err := config.Load("", config.Flags{Upstream: "http://" + upstream, Dialect: "Plain"})
				if err != nil {
					t.Fatal(err)
				}
				c.Upstreams[0].ResponseTimeoutSeconds = 1
				set := policiestest.LoadFiles(t, "testdata/policies/ledgers.yaml")
				address := startGateway(t, newTestGateway(t, c, func() *policies.Set { return set }))
				requestStatus(t, "GET", "http://"+address+path, "", "") // so that there is a connection
				var arrived, faults atomic.Int32
				answered := make(chan struct{})
				api.SetFault(func(r *memory.Request) memory.Fault {
					if r.Method == w.writes {
						arrived.Add(1)
					}
					switch {
					case (r.Method == http.MethodGet) != f.onRead || int(faults.Add(1)) > f.times:
						return memory.Fault{}
					case f.fault.Delay == tooSlow.Delay:
						<-answered
						return memory.Fault{}
					}
					return f.fault
				})
				code, status := requestStatus(t, w.method, "http://"+address+w.path, w.contentType, w.body)
				close(answered)
				if f.code == 0 && code/100 != 2 || f.code != 0 &&
					(code != f.code || status.Reason != f.reason || int(status.Code) != code) {
					t.Errorf("answered %d %+v, want %d %s", code, status, f.code, f.reason)
				}
				if f.reason == "Timeout" && f.applied {
					testutil.Eventually(t, "what is slow is done in the end",
						func() bool { return strings.Contains(stock(api, path), w.wants) })
				}
				if n := arrived.Load(); int(n) != f.arrives {
					t.Errorf("the write arrived %d times, want %d", n, f.arrives)
				}
				checkStored(t, api, path, stored, w.wants, f.applied)
			})
		}
	}
}

// checkStored reports whether the stored object is the earlier one, or all of the admitted one.
func checkStored(t *testing.T, api *memory.Server, path, before, wants string, applied bool) {
	t.Helper()
	all := stock(api, path)
	found := strings.Contains(all, wants)
	if found != applied {
		t.Errorf("%s is stored: %v, want %v: %s", wants, found, applied, all)
	}
	if !applied && !strings.Contains(all, before) {
		t.Errorf("stored is %s, which was %s", all, before)
	}
	if strings.Contains(all, "resourceVersion") {
		t.Errorf("a version is stored: %s", all)
	}
}

// stock is everything in the collection of an object.
func stock(api *memory.Server, path string) string {
	api.SetFault(nil)
	var list listing
	api.ServeHTTP(&list, httptest.NewRequest("GET", path[:strings.LastIndexByte(path, '/')], nil))
	return list.String()
}

// listing is a recorder of an answer's body.
type listing struct{ strings.Builder }

func (*listing) Header() http.Header { return http.Header{} }
func (*listing) WriteHeader(int)     {}

func requestStatus(t *testing.T, method, url, contentType, body string) (int, metav1.Status) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var s metav1.Status
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &s); answer.StatusCode >= 400 && (err != nil || s.Kind != "Status") {
		t.Errorf("%d %s is no Status: %v", answer.StatusCode, b, err)
	}
	return answer.StatusCode, s
}

// A backend that refuses the version again and again: the write is admitted on each, and gives up in the end.
func TestWriteRacedAgainAndAgain(t *testing.T) {
	api := memory.New(memory.Options{})
	upstream, err := api.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Close() })
	const path = ledgersPath + "/l1"
	if _, err := api.Put(path, []byte(`{"metadata":{"name":"l1"},"spec":{"entries":{}}}`)); err != nil {
		t.Fatal(err)
	}
	var writes atomic.Int32
	api.SetFault(func(r *memory.Request) memory.Fault {
		if r.Method != http.MethodPut {
			return memory.Fault{}
		}
		writes.Add(1)
		return answering(412, "text/plain", "no")
	})
	gateway := startGateway(t, gatewayFor(t, t.TempDir(), upstream, []string{"policies=ledgers"}))
	for _, c := range []struct {
		method, path, body string
		writes             int32
	}{
		{"PATCH", path, `{"spec":{"entries":{"new":1}}}`, maxAttempts},
		{"PATCH", path + "/status", `{"status":{"phase":"new"}}`, maxAttempts},
		{"PATCH", path + "/scale", `{"spec":{"replicas":2}}`, maxAttempts},
		{"PUT", path, `{"metadata":{"name":"l1","resourceVersion":"1001"},"spec":{"entries":{"new":1}}}`, 1},
		{"PUT", path + "/status", `{"metadata":{"name":"l1","resourceVersion":"1001"},"status":{"phase":"new"}}`, 1},
		{"PUT", path + "/scale", `{"metadata":{"name":"l1"},"spec":{"replicas":2}}`, maxAttempts},
		{"PUT", path + "/scale", `{"metadata":{"name":"l1","resourceVersion":"1001"},"spec":{"replicas":2}}`, 1},
	} {
		writes.Store(0)
		contentType := "application/json"
		if c.method == "PATCH" {
			contentType = "application/merge-patch+json"
		}
		if code, s := requestStatus(t, c.method, "http://"+gateway+c.path, contentType, c.body); code != 409 ||
			s.Reason != "Conflict" || writes.Load() != c.writes {
			t.Errorf("%s %s %s answered %d %+v after %d writes, want 409 after %d", c.method, c.path, c.body, code, s,
				writes.Load(), c.writes)
		}
	}
}
