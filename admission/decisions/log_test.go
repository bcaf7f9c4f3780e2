package decisions

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// text is a JSON text.
type text string

func (s text) AppendJSON(dst []byte) ([]byte, error) {
	if s == "" {
		return dst, errors.New("no JSON form")
	}
	return append(dst, s...), nil
}

// taker is a service that takes decision logs.
type taker struct {
	*httptest.Server
	mu     sync.Mutex
	bodies [][]map[string]any
	seen   []string                                // what was asked
	answer func(n int, w http.ResponseWriter) bool // answers the nth request itself
}

func newTaker(t *testing.T, answer func(n int, w http.ResponseWriter) bool) *taker {
	k := &taker{answer: answer}
	k.Server = httptest.NewServer(k)
	t.Cleanup(k.Close)
	return k
}

func (k *taker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen = append(k.seen, fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header.Get("Content-Type"), " ",
		r.Header.Get("Content-Encoding"), " ", r.Header.Get("Authorization")))
	if k.answer != nil && k.answer(len(k.seen), w) {
		return
	}
	z, err := gzip.NewReader(r.Body)
	var body []map[string]any
	if err == nil {
		var all []byte
		if all, err = io.ReadAll(z); err == nil {
			err = json.Unmarshal(all, &body)
		}
	}
	if err != nil {
		k.seen = append(k.seen, err.Error())
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	k.bodies = append(k.bodies, body)
}

// paths are the paths of the events that were taken, by their bodies.
func (k *taker) paths() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var bodies []string
	for _, body := range k.bodies {
		var paths []string
		for _, event := range body {
			paths = append(paths, fmt.Sprint(event["path"]))
		}
		bodies = append(bodies, strings.Join(paths, " "))
	}
	return strings.Join(bodies, " | ")
}

func (k *taker) asked() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.seen)
}

// losses are the events that were lost.
type losses struct {
	mu  sync.Mutex
	all []string
}

func (l *losses) dropped(sink string, events int, why Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, fmt.Sprint(sink, " ", events, " ", why))
}

func (l *losses) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, ", ")
}

func options(l *losses) Options {
	return Options{
		Labels:     map[string]string{"b": "2", "a": `"1"`},
		NewID:      func(dst []byte) []byte { return append(dst, "an-id"...) },
		QueueBytes: 1 << 20, MaxEventBytes: 4 << 10, Backoff: time.Millisecond, MaxBackoff: time.Millisecond,
		Dropped: l.dropped,
	}
}

func (k *taker) sink(l *losses, change func(s *Service)) audit.Waiting {
	s := &Service{URL: k.URL + "/v1/", Timeout: testutil.Patience, Limit: 1 << 10, Patience: time.Millisecond,
		Dropped: l.dropped, Sent: func(bool) {}}
	if change != nil {
		change(s)
	}
	return audit.Waiting{Sink: s.Sink()}
}

var began = time.Date(2026, 1, 2, 3, 4, 5, 678, time.FixedZone("east", 3600))

func evaluation(path string) *admission.Evaluation {
	return &admission.Evaluation{
		Kind: "RegoPolicy", Engine: "Rego", Policy: "tickets", Path: path, Input: text(`{"n":12345678901234567890}`),
		Result:  text(`["no"]`),
		Actions: []string{"Deny"}, Violations: 1, Began: began, Took: 42,
	}
}

