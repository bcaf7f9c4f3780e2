package kubernetes

import (
	"net/http"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// A client may be of a later version of Kubernetes than the gateway, and send in protobuf what the gateway cannot
// read. The server can: it shows in JSON what it would store, by a dry run of the client's own bytes. That is judged,
// and the bytes are sent as they came.

// Show implements storage.Shower.
func (s *Store) Show(w *storage.Write) (isShown bool, err error) {
	if s.strategy.changes(s) || storage.IsTokenRequest(&w.Info) { // whose token must stay secret
		return false, nil
	}
	answer, err := s.dryRun(w.Exchanges, w.Source, nil)
	if err != nil {
		return false, err
	}
	switch code := answer.Status(); {
	case code == http.StatusCreated && w.Info.Verb == resource.VerbUpdate:
		return false, nil // it might no longer create the object when it is sent
	case !storage.IsDone(code):
		w.Exchanges.Response.CopyFrom(answer)
		return false, storage.ErrAnswered
	}
	const unreadable = "what would be stored, which has to be judged, must be a JSON object that the gateway can read"
	if w.Object, err = w.Exchanges.Parse(answer.Body(), s.Limits.Stored); err != nil {
		return false, status.BadGateway(unreadable)
	}
	switch root := w.Object.Root(); {
	case root.Kind() != document.Object:
		return false, status.BadGateway(unreadable)
	case storage.TextIn(root, "kind") == "Status" && storage.TextIn(root, "apiVersion") == "v1":
		return false, nil // of a binding or an eviction the server shows no object
	case w.Info.Verb == resource.VerbUpdate && s.NeedsExisting(w):
		return true, s.Get(w)
	}
	return true, nil
}
