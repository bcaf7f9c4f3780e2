package backend

import (
	"net/http"
	"time"
)

// Fault says what goes wrong with one request. The zero value is nothing.
type Fault struct {
	// Delay holds the request back before anything else happens to it, at most until the client leaves or the server
	// shuts down.
	Delay time.Duration
	// DropBefore closes the connection without an answer; the request is not applied.
	DropBefore bool
	// DropAfter applies the request and then closes the connection without an answer.
	DropAfter bool
	// Answer answers instead of applying the request.
	Answer http.Handler
	// Raw is written to the connection as it is, instead of applying the request; then the connection is closed. It is
	// for answers that net/http would not send.
	Raw []byte
}

// inject does what the fault asks, and reports whether the request is dealt with.
func (s *Server) inject(f Fault, w http.ResponseWriter, r *http.Request, body []byte) (done bool) {
	if f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		case <-s.stop:
		}
	}
	switch {
	case f.DropBefore:
		panic(http.ErrAbortHandler)
	case f.DropAfter:
		s.apply(discard{}, r, body)
		panic(http.ErrAbortHandler)
	case f.Answer != nil:
		f.Answer.ServeHTTP(w, r)
	case f.Raw != nil:
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		_, _ = conn.Write(f.Raw) // the client may be gone
		_ = conn.Close()
	default:
		return false
	}
	return true
}

// discard takes an answer that no client is to see.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}