// TestEvent: an event has OPA's members, in OPA's form.
func TestEvent(t *testing.T) {
	whole := evaluation("tickets/deny")
	whole.Binding, whole.Bundle, whole.Revision, whole.Erased = "b", "team", "r1", []string{"/input/x"}
	failed := evaluation("tickets/deny")
	failed.Result, failed.Code, failed.Failure, failed.Bundle, failed.Violations = nil, "eval_conflict_error",
		"line\n\"two\"", "team", 0
	const tail = `"requested_by":"192.0.2.1","timestamp":"2026-01-02T02:04:05.000000678Z","metrics":{"timer_rego_query_eval_ns":42},"req_id":7,"custom":{"kind":"RegoPolicy","policy":"tickets",`
	for _, test := range []struct {
		name string
		e    *admission.Evaluation
		r    Request
		want string
	}{
		{"whole", whole, Request{7, "r", "192.0.2.1", "aa", "bb", "0a1b", "2c3d"},
			`{"labels":{"a":"\"1\"","b":"2"},"decision_id":"an-id","trace_id":"aa","span_id":"bb","bundles":{"team":{"revision":"r1"}},"path":"tickets/deny",` +
				`"input":{"n":12345678901234567890},"result":["no"],"erased":["/input/x"],` + tail + `"binding":"b","engine":"Rego","actions":["Deny"],"violations":1,"configuration":"0a1b","policies":"2c3d","request_id":"r"}}`},
		{"failed", failed, Request{Number: 7, Client: "192.0.2.1"},
			`{"labels":{"a":"\"1\"","b":"2"},"decision_id":"an-id","bundles":{"team":{}},"path":"tickets/deny","input":{"n":12345678901234567890},` +
				`"error":{"code":"eval_conflict_error","message":"line\n\"two\""},` + tail +
				`"engine":"Rego","actions":["Deny"],"verdict":"Error"}}`},
	} {
		var lost losses
		l := New(options(&lost))
		line, err := l.append(nil, test.e, &test.r, false)
		if err != nil || string(line) != test.want+"\n" {
			t.Errorf("%s: got %s, %v\nwant %s", test.name, line, err, test.want)
		}
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// TestService: events come as lists that gzip compressed, in the order of the evaluations.
func TestService(t *testing.T) {
	var lost losses
	k := newTaker(t, nil)
	l := New(options(&lost),
		k.sink(&lost, func(s *Service) { s.Partition, s.Token = "team-a", func() string { return "t1" } }))
	for i := range 3 {
		l.Add(evaluation(fmt.Sprint(i)), &Request{Number: l.NextRequest()})
	}
	if err := l.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(k.paths(), " |", ""); got != "0 1 2" || lost.String() != "" {
		t.Errorf("the service has %s, lost: %s", got, &lost)
	}
	if want := "POST /v1/logs/team-a application/json gzip Bearer t1"; k.seen[0] != want {
		t.Errorf("the service was asked %s, want %s", k.seen[0], want)
	}
}

// TestFaults: what a service does not take is sent again, but for what it will never take.
func TestFaults(t *testing.T) {
	code := func(code int) func(w http.ResponseWriter) { return func(w http.ResponseWriter) { w.WriteHeader(code) } }
	for _, test := range []struct {
		name        string
		fault       func(w http.ResponseWriter)
		paths, lost string
	}{
		{"500", code(500), "a", ""},
		{"429", func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		}, "a", ""},
		{"401", code(401), "a", ""},
		{"redirects", func(w http.ResponseWriter) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, "a", ""},
		{"cut off", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, "a", ""},
		{"413", code(413), "", "service 1 Refused"},
		{"400", code(400), "", "service 1 Refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var lost losses
			k := newTaker(t, func(n int, w http.ResponseWriter) bool {
				if n == 1 {
					test.fault(w)
				}
				return n == 1
			})
			sent := map[bool]int{}
			l := New(options(&lost), k.sink(&lost, func(s *Service) { s.Sent = func(ok bool) { sent[ok]++ } }))
			l.Add(evaluation("a"), &Request{})
			if err := l.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			if k.paths() != test.paths || lost.String() != test.lost || sent[false] != 1 ||
				sent[true] != len(test.paths) {
				t.Errorf("the service has %q, lost: %q, sent: %v", k.paths(), &lost, sent)
			}
		})
	}
}

// TestDown: no request waits for a service that does not answer. What there is no room for is lost,
// and counted.
func TestDown(t *testing.T) {
	var lost losses
	gate := make(chan struct{})
	k := newTaker(t, func(int, http.ResponseWriter) bool { <-gate; return false })
	o := options(&lost)
	one, _ := New(o).append(nil, evaluation("0"), &Request{}, false)
	o.QueueBytes = 3 * len(one)
	kept := &lines{}
	l := New(o, k.sink(&lost, nil), audit.Waiting{Sink: kept})
	for i := range 5 { // the service holds the first ones back
		testutil.Becomes(t, i, kept.count)
		l.Add(evaluation(fmt.Sprint(i)), &Request{})
	}
	if got := lost.String(); got != "service 1 QueueFull, service 1 QueueFull" {
		t.Errorf("lost: %s", got)
	}
	testutil.Becomes(t, 5, kept.count) // another sink has them all
	close(gate)
	if err := l.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(k.paths(), " |", ""); got != "0 1 2" {
		t.Errorf("the service has %s", got)
	}
}

// lines is a sink that counts.
type lines struct{ n atomic.Int64 }

func (l *lines) Name() string { return "lines" }
func (l *lines) Close() error { return nil }
func (l *lines) count() int   { return int(l.n.Load()) }

func (l *lines) Write(_ context.Context, text []byte) (int, error) {
	l.n.Add(int64(strings.Count(string(text), "\n")))
	return len(text), nil
}

// TestEnds: a log that ends does not wait for a service without end.
func TestEnds(t *testing.T) {
	var lost losses
	k := newTaker(t, func(_ int, w http.ResponseWriter) bool { w.WriteHeader(503); return true })
	l := New(options(&lost), k.sink(&lost, nil))
	l.Add(evaluation("a"), &Request{})
	l.Add(evaluation("b"), &Request{})
	testutil.Eventually(t, "asked", func() bool { return k.asked() > 0 })
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if err := l.Close(over); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, one := range strings.Split(lost.String(), ", ") {
		var events int
		if _, err := fmt.Sscanf(one, "service %d Unsent", &events); err != nil {
			t.Errorf("lost: %s", &lost)
		}
		n += events
	}
	if n != 2 {
		t.Errorf("lost: %s", &lost)
	}
}

