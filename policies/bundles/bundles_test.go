package bundles

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/admission/rego/bundle"
	"github.com/admission-gateway/gateway/admission/rego/bundle/bundletest"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/internal/testutil/relay"
	"github.com/admission-gateway/gateway/policies/modules"
)

// server is a bundle server whose answer tests change.
type server struct {
	mu     sync.Mutex
	answer http.HandlerFunc
	asked  []http.Header
}

func newServer(t *testing.T) (*server, string) {
	s := &server{}
	over := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.Header.Clone())
		answer := s.answer
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(over.Close)
	return s, over.URL + "/b.tar.gz?token=secret"
}

func (s *server) will(answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// last returns the head of the last question.
func (s *server) last() http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[len(s.asked)-1]
}

func (s *server) questions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// sends answers with an archive that has a tag.
func sends(archive []byte, tag string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", tag)
		_, _ = w.Write(archive)
	}
}

func code(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// archive is a bundle of a revision.
func archive(t testing.TB, revision string) []byte {
	return bundletest.Archive(t, map[string]string{
		".manifest": `{"revision": "` + revision + `", "roots": ["team", "words"]}`, "words/data.json": `{"bad": ["` +
			revision + `"]}`,
		"team/deny.rego": "package team\n\ndeny contains word if some word in data.words.bad\n",
	})
}

// kit is Bundles with one bundle, b, and what a test sees of it.
type kit struct {
	*Bundles
	mu       sync.Mutex
	active   []string // the revisions that came into force
	refuse   string   // a revision that does not compile
	failures []Stage
	clock    time.Time
}

func newKit(s Source, o bundle.Options) *kit {
	k := &kit{clock: time.Unix(1_700_000_000, 0)}
	o.Name, o.MaxBytes, o.MaxFiles = "b", 1<<20, 100
	s.Read = func() bundle.Options { return o }
	k.Bundles = New(Options{
		Sources: map[string]Source{"b": s},
		Activate: func(_ string, b modules.Bundle) error {
			k.mu.Lock()
			defer k.mu.Unlock()
			if b.Bundle.Revision == k.refuse {
				return errors.New("it does not compile")
			}
			k.active = append(k.active, b.Bundle.Revision)
			return nil
		},
		Failed: func(_ string, s Stage) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.failures = append(k.failures, s)
		},
		Now: func() time.Time {
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.clock
		},
	})
	return k
}

func (k *kit) pass(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.clock = k.clock.Add(d)
}

// said are the revisions that came into force, and the stages of failures.
func (k *kit) said() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	text := strings.Join(k.active, " ")
	for _, s := range k.failures {
		text += " " + string(s)
	}
	return text
}

func (k *kit) update(t *testing.T) string {
	t.Helper()
	if err := k.all["b"].update(t.Context()); err != nil {
		return err.Error()
	}
	return ""
}

func (k *kit) usable() string {
	if err := k.all["b"].usable(); err != nil {
		return err.Error()
	}
	return ""
}

func fromServer(url string) Source {
	return Source{
		From: &Server{URL: url, Timeout: time.Minute, MaxBytes: 1 << 20, Deltas: true,
			Token: func() string { return "secret" }},
		MinDelay: time.Millisecond, MaxDelay: time.Millisecond,
	}
}

