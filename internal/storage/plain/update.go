package plain

import (
	"net/http"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// Update implements storage.Updater.
func (s *Store) Update(w *storage.Write) error {
	isLast, err := s.isLastUpdate(w)
	if err != nil {
		return err
	}
	code := http.StatusOK
	if w.Existing.IsAbsent {
		code = http.StatusCreated
	}
	switch {
	case w.Info.Options.DryRun && s.emulates(resource.DryRun):
		return s.answerUnwritten(w, code)
	case isLast:
		return s.remove(w, code)
	case s.isUnchanged(w):
		// The answer is the stored object, in its own spelling.
		w.SetObject(w.Existing.Object)
		w.Existing.Object = nil
		return s.answerObject(w, w.Object, code, w.PinnedETag())
	}
	return s.replace(w, code)
}
