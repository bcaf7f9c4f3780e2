package proxy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/routing"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// resending serves the API by a route that asks for all the retries there are, and returns the gateway's address.
func resending(t *testing.T, s *resendStore, set *policies.Set, attemptTimeout time.Duration) (*Gateway, string) {
	t.Helper()
	g := retrying(t, s.address, s.isServer, s.mishap == streamRefused, set, attemptTimeout)
	return g, serveTable(t, g)
}

// retrying is a gateway with a route to a backend that asks for all the retries there are.
func retrying(t *testing.T, address string, isServer, isHTTP2 bool, set *policies.Set,
	attemptTimeout time.Duration) *Gateway {
	t.Helper()
	dialect := "Plain"
	if isServer {
		dialect = "Kubernetes"
	}
	c, err := config.Load("", config.Flags{Upstream: "http://" + address, Dialect: dialect})
	if err != nil {
		t.Fatal(err)
	}
	c.Routes = nil
	u := &c.Upstreams[0]
	if u.Retries = (config.Retries{BudgetPercent: 100, MinPerSecond: 10_000}); isHTTP2 {
		u.Protocol = config.HTTP2Protocol
	}
	rule := ruleOf("api", prefix("/"), 0)
	rule.Retry = &routing.Retry{Codes: []int{500, 503}, Attempts: 3, Backoff: time.Millisecond}
	rule.AttemptTimeout = attemptTimeout
	return newTabled(t, c, tableOf([]routing.Backend{{Name: u.Name, Upstream: u.Name}}, rule),
		func() *policies.Set { return set })
}

// resent is a write of a client, and what may be known of it.
type resent struct {
	name, method, path, contentType, body string
	// isNew says that it creates an object, of the name in its answer if it names none.
	isNew bool
	// code is the answer if the write was carried out, shows what is stored then.
	code  int
	shows string
	// isUncertain says that no read can show whether it was this write that was carried out.
	isUncertain bool
	// annotations are further ones of the definition.
	annotations string
	match       string // the client's If-Match
}

const (
	patchJSON  = "application/json-patch+json"
	patchMerge = "application/merge-patch+json"
)

// resentNotes is the definition of bare objects; %s is more of it.
const resentNotes = `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: notes.example.com}
spec:
  group: example.com
  version: v1
  names: {plural: notes, kind: Note}
  paths: {collection: /v1/notes, item: '/v1/notes/{name}'}
  %s
`