// Each answer of a server leads to a version, or to an error that leaves the version in force.
func TestAnswers(t *testing.T) {
	s, url := newServer(t)
	k := newKit(fromServer(url), bundle.Options{})
	if err := k.Ready(); err == nil ||
		err.Error() != "the bundle 'b' has not been loaded: nobody was asked for it yet" {
		t.Errorf("it is ready: %v", err)
	}
	whole := archive(t, "r1")
	delta := bundletest.Archive(t, map[string]string{
		".manifest":  `{"revision": "r2+", "roots": ["team", "words"]}`,
		"patch.json": `{"data": [{"op": "upsert", "path": "/words/bad/0", "value": "late"}]}`,
	})
	k.refuse = "bad"
	for _, step := range []struct {
		name   string
		answer http.HandlerFunc
		err    string
		said   string
		tag    string // that the server gets
	}{
		{"404", code(404), "the server answered with code 404", " Download", ""},
		{"a delta of nothing", sends(delta, `"d"`), "a delta needs a bundle that it changes, and none is loaded",
			" Download Verify", ""},
		{"nothing new of nothing", code(304), "the server answered with code 304", " Download Verify Download", ""},
		{"the first", sends(whole, `"1"`), "", "r1 Download Verify Download", ""},
		{"the same tag", sends(whole, `"1"`), "", "r1 Download Verify Download", `"1"`},
		{"the same under another tag", sends(whole, `"1b"`), "", "r1 Download Verify Download", `"1"`},
		{"500", code(500), "the server answered with code 500", "r1 Download Verify Download Download", `"1b"`},
		{"empty", code(200), "the answer is empty", "r1 Download Verify Download Download Download", ""},
		{"the second", sends(archive(t, "r2"), `"2"`), "", "r1 r2 Download Verify Download Download Download", ""},
		{"a delta", sends(delta, `"2+"`), "", "r1 r2 r2+ Download Verify Download Download Download", `"2"`},
		{"half", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			_, _ = w.Write(whole[:len(whole)/2])
		}, "the answer is not whole: unexpected EOF", "r1 r2 r2+ Download Verify Download Download Download Download",
			`"2+"`},
		{"half, and said to be whole", sends(whole[:len(whole)/2], `"h"`), "must be a whole archive: unexpected EOF",
			"r1 r2 r2+ Download Verify Download Download Download Download Verify", ""},
		{"too large", sends(make([]byte, 2<<20), `"l"`), "the answer must have at most 1048576 bytes",
			"r1 r2 r2+ Download Verify Download Download Download Download Verify Download", ""},
		{"a bomb", sends(bundletest.Gzip(t, make([]byte, 64<<20)), `"b"`), "must unpack to at most 1048576 bytes", "r1 r2 r2+ Download Verify Download Download Download Download Verify Download Verify", ""},
		{"what does not compile", sends(archive(t, "bad"), `"x"`), "it does not compile", "r1 r2 r2+ Download Verify Download Download Download Download Verify Download Verify Activate", ""},
		// The server decides, also if it said the same before.
		{"an older revision", sends(whole, `"1"`), "", "r1 r2 r2+ r1 Download Verify Download Download Download Download Verify Download Verify Activate", ""},
	} {
		s.will(step.answer)
		if err := k.update(t); err != step.err {
			t.Errorf("%s: the error is %q, want %q", step.name, err, step.err)
		}
		if said := k.said(); said != step.said {
			t.Errorf("%s: it came to %q, want %q", step.name, said, step.said)
		}
		asked := s.last()
		if tag := asked.Get("If-None-Match"); tag != step.tag || asked.Get("Prefer") != "modes=snapshot,delta" ||
			asked.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s: the server was asked by %v, want the tag %s", step.name, asked, step.tag)
		}
		state := k.Status()[0]
		if (state.Failure != step.err) || (step.err == "") != state.Failed.IsZero() {
			t.Errorf("%s: the state is %+v", step.name, state)
		}
	}
	if err := k.Ready(); err != nil {
		t.Error(err)
	}
}

