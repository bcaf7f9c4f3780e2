// Package admin is the listener for operators: health, metrics, the active policies and the backends. It is never the public one: what it
// tells is not for clients.
package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/status"
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
	// Upstreams describes the backends; nil means that there is no /upstreams.
	Upstreams func() Upstreams
	// Logger gets the errors of connections; nil means none.
	Logger *slog.Logger
}

// Policies is the answer of /policies.
type Policies struct {
	// Generation counts the sets that came into force in this process, from 1.
	Generation int64 `json:"generation"`
	// Hash of the contents of all files: replicas that agree on their policies agree on it.
	Hash string `json:"hash"`
	// LoadTime is when the set came into force.
	LoadTime time.Time `json:"loadTime"`
	// Files that the set was made of, with the objects in each.
	Files []PolicyFile `json:"files"`
	// LastFailure is set while the files differ from the set in force because they were refused.
	LastFailure *Failure `json:"lastFailure,omitempty"`
}

// PolicyFile is one file of the active set.
type PolicyFile struct {
	Path    string         `json:"path"`
	Objects []PolicyObject `json:"objects"`
}

// PolicyObject is one object in a policy file.
type PolicyObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// Failure is why the newest policy files are not in force.
type Failure struct {
	Time     time.Time `json:"time"`
	Findings []string  `json:"findings"`
}

// Server answers operators. It is an http.Handler, which Serve puts behind a listener.
type Server struct {
	handler  http.Handler
	http     *http.Server
	draining atomic.Bool
}

// New returns a Server that listens nowhere yet.
func New(o Options) *Server {
	s := &Server{}
	ready := append(o.Ready[:len(o.Ready):len(o.Ready)], Check{Name: "draining", Probe: func() error {
		if s.draining.Load() {
			return errors.New("the gateway is shutting down")
		}
		return nil
	}})
	mux := http.NewServeMux()
	page := func(path string, h http.Handler) { mux.Handle(path, onlyGet(h)) }
	page("/livez", checks{"livez", o.Live})
	page("/livez/{check}", checks{"livez", o.Live})
	page("/readyz", checks{"readyz", ready})
	page("/readyz/{check}", checks{"readyz", ready})
	if o.Metrics != nil {
		page("/metrics", o.Metrics)
	}
	if o.Policies != nil {
		page("/policies", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, o.Policies()) }))
	}
	if o.Upstreams != nil {
		page("/upstreams", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, o.Upstreams()) }))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, status.NoSuchPath("the admin listener has no %s: it serves /livez, /readyz, /metrics, /policies and /upstreams", r.URL.Path))
	})
	s.handler = mux
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	if o.Logger != nil {
		s.http.ErrorLog = slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn)
	}
	return s
}

// Serve answers on the listener until Shutdown, which makes it return nil.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Drain makes /readyz fail from now on, so that load balancers stop sending requests; everything else goes on.
func (s *Server) Drain() { s.draining.Store(true) }

// Shutdown closes the listener and waits for answers under way; see http.Server.Shutdown.
func (s *Server) Shutdown(ctx context.Context) error { return s.http.Shutdown(ctx) }

func onlyGet(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			writeError(w, status.Coded(http.StatusMethodNotAllowed, fmt.Sprintf("%s does not support %s: the admin listener is for reading", r.URL.Path, r.Method)))
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		h.ServeHTTP(w, r)
	})
}

func writeError(w http.ResponseWriter, err *status.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(err.ErrStatus.Code))
	_, _ = w.Write(append(status.AppendJSON(nil, &err.ErrStatus), '\n')) // the client may be gone
}
