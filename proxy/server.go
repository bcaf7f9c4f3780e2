package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/wire"
)

// serverOptions are the settings of the public listener. Zero durations and
// sizes mean the defaults.
type serverOptions struct {
	// HeadTimeout bounds the time from the first byte of a head to its last,
	// BodyTimeout that of a body, IdleTimeout the time between two requests,
	// WriteTimeout the time in which a client must take a part of the answer.
	HeadTimeout, BodyTimeout, IdleTimeout, WriteTimeout time.Duration
	// UpgradeIdleTimeout is how long an upgraded connection may be silent; zero is for ever.
	UpgradeIdleTimeout time.Duration
	// HeadBytes, TargetBytes and Headers limit the heads of requests.
	HeadBytes, TargetBytes, Headers int
	Underscores                     wire.Underscores
	// TrustedProxies are the peers that may tell who the client is.
	TrustedProxies []netip.Prefix
	// TLS is what is used to speak TLS; nil is plain HTTP. HandshakeFailed is told of clients with which it failed.
	TLS             *credentials.Value[*credentials.Server]
	HandshakeFailed func()
	// MaxConns is the largest number of connections; more are answered 503.
	MaxConns int
	Log      *slog.Logger
	// Panicked answers a request whose handler panicked; the connection ends
	// with the answer.
	Panicked func(ctx *fasthttp.RequestCtx, c *conn, err *status.Error)
}

// The defaults of the server.
const (
	defaultHeadTimeout  = 10 * time.Second
	defaultBodyTimeout  = 60 * time.Second
	defaultIdleTimeout  = 120 * time.Second
	defaultWriteTimeout = 30 * time.Second
	defaultMaxConns     = 64 << 10
)

// server accepts connections and hands each request to the handler.
type server struct {
	o                  serverOptions
	handle             func(ctx *fasthttp.RequestCtx, c *conn)
	fast               fasthttp.Server
	trusted, untrusted wire.Options
	buffers            sync.Pool               // of *[readBuffer]byte
	copies             sync.Pool               // of *[copyBuffer]byte
	blank              fasthttp.ResponseHeader // what fasthttp makes of the settings; set by the first request
	setBlank           sync.Once

	turnedAway         ratelimit.Drops // connections over the limit
	draining, stopping atomic.Bool
	mu                 sync.Mutex // guards conns
	conns              map[*conn]struct{}
}

// newServer returns a server that calls handle for each request, refused ones
// (c.refusal) included. The handler writes its answer to ctx.Response, or
// sends it with c.sendStream; it uses nothing else of ctx.
func newServer(o serverOptions, handle func(ctx *fasthttp.RequestCtx, c *conn)) *server {
	orDefault(&o.HeadTimeout, defaultHeadTimeout)
	orDefault(&o.BodyTimeout, defaultBodyTimeout)
	orDefault(&o.IdleTimeout, defaultIdleTimeout)
	orDefault(&o.WriteTimeout, defaultWriteTimeout)
	orDefault(&o.HeadBytes, wire.DefaultHeadBytes)
	orDefault(&o.TargetBytes, wire.DefaultTargetBytes)
	orDefault(&o.Headers, wire.DefaultHeaders)
	orDefault(&o.MaxConns, defaultMaxConns)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.HandshakeFailed == nil {
		o.HandshakeFailed = func() {}
	}
	s := &server{o: o, handle: handle, conns: map[*conn]struct{}{}}
	s.untrusted = wire.Options{HeadBytes: o.HeadBytes, TargetBytes: o.TargetBytes, Headers: o.Headers, Underscores: o.Underscores}
	s.trusted = s.untrusted
	s.trusted.Trusted = true
	s.fast = fasthttp.Server{
		Handler:   s.serve,
		ConnState: s.connState,
		// The listener keeps to the limit; fasthttp's own answer is no Status.
		Concurrency: o.MaxConns + 1024,
		Logger:      fastLog{o.Log},
		// It reads nothing but the constant heads of conn.
		ReadBufferSize: 256,
		// Answers of the backend keep the names, the Server and the Date that
		// they came with.
		DisableHeaderNamesNormalizing: true,
		NoDefaultServerHeader:         true,
		NoDefaultDate:                 true,
		NoDefaultContentType:          true,
	}
	return s
}

