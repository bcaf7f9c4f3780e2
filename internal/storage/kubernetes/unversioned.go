package kubernetes

import (
	"net/http"

	"github.com/admission-gateway/gateway/internal/storage"
)

// A PUT that names no version overwrites whatever is stored, and a server refuses it for the kinds
// that it updates by version alone. If policies judge the write against the stored object, the
// gateway pins it to that object's version, and the server could no longer know that the client
// named none. So it is asked first, by a dry run of the write without the version.

// tryUnversioned finds out whether the server takes the write without the version that the gateway wrote into it. If it
// does not, its answer is the client's.
func (s *Store) tryUnversioned(w *storage.Write) error {
	if !w.Existing.IsUncertain {
		return nil
	}
	answer, err := s.dryRun(w.Exchanges, withoutVersion(w), valueJSON)
	if err != nil {
		return err
	}
	switch code := answer.Status(); {
	case storage.IsDone(code):
		return nil
	case code == http.StatusConflict:
		return storage.ErrConflict // it is no longer the object that was judged
	}
	w.Exchanges.Response.CopyFrom(answer)
	return storage.ErrAnswered
}

// withoutVersion returns the object to send, as if the gateway had not pinned it.
func withoutVersion(w *storage.Write) []byte {
	w.Conceal()
	d := w.Object.Clone()
	defer d.Release()
	if at, found := storage.Metadata(d).Get("resourceVersion"); found {
		d.Remove(at)
	}
	return d.AppendTo(nil)
}
