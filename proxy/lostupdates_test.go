package proxy

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/presence"
	"github.com/admission-gateway/gateway/internal/ratelimit/redistest"
	"github.com/admission-gateway/gateway/internal/ratelimit/shared"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/storage/plain"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// storeOf is a plain API that keeps objects as they are put. tag makes the ETag of an answer, as
// middleware does; compares says whether it looks at If-Match, by the strong comparison.
type storeOf struct {
	tag      func(body []byte) string
	compares bool

	mu      sync.Mutex
	objects map[string][]byte
	matches []string // the If-Match headers that came
}

// expressTag is the weak ETag of Express, fastifyTag the strong one of @fastify/etag.
func expressTag(b []byte) string { return "W/" + fastifyTag(b) }
func fastifyTag(b []byte) string {
	sum := sha256.Sum256(b)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}
func noTag([]byte) string       { return "" }
func (s *storeOf) put(b []byte) { s.objects = map[string][]byte{"/v1/notes/n1": b} }
func (s *storeOf) stored() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.objects["/v1/notes/n1"])
}

func (s *storeOf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	time.Sleep(time.Millisecond) // so that others come between
	s.mu.Lock()
	defer s.mu.Unlock()
	if match := r.Header.Get("If-Match"); match != "" {
		s.matches = append(s.matches, match)
		if current := s.tag(s.objects[r.URL.Path]); s.compares && (match != current || strings.HasPrefix(match, "W/")) {
			w.WriteHeader(http.StatusPreconditionFailed)
			return
		}
	}
	switch r.Method {
	case http.MethodPut:
		s.objects[r.URL.Path] = body
	case http.MethodPatch:
		s.objects[r.URL.Path] = merged(s.objects[r.URL.Path], body)
	}
	w.Header().Set("Content-Type", "application/json")
	if tag := s.tag(s.objects[r.URL.Path]); tag != "" {
		w.Header().Set("ETag", tag)
	}
	_, _ = w.Write(s.objects[r.URL.Path])
}

// merged returns an object with a merge patch applied.
func merged(object, patch []byte) []byte {
	to, err := document.Parse(object, document.Limits{})
	if err != nil {
		return object
	}
	defer to.Release()
	by, err := document.Parse(patch, document.Limits{})
	if err != nil {
		return object
	}
	defer by.Release()
	to.MergePatch(by.Root())
	return to.AppendTo(nil)
}