func orDefault[T int | time.Duration](v *T, otherwise T) {
	if *v <= 0 {
		*v = otherwise
	}
}

// Serve serves the connections of ln until Shutdown; it returns nil then.
func (s *server) Serve(ln net.Listener) error {
	return s.fast.Serve(&listener{ln, s})
}

// Draining reports whether Drain or Shutdown was called.
func (s *server) Draining() bool { return s.draining.Load() }

// Drain makes each answer from now on the last of its connection. Requests are
// still served.
func (s *server) Drain() { s.draining.Store(true) }

// Shutdown stops accepting, closes idle connections, ends endless streams, and
// waits for the requests in progress. Those that are not done with ctx are cut,
// and its error is returned.
func (s *server) Shutdown(ctx context.Context) error {
	s.draining.Store(true)
	s.stopping.Store(true)
	s.each(func(c *conn) {
		if c.state.CompareAndSwap(connIdle, connCut) {
			c.cut()
		}
		if b := c.stream.Load(); b != nil && c.endless.Load() {
			b.Interrupt()
		}
	})
	err := s.fast.ShutdownWithContext(ctx)
	if err != nil {
		s.each(func(c *conn) {
			c.cut()
			if b := c.stream.Load(); b != nil {
				b.Interrupt()
			}
		})
	}
	return err
}

func (s *server) each(f func(*conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		f(c)
	}
}

// open is the number of connections.
func (s *server) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// serve is fasthttp's handler. It is called once for each connection, whose
// requests it serves to the last: heads are read and answers written by conn,
// more strictly than fasthttp does and with less copying.
func (s *server) serve(ctx *fasthttp.RequestCtx) {
	c, ok := ctx.Conn().(*conn)
	if !ok {
		// Only fasthttp's own wrappers, none of which is in use, come here.
		ctx.SetStatusCode(fasthttp.StatusInternalServerError)
		ctx.SetConnectionClose()
		return
	}
	s.setBlank.Do(func() { ctx.Response.Header.CopyTo(&s.blank) })
	for {
		s.guarded(ctx, c)
		if !c.answered {
			c.sendAnswer(ctx)
		}
		if c.ending || !c.next() {
			break
		}
		ctx.Response.Reset()
		s.blank.CopyTo(&ctx.Response.Header)
	}
	c.answered = true // so that what fasthttp writes now is dropped
	ctx.SetConnectionClose()
}

// guarded calls the handler. fasthttp lets a panic end the process.
func (s *server) guarded(ctx *fasthttp.RequestCtx, c *conn) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		s.o.Log.Error("a request made the gateway panic", "panic", p, "stack", string(debug.Stack()))
		c.ending = true
		if c.answered {
			return
		}
		c.ownAnswer(ctx)
		if s.o.Panicked == nil {
			ctx.SetStatusCode(fasthttp.StatusInternalServerError)
			return
		}
		s.o.Panicked(ctx, c, status.From(errPanic))
	}()
	s.handle(ctx, c)
}

// errPanic is no Status on purpose: it becomes a 500 that shows nothing.
var errPanic = errors.New("panic")

// ownAnswer empties the response for an answer of the gateway itself. Unlike
// those of the backend, which bring their own, it gets a Date.
func (c *conn) ownAnswer(ctx *fasthttp.RequestCtx) {
	ctx.Response.Reset()
	ctx.Response.Header.SetNoDefaultContentType(true)
}

// connState gives the memory of closed connections back.
func (s *server) connState(nc net.Conn, state fasthttp.ConnState) {
	if c, ok := nc.(*conn); ok && state == fasthttp.StateClosed {
		c.release()
	}
}

func (s *server) buffer() *[readBuffer]byte {
	if b, ok := s.buffers.Get().(*[readBuffer]byte); ok {
		return b
	}
	return new([readBuffer]byte)
}

// fastLog passes on what fasthttp has to say, which is little: how clients
// went away.
type fastLog struct{ log *slog.Logger }

func (l fastLog) Printf(format string, args ...any) {
	l.log.Debug("fasthttp", "event", fmt.Sprintf(format, args...))
}