// A server that is down or slow is an error that says so, without the URL, whose query may be secret.
func TestUnreachable(t *testing.T) {
	s, url := newServer(t)
	source := fromServer(url)
	source.From.(*Server).Timeout = 50 * time.Millisecond
	k := newKit(source, bundle.Options{})
	s.will(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	if err := k.update(t); err != "context deadline exceeded" {
		t.Errorf("a slow server is %q", err)
	}
	s.will(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		_, _ = w.Write([]byte("x"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	if err := k.update(t); !strings.HasSuffix(err, "context deadline exceeded") {
		t.Errorf("a server that stalls is %q", err)
	}
	source.From.(*Server).URL = "http://127.0.0.1:1/?token=secret"
	if err := k.update(t); err == "" || strings.Contains(err, "secret") {
		t.Errorf("a server that is down is %q", err)
	}
}

// trusting returns the TLS by which a test's server is known.
func trusting(s *httptest.Server) func() *tls.Config {
	known := s.Client().Transport.(*http.Transport).TLSClientConfig
	return func() *tls.Config { return known }
}

func TestRedirects(t *testing.T) {
	_, url := newServer(t)
	secure := httptest.NewTLSServer(http.RedirectHandler(url, http.StatusFound))
	t.Cleanup(secure.Close)
	source := fromServer(secure.URL)
	source.From.(*Server).Network.TLS = trusting(secure)
	if err := newKit(source, bundle.Options{}).update(t); err != "the server redirects to an address without TLS" {
		t.Errorf("the error is %q", err)
	}
	var loop *httptest.Server
	loop = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, loop.URL, http.StatusFound)
	}))
	t.Cleanup(loop.Close)
	if err := newKit(fromServer(loop.URL),
		bundle.Options{}).update(t); err != "the server redirects more than 5 times" {
		t.Errorf("the error is %q", err)
	}
}

// A bundle that its server did not confirm for too long fails its policies, until it does.
func TestStaleness(t *testing.T) {
	s, url := newServer(t)
	source := fromServer(url)
	source.MaxStaleness = time.Minute
	k := newKit(source, bundle.Options{})
	const missing, stale = "the bundle 'b' has not been loaded", "the bundle 'b' is stale: it was last known to be the newest more than 60 seconds ago"
	expect := func(want string) {
		t.Helper()
		if got := k.usable(); got != want {
			t.Errorf("it is usable: %q, want %q", got, want)
		}
	}
	expect(missing)
	s.will(code(500))
	k.update(t)
	expect(missing) // and not what went wrong, which is for operators
	s.will(sends(archive(t, "r1"), `"1"`))
	k.update(t)
	expect("")
	k.pass(time.Minute)
	expect("")
	k.pass(time.Second)
	expect(stale)
	if ages := k.Ages(); ages["b"] != 61*time.Second {
		t.Errorf("the ages are %v", ages)
	}
	s.will(code(500))
	k.update(t)
	expect(stale)
	s.will(sends(archive(t, "r1"), `"1"`))
	k.update(t)
	expect("")
	k.pass(2 * time.Minute)
	k.update(t) // 304
	expect("")
}

// What was kept on disk is there after a restart, as old as it was, if it is still signed as it must be.
func TestKept(t *testing.T) {
	s, url := newServer(t)
	private, public := bundletest.Keys(t)
	_, otherPublic := bundletest.Keys(t)
	signing := func(key string) bundle.Options {
		return bundle.Options{Signing: &bundle.Signing{
			Keys: map[string]bundle.Key{"k": {Algorithm: "RS256", Text: key}}}}
	}
	sign := func(revision string) []byte {
		return bundletest.Signed(t, map[string]string{
			".manifest":      `{"revision": "` + revision + `"}`,
			"team/deny.rego": "package team\n\ndeny contains \"no\" if true\n",
		}, bundletest.Signature{Key: private, KeyID: "k"})
	}
	source := fromServer(url)
	source.Keep, source.MaxStaleness = filepath.Join(t.TempDir(), "b.tar.gz"), time.Hour
	source.From.(*Server).Deltas = false

	k := newKit(source, signing(public))
	k.Restore(t.Context())
	if said := k.said(); said != "" {
		t.Errorf("without a file it came to %q", said)
	}
	s.will(sends(sign("r1"), `"1"`))
	k.update(t)
	if prefer := s.last().Get("Prefer"); prefer != "modes=snapshot" {
		t.Errorf("it prefers %s", prefer)
	}
	k.pass(30 * time.Minute)
	k.update(t) // 304: as old as now

	restarted := newKit(source, signing(public))
	restarted.pass(60 * time.Minute)
	restarted.Restore(t.Context())
	if restarted.said() != "r1" || restarted.usable() != "" || restarted.Ages()["b"] != 30*time.Minute {
		t.Errorf("after a restart: %q, %q, %v", restarted.said(), restarted.usable(), restarted.Ages())
	}
	restarted.pass(31 * time.Minute)
	if restarted.usable() == "" {
		t.Error("a kept bundle counts as new")
	}
	// The server is asked for the whole bundle, which is known.
	if err := restarted.update(t); err != "" || restarted.said() != "r1" || s.last().Get("If-None-Match") != "" ||
		restarted.usable() != "" {
		t.Errorf("the server's answer: %q, %q", err, restarted.said())
	}

	// The file is checked with the current keys.
	changed := newKit(source, signing(otherPublic))
	changed.Restore(t.Context())
	if changed.said() != " Keep" || changed.Ready() == nil {
		t.Errorf("with another key: %q", changed.said())
	}
	if err := os.WriteFile(source.Keep, sign("r2")[:100], 0o600); err != nil {
		t.Fatal(err)
	}
	half := newKit(source, signing(public))
	half.Restore(t.Context())
	if half.said() != " Keep" {
		t.Errorf("half a file: %q", half.said())
	}
	// The next version takes its place, whole, and nothing else is left in the folder.
	if err := half.update(t); err != "" || half.said() != "r1 Keep" || half.Status()[0].Failure != "" {
		t.Errorf("after half a file: %q, %q, %+v", err, half.said(), half.Status())
	}
	entries, err := os.ReadDir(filepath.Dir(source.Keep))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v", entries, err)
	}

	// A folder that cannot be written to: the bundle is in force, and the failure is reported.
	source.Keep = filepath.Join(t.TempDir(), "none", "b.tar.gz")
	unkept := newKit(source, signing(public))
	if err := unkept.update(t); err != "" || unkept.said() != "r1 Keep" || unkept.Status()[0].Stage != Keep {
		t.Errorf("without a folder: %q, %q", err, unkept.said())
	}
}

