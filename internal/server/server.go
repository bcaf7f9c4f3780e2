package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/descriptors"
	"github.com/admission-gateway/gateway/internal/listeners"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/peek"
	"github.com/admission-gateway/gateway/internal/status"
)

// Options are the settings of a server. Zero durations and sizes mean the defaults.
type Options struct {
	// HeadTimeout bounds the time from the first byte of a head to its last, BodyTimeout the same
	// of a body, IdleTimeout the time between two requests. A client must take a part of the answer
	// within WriteTimeout.
	HeadTimeout, BodyTimeout, IdleTimeout, WriteTimeout time.Duration
	// MinReadRate is how many bytes in a second a client must take of a long answer while there is something to send; 0
	// is any. TooSlow is called for each client that is cut because it does not.
	MinReadRate int64
	TooSlow     func()
	// UpgradeIdleTimeout is how long an upgraded connection may be silent; zero is for ever.
	UpgradeIdleTimeout time.Duration
	HTTP2              HTTP2
	// HeadBytes, TargetBytes and Headers limit the heads of requests.
	HeadBytes, TargetBytes, Headers int
	Underscores                     message.Underscores
	// TrustedProxies are the peers that may say who the client is.
	TrustedProxies []netip.Prefix
	// Forwarded says that they do so by Forwarded, and not by X-Forwarded-*.
	Forwarded bool
	// Listeners are those whose connections are served; nil is one of plain HTTP for any host. HandshakeFailed is
	// called for each client with which the handshake of TLS failed, BadProxyHeader for each peer that should have
	// begun with the PROXY protocol, and has not.
	Listeners                       *listeners.Set
	HandshakeFailed, BadProxyHeader func()
	// MaxConns is the largest number of connections. A client beyond it is answered 503; RetryAfter
	// returns after how many seconds it is to come again.
	MaxConns   int
	RetryAfter func(now time.Time) int
	// ClientOf returns the address of the client of a request that a trusted proxy has sent; nil is the proxy's.
	ClientOf func(head *message.Head, peer netip.Addr) netip.Addr
	// Overloaded is called for each that is refused for want of memory.
	Overloaded func(Overload)
	// Memory keeps the bodies of requests, and bounds the requests in flight.
	Memory *Memory
	Log    *slog.Logger
	// Panicked fills the answer to a request whose handler panicked. The connection ends with it.
	Panicked func(answer *message.Response)
}

// HTTP2 is how the server speaks HTTP/2: behind TLS if the client asks for it, and without TLS if the
// client begins with it.
type HTTP2 struct {
	// IsOff is set if HTTP/2 is not served.
	IsOff bool
	// MaxConcurrentStreams is how many requests a client may have on a connection at a time.
	MaxConcurrentStreams int
	// Flooded is called for each connection that ends because its client sends too much that leads to
	// nothing.
	Flooded func()
}

// The defaults of the server.
const (
	defaultHeadTimeout  = 10 * time.Second
	defaultBodyTimeout  = 60 * time.Second
	defaultIdleTimeout  = 120 * time.Second
	defaultWriteTimeout = 30 * time.Second
	defaultMaxConns     = 64 << 10
	defaultMemory       = 1 << 30
)