// resents are the writes of TestResends for a dialect. An ordinary API keeps no metadata and no status; the version of
// its object is 1008 in the gateway's words, and 8 in those of an API server.
func resents(isServer bool) []resent {
	const l1, jsonType = ledgersPath + "/l1", "application/json"
	const spec = `"spec":{"entries":{"new":1}}`
	named := func(version string) string {
		return `{"apiVersion":"example.com/v1","kind":"Ledger","metadata":{"name":"l1","namespace":"team-a"` + version + `},` + spec + `}`
	}
	create := `{"apiVersion":"example.com/v1","kind":"Ledger","metadata":{"name":"l2"},` + spec + `}`
	generate := `{"apiVersion":"example.com/v1","kind":"Ledger","metadata":{"generateName":"made-"},` + spec + `}`
	const tested = `[{"op":"test","path":"/spec/count","value":0},{"op":"add","path":"/spec/entries/new","value":1}]`
	all := []resent{
		{"POST with a name", "POST", ledgersPath, jsonType, create, true, 201, `"new":1`, isServer, "", ""},
		{"POST with generateName", "POST", ledgersPath, jsonType, generate, true, 201, `"new":1`, isServer, "", ""},
		{"merge PATCH", "PATCH", l1, patchMerge, `{"spec":{"entries":{"new":1}}}`, false, 200, `"new":1`, false, "",
			""},
		{"JSON Patch", "PATCH", l1, patchJSON, `[{"op":"add","path":"/spec/entries/new","value":1}]`, false, 200,
			`"new":1`, isServer, "", ""},
		{"JSON Patch with a test", "PATCH", l1, patchJSON, tested, false, 200, `"new":1`, isServer, "", ""},
		{"DELETE", "DELETE", l1, "", "", false, 200, "", false, "", ""},
	}
	if isServer {
		return append(all, resent{"PUT of a version", "PUT", l1, jsonType, named(`,"resourceVersion":"8"`), false, 200,
			`"new":1`, true, "", ""})
	}
	const emulated = ", backend.admission-gateway.io/existing-names: Emulated"
	const bare, notes, n1 = `{"id":"n2","new":1}`, "/v1/notes", "/v1/notes/n1"
	const append1 = `[{"op":"test","path":"/log","value":[]},{"op":"add","path":"/log/-","value":"new"}]`
	return append(all,
		resent{"PUT of a bare object", "PUT", n1, jsonType, `{"id":"n1","new":1}`, false, 200, `"new":1`, false, "",
			""},
		resent{"PUT of a version of a bare object", "PUT", n1, jsonType, `{"id":"n1","new":1}`, false, 200, `"new":1`,
			false, "", `"9"`},
		resent{"PUT that creates a bare object", "PUT", notes + "/n2", jsonType, bare, true, 201, `"new":1`, false, "",
			""},
		resent{"POST of a bare object", "POST", notes, jsonType, bare, true, 201, `"new":1`, true, "", ""},
		resent{"merge PATCH of a bare object", "PATCH", n1, patchMerge, `{"new":1}`, false, 200, `"new":1`, false, "",
			""},
		resent{"JSON Patch of a bare object", "PATCH", n1, patchJSON, append1, false, 200, `["new"]`, false, "", ""},
		resent{"DELETE of a bare object", "DELETE", n1, "", "", false, 204, "", false, "", ""},
		resent{"PUT of a version", "PUT", l1, jsonType, named(`,"resourceVersion":"1008"`), false, 200, `"new":1`,
			false, "", ""},
		resent{"POST with a name, existing names emulated", "POST", ledgersPath, jsonType, create, true, 201, `"new":1`,
			false, emulated, ""},
		resent{"POST with generateName, existing names emulated", "POST", ledgersPath, jsonType, generate, true, 201,
			`"new":1`, false, emulated, ""},
		resent{"PATCH of the scale with a test", "PATCH", l1 + "/scale", patchJSON,
			`[{"op":"test","path":"/spec/replicas","value":1},{"op":"replace","path":"/spec/replicas","value":7}]`, false, 200, `"copies":7`, false, "", ""},
		resent{"PUT of the scale", "PUT", l1 + "/scale", jsonType,
			`{"metadata":{"name":"l1","namespace":"team-a"},"spec":{"replicas":7}}`, false, 200, `"copies":7`, false,
			"", ""},
		resent{"merge PATCH of the status", "PATCH", l1 + "/status", patchMerge, `{"status":{"phase":"New"}}`, false,
			200, `"phase":"New"`, false, "", ""},
	)
}

const resentLedger = `{"apiVersion":"example.com/v1","kind":"Ledger","metadata":{"creationTimestamp":"2024-05-17T09:30:00Z","generation":1,"name":"l1","namespace":"team-a","uid":"u"},` +
	`"spec":{"copies":1,"count":0,"entries":{}},"status":{"phase":"Ready"}}`

// TestResends: each kind of write, of each dialect, through a route with retries, meets each fault that leaves it open
// whether it was carried out. It reaches the backend once, is carried out at most once, and its answer is the truth: a
// success if a read shows the object that it wrote, else 504 without advice to send it again. What the backend says it
// has not processed is sent again, whatever its method.
func TestResends(t *testing.T) {
	for _, isServer := range []bool{false, true} {
		for _, m := range []mishap{"", droppedAfter, cutAfter, failedAfter, refusedAfter, storedLate, droppedBefore,
			streamRefused} {
			for _, w := range resents(isServer) {
				t.Run(fmt.Sprint(map[bool]string{false: "Plain", true: "Kubernetes"}[isServer], "/",
					cmp.Or(string(m), "nothing"), "/", w.name), func(t *testing.T) {
					t.Parallel()
					checkResend(t, isServer, m, &w)
				})
			}
		}
	}
}

