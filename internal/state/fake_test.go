package state

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/discovery"
	"github.com/admission-gateway/gateway/internal/document"
)

// discovering is a part of a Backend whose kinds are not asked for.
type discovering struct{}

func (discovering) Discovery() *discovery.Client { return nil }

// server is a Backend in memory: a collection of things with versions, that can be listed and watched, and fail.
type server struct {
	discovering
	plain bool

	mu       sync.Mutex
	version  int
	things   map[string]string // raw JSON by name
	history  []string          // events, each making one version
	oldest   int               // the version before which a watch is answered with 410
	changed  chan struct{}     // closed and replaced at each change
	requests []string
	fail     func(target string) error // instead of an answer
	code     int                       // of every answer, if set
	raw      string                    // the body of every answer, if set
	noWatch  bool
	pageSize int
}

func newServer() *server {
	return &server{version: 1, things: map[string]string{}, changed: make(chan struct{})}
}

func (s *server) Backend(name, _ string) Backend {
	if name != "" && name != "main" {
		return nil
	}
	return s
}

func (s *server) API() API {
	if s.plain {
		return OrdinaryAPI
	}
	return APIServer
}

// thing is the JSON of one, at a version.
func thing(name, value string, version int) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":"%d","labels":{"value":%q}},"value":%q}`, name, version, value, value)
}

func (s *server) set(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	kind := "MODIFIED"
	if _, ok := s.things[name]; !ok {
		kind = "ADDED"
	}
	s.things[name] = thing(name, value, s.version)
	s.event(kind, s.things[name])
}

func (s *server) drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	delete(s.things, name)
	s.event("DELETED", thing(name, "", s.version))
}

func (s *server) event(kind, object string) {
	s.history = append(s.history, fmt.Sprintf(`{"type":%q,"object":%s}`, kind, object))
	close(s.changed)
	s.changed = make(chan struct{})
}

// forget makes watches from versions before now fail, and ends the open ones.
func (s *server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oldest = s.version
	s.history = append(s.history, `{"type":"ERROR","object":{"kind":"Status","code":410}}`)
	s.version++
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *server) count(part string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.requests {
		if strings.Contains(r, part) {
			n++
		}
	}
	return n
}

func (s *server) break_(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = nil
	if err != nil {
		s.fail = func(string) error { return err }
	}
}

func (s *server) Send(ctx context.Context, r Request) (Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Method+" "+r.Target+string(r.Body))
	if s.fail != nil {
		if err := s.fail(r.Target); err != nil {
			return Response{}, err
		}
	}
	if s.code != 0 || s.raw != "" {
		return Response{Code: max(s.code, 200), Body: []byte(s.raw)}, ctx.Err()
	}
	path, query, _ := strings.Cut(r.Target, "?")
	if name, one := strings.CutPrefix(path, "/things/"); one {
		if t, ok := s.things[name]; ok {
			return Response{Code: 200, Body: []byte(t)}, nil
		}
		return Response{Code: 404, Body: []byte(`{}`)}, nil
	}
	body := s.list(query)
	if int64(len(body)) > r.Limit {
		return Response{}, errors.New("too large to be read whole")
	}
	return Response{Code: 200, Body: []byte(body)}, nil
}

// list is a list, or a page of one.
func (s *server) list(query string) string {
	q, _ := url.ParseQuery(query)
	names := make([]string, 0, len(s.things))
	for name := range s.things {
		names = append(names, name)
	}
	slices.Sort(names)
	from, _ := strconv.Atoi(q.Get("continue"))
	to := len(names)
	more := ""
	if s.pageSize > 0 && to-from > s.pageSize {
		to = from + s.pageSize
		more = strconv.Itoa(to)
	}
	items := make([]string, 0, to-from)
	for _, name := range names[from:to] {
		items = append(items, s.things[name])
	}
	return fmt.Sprintf(`{"kind":"ThingList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"%d","continue":%q},"items":[%s]}`,
		s.version, more, strings.Join(items, ","))
}

func (s *server) Open(ctx context.Context, target string, _ time.Duration) (int, io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, "WATCH "+target)
	if s.fail != nil {
		if err := s.fail(target); err != nil {
			return 0, nil, err
		}
	}
	if s.code != 0 || s.noWatch {
		return max(s.code, 403), io.NopCloser(strings.NewReader("")), nil
	}
	_, query, _ := strings.Cut(target, "?")
	q, _ := url.ParseQuery(query)
	from, err := strconv.Atoi(q.Get("resourceVersion"))
	if err != nil {
		return 400, io.NopCloser(strings.NewReader("")), nil
	}
	if from < s.oldest {
		return 410, io.NopCloser(strings.NewReader("")), nil
	}
	out, in := io.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = in.CloseWithError(ctx.Err()) })
	go s.stream(in, from-1)
	return 200, closer{out, stop}, nil
}

type closer struct {
	*io.PipeReader
	stop func() bool
}

func (c closer) Close() error {
	c.stop()
	return c.PipeReader.Close()
}

// stream writes the events from a place of the history on.
func (s *server) stream(to *io.PipeWriter, from int) {
	w := bufio.NewWriter(to)
	for {
		s.mu.Lock()
		events := slices.Clone(s.history[min(from, len(s.history)):])
		changed := s.changed
		broken := s.fail != nil
		s.mu.Unlock()
		from += len(events)
		for _, e := range events {
			_, _ = w.WriteString(e + "\n")
		}
		if err := w.Flush(); err != nil {
			return
		}
		if broken {
			_ = to.CloseWithError(errors.New("broken"))
			return
		}
		<-changed
	}
}

// cut ends the open watches without a word.
func (s *server) cut() {
	s.break_(errors.New("the backend cannot be reached"))
	s.mu.Lock()
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
}

func managerOf(t *testing.T, b Backends, sources ...*Source) *Manager {
	t.Helper()
	m, err := NewManager(Options{Linger: time.Millisecond, RetryWait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	m.Apply(sources)
	m.Start(b)
	return m
}

func sourceOf(mode Mode) *Source {
	return &Source{Name: "things", Path: "/things", Mode: mode, Period: 5 * time.Millisecond, TTL: time.Minute,
		MaxObjects: 100, MaxBytes: 1 << 20, MaxStaleness: time.Minute}
}

// values are the values of the objects of a source, or why they are not known.
func values(m *Manager, s *Source) string {
	objects, err := m.Objects(context.Background(), s, "team-a")
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, o := range objects {
		all = append(all, value(o))
	}
	return strings.Join(all, " ")
}

func value(o document.Node) string { return text(o, "value") }