// setDefaults completes the settings.
func (o *Options) setDefaults() {
	orDefault(&o.HeadTimeout, defaultHeadTimeout)
	orDefault(&o.BodyTimeout, defaultBodyTimeout)
	orDefault(&o.IdleTimeout, defaultIdleTimeout)
	orDefault(&o.WriteTimeout, defaultWriteTimeout)
	orDefault(&o.HeadBytes, message.DefaultHeadBytes)
	orDefault(&o.TargetBytes, message.DefaultTargetBytes)
	orDefault(&o.Headers, message.DefaultHeaders)
	orDefault(&o.MaxConns, defaultMaxConns)
	orDefault(&o.HTTP2.MaxConcurrentStreams, defaultStreams)
	if o.HTTP2.Flooded == nil {
		o.HTTP2.Flooded = func() {}
	}
	if o.RetryAfter == nil {
		o.RetryAfter = func(time.Time) int { return 1 }
	}
	if o.Memory == nil {
		o.Memory = NewMemory(memory.NewBudget(defaultMemory, 1), func() error {
			return status.ServiceUnavailable("the server holds as many bodies as it may", o.RetryAfter(time.Now()))
		})
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.HandshakeFailed == nil {
		o.HandshakeFailed = func() {}
	}
	if o.BadProxyHeader == nil {
		o.BadProxyHeader = func() {}
	}
	if o.Overloaded == nil {
		o.Overloaded = func(Overload) {}
	}
	if o.Listeners == nil {
		o.Listeners = listeners.Any(nil)
	}
	if o.TooSlow == nil {
		o.TooSlow = func() {}
	}
	if o.Panicked == nil {
		o.Panicked = func(answer *message.Response) { answer.Start(http.StatusInternalServerError) }
	}
}

func orDefault[T int | time.Duration](v *T, otherwise T) {
	if *v <= 0 {
		*v = otherwise
	}
}

// A Handler serves one request, a refused one (r.Refusal) too, and sends the answer.
type Handler func(r *Request)

// Server accepts connections and hands each request to the handler.
type Server struct {
	settings  atomic.Pointer[settings]
	handle    Handler
	buffers   buffers
	lingering lingering
	phase     atomic.Int32
	streams   atomic.Int64 // of HTTP/2
	parkAfter time.Duration
	watching  sync.Once
	watched   atomic.Pointer[peek.Set] // of silent clients; nil before the first of them

	givingBack  givingBack
	disconnects disconnectPoller
	workers     *workerPools
	accounts    clientAccounts

	mu        sync.Mutex // guards what follows, and the socket of each connection
	conns     map[connection]struct{}
	listeners []*listener
	empty     chan struct{} // closed when a shutdown has no connections left to wait for
	round     drainRound
}

// settings are the options, and how heads are read by them.
type settings struct {
	Options
	trusted, untrusted message.Options
}

// settingsOf returns the settings of complete options.
func settingsOf(o Options) *settings {
	s := &settings{Options: o}
	s.untrusted = message.Options{HeadBytes: o.HeadBytes, TargetBytes: o.TargetBytes, Headers: o.Headers,
		Underscores: o.Underscores}
	s.trusted = s.untrusted
	s.trusted.Trusted, s.trusted.Forwarded = true, o.Forwarded
	return s
}

// A connection is a client's as its server sees it, from other goroutines and under the server's
// lock, whatever the protocol.
type connection interface {
	// stop begins a shutdown: an idle connection ends, and so do events and what would last.
	stop()
	// came returns to which address the client has connected, and for which listener it speaks TLS, if it does.
	came() (address string, made *listeners.Listener)
	// retire ends the connection as stop does, and any other after the requests in progress.
	retire()
	// cut ends the connection whatever it does.
	cut()
	// exchanges calls f for each exchange in progress.
	exchanges(f func(ongoing))
}

// An ongoing exchange is one in progress as a shutdown sees it, from another goroutine.
type ongoing interface {
	// noteAwaited notes that a drain waits for it.
	noteAwaited()
	// flow returns how its answer ends by itself.
	flow() Flow
	// endLasting ends a tunnel, or breaks off an answer that would last. It returns false if there is
	// none, or its end has come already.
	endLasting() bool
	// cut ends the exchange whatever it does.
	cut()
}

// The phases of a server.
const (
	serving  int32 = iota
	draining       // each answer is the last of its connection
	stopping       // and idle connections end
)

// New returns a server that serves no listener yet.
func New(o Options, handle Handler) *Server {
	o.setDefaults()
	s := &Server{handle: handle, parkAfter: defaultPark, workers: newWorkerPools(), conns: map[connection]struct{}{},
		empty: make(chan struct{})}
	s.disconnects.every = defaultLook
	s.settings.Store(settingsOf(o))
	s.lingering.lingerLimits = defaultLinger(o.MaxConns)
	return s
}

// Configure brings other options into force, for the next request of each connection. MaxConns, Memory and whether
// HTTP/2 is served stay as they are. Connections end whose listener is gone, or asks for other certificates.
func (s *Server) Configure(o Options) {
	now := s.settings.Load()
	o.MaxConns, o.Memory, o.HTTP2.IsOff = now.MaxConns, now.Memory, now.HTTP2.IsOff
	o.setDefaults()
	s.settings.Store(settingsOf(o))
	s.each(func(c connection) {
		if !o.Listeners.Keeps(c.came()) {
			c.retire()
		}
	})
}

// Serve serves the connections of ln, which listens on the first address of the listeners.
func (s *Server) Serve(ln net.Listener) error {
	return s.ServeOn(s.settings.Load().Listeners.Addresses()[0], ln)
}

// ServeOn serves the connections of ln, which listens on an address of the listeners, until it is closed or Shutdown;
// it returns nil then.
func (s *Server) ServeOn(address string, ln net.Listener) error { return s.Attach(address, ln)() }

// Attach is ServeOn in two steps: from now on Leave and Shutdown close the listener, and what is returned serves it.
func (s *Server) Attach(address string, ln net.Listener) (serve func() error) {
	l := &listener{server: s, address: address}
	l.Listener = descriptors.Listener{Listener: ln, Tell: l.tell}
	s.mu.Lock()
	s.listeners = append(s.listeners, l)
	s.mu.Unlock()
	if s.isStopping() {
		return l.Close // a shutdown that is over closes nothing more
	}
	return l.serve
}

// Draining reports whether BeginDrain, Drain or Shutdown was called.
func (s *Server) Draining() bool { return s.phase.Load() >= draining }

func (s *Server) isStopping() bool { return s.phase.Load() == stopping }

// BeginDrain makes each answer from now on the last of its connection. Requests are still served.
func (s *Server) BeginDrain() { s.phase.CompareAndSwap(serving, draining) }

// Shutdown stops accepting, closes idle connections, ends tunnels and streams that would last, and waits for the other
// requests in progress. Requests that are not done with ctx are cut, and its error is returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.phase.Store(stopping)
	defer func() {
		s.watched.Load().Close()
		s.workers.end()
	}()
	s.closeListeners()
	s.each(connection.stop)
	if s.Open() == 0 {
		return nil
	}
	select {
	case <-s.empty:
		return nil
	case <-ctx.Done():
		s.each(connection.cut)
		return ctx.Err()
	}
}