func checkResend(t *testing.T, isServer bool, m mishap, w *resent) {
	s := startResendStore(t, isServer, m)
	s.put(ledgersPath+"/l1", resentLedger)
	timeout := time.Duration(0)
	if m == storedLate {
		timeout = 500 * time.Millisecond
	}
	const notes = "fields: {name: id}\n  backend: {patch: Emulated}"
	s.put("/v1/notes/n1", `{"id":"n1","log":[]}`)
	set := policiestest.LoadFiles(t, annotatedLedgers(t, `resend: ""`+w.annotations),
		policiestest.Write(t, fmt.Sprintf(resentNotes, notes)))
	_, address := resending(t, s, set, timeout)
	answer, text := writeAt(t, address, w)
	code := w.code
	switch {
	case m == failedAfter && w.isUncertain:
		code = 500
	case m == refusedAfter && w.isUncertain:
		code = 503
	case m == "", m == streamRefused:
	case w.isUncertain, m == storedLate, m == droppedBefore:
		code = 504
	case w.method == "PUT":
		code = 200 // if nothing was read before the write, nothing says that it created the object
	}
	if answer.StatusCode != code {
		t.Errorf("answered %d %s, want %d", answer.StatusCode, text, code)
	}
	if code == 504 {
		checkUnknown(t, answer, text)
	}
	if m == storedLate {
		close(s.release)
		testutil.Becomes(t, 1, func() int { _, n := s.counts(); return n })
	}
	wantSent, wantApplied := 1, 1
	switch m {
	case streamRefused:
		wantSent = 2
	case droppedBefore:
		wantApplied = 0
	}
	if sent, applied := s.counts(); len(sent) != wantSent || applied != wantApplied {
		t.Errorf("the backend got %q and carried out %d, want %d and %d", sent, applied, wantSent, wantApplied)
	}
	collection, path := "/v1/notes", "/v1/notes/n1"
	if strings.HasPrefix(w.path, ledgersPath) {
		collection, path = ledgersPath, ledgersPath+"/l1"
	}
	if w.isNew {
		names := s.names(collection)
		if len(names) != 1+wantApplied {
			t.Errorf("the objects %q are stored", names)
		}
		slices.Sort(names)
		path = collection + "/" + names[len(names)-1]
	}
	switch now := s.get(path); {
	case wantApplied == 0:
	case w.shows == "" && now != "", w.shows != "" && !strings.Contains(now, w.shows):
		t.Errorf("%s is stored", now)
	case code < 300 && w.isNew && !strings.Contains(text, path[len(collection)+1:]):
		t.Errorf("%s is answered, and not the object of the path %s", text, path)
	}
}

// checkUnknown: the answer says that the outcome is not known, and no client library sends the request again because of
// it.
func checkUnknown(t *testing.T, answer *http.Response, text string) {
	t.Helper()
	var s metav1.Status
	if err := json.Unmarshal([]byte(text), &s); err != nil || s.Reason != metav1.StatusReasonTimeout ||
		!strings.Contains(s.Message, "is not known") {
		t.Errorf("the answer does not say that the outcome is unknown: %s", text)
	}
	if after := answer.Header.Get("Retry-After"); after != "" || s.Details != nil && s.Details.RetryAfterSeconds != 0 {
		t.Errorf("the client is told to send the request again: %q, %s", after, text)
	}
}

// writeAt sends a write. An answer that is not whole is an error, and has no code.
func writeAt(t *testing.T, address string, w *resent) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(w.method, "http://"+address+w.path, strings.NewReader(w.body))
	if err != nil {
		t.Error(err)
		return &http.Response{}, ""
	}
	if w.contentType != "" {
		r.Header.Set("Content-Type", w.contentType)
	}
	if w.match != "" {
		r.Header.Set("If-Match", w.match)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Error(err)
		return &http.Response{}, ""
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Error(err)
	}
	return answer, string(text)
}

