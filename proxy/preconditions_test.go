package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/ratelimit/redistest"
	"github.com/admission-gateway/gateway/internal/storage/plain"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// rfcStore is a plain API with notes. It gives ETags of a kind, and compares preconditions as RFC 9110 says, or not at
// all.
type rfcStore struct {
	tag      func(body []byte) string
	compares bool
	varies   bool // each answer to a GET has another number

	mu      sync.Mutex
	objects map[string][]byte
	reads   int
	came    []string // the lines of the heads of writes that are preconditions
}

// modifiedAt is when each object was modified last.
const modifiedAt = "Mon, 23 Nov 2026 10:00:00 GMT"

func (s *rfcStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	time.Sleep(time.Millisecond) // so that others come between
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method != http.MethodGet {
		for _, name := range []string{"If-Match", "If-None-Match", "If-Unmodified-Since"} {
			if value := r.Header.Get(name); value != "" {
				s.came = append(s.came, name+": "+value)
			}
		}
	}
	now, isThere := s.objects[r.URL.Path]
	if s.compares && !s.holds(r, now, isThere) {
		w.WriteHeader(http.StatusPreconditionFailed)
		return
	}
	code := http.StatusOK
	switch {
	case r.Method == http.MethodPut:
		if s.objects[r.URL.Path] = body; !isThere {
			code = http.StatusCreated
		}
	case !isThere:
		w.WriteHeader(http.StatusNotFound)
		return
	case r.Method == http.MethodPatch:
		s.objects[r.URL.Path] = merged(now, body)
	case r.Method == http.MethodDelete:
		delete(s.objects, r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	shown := s.objects[r.URL.Path]
	if s.varies {
		s.reads++
		shown = fmt.Appendf(nil, `{"reads":%d,%s`, s.reads, shown[1:])
	}
	if tag := s.tag(shown); tag != "" {
		w.Header().Set("ETag", tag)
	}
	w.Header().Set("Last-Modified", modifiedAt)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(shown)
}

func (s *rfcStore) holds(r *http.Request, now []byte, isThere bool) bool {
	names := func(list string, weakly bool) bool {
		for one := range strings.SplitSeq(list, ",") {
			one, tag := strings.TrimSpace(one), s.tag(now)
			if weakly {
				one, tag = strings.TrimPrefix(one, "W/"), strings.TrimPrefix(tag, "W/")
			}
			if isThere && (one == "*" || one == tag && !strings.HasPrefix(one, "W/")) {
				return true
			}
		}
		return false
	}
	if list := r.Header.Get("If-Match"); list != "" {
		if !names(list, false) {
			return false
		}
	} else if since, err := http.ParseTime(r.Header.Get("If-Unmodified-Since")); err == nil {
		if changed, _ := http.ParseTime(modifiedAt); changed.After(since) {
			return false
		}
	}
	list := r.Header.Get("If-None-Match")
	return list == "" || !names(list, true)
}

// preconditioned starts a gateway before a plain API, with a line of its APIResource.
func preconditioned(t *testing.T, s *rfcStore, line string) (*Gateway, string) {
	t.Helper()
	s.objects = map[string][]byte{}
	backend := httptest.NewServer(s)
	t.Cleanup(backend.Close)
	g := gatewayFor(t, policiestest.Write(t, notedAs(line)), strings.TrimPrefix(backend.URL, "http://"), nil)
	g.routes.backends[0].comparisons.Asks = true
	return g, startGateway(t, g)
}

func notedAs(line string) string {
	return "apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: notes}\nspec:\n  version: v1\n" +
		"  names: {plural: notes, kind: Note}\n  paths: {collection: /v1/notes, item: '/v1/notes/{name}'}\n  fields: {name: id}\n  " + line + "\n"
}

// noteAt sends a request about a note, with header lines, and returns the answer and its body.
func noteAt(t testing.TB, address, method, name, body string, lines ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+address+"/v1/notes/"+name, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		r.Header.Add(name, value)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

// TestPreconditions: every write with every precondition, before APIs that give ETags of each kind and compare them or
// not, has the one answer of RFC 9110, and is carried out or not. It is so before it is known what the ETags are worth,
// and after.
func TestPreconditions(t *testing.T) {
	const stored, put = `{"id":"n1","a":1}`, `{"id":"n1","a":2}`
	conditions := []struct {
		name, line string // a star stands for the ETag that was read
		ok         bool
	}{
		{"none", "", true},
		{"If-Match, good", "If-Match: *E*", true},
		{"If-Match, bogus", `If-Match: "bogus"`, false},
		{"If-Match, bogus and made", `If-Match: "gw-AVq9f1zFei3ZS3WQ8ErYCEJzkF7jPsXO"`, false},
		{"If-Match, any", "If-Match: *", true},
		{"If-Match, a list", `If-Match: "bogus", *E*`, true},
		{"If-Match, a bogus list", `If-Match: "bogus", "other"`, false},
		{"If-Match, weak", "If-Match: W/*E*", false},
		{"If-None-Match, any", "If-None-Match: *", false},
		{"If-None-Match, the one stored", "If-None-Match: *E*", false},
		{"If-None-Match, the one stored, weak", "If-None-Match: W/*E*", false},
		{"If-None-Match, another", `If-None-Match: "bogus"`, true},
		{"If-Unmodified-Since, before", "If-Unmodified-Since: Mon, 23 Nov 2026 09:00:00 GMT", false},
		{"If-Unmodified-Since, after", "If-Unmodified-Since: Mon, 23 Nov 2026 11:00:00 GMT", true},
	}
	for kind, tt := range map[string]struct {
		tag      func([]byte) string
		compares bool
	}{
		"no ETags": {noTag, false}, "weak ETags": {expressTag, false}, "weak ETags, compared": {expressTag, true},
		"strong ETags, not compared": {fastifyTag, false}, "strong ETags, compared": {fastifyTag, true},
	} {
		for _, mode := range []string{"Auto", "Gateway"} {
			for _, patch := range []string{"Validated", "Emulated"} {
				t.Run(kind+", "+mode+", "+patch, func(t *testing.T) {
					t.Parallel()
					s := &rfcStore{tag: tt.tag, compares: tt.compares}
					_, address := preconditioned(t, s, "preconditions: "+mode+"\n  backend: {patch: "+patch+"}")
					hold := func(object string) {
						s.mu.Lock()
						defer s.mu.Unlock()
						if delete(s.objects, "/v1/notes/n1"); object != "" {
							s.objects["/v1/notes/n1"] = []byte(object)
						}
					}
					for range testutil.Amount(2, 1) {
						for _, c := range conditions {
							for _, method := range []string{"PUT", "PATCH", "DELETE"} {
								hold(stored)
								answer, _ := noteAt(t, address, "GET", "n1", "")
								tag := answer.Header.Get("ETag")
								if isMade := strings.HasPrefix(tag, `"gw-`); isMade != (mode == "Gateway" ||
									!strings.HasPrefix(tt.tag([]byte("a")), `"`)) || strings.HasPrefix(tag, "W/") {
									t.Fatalf("a GET has the ETag %s", tag)
								}
								body, after, code := put, put, http.StatusOK
								switch method {
								case "PATCH":
									body, after = `{"a":2}`, put
								case "DELETE":
									body, after, code = "", "", http.StatusNoContent
								}
								if !c.ok {
									after, code = stored, http.StatusPreconditionFailed
								}
								var lines []string
								if c.line != "" {
									lines = []string{strings.ReplaceAll(c.line, "*E*", tag)}
								}
								answer, text := noteAt(t, address, method, "n1", body, lines...)
								if answer.StatusCode != code {
									t.Errorf("%s, %s (%s): answered %d %s, want %d", method, c.name, lines,
										answer.StatusCode, text, code)
								}
								s.mu.Lock()
								now := string(s.objects["/v1/notes/n1"])
								s.mu.Unlock()
								if now != after {
									t.Errorf("%s, %s (%s): %s is stored, want %s", method, c.name, lines, now, after)
								}
							}
						}
						for _, c := range []struct {
							method, line string
							code         int
						}{
							{"PUT", "If-Match: *", 412}, {"PUT", `If-Match: "bogus"`, 412},
							{"PUT", "If-None-Match: *", 201}, {"PUT", `If-None-Match: "bogus"`, 201},
							{"PATCH", "If-None-Match: *", 404}, {"DELETE", "If-None-Match: *", 404},
						} {
							hold("")
							body := map[string]string{"PUT": put, "PATCH": `{"a":2}`}[c.method]
							answer, text := noteAt(t, address, c.method, "n1", body, c.line)
							s.mu.Lock()
							_, isThere := s.objects["/v1/notes/n1"]
							s.mu.Unlock()
							if answer.StatusCode != c.code || isThere != (c.code == 201) {
								t.Errorf("nothing is stored, %s %s: answered %d %s, and it is there: %v", c.method,
									c.line, answer.StatusCode, text, isThere)
							}
						}
					}
				})
			}
		}
	}
}

// TestPreconditionsOfReads: what the client has it does not get again, and a HEAD says what a GET says.
func TestPreconditionsOfReads(t *testing.T) {
	s := &rfcStore{tag: expressTag}
	_, address := preconditioned(t, s, "preconditions: Auto")
	s.objects["/v1/notes/n1"] = []byte(`{"id":"n1"}`)
	const tag = `"gw-19NIcwWCONxyvR0YUE74ViO3csNrWeXd"`
	for _, c := range []struct {
		method, line string
		code         int
		body, etag   string
	}{
		{"GET", "", 200, `{"id":"n1"}`, tag},
		{"HEAD", "", 200, "", tag},
		{"GET", "If-None-Match: " + tag, 304, "", tag},
		{"HEAD", "If-None-Match: " + tag, 304, "", tag},
		{"GET", "If-None-Match: W/" + tag, 304, "", tag},
		{"GET", "If-None-Match: *", 304, "", tag},
		{"GET", "If-None-Match: " + expressTag([]byte(`{"id":"n1"}`)), 304, "", tag},
		{"GET", `If-None-Match: "other"`, 200, `{"id":"n1"}`, tag},
		{"GET", "If-Modified-Since: " + modifiedAt, 304, "", tag},
		{"GET", "If-Modified-Since: Mon, 23 Nov 2026 09:00:00 GMT", 200, `{"id":"n1"}`, tag},
		{"GET", "If-Match: " + tag, 200, `{"id":"n1"}`, tag},
		{"GET", `If-Match: "other"`, 412, "*", ""},
		{"GET", "Range: bytes=0-3", 200, `{"id":"n1"}`, tag},
	} {
		var lines []string
		if c.line != "" {
			lines = []string{c.line}
		}
		answer, body := noteAt(t, address, c.method, "n1", "", lines...)
		if answer.StatusCode != c.code || body != c.body && c.body != "*" || answer.Header.Get("ETag") != c.etag {
			t.Errorf("%s %s: answered %d %v %s", c.method, c.line, answer.StatusCode, answer.Header, body)
		}
		if c.code == 200 && answer.ContentLength != int64(len(`{"id":"n1"}`)) {
			t.Errorf("%s %s: the length is %d", c.method, c.line, answer.ContentLength)
		}
		if c.code == 304 && (answer.Header.Get("Content-Type") != "" ||
			answer.Header.Get("Last-Modified") != modifiedAt) {
			t.Errorf("%s %s: the head is %v", c.method, c.line, answer.Header)
		}
	}
}

// TestWrittenETags: a client that names versions gets the one of what it has stored, if it knows what that is.
func TestWrittenETags(t *testing.T) {
	s := &rfcStore{tag: expressTag}
	_, address := preconditioned(t, s, "preconditions: Auto")
	s.objects["/v1/notes/n1"] = []byte(`{"id":"n1"}`)
	read := func() string {
		answer, _ := noteAt(t, address, "GET", "n1", "")
		return answer.Header.Get("ETag")
	}
	tag := read()
	for i, c := range []struct{ method, body string }{
		{"PUT", `{"id":"n1","a":1}`}, {"PATCH", `{"a":2}`}, {"PUT", `{ "a": 3, "id":"n1" }`}, {"PATCH", `{"b":[1]}`},
	} {
		answer, text := noteAt(t, address, c.method, "n1", c.body, "If-Match: "+tag)
		if answer.StatusCode != 200 || answer.Header.Get("ETag") == tag || answer.Header.Get("ETag") != read() {
			t.Errorf("%d: answered %d %s %s", i, answer.StatusCode, answer.Header, text)
		}
		tag = answer.Header.Get("ETag")
	}
	answer, _ := noteAt(t, address, "PUT", "n1", `{"id":"n1"}`)
	if got := answer.Header.Get("ETag"); got != expressTag([]byte(`{"id":"n1"}`)) {
		t.Errorf("a write without preconditions is answered with the ETag %s", got)
	}
}

// TestVaryingReads: an object whose reads differ gets no ETag once that is found out, If-Match fails, and operators
// learn it.
func TestVaryingReads(t *testing.T) {
	s := &rfcStore{tag: noTag, varies: true}
	g, address := preconditioned(t, s, "preconditions: Gateway")
	s.objects["/v1/notes/n1"] = []byte(`{"id":"n1"}`)
	answer, _ := noteAt(t, address, "GET", "n1", "")
	tag := answer.Header.Get("ETag")
	for range 2 {
		answer, text := noteAt(t, address, "PUT", "n1", `{"id":"n1","a":1}`, "If-Match: "+tag)
		if answer.StatusCode != 412 || !strings.Contains(text, "the header 'If-Match' must be '*' or be left out, for the object has no strong ETag") {
			t.Errorf("answered %d %s", answer.StatusCode, text)
		}
	}
	if answer, _ := noteAt(t, address, "GET", "n1", ""); answer.Header.Get("ETag") != "" {
		t.Errorf("a GET has the ETag %s", answer.Header.Get("ETag"))
	}
	if answer, text := noteAt(t, address, "PUT", "n1", `{"id":"n1","a":1}`, "If-Match: *"); answer.StatusCode != 200 {
		t.Errorf("answered %d %s", answer.StatusCode, text)
	}
	if got := g.Upstreams()[0].Versions; len(got) != 1 ||
		got[0] != (plain.Known{Resource: "notes", ETags: "Varying", Since: got[0].Since}) ||
		time.Since(got[0].Since) > time.Hour || !got[0].IsVarying() {
		t.Errorf("/upstreams says %v", got)
	}
	g.routes.backends[0].comparisons.Forget() // as when another server answers
	if got := g.Upstreams()[0].Versions; len(got) != 0 {
		t.Errorf("/upstreams says %v of another server", got)
	}
}

// TestLargeReads: an object that streams gets an ETag if it is within the limit of bodies, and none beyond.
func TestLargeReads(t *testing.T) {
	for size, isTagged := range map[int]bool{100: true, 70_000: true, 3_000_000: true, 3_200_000: false} {
		for _, isChunked := range []bool{false, true} {
			object := `{"id":"n1","a":"` + strings.Repeat("x", size) + `"}`
			backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if !isChunked {
					w.Header().Set("Content-Length", fmt.Sprint(len(object)))
				}
				for rest := object; rest != ""; {
					n := min(len(rest), 40_000)
					_, _ = io.WriteString(w, rest[:n])
					if rest = rest[n:]; isChunked {
						w.(http.Flusher).Flush()
					}
				}
			}))
			g := gatewayFor(t, policiestest.Write(t, notedAs("preconditions: Gateway")),
				strings.TrimPrefix(backend.URL, "http://"), nil)
			address := startGateway(t, g)
			for _, method := range []string{"GET", "HEAD"} {
				answer, body := noteAt(t, address, method, "n1", "")
				if answer.StatusCode != 200 || method == "GET" && body != object ||
					strings.HasPrefix(answer.Header.Get("ETag"), `"gw-`) != isTagged {
					t.Errorf("%s, %d bytes, in chunks %v: answered %d %v with %d bytes", method, size, isChunked,
						answer.StatusCode, answer.Header, len(body))
				}
			}
			backend.Close()
		}
	}
}