// Leave closes the listener of an address. Its connections are ended by Configure.
func (s *Server) Leave(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = slices.DeleteFunc(s.listeners, func(l *listener) bool {
		if l.address != address {
			return false
		}
		l.isLeft.Store(true)
		_ = l.Close()
		return true
	})
}

func (s *Server) closeListeners() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		_ = l.Close()
	}
}

func (s *Server) each(f func(connection)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		f(c)
	}
}

// Open returns the number of connections.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Active returns the number of requests on their way.
func (s *Server) Active() (n int) {
	s.each(func(c connection) { c.exchanges(func(ongoing) { n++ }) })
	return n
}

func (s *Server) add(c connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = struct{}{}
}

// replace puts the connection's session into its place.
func (s *Server) replace(c *conn, by *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.conns[by] = struct{}{}
}

// takeStreams asks for n more streams of HTTP/2. All of them together are at most as many as connections may be.
func (s *Server) takeStreams(n int) bool {
	if s.streams.Add(int64(n)) > int64(s.settings.Load().MaxConns) {
		s.streams.Add(-int64(n))
		return false
	}
	return true
}

func (s *Server) giveStreams(n int) { s.streams.Add(-int64(n)) }

func (s *Server) remove(c connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if len(s.conns) > 0 || !s.isStopping() {
		return
	}
	select {
	case <-s.empty: // is closed already
	default:
		close(s.empty)
	}
}
