package plain

import (
	"net/http"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// passedReads lets answers pass as they come.
type passedReads struct{ a *access }

// Read implements storage.Reader.
func (s passedReads) Read(r *storage.Request) error {
	return r.Send(s.a.Backend, &storage.Message{IsSafe: true})
}

// passedWrites sends what was admitted, and lets the answer pass as it comes.
type passedWrites struct{ a *access }

// Create implements storage.Creater.
func (s passedWrites) Create(w *storage.Write) error { return s.a.sender.pass(w) }

// Update implements storage.Updater.
func (s passedWrites) Update(w *storage.Write) error { return s.a.sender.pass(w) }

// pass sends a body on unchanged, or answers the dry run of it.
func (s sender) pass(w *storage.Write) error {
	if w.Info.Options.DryRun && emulates(s.Resource, resource.DryRun) {
		code := http.StatusOK
		if w.Creates() {
			code = http.StatusCreated
		}
		if w.Object != nil {
			s.hide(w.Object)
		}
		return answerContent(w, code)
	}
	m := w.Message()
	m.Precondition = preconditionOf(w)
	if err := s.send(w, &m); err != nil {
		return err
	}
	if w.Info.Verb == resource.VerbCreate {
		return nil
	}
	return refusedPin(w)
}
