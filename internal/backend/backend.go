// Package backend is a plain JSON API that keeps its objects in memory: the backend of the demo, of tests and of
// benchmarks.
//
// Every path is a collection or an item of one: by the policy files that describe it, or by its structure alone (see
// parsePath), so that nothing needs to be declared. The server stores the bytes it gets, adds nothing to them and
// returns them as they came. It knows what an ordinary API knows (GET, POST, PUT, DELETE, strong ETags with If-Match
// and If-None-Match, a stream of changes), and none of Kubernetes' conventions; its errors are plain text. It reads the
// request target as it was sent: no cleaning, no redirects.
package backend

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/descriptors"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Options configure New. The zero value is useful: every limit has a default.
type Options struct {
	// MaxObjects bounds the number of objects kept; 0 means 100,000. Another one is refused with 507.
	MaxObjects int
	// MaxBytes bounds the sum of the objects' sizes in bytes; 0 means 512 MiB. What exceeds it is refused with 507.
	MaxBytes int64
	// MaxBody bounds the size of a request's body in bytes; 0 means 4 MiB, more than the gateway lets through by
	// default. A larger one is refused with 413.
	MaxBody int64
	// EvictOldest makes room for a new object by dropping the oldest instead of refusing with 507; for benchmarks
	// that create objects without end.
	EvictOldest bool
	// Recorder, if set, gets every request that arrives. It keeps all of them: it is for tests.
	Recorder *Recorder
	// Fault, if set, is asked before a request is applied what shall go wrong with it; see SetFault.
	Fault func(*Request) Fault
	// Described, if set, returns how policy files read requests. Where they describe a resource, they say what a path
	// leads to and where the name of an object is. All other paths are read by their structure.
	Described func() []resource.Resolver
	// Successes, if set, returns how documents say that operations are answered.
	Successes func() []resource.Success
	// TakesAll lets no request fail because of its path, its method, its name or its type of body: what is no
	// collection and no item of one is answered with the body that was sent.
	TakesAll bool
}

// Server is the API. It is an http.Handler, which Serve and Start put behind a listener. Its methods are safe for
// concurrent use.
type Server struct {
	store     *store
	maxBody   int64
	record    *Recorder
	fault     atomic.Pointer[func(*Request) Fault]
	successes *successes // nil: none
	// resolvers is Options.Described, and takesAll TakesAll.
	resolvers func() []resource.Resolver
	takesAll  bool
	names     atomic.Uint64 // that were made

	http *http.Server
	stop chan struct{} // closed when watches must end
	once sync.Once
}

// New returns a Server with no objects that listens nowhere yet.
func New(o Options) *Server {
	if o.MaxObjects == 0 {
		o.MaxObjects = 100_000
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 512 << 20
	}
	if o.MaxBody == 0 {
		o.MaxBody = 4 << 20
	}
	s := &Server{
		store:   newStore(o.MaxObjects, o.MaxBytes, o.EvictOldest),
		maxBody: o.MaxBody,
		record:  o.Recorder,
		stop:    make(chan struct{}),

		resolvers: o.Described, takesAll: o.TakesAll,
	}
	if o.Successes != nil {
		s.successes = &successes{said: o.Successes}
	}
	s.SetFault(o.Fault)
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
	}
	return s
}

// Serve answers on the listener until Shutdown or Close, which make it return nil.
func (s *Server) Serve(l net.Listener) error {
	l = &descriptors.Listener{Listener: l}
	if s.record != nil {
		l = s.record.listen(l)
	}
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Start serves on a free port of 127.0.0.1 in the background and returns its address (host:port).
func (s *Server) Start() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot listen: %w", err)
	}
	go func() { _ = s.Serve(l) }() // a listener that fails shows in the caller's next request
	return l.Addr().String(), nil
}

// Shutdown ends watches, lets other requests finish and closes the listeners; see http.Server.Shutdown.
func (s *Server) Shutdown(ctx context.Context) error {
	s.once.Do(func() { close(s.stop) })
	return s.http.Shutdown(ctx)
}

// Close closes the listeners and all connections at once.
func (s *Server) Close() error {
	s.once.Do(func() { close(s.stop) })
	return s.http.Close()
}

// SetFault replaces the function that is asked what shall go wrong with a request; nil means nothing. It runs on the
// request's own goroutine, so it may also wait for what the test does meanwhile. If it is set, the body is read before
// it is asked.
func (s *Server) SetFault(fault func(*Request) Fault) {
	if fault == nil {
		s.fault.Store(nil)
		return
	}
	s.fault.Store(&fault)
}

// Len returns the number of objects kept.
func (s *Server) Len() int { return s.store.len() }

// Object returns the bytes and the ETag of the item at the given path, as GET would; ok reports
// whether it exists.
func (s *Server) Object(path string) (body []byte, etag string, ok bool) {
	t, ok := s.targetOf(path)
	if !ok || t.name == "" {
		return nil, "", false
	}
	o, ok := s.store.get(t)
	if !ok {
		return nil, "", false
	}
	return o.body, o.etag, true
}

// targetOf returns what a path leads to.
func (s *Server) targetOf(path string) (target, bool) {
	if d := describe(s.resolvers, http.MethodGet, path); d != nil && !d.isOperation {
		return d.target, true
	}
	return parsePath(path)
}

// Put stores the body under the path of an item, as an unconditional PUT would, and returns its ETag.
func (s *Server) Put(path string, body []byte) (etag string, err error) {
	t, ok := s.targetOf(path)
	if !ok || t.name == "" {
		return "", fmt.Errorf("'%s' is not the path of an item", path)
	}
	if err := validBody(body); err != nil && !s.takesAll {
		return "", err
	}
	o, _, err := s.store.put(t, body, condition{})
	if err != nil {
		return "", err
	}
	return o.etag, nil
}
