// Package admin is the listener for operators: health, metrics, the active policies, the backends and
// a page that shows all of it. It is never the public one: what it says is not for clients.
//
// fasthttp.Server serves it, with its workers, its reading of requests and its shutdown. Requests to this listener go
// to no other server, so it does no harm that fasthttp reads leniently what another server may read differently.
package admin

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// What one client may ask of the listener. Probes, a scraper and a few people ask it.
const (
	maxConnections = 512
	maxPages       = 384 // at a time, beside health
	maxHeadBytes   = 16 << 10
	maxBodyBytes   = 16 << 10 // of what no page reads; see maxQuestionBytes
	readTimeout    = 10 * time.Second
	writeTimeout   = time.Minute
	idleTimeout    = 2 * time.Minute
)

// Options configure New.
type Options struct {
	// Ready are the checks of /readyz; there is one more, named draining, that Drain makes fail.
	Ready []Check
	// Live are the checks of /livez. It needs none: that it answers shows that the process works.
	Live []Check
	// Metrics serves /metrics; nil means that there are none.
	Metrics http.Handler
	// Policies describes the active policy set; nil means that there is no /policies.
	Policies func() Policies
	// Forecast describes what becomes of a request, a method and a path, for /policies?request=; nil
	// means that it is not served.
	Forecast func(request string) Forecast
	// Status describes everything, but for its checks; nil means that there is neither /status nor a page
	// for people.
	Status func() Status
	// Token returns the token that clients must show for anything but health; nil if they need
	// none.
	Token func() string
	// Profiling serves /debug/pprof/.
	Profiling bool
	// Playground explains requests that operators make up; nil means that there is no /playground.
	Playground *Playground
	// Upstreams describes the backends; nil means that there is no /upstreams.
	Upstreams func() Upstreams
	// Hosts are names by which the listener is asked, beside IP addresses and localhost. Requests
	// for another name get /livez and /readyz alone.
	Hosts []string
	// Logger gets the errors of connections and the panics of pages; nil means none.
	Logger *slog.Logger
}

// Server answers operators.
type Server struct {
	http     fasthttp.Server
	handlers *handlers
	log      *slog.Logger
	draining atomic.Bool
}

// New returns a Server that listens nowhere yet.
func New(o Options) *Server {
	s := &Server{log: o.Logger}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	ready := append(o.Ready[:len(o.Ready):len(o.Ready)], Check{Name: "draining", Probe: func() error {
		if s.draining.Load() {
			return errors.New("the gateway is shutting down")
		}
		return nil
	}})
	s.handlers = newHandlers(o, ready)
	s.http = fasthttp.Server{
		Handler:                      s.handle,
		ErrorHandler:                 refuse,
		Logger:                       errorLog{s.log},
		SecureErrorLogMessage:        true,               // what a client sent may be a credential
		Concurrency:                  2 * maxConnections, // with those that have just given up their places
		ReadBufferSize:               maxHeadBytes,
		MaxRequestBodySize:           maxBodyBytes,
		HeaderReceived:               s.handlers.questionLimit,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		CloseOnShutdown:              true,
		DisablePreParseMultipartForm: true,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
	}
	return s
}

// Serve answers on the listener until Shutdown, which makes it return nil.
func (s *Server) Serve(l net.Listener) error {
	s.handlers.isLocal.Store(isLoopback(l))
	return s.http.Serve(newConnSlots(l, s.log))
}

// Drain makes /readyz fail from now on, so that load balancers stop sending requests; everything
// else goes on.
func (s *Server) Drain() { s.draining.Store(true) }

// Shutdown closes the listener and idle connections, and waits for answers under way until ctx
// ends.
func (s *Server) Shutdown(ctx context.Context) error { return s.http.ShutdownWithContext(ctx) }