// Deltas are refused for bundles on disk, from which they would be lost.
func TestKeptDelta(t *testing.T) {
	s, url := newServer(t)
	source := fromServer(url)
	source.Keep = filepath.Join(t.TempDir(), "b.tar.gz")
	k := newKit(source, bundle.Options{})
	s.will(sends(archive(t, "r1"), `"1"`))
	k.update(t)
	s.will(sends(bundletest.Archive(t, map[string]string{
		".manifest":  `{"revision": "r2", "roots": ["team", "words"]}`,
		"patch.json": `{"data": [{"op": "remove", "path": "/words/bad"}]}`,
	}), `"2"`))
	if err := k.update(t); err != "a delta must not be sent for a bundle that is kept on disk, where the change would be lost" {
		t.Errorf("the error is %q", err)
	}
}

func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "b.tar.gz")
	k := newKit(Source{From: &File{Name: name, MaxBytes: 1 << 20}}, bundle.Options{})
	k.Restore(t.Context())
	if err := k.Ready(); err == nil || !strings.HasPrefix(err.Error(), "the bundle 'b' has not been loaded: the file '"+
		name+"' may not be read: ") {
		t.Errorf("the error is %v", err)
	}
	for _, step := range []struct {
		content []byte
		said    string
	}{
		{archive(t, "r1"), "r1 Download"},
		{archive(t, "r1"), "r1 Download"},
		{archive(t, "r2"), "r1 r2 Download"},
		{[]byte("no"), "r1 r2 Download Verify"},
		{make([]byte, 1<<20+1), "r1 r2 Download Verify Download"},
		{archive(t, "r3"), "r1 r2 r3 Download Verify Download"},
	} {
		if err := os.WriteFile(name, step.content, 0o600); err != nil {
			t.Fatal(err)
		}
		k.update(t)
		if said := k.said(); said != step.said {
			t.Errorf("it came to %q, want %q", said, step.said)
		}
	}
}

// A running gateway takes new versions by itself, goes on after errors, and ends when its context
// does.
func TestRun(t *testing.T) {
	s, url := newServer(t)
	k := newKit(fromServer(url), bundle.Options{})
	s.will(code(503))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); k.Run(ctx) }()
	testutil.Eventually(t, "several errors", func() bool { return s.questions() > 3 })
	active := func() string {
		k.mu.Lock()
		defer k.mu.Unlock()
		return strings.Join(k.active, " ")
	}
	s.will(sends(archive(t, "r1"), `"1"`))
	testutil.Becomes(t, "r1", active)
	s.will(sends(archive(t, "r2"), `"2"`))
	testutil.Becomes(t, "r1 r2", active)
	cancel()
	<-done
}