// TestSlowWriteIsSentOnce: a PATCH of an ordinary API that takes twice as long as the route gives an attempt is carried
// out once.
func TestSlowWriteIsSentOnce(t *testing.T) {
	s := startResendStore(t, false, storedLate)
	s.put("/v1/notes/n1", `{"id":"n1","log":[]}`)
	set := policiestest.Load(t, fmt.Sprintf(resentNotes, "fields: {name: id}\n  backend: {patch: Emulated}"))
	_, address := resending(t, s, set, 300*time.Millisecond)
	go func() {
		time.Sleep(600 * time.Millisecond)
		close(s.release)
	}()
	w := resent{method: "PATCH", path: "/v1/notes/n1", contentType: patchJSON,
		body: `[{"op":"add","path":"/log/-","value":"t1"}]`}
	if answer, text := writeAt(t, address, &w); answer.StatusCode != 504 {
		t.Errorf("answered %d %s", answer.StatusCode, text)
	} else {
		checkUnknown(t, answer, text)
	}
	testutil.Becomes(t, `{"id":"n1","log":["t1"]}`, func() string { return s.get("/v1/notes/n1") })
	if sent, applied := s.counts(); applied != 1 || len(sent) != 1 {
		t.Errorf("the backend got %q and carried out %d", sent, applied)
	}
}

// TestAcknowledgedUpdateStays: a write is carried out and its answer is lost; another client reads it, and writes the
// object again past the gateway. No second attempt of the first write undoes that.
func TestAcknowledgedUpdateStays(t *testing.T) {
	for name, w := range map[string]resent{
		"merge PATCH": {method: "PATCH", contentType: patchMerge, body: `{"n":1}`},
		"PUT":         {method: "PUT", contentType: "application/json", body: `{"id":"n1","n":1}`},
		"DELETE":      {method: "DELETE"},
	} {
		for _, m := range []mishap{droppedAfter, cutAfter, failedAfter} {
			t.Run(name+", "+string(m), func(t *testing.T) {
				s := startResendStore(t, false, m)
				s.put("/v1/notes/n1", `{"id":"n1","n":0}`)
				set := policiestest.Load(t,
					fmt.Sprintf(resentNotes, "fields: {name: id}\n  backend: {patch: Emulated}"))
				const acknowledged = `{"id":"n1","n":99}`
				s.between = func() {
					s.between = nil
					s.put("/v1/notes/n1", acknowledged)
				}
				_, address := resending(t, s, set, 0)
				w.path = "/v1/notes/n1"
				want := map[mishap]int{droppedAfter: 504, cutAfter: 504, failedAfter: 500}[m]
				if name == "DELETE" && m == cutAfter {
					t.Skip("its answer has no body")
				}
				if answer, text := writeAt(t, address, &w); answer.StatusCode != want {
					t.Errorf("answered %d %s, want %d", answer.StatusCode, text, want)
				}
				if sent, applied := s.counts(); applied != 1 || len(sent) != 1 ||
					s.get("/v1/notes/n1") != acknowledged {
					t.Errorf("the backend got %q, carried out %d, and has %s", sent, applied, s.get("/v1/notes/n1"))
				}
			})
		}
	}
}

// TestLateWriteKeepsItsLock: a write to a backend that compares no versions is carried out after its client was
// answered 504. Up to then others are refused, and none of them is undone.
func TestLateWriteKeepsItsLock(t *testing.T) {
	for _, tag := range []func([]byte) string{noTag, expressTag, fastifyTag} {
		for _, method := range []string{"PUT", "PATCH"} {
			t.Run(tag(nil)+" "+method, func(t *testing.T) {
				t.Parallel()
				checkLateWrite(t, tag, method)
			})
		}
	}
}

