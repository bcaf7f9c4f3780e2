package apiserver

import (
	"net/http"
	"sync"
	"sync/atomic"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/filters"
)

// asked notes by which credentials the server was asked.
type asked struct {
	mu     sync.Mutex
	seen   map[string]bool
	leaves atomic.Bool  // connections of HTTP/2, from time to time
	left   atomic.Int64 // how many of them
}

// chain is withRootDiscovery behind the taking of notes.
func (a *asked) chain(handler http.Handler, c *genericapiserver.Config) http.Handler {
	stays := withRootDiscovery(handler, c)
	leaves := filters.WithProbabilisticGoaway(stays, 0.02) // the most that kube-apiserver's --goaway-chance may be
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if value := r.Header.Get("Authorization"); value != "" {
			a.mu.Lock()
			a.seen[r.Method+" "+r.URL.Path+" by "+value] = true
			a.mu.Unlock()
		}
		if a.leaves.Load() {
			leaves.ServeHTTP(w, r)
			if w.Header().Get("Connection") == "close" {
				a.left.Add(1)
			}
			return
		}
		stays.ServeHTTP(w, r)
	})
}

// SetLeaves says whether the server leaves connections of HTTP/2 at every fiftieth request, as with --goaway-chance. It
// returns at how many it did so.
func (s *Server) SetLeaves(leaves bool) (left int64) {
	s.asked.leaves.Store(leaves)
	return s.asked.left.Load()
}

// AskedBy reports whether there was such a request ("GET /apis") with this value of the header Authorization. The
// server does not check it: the server knows no users.
func (s *Server) AskedBy(request, authorization string) bool {
	s.asked.mu.Lock()
	defer s.asked.mu.Unlock()
	return s.asked.seen[request+" by "+authorization]
}