// TestNoUpdateIsLost lets 20 clients patch 20 fields of one object at the same time: what each
// answer says is stored is stored (RW-3). A PATCH of the backend's own keeps them apart, through
// several gateways too. A PUT in its place depends on the one gateway, unless the backend compares
// ETags.
func TestNoUpdateIsLost(t *testing.T) {
	const patches = 20
	for _, tt := range []struct {
		name     string
		tag      func([]byte) string
		compares bool
		more     string // of the file
		pinned   bool   // the writes have an If-Match
		gateways int
		shared   bool // they lock objects in Redis
	}{
		{"Express: weak ETags, never compared", expressTag, false,
			"concurrency: BestEffort, backend: {patch: Emulated}", false, 1, false},
		{"weak ETags, compared strictly", expressTag, true, "concurrency: BestEffort, backend: {patch: Emulated}",
			false, 1, false},
		{"Fastify: strong ETags, never compared", fastifyTag, false,
			"concurrency: Optimistic, backend: {patch: Emulated}", true, 1, false},
		{"strong ETags, never compared, at best effort", fastifyTag, false,
			"concurrency: BestEffort, backend: {patch: Emulated}", true, 1, false},
		{"strong ETags, compared", fastifyTag, true, "concurrency: Optimistic, backend: {patch: Emulated}", true, 2,
			false},
		{"no ETags", noTag, false, "concurrency: BestEffort, backend: {patch: Emulated}", false, 1, false},
		{"weak ETags that the file takes for strong ones", expressTag, false,
			"concurrency: Optimistic, backend: {patch: Emulated}", false, 1, false},
		{"no ETags though the file takes them for granted", noTag, false,
			"concurrency: Optimistic, backend: {patch: Emulated}", false, 1, false},
		{"PUT: weak ETags that the file takes for strong ones, through two gateways that share locks", expressTag, true, "concurrency: Optimistic, backend: {patch: Emulated}", false, 2, true},
		{"PATCH: weak ETags, never compared", expressTag, false, "concurrency: Optimistic", false, 1, false},
		{"PATCH: weak ETags, never compared, through two gateways", expressTag, false, "concurrency: Optimistic", false,
			2, false},
		{"PATCH: weak ETags, compared strictly", expressTag, true, "concurrency: Optimistic", false, 1, false},
		{"PATCH: weak ETags, compared strictly, through two gateways", expressTag, true, "concurrency: Optimistic",
			false, 2, false},
		{"PATCH: strong ETags, never compared", fastifyTag, false, "concurrency: Optimistic", true, 1, false},
		{"PATCH: strong ETags, never compared, through two gateways", fastifyTag, false, "concurrency: Optimistic",
			true, 2, false},
		{"PATCH: strong ETags, compared", fastifyTag, true, "concurrency: Optimistic", true, 1, false},
		{"PATCH: strong ETags, compared, through two gateways", fastifyTag, true, "concurrency: Optimistic", true, 2,
			false},
		{"PATCH: no ETags", noTag, false, "concurrency: Optimistic", false, 1, false},
		{"PATCH: no ETags, through two gateways", noTag, false, "concurrency: Optimistic", false, 2, false},
		{"PUT: weak ETags, never compared, through two gateways that share locks", expressTag, false,
			"concurrency: BestEffort, backend: {patch: Emulated}", false, 2, true},
		{"PUT: strong ETags, never compared, through two gateways that share locks", fastifyTag, false,
			"concurrency: BestEffort, backend: {patch: Emulated}", true, 2, true},
		{"PUT: no ETags, through two gateways that share locks", noTag, false,
			"concurrency: BestEffort, backend: {patch: Emulated}", false, 2, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := &storeOf{tag: tt.tag, compares: tt.compares}
			store.put([]byte(`{"id":"n1"}`))
			backend := httptest.NewServer(store)
			defer backend.Close()
			file := "apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: notes}\nspec:\n  version: v1\n" +
				"  names: {plural: notes, kind: Note}\n  paths: {collection: /v1/notes, item: '/v1/notes/{name}'}\n  fields: {name: id}\n  " +
				strings.ReplaceAll(tt.more, ", b", "\n  b") + "\n  schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {id: {type: string}}}}\n"
			dir := policiestest.Write(t, file)
			var addresses []string
			var redis *redistest.Server
			if tt.shared {
				redis = redistest.Start(t)
			}
			for range tt.gateways {
				g := gatewayFor(t, dir, strings.TrimPrefix(backend.URL, "http://"), nil)
				if tt.shared {
					g.locks.Share(newRedisLocks(t, redis.Address))
				}
				addresses = append(addresses, startGateway(t, g))
			}
			var all sync.WaitGroup
			for i := range patches {
				all.Go(func() {
					if code, body := patchNote(t, addresses[i%len(addresses)], i); code != 200 {
						t.Errorf("patch %d is answered %d %s", i, code, body)
					}
				})
			}
			all.Wait()
			d, err := document.Parse([]byte(store.stored()), document.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Release()
			for i := range patches {
				if _, found := d.Root().Get(fmt.Sprintf("f%d", i)); !found {
					t.Errorf("patch %d is lost: %s is stored", i, store.stored())
				}
			}
			if (len(store.matches) > 0) != tt.pinned {
				t.Errorf("the backend got If-Match %q", store.matches)
			}
		})
	}
}

// TestLateWritesLoseNoUpdate lets 32 writers count in one field each of one object, at an API that compares no versions
// and that carries some writes out when their time has passed. What was acknowledged is stored in the end.
func TestLateWritesLoseNoUpdate(t *testing.T) {
	const writers, rounds = 32, 5
	for name, tag := range map[string]func([]byte) string{"no ETags": noTag, "weak ETags": expressTag,
		"ETags of middleware": fastifyTag} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &storeOf{tag: tag}
			store.put([]byte(`{"id":"n1"}`))
			var arrived atomic.Int32
			backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut && arrived.Add(1)%31 == 7 {
					time.Sleep(historyLate)
				}
				store.ServeHTTP(w, r)
			}))
			t.Cleanup(backend.Close)
			set := policiestest.Load(t, fmt.Sprintf(resentNotes, "fields: {name: id}\n  backend: {patch: Emulated}"))
			g := retrying(t, backend.Listener.Addr().String(), false, false, set, historyTimeout)
			g.routes.backends[0].comparisons.Asks = true
			address := serveTable(t, g)
			var late atomic.Int32
			var acknowledged, sent [writers]int
			var all sync.WaitGroup
			for i := range writers {
				all.Go(func() {
					w := resent{method: "PATCH", path: "/v1/notes/n1", contentType: patchMerge}
					for sent[i] < rounds {
						w.body = fmt.Sprintf(`{"f%d":%d}`, i, sent[i]+1)
						switch answer, text := writeAt(t, address, &w); answer.StatusCode {
						case http.StatusOK:
							sent[i]++
							acknowledged[i] = sent[i]
						case http.StatusGatewayTimeout:
							sent[i]++
							late.Add(1)
						case http.StatusServiceUnavailable:
							if answer.Header.Get("Retry-After") == "" {
								t.Errorf("answered 503 without Retry-After: %s", text)
							}
						default:
							t.Errorf("answered %d %s", answer.StatusCode, text)
							return
						}
					}
				})
			}
			all.Wait()
			backend.Close() // which waits for what it carries out
			var stored map[string]any
			if err := json.Unmarshal([]byte(store.stored()), &stored); err != nil {
				t.Fatal(err)
			}
			for i := range writers {
				if n, _ := stored[fmt.Sprint("f", i)].(float64); int(n) < acknowledged[i] || int(n) > sent[i] {
					t.Errorf("of writer %d %v is stored, after %d was acknowledged and %d sent", i, n, acknowledged[i],
						sent[i])
				}
			}
			if late.Load() == 0 {
				t.Error("no write was late")
			}
		})
	}
}