func checkLateWrite(t *testing.T, tag func([]byte) string, method string) {
	store := &storeOf{tag: tag}
	store.put([]byte(`{"id":"n1"}`))
	release, arrived := make(chan struct{}), make(chan struct{})
	var isLate sync.Once
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			isLate.Do(func() {
				close(arrived)
				<-release
			})
		}
		store.ServeHTTP(w, r)
	}))
	t.Cleanup(backend.Close)
	c, err := config.Load("", config.Flags{Upstream: backend.URL, Dialect: "Plain"})
	if err != nil {
		t.Fatal(err)
	}
	c.Upstreams[0].ResponseTimeoutSeconds = 1
	set := policiestest.Load(t, fmt.Sprintf(resentNotes, "fields: {name: id}\n  backend: {patch: Emulated}"))
	address := startGateway(t, newTestGateway(t, c, func() *policies.Set { return set }))
	first := resent{method: method, path: "/v1/notes/n1", contentType: patchMerge, body: `{"first":1}`}
	if method == "PUT" {
		first.contentType, first.body = "application/json", `{"id":"n1","first":1}`
	}
	answer, text := writeAt(t, address, &first)
	if answer.StatusCode != 504 {
		t.Fatalf("answered %d %s", answer.StatusCode, text)
	}
	checkUnknown(t, answer, text)
	<-arrived
	// The lock is kept: others wait for it, and are refused. With the lock let go they would be answered 200.
	second := resent{method: "PATCH", path: "/v1/notes/n1", contentType: patchMerge, body: `{"second":1}`}
	if answer, text := writeAt(t, address, &second); answer.StatusCode != 503 ||
		answer.Header.Get("Retry-After") == "" {
		t.Errorf("while the first write is late, another one is answered %d %s", answer.StatusCode, text)
	}
	close(release)
	if answer, text := writeAt(t, address, &second); answer.StatusCode != 200 {
		t.Errorf("afterwards the other one is answered %d %s", answer.StatusCode, text)
	}
	if got := store.stored(); !strings.Contains(got, "first") || !strings.Contains(got, "second") {
		t.Errorf("%s is stored", got)
	}
}

// TestUndescribedResends: requests that no file describes are sent again as their own method allows. A refusal of one
// that was repeated says nothing.
func TestUndescribedResends(t *testing.T) {
	var mu sync.Mutex
	arrived := map[string]int{}
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		arrived[q.Get("id")]++
		code := q.Get("first")
		if arrived[q.Get("id")] > 1 {
			code = q.Get("then")
		}
		mu.Unlock()
		if code == "drop" {
			panic(http.ErrAbortHandler)
		}
		n, _ := strconv.Atoi(code)
		w.WriteHeader(n)
	}))
	t.Cleanup(backend.Close)
	set := noPolicies()
	address := serveTable(t, retrying(t, backend.Listener.Addr().String(), false, false, set, 0))
	for i, tt := range []struct {
		method, line, first, then string
		code, sent                int
	}{
		{"GET", "", "drop", "404", 404, 2},
		{"GET", `If-None-Match: "1"`, "drop", "200", 200, 2},
		{"PUT", "", "drop", "200", 200, 2},
		{"PUT", "", "500", "200", 200, 2},
		{"PUT", "", "drop", "409", 504, 2},
		{"PUT", `If-Match: "1"`, "drop", "412", 502, 1},
		{"PUT", `If-Match: "1"`, "500", "412", 500, 1},
		{"PUT", "If-None-Match: *", "503", "412", 503, 1},
		{"PUT", "If-Unmodified-Since: Sat, 29 Oct 1994 19:43:31 GMT", "drop", "412", 502, 1},
		{"DELETE", "", "drop", "404", 504, 2},
		{"DELETE", "", "500", "410", 504, 2},
		{"DELETE", "", "drop", "204", 204, 2},
		{"DELETE", "", "404", "204", 404, 1},
		{"POST", "", "drop", "200", 502, 1},
		{"POST", "", "500", "200", 200, 2}, // by the word of the route's author
		{"POST", "", "500", "409", 504, 2},
		{"PATCH", "", "drop", "200", 502, 1},
		{"PATCH", `If-Match: "1"`, "500", "412", 500, 1},
	} {
		r, err := http.NewRequest(tt.method, fmt.Sprintf("http://%s/free?id=%d&first=%s&then=%s", address, i, tt.first,
			tt.then), strings.NewReader("a"))
		if err != nil {
			t.Fatal(err)
		}
		if name, value, found := strings.Cut(tt.line, ": "); found {
			r.Header.Set(name, value)
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != tt.code {
			t.Errorf("%+v is answered %d %s", tt, answer.StatusCode, text)
		}
		if tt.code == 504 {
			checkUnknown(t, answer, string(text))
		}
		mu.Lock()
		if n := arrived[fmt.Sprint(i)]; n != tt.sent {
			t.Errorf("%+v is sent %d times", tt, n)
		}
		mu.Unlock()
	}
}
