package plain

import (
	"crypto/rand"
	"net/http"

	"github.com/admission-gateway/gateway/internal/storage"
)

// ProbeETag returns an ETag that no backend has given to any object: 128 random bits behind a name
// that a reader of the backend's log understands. Nothing that looks like an ETag of the backend
// will do. The next number, or the last hexadecimal digit changed, may be the version that another
// writer gives the object before the probe arrives.
func ProbeETag() []byte { return []byte(`"admission-gateway-probe-` + rand.Text() + `"`) }

// sendPinned sends a write that is pinned to the version that was read. The first one of a resource
// and method is sent as a probe: it names a version that the object cannot have, and so finds out
// whether the backend compares.
//
// A probe is the very write that was admitted, under the lock of its object. A backend that
// compares cannot carry it out, and gets the write as it is meant. A backend that does not look at
// If-Match carries out once what it would have carried out anyway. No request of the gateway's own
// would do better: what is carried out on an ordinary API changes something, and what cannot be
// carried out shows nothing of writes.
func (s objectWrites) sendPinned(w *storage.Write, m *storage.Message) error {
	method := m.Method
	if method == nil {
		method = w.Exchanges.Head.Method
	}
	name := methodOf(method)
	if m.Precondition.ETag == nil || !isRepeatable(w, name) || w.Exchanges.Sink != nil || !s.a.Comparison.ask(name) {
		return s.a.sender.send(w, m)
	}
	found := unknown
	defer func() { s.a.Comparison.note(name, found) }()
	meant := m.Precondition
	m.Precondition = storage.Precondition{ETag: ProbeETag()}
	if err := s.a.sender.send(w, m); err != nil {
		return err
	}
	probed := w.Exchanges.Response.Status()
	switch {
	case storage.IsDone(probed):
		found = NotCompared
		return nil
	case isUnrelated(probed):
		return nil
	case probed >= http.StatusInternalServerError && !s.a.sender.isUntouched(w):
		err := s.a.sender.resolve(w, m, storage.NewUnknownAnswer(probed)) // it may have been carried out
		if err == nil && storage.IsDone(w.Exchanges.Response.Status()) {
			found = NotCompared
		}
		return err
	}
	w.Exchanges.Response.Discard()
	m.Precondition = meant
	if err := s.a.sender.send(w, m); err != nil {
		return err
	}
	// A backend that refuses everything shows nothing: the version makes the difference only if the
	// write that names the right one is carried out.
	if storage.IsDone(w.Exchanges.Response.Status()) {
		found = Unclear
		if probed == http.StatusPreconditionFailed || probed == http.StatusConflict {
			found = Compared
		}
	}
	return nil
}

// methodOf returns the name of a method that pinned writes have.
func methodOf(method []byte) string {
	if string(method) == http.MethodPatch {
		return http.MethodPatch
	}
	return http.MethodPut
}

// isRepeatable reports whether a write that is carried out twice has the same effect as once. A
// probe is such a write: a backend may carry it out and answer an error.
func isRepeatable(w *storage.Write, method string) bool {
	return method == http.MethodPut || w.PatchType == storage.MergePatch
}

// isUnrelated reports whether an answer to a probe is the answer to the write, because the backend
// looked at neither: credentials, limits, or a server that is not there. After any other refusal
// the write is sent as it is meant. A backend that reads versions as numbers may answer 400, 422 or
// 500 to an invalid ETag, and one that looks for object and version at once 404.
func isUnrelated(code int) bool {
	switch code {
	case http.StatusUnauthorized, http.StatusProxyAuthRequired, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