// A server that can hold its answer back is asked to, and its next version is there at once.
func TestLongPolling(t *testing.T) {
	s, url := newServer(t)
	source := fromServer(url)
	source.MinDelay, source.MaxDelay, source.Wait = time.Hour, time.Hour, time.Minute
	k := newKit(source, bundle.Options{})
	next := make(chan []byte, 1)
	first := archive(t, "r1")
	s.will(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.openpolicyagent.bundles")
		content, tag := first, `"1"`
		if r.Header.Get("If-None-Match") != "" {
			select {
			case content = <-next:
				tag = `"2"`
			case <-r.Context().Done():
				return
			}
		}
		w.Header().Set("ETag", tag)
		_, _ = w.Write(content)
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); k.Run(ctx) }()
	testutil.Eventually(t, "a question that waits", func() bool { return s.questions() == 2 })
	if prefer, tag := s.last().Get("Prefer"), s.last().Get("If-None-Match"); prefer != "modes=snapshot,delta;wait=30" ||
		tag != `"1"` {
		t.Errorf("it prefers %s with the tag %s", prefer, tag)
	}
	next <- archive(t, "r2")
	testutil.Becomes(t, "r1 r2", k.said)
	cancel()
	<-done
}

// TestDeadConnection: a connection that carries nothing any more, while an answer is held back or within one, is
// noticed though neither end closes it. The next version comes over another one.
func TestDeadConnection(t *testing.T) {
	for _, where := range []string{"while it is held back", "within the archive"} {
		t.Run(where, func(t *testing.T) {
			s, address := newServer(t)
			at, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			way := relay.New(t, at.Host)
			at.Host = way.Address()
			source := fromServer(at.String())
			server := source.From.(*Server)
			server.Timeout, server.Patience = time.Hour, 300*time.Millisecond
			source.MinDelay, source.MaxDelay, source.Wait = time.Hour, time.Hour, time.Second
			k := newKit(source, bundle.Options{})
			first, second := archive(t, "r1"), archive(t, "r2")
			s.will(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/vnd.openpolicyagent.bundles")
				w.Header().Set("ETag", `"1"`)
				if r.Header.Get("If-None-Match") == "" {
					_, _ = w.Write(first)
					return
				}
				if where == "within the archive" {
					w.Header().Set("ETag", `"2"`)
					_, _ = w.Write(second[:len(second)/2])
					_ = http.NewResponseController(w).Flush()
				}
				s.will(sends(second, `"2"`))
				way.Freeze()
				<-r.Context().Done()
			})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); k.Run(ctx) }()
			testutil.Becomes(t, "r1 r2 Download", k.said)
			if shown := k.Status()[0].Failure; shown != "" {
				t.Errorf("what is in force is not the newest: %s", shown)
			}
			cancel()
			<-done
		})
	}
}

func TestDelay(t *testing.T) {
	h := &follower{source: Source{MinDelay: time.Minute, MaxDelay: 2 * time.Minute, Wait: time.Minute}}
	wrong := errors.New("wrong")
	for i, most := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if d := h.delay(wrong, 0); d < most/2 || d > most {
			t.Errorf("after error %d it waits for %v", i+1, d)
		}
	}
	for range 100 {
		if d := h.delay(wrong, 0); d > 2*time.Minute || d < 0 {
			t.Fatalf("it waits for %v", d)
		}
	}
	if d := h.delay(nil, 0); d < time.Minute || d > 2*time.Minute {
		t.Errorf("it waits for %v", d)
	}
	h.waits = true
	if d := h.delay(nil, 0); d != time.Second {
		t.Errorf("a server that answers at once is asked again after %v", d)
	}
	if d := h.delay(nil, time.Minute); d != 0 {
		t.Errorf("a server that held its answer back is asked again after %v", d)
	}
}