// random is text that gzip does not make smaller.
func random(n int) string {
	var b strings.Builder
	x := uint64(n + 1)
	for b.Len() < n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b.WriteByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[x>>32&63])
	}
	return b.String()
}

// TestSizes: no body is larger than the limit. What is too large goes without its input.
func TestSizes(t *testing.T) {
	var lost losses
	k := newTaker(t, nil)
	var sizes []int
	o := options(&lost)
	l := New(o, k.sink(&lost, func(s *Service) {
		s.Network.Trace = func(over http.RoundTripper) http.RoundTripper {
			return sizing{over, func(n int64) { sizes = append(sizes, int(n)) }}
		}
	}))
	var want []string
	for i := range 40 {
		e := evaluation(fmt.Sprint(i))
		if i%2 == 0 {
			e.Input = text(`"` + strings.Repeat("x", 20*i) + `"`)
		}
		want = append(want, e.Path)
		l.Add(e, &Request{})
	}
	large := evaluation("without")
	large.Input, large.Erased = text(`"`+random(3<<10)+`"`), []string{"/input/a", "/result/b"}
	huge := evaluation("cut")
	huge.Input, huge.Erased = text(`"`+strings.Repeat("x", 1<<16)+`"`), large.Erased
	never := evaluation("never")
	never.Result = text(`"` + random(3<<10) + `"`)
	tooLarge := evaluation("too-large")
	tooLarge.Result = text(`"` + strings.Repeat("x", 1<<16) + `"`)
	unwritable := evaluation("unwritable")
	unwritable.Result = text("")
	for _, e := range []*admission.Evaluation{large, huge, never, tooLarge, unwritable} {
		l.Add(e, &Request{})
	}
	if err := l.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	want = append(want, "without", "cut")
	if got := strings.ReplaceAll(k.paths(), " |", ""); got != strings.Join(want, " ") {
		t.Errorf("the service has %s", got)
	}
	if len(sizes) < 2 || slices.Max(sizes) > 1<<10 {
		t.Errorf("the bodies have %v bytes", sizes)
	}
	if got, want := lost.String(), "queue 1 TooLarge, queue 1 Unwritable, service 1 TooLarge"; got != want {
		t.Errorf("lost: %s, want %s", got, want)
	}
	for _, body := range k.bodies {
		for _, event := range body {
			if path := event["path"]; path != "without" && path != "cut" {
				continue
			}
			erased := fmt.Sprint(event["erased"])
			if event["input"] != nil || !strings.HasPrefix(erased, "[/input ") ||
				!strings.HasSuffix(erased, " /result/b]") {
				t.Errorf("the event is %v", event)
			}
		}
	}
}

// sizing notes the sizes of bodies.
type sizing struct {
	http.RoundTripper
	note func(int64)
}

func (s sizing) RoundTrip(r *http.Request) (*http.Response, error) {
	s.note(r.ContentLength)
	return s.RoundTripper.RoundTrip(r)
}

// filter is a Filter that a test changes.
type filter struct {
	mu    sync.Mutex
	apply func(event []byte) ([]byte, error)
}

func (f *filter) Apply(_ context.Context, event []byte) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.apply(event)
}

// TestFilter: nothing is shown before the rules are there, nor what they cannot be applied to.
func TestFilter(t *testing.T) {
	var lost losses
	k := newTaker(t, nil)
	asked := make(chan struct{}, 1000)
	f := &filter{apply: func([]byte) ([]byte, error) {
		select {
		case asked <- struct{}{}:
		default:
		}
		return nil, ErrNotReady
	}}
	o := options(&lost)
	o.Filter = f
	l := New(o, k.sink(&lost, nil))
	for _, path := range []string{"a", "dropped", "broken", "b"} {
		l.Add(evaluation(path), &Request{})
	}
	<-asked
	<-asked // it is asked again
	f.mu.Lock()
	if k.asked() > 0 {
		t.Error("events are shown without rules")
	}
	f.apply = func(event []byte) ([]byte, error) {
		var members map[string]any
		if err := json.Unmarshal(event, &members); err != nil {
			return nil, err
		}
		switch members["path"] {
		case "dropped":
			return nil, nil
		case "broken":
			return nil, errors.New("as the test asks")
		}
		return json.Marshal(map[string]any{"path": members["path"], "masked": true})
	}
	f.mu.Unlock()
	if err := l.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	for _, body := range k.bodies {
		all = append(all, body...)
	}
	want := []map[string]any{{"path": "a", "masked": true}, {"path": "b", "masked": true}}
	if !reflect.DeepEqual(all, want) || lost.String() != "queue 1 MaskFailed" {
		t.Errorf("the service has %v, lost: %s", all, &lost)
	}
}
