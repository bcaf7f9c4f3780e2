package plain

import (
	"net/http"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// sentPatches are patches of a backend that has PATCH itself. The result of a patch is admitted, and then the
// client's own patch is sent: what the backend does atomically stays so.
type sentPatches struct {
	a      *access
	writes objectWrites
}

// Patched implements storage.Patcher.
func (s sentPatches) Patched(w *storage.Write) (isPrepared bool, err error) {
	return false, s.a.reader.patched(w)
}

// Patch implements storage.Patcher.
func (s sentPatches) Patch(w *storage.Write) error { return s.sendPatch(w, w.Patch) }

// sentStatusPatches are patches of the status of such objects.
type sentStatusPatches struct{ ofObject sentPatches }

// Patched implements storage.Patcher.
func (s sentStatusPatches) Patched(w *storage.Write) (isPrepared bool, err error) {
	return s.ofObject.Patched(w)
}

// Patch implements storage.Patcher. The client's patch is one of the status alone, so a patch of
// the object with the same effect is made.
func (s sentStatusPatches) Patch(w *storage.Write) error {
	text := []byte("{}")
	if w.PatchType == storage.JSONPatch {
		text = []byte("[]")
	}
	patch, err := w.Exchanges.Parse(text, s.ofObject.a.Limits.Sent)
	if err != nil {
		return err
	}
	defer patch.Release()
	return s.ofObject.sendPatch(w, patch)
}

// sendPatch sends a patch that turns the stored object into the admitted one: the given patch, with
// the gateway's changes to its result folded in.
func (s sentPatches) sendPatch(w *storage.Write, patch *document.Document) error {
	if w.Info.Options.DryRun && emulates(s.a.Resource, resource.DryRun) {
		return s.writes.answerUnwritten(w, http.StatusOK)
	}
	m := storage.Message{Body: w.Exchanges.Body, Precondition: preconditionOf(w)}
	if w.Info.Subresource != "" {
		m.Target = w.Exchanges.ItemTarget(&w.Info)
	}
	if patch != w.Patch || patch.Edited() || w.Object.Edited() || w.Existing.IsCompleted ||
		w.Existing.Pin == storage.PinnedByField {
		folded, err := s.foldedPatch(w, patch)
		switch isForm := w.PatchType == storage.FormPatch; {
		case err != nil:
			return err
		case isForm && patch.Edited():
			return status.UnusableForm("policies or versions change the object")
		case !isForm:
			m.Body = folded
		}
	}
	if err := s.writes.sendPinned(w, &m); err != nil {
		return err
	}
	return refusedPin(w)
}

// foldedPatch returns the text of the patch with what the gateway changes of its result.
func (s sentPatches) foldedPatch(w *storage.Write, patch *document.Document) ([]byte, error) {
	stored := w.Existing.Object // with the defaults that reads set: nothing is put into a form
	if w.PatchType != storage.FormPatch {
		var err error
		if stored, err = parseShown(s.a.Resource, w, w.Exchanges.StoredBody()); err != nil {
			return nil, err
		}
		defer stored.Release()
	}
	want := w.Object.Clone()
	defer want.Release()
	if err := s.a.restoreUnknown(w, want); err != nil {
		return nil, err
	}
	if w.Existing.Pin == storage.PinnedByField {
		version, _ := storage.Find(stored.Root(), s.a.Resource.Fields.Version)
		if err := storage.SetAt(want, s.a.Resource.Fields.Version, version.Raw()); err != nil {
			return nil, w.Unplaced(err)
		}
	}
	f := fold{
		write: w, patch: patch, stored: stored, completed: w.Existing.Object, want: want, limits: s.a.Limits.Sent,
		isUnfilled: w.Existing.IsCompleted && s.a.Resource.Envelope == resource.Bare &&
			w.PatchType != storage.FormPatch,
	}
	if w.Existing.Pin == storage.PinnedByField {
		f.pin = s.a.Resource.Fields.Version
	}
	text, ok := f.mergePatch, false
	if w.PatchType == storage.JSONPatch {
		text = f.jsonPatch
	}
	body, ok := text()
	switch {
	case ok:
	case w.PatchType == storage.FormPatch:
		return nil, status.UnusableForm("policies or versions change the object")
	case f.isUnfilled:
		return nil, notApplicable(w, "it depends on a member that is not stored: what was read is its default")
	default:
		return nil, status.Internal("what policies make of the object cannot be said in the language of the patch")
	}
	return body, nil
}
