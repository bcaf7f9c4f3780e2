package kubernetes

import (
	"errors"
	"net/http"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// NeedsExisting implements storage.Updater. The object is read only if something depends on it.
func (s *Store) NeedsExisting(w *storage.Write) bool {
	i := &w.Info
	if !i.IsObject() {
		return false
	}
	if s.areAbout(i) || s.mayCreate(w) {
		return true
	}
	if i.Verb == resource.VerbDelete {
		return false
	}
	schema := s.Schema(w)
	return schema != nil && schema.NeedsOld()
}

// areAbout reports whether a policy that may match the write reads the stored object, or what the
// server carries over from it.
func (s *Store) areAbout(i *resource.Info) bool {
	return storage.ReadsExisting(s.Policies, i) || s.showsCarried(i) && s.Policies.ReadsCarried()
}

// mayCreate reports whether it matters to policies if a PUT creates the object. A server creates no object
// whose uid the client names, so that updates of what clients have read need no question.
func (s *Store) mayCreate(w *storage.Write) bool {
	return s.createsByUpdate(&w.Info) && storage.TextIn(storage.Metadata(w.Object), "uid") == ""
}

// createsByUpdate reports whether it matters to policies if a PUT creates the object: they match creations, or some
// that are about updates are not.
func (s *Store) createsByUpdate(i *resource.Info) bool {
	return storage.NamesObject(i, s.Resource) && (s.Policies.Concerns(i, admission.Create) ||
		s.Policies.Concerns(i, admission.Update))
}

// Get implements storage.Updater. A subresource that can only be written, such as a namespace's finalize, is
// a view of the object itself.
func (s *Store) Get(w *storage.Write) error {
	e := w.Exchanges
	rule := s.ReadRule(&w.Info)
	target := e.ItemTarget
	if rule.Subresource != "" {
		target = e.PathTarget
	}
	answer, err := e.ReadOwn(s.Backend, target(&w.Info), rule, &w.Subject, s.Limits)
	if err != nil {
		return err
	}
	if answer.Status() == http.StatusMethodNotAllowed && rule.Subresource != "" {
		rule.Subresource = ""
		if answer, err = e.ReadOwn(s.Backend, e.ItemTarget(&w.Info), rule, &w.Subject, s.Limits); err != nil {
			return err
		}
	}
	switch code := answer.Status(); {
	case code == http.StatusNotFound && storage.NamesObject(&w.Info, s.Resource):
		w.PinToNothing()
		return nil
	case code == http.StatusNotFound:
		return status.NotFound(w.Info.GroupResource(), w.Info.Name)
	case code != http.StatusOK:
		return storage.NewBackendError(&w.Info, answer)
	}
	if w.Existing.Object, err = e.ParseStored(answer.Body()); err != nil {
		return err
	}
	if w.Patch != nil {
		return samePatched(w)
	}
	return w.PinResourceVersion(s.Limits, s.unversioned(w))
}

// samePatched returns ErrConflict if the stored object is no longer the one that the server patched in the dry run.
func samePatched(w *storage.Write) error {
	if storage.TextIn(storage.Metadata(w.Existing.Object), "resourceVersion") != storage.TextIn(
		storage.Metadata(w.Object), "resourceVersion") {
		return storage.ErrConflict
	}
	return nil
}

// Lock implements storage.Updater. The server compares versions.
func (s *Store) Lock(*storage.Request, bool) error { return nil }

// Update implements storage.Updater.
func (s *Store) Update(w *storage.Write) error {
	if err := s.tryUnversioned(w); err != nil {
		return err
	}
	if w.Info.Verb == resource.VerbUpdate {
		w.WritePinToNothing()
	}
	if err := s.send(w); err != nil {
		return err
	}
	if code := w.Exchanges.Response.Status(); w.Refused(code) == storage.Outdated || isNotCreated(w, code) {
		w.Exchanges.Response.Discard()
		return storage.ErrConflict
	}
	return nil
}

// isNotCreated reports whether a dry run that was judged as a creation turned out to be an update.
func isNotCreated(w *storage.Write, code int) bool {
	return w.Existing.IsAbsent && w.Info.Options.DryRun && code == http.StatusOK
}

// Create implements storage.Creater.
func (s *Store) Create(w *storage.Write) error {
	if err := s.send(w); err != nil {
		return err
	}
	if w.Refused(w.Exchanges.Response.Status()) == storage.NameTaken {
		w.Exchanges.Response.Discard()
		return storage.ErrNameTaken
	}
	return nil
}

// send sends what was admitted.
func (s *Store) send(w *storage.Write) error {
	m := w.Message()
	if limit := s.Limits.Stored.Bytes; s.Resource != nil && len(m.Body) > limit {
		return storage.TooLarge(limit)
	}
	if asksDryRun(w) {
		if err := s.Proofs.prove(w.Exchanges, s.Backend); err != nil {
			return err
		}
	}
	return s.sendResolved(w, &m)
}

// sendResolved sends a write, and resolves its outcome if that is unknown.
func (s *Store) sendResolved(w *storage.Write, m *storage.Message) error {
	err := w.Exchanges.Send(s.Backend, m)
	if unknown, is := errors.AsType[*storage.UnknownOutcome](err); is {
		return s.resolve(w, m, unknown)
	}
	return err
}

// Pass implements storage.Storage.
func (s *Store) Pass(w *storage.Write) error { return s.send(w) }

// Read implements storage.Reader. What the server answers passes as it comes.
func (s *Store) Read(r *storage.Request) error {
	m := storage.Message{IsSafe: true, IsWatch: r.Info.Options.Watch}
	if m.IsWatch {
		if period := s.Backend.Client.WatchPeriod(); period > 0 {
			m.Target = watchTarget(&r.Exchanges, &r.Info, period)
		}
	}
	return r.Send(s.Backend, &m)
}

// Refusal implements storage.Updater. The server looks for the stored object before it judges what is to
// replace it. The gateway looks only if a policy depends on it; that the object is not there, or of another
// version, is found out when there is another refusal to be given.
func (s *Store) Refusal(w *storage.Write, refusal error) error {
	var e *status.Error
	if w.Info.Verb != resource.VerbUpdate || w.Existing.Object != nil || !errors.As(refusal, &e) ||
		!s.replacesExactly() ||
		e.ErrStatus.Code != http.StatusUnprocessableEntity && e.ErrStatus.Code != http.StatusForbidden {
		return refusal
	}
	answer, err := w.Exchanges.ReadOwn(s.Backend, w.Exchanges.ItemTarget(&w.Info), itemRule(&w.Info, resource.VerbGet),
		&w.Subject, s.Limits)
	if err != nil {
		return refusal
	}
	switch answer.Status() {
	case http.StatusNotFound:
		return status.NotFound(w.Info.GroupResource(), w.Info.Name)
	case http.StatusOK:
		existing, err := w.Exchanges.Parse(answer.Body(), s.Limits.Stored)
		if err != nil {
			return refusal
		}
		w.Existing.Object = existing
		named := storage.TextIn(storage.Metadata(w.Object), "resourceVersion")
		if !s.needsVersion(w, named) && named != storage.TextIn(storage.Metadata(existing), "resourceVersion") {
			return w.Conflict()
		}
	}
	return refusal
}

// asksDryRun reports whether a write, as it is sent, asks for a dry run: in its query, or in the options in its
// body.
func asksDryRun(w *storage.Write) bool {
	if !w.Info.IsWrite() {
		return false
	}
	if w.Exchanges.IsDryRun() || w.Info.Options.DryRun {
		return true
	}
	if w.Info.Verb.Operation() == admission.Delete {
		if w.Object == nil {
			return len(w.Source) > 0 // options that the gateway has not read
		}
		asked, found := w.Object.Root().Get("dryRun")
		return found && asked.Kind() != document.Null && (asked.Kind() != document.Array || asked.Len() > 0)
	}
	return false
}