// TestAcknowledgedIsStored: what was acknowledged is stored, before APIs that compare nothing. The writers spell the
// object in one way, or in several that the API reads alike.
func TestAcknowledgedIsStored(t *testing.T) {
	for kind, tag := range map[string]func([]byte) string{"no ETags": noTag, "weak ETags": expressTag,
		"strong ETags": fastifyTag} {
		for _, mode := range []string{"Auto", "Gateway"} {
			t.Run(kind+", "+mode, func(t *testing.T) {
				t.Parallel()
				countTogether(t, &rfcStore{tag: tag}, "preconditions: "+mode, "n1", "n1")
			})
		}
	}
	for name, spelled := range map[string][]string{
		"n@1": {"n@1", "n%401"}, "né": {"n%C3%A9", "n%c3%a9"}, "n/1": {"n%2F1", "n%2f1", "%6E%2F1", "n%2F%31"},
		"n%": {"n%25", "%6e%25"},
	} {
		t.Run("spelled "+strings.Join(spelled, " "), func(t *testing.T) {
			t.Parallel()
			countTogether(t, &rfcStore{tag: noTag}, "encodedSlash: Allow", name, spelled...)
		})
	}
}

// countTogether lets 32 writers read a number and store the next one, each in the version that it has read, through two
// gateways that share locks.
func countTogether(t *testing.T, s *rfcStore, line, name string, spelled ...string) {
	const rounds = 3
	writers := testutil.Amount(32, 8)
	object := func(n int64) string { return fmt.Sprintf(`{"id":%q,"n":%d}`, name, n) }
	s.objects = map[string][]byte{"/v1/notes/" + name: []byte(object(0))}
	backend := httptest.NewServer(s)
	defer backend.Close()
	redis := redistest.Start(t)
	dir := policiestest.Write(t, notedAs(line))
	var addresses []string
	for range 2 {
		g := gatewayFor(t, dir, strings.TrimPrefix(backend.URL, "http://"), nil)
		g.locks.Share(newRedisLocks(t, redis.Address))
		addresses = append(addresses, startGateway(t, g))
	}
	var acknowledged atomic.Int64
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			method, as := []string{"PUT", "PATCH"}[i/2%2], spelled[i/4%len(spelled)]
			for done := 0; done < rounds; {
				answer, text := noteAt(t, addresses[i%2], "GET", as, "")
				var note struct{ N int64 }
				if err := json.Unmarshal([]byte(text), &note); err != nil {
					t.Error(err)
					return
				}
				answer, text = noteAt(t, addresses[(i+done)%2], method, as, object(note.N+1),
					"If-Match: "+answer.Header.Get("ETag"))
				switch {
				case answer.StatusCode == http.StatusOK:
					acknowledged.Add(1)
					done++
				case answer.StatusCode != http.StatusPreconditionFailed &&
					answer.StatusCode != http.StatusServiceUnavailable:
					t.Errorf("answered %d %s", answer.StatusCode, text)
					return
				}
			}
		})
	}
	all.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if want := object(acknowledged.Load()); string(s.objects["/v1/notes/"+name]) != want ||
		acknowledged.Load() != int64(writers*rounds) {
		t.Errorf("%s is stored, want %s", s.objects["/v1/notes/"+name], want)
	}
}