// redisLocks are locks in Redis.
type redisLocks struct{ *shared.Store }

func newRedisLocks(t *testing.T, address string) redisLocks {
	t.Helper()
	s, err := shared.Open(shared.Options{
		Mode: shared.Single, Addresses: []string{address}, Prefix: "t:", Timeout: time.Second,
		ConnectTimeout: time.Second, Connections: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return redisLocks{s}
}

func (r redisLocks) Lock(object string, wait storage.Wait) (storage.SharedLock, error) {
	l, err := r.Store.Lock(object, time.Until(wait.By), wait.Client)
	switch {
	case errors.Is(err, shared.ErrLocked), errors.Is(err, presence.ErrLeft):
		return nil, err
	case err != nil:
		return nil, &storage.LocksAwayError{Err: err}
	}
	return l, nil
}

// lostLock is a lock that another gateway gets before the write is sent.
type lostLock struct{}

func (lostLock) Lock(string, storage.Wait) (storage.SharedLock, error) { return lostLock{}, nil }
func (lostLock) IsValid() bool                                         { return false }
func (lostLock) Release()                                              {}

// takenLock is the lock of an object that another gateway has for longer than any write waits.
type takenLock struct{ lostLock }

func (takenLock) Lock(string, storage.Wait) (storage.SharedLock, error) {
	return nil, shared.ErrLocked
}

// TestWritesWithoutSharedLocks: without the lock that gateways share, a write is refused that depends on what is
// stored. One that takes the lock for others alone is carried out if nothing is known of other gateways, unless the
// file asks for the comparison. If the backend compares preconditions, writes that read nothing take no lock.
func TestWritesWithoutSharedLocks(t *testing.T) {
	server := redistest.Start(t)
	away := newRedisLocks(t, server.Address)
	server.Kill()
	const (
		cannot = "503 the lock in Redis cannot be taken"
		taken  = "503 another gateway is writing the object"
		lost   = "503 the lock of its object was lost"
	)
	methods := [...]string{"PUT", "PATCH", "DELETE"}
	all := func(answer string) [3]string { return [...]string{answer, answer, answer} }
	for name, tt := range map[string]struct {
		locker       storage.Locker
		mode         string
		plain, named [len(methods)]string // the answers to writes that name no version, and to those that do
	}{
		"away, Auto":     {away, "Auto", [...]string{"200", cannot, "204"}, all(cannot)},
		"away, Gateway":  {away, "Gateway", all(cannot), all(cannot)},
		"away, Backend":  {away, "Backend", [...]string{"200", cannot, "204"}, [...]string{"200", cannot, "204"}},
		"taken, Auto":    {takenLock{}, "Auto", all(taken), all(taken)},
		"taken, Gateway": {takenLock{}, "Gateway", all(taken), all(taken)},
		"taken, Backend": {takenLock{}, "Backend", [...]string{"200", taken, "204"}, [...]string{"200", taken, "204"}},
		"lost, Auto":     {lostLock{}, "Auto", all(lost), all(lost)},
		"lost, Gateway":  {lostLock{}, "Gateway", all(lost), all(lost)},
		"lost, Backend":  {lostLock{}, "Backend", [...]string{"200", lost, "204"}, [...]string{"200", lost, "204"}},
	} {
		t.Run(name, func(t *testing.T) {
			const stored = `{"id":"n1"}`
			s := &rfcStore{tag: noTag}
			g, address := preconditioned(t, s, "preconditions: "+tt.mode)
			g.locks.Share(tt.locker)
			for i, method := range methods {
				body := [...]string{`{"id":"n1","a":1}`, `{"a":1}`, ""}[i]
				for line, want := range map[string]string{
					"": tt.plain[i], "If-Match: *E*": tt.named[i], "If-Match: *": tt.named[i],
					`If-None-Match: "other"`: tt.named[i],
				} {
					s.mu.Lock()
					s.objects["/v1/notes/n1"] = []byte(stored)
					s.mu.Unlock()
					var lines []string
					if line != "" {
						read, _ := noteAt(t, address, "GET", "n1", "")
						lines = []string{strings.ReplaceAll(line, "*E*", cmp.Or(read.Header.Get("ETag"), "*"))}
					}
					answer, text := noteAt(t, address, method, "n1", body, lines...)
					code, words, _ := strings.Cut(want, " ")
					isRefused := code == "503"
					if fmt.Sprint(answer.StatusCode) != code || !strings.Contains(text, words) ||
						isRefused != (answer.Header.Get("Retry-After") == "1") {
						t.Errorf("%s %s: answered %d %v %s, want %s", method, line, answer.StatusCode, answer.Header,
							text, want)
					}
					s.mu.Lock()
					if now := string(s.objects["/v1/notes/n1"]); isRefused != (now == stored) {
						t.Errorf("%s %s: %s is stored", method, line, now)
					}
					s.mu.Unlock()
				}
			}
		})
	}
}

// TestVersionsFound: the first write of a resource finds out what the backend's ETags are worth, which the log and
// /upstreams say. The object is stored as it was asked for, once.
func TestVersionsFound(t *testing.T) {
	for name, tt := range map[string]struct {
		tag      func([]byte) string
		compares bool
		backend  string
		want     string
		log      string
		matches  int
	}{
		"compared":        {fastifyTag, true, "{patch: Emulated}", "Compared", "the backend compares If-Match", 2},
		"compared, PATCH": {fastifyTag, true, "{patch: Validated}", "Compared", "the backend compares If-Match", 2},
		"made by middleware": {fastifyTag, false, "{patch: Emulated}", "NotCompared",
			"does not compare If-Match: only the gateway's locks", 1},
		"weak, of middleware": {expressTag, false, "{patch: Emulated}", "Weak",
			"gives weak ETags, which If-Match never matches: only the gateway's locks", 0},
		"weak, PATCH": {expressTag, false, "{patch: Validated}", "Weak", "gives weak ETags", 0},
		"none":        {noTag, false, "{patch: Emulated}", "None", "gives no ETags: only the gateway's locks", 0},
		"made by middleware, PATCH": {fastifyTag, false, "{patch: Validated}", "NotCompared",
			"does not compare If-Match", 1},
	} {
		t.Run(name, func(t *testing.T) {
			store := &storeOf{tag: tt.tag, compares: tt.compares}
			store.put([]byte(`{"id":"n1"}`))
			backend := httptest.NewServer(store)
			defer backend.Close()
			file := "apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: notes.example.com}\nspec:\n  group: example.com\n  version: v1\n" +
				"  names: {plural: notes, kind: Note}\n  paths: {collection: /v1/notes, item: '/v1/notes/{name}'}\n  fields: {name: id}\n  backend: " + tt.backend + "\n"
			var log bytes.Buffer
			g := gatewayFor(t, policiestest.Write(t, file), strings.TrimPrefix(backend.URL, "http://"), nil)
			g.log = slog.New(slog.NewTextHandler(&log, nil))
			g.routes.backends[0].comparisons.Asks = true
			address := startGateway(t, g)
			for i := range 3 {
				r, err := http.NewRequest(http.MethodPatch, "http://"+address+"/v1/notes/n1",
					strings.NewReader(fmt.Sprintf(`{"f%d":1}`, i)))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Content-Type", "application/json")
				answer, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				_ = answer.Body.Close()
				if answer.StatusCode != http.StatusOK {
					t.Fatalf("answered %d", answer.StatusCode)
				}
				if got := len(store.matches); i == 0 && got != tt.matches {
					t.Errorf("the first write was sent with If-Match %q", store.matches)
				}
			}
			if got := store.stored(); got != `{"id":"n1","f0":1,"f1":1,"f2":1}` {
				t.Errorf("%s is stored", got)
			}
			got := g.Upstreams()[0].Versions
			if len(got) != 1 || got[0].Since.IsZero() ||
				got[0] != (plain.Known{Resource: "notes.example.com", ETags: tt.want, Since: got[0].Since}) {
				t.Errorf("/upstreams says %v", got)
			}
			if got := log.String(); strings.Count(got, tt.log) != 1 || !strings.Contains(got, "notes.example.com") {
				t.Errorf("the log says %s", got)
			}
		})
	}
}

// patchNote sets a field of its own in a note, and returns the answer; the code is 0 if there is none, which is an
// error.
func patchNote(t *testing.T, address string, i int) (code int, body []byte) {
	r, err := http.NewRequest(http.MethodPatch, "http://"+address+"/v1/notes/n1",
		strings.NewReader(fmt.Sprintf(`{"f%d":%d}`, i, i)))
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	r.Header.Set("Content-Type", "application/merge-patch+json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	defer func() { _ = answer.Body.Close() }()
	body, _ = io.ReadAll(answer.Body)
	return answer.StatusCode, body
}
