package plain

import (
	"bytes"
	"net/http"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// resolve finds out by one read whether a write was carried out whose outcome is unknown. If it was, the answer is the
// one that the backend would have given; else it is not known, for the backend may still carry the write out.
func (s sender) resolve(w *storage.Write, m *storage.Message, unknown *storage.UnknownOutcome) error {
	if !s.isProof(w, m) {
		return unknown.Unresolved()
	}
	target, err := s.storedAt(w)
	if err != nil {
		return unknown.Unresolved()
	}
	answer, err := w.Exchanges.ReadAfterWrite(s.Backend, target, s.Limits)
	if err != nil || !s.isLeft(w, m, answer) {
		return unknown.Unresolved()
	}
	r := &w.Exchanges.Response
	r.Discard()
	switch {
	case answer.Status() != http.StatusOK:
		r.Start(http.StatusNoContent) // the object is gone
	case w.Creates():
		r.StartJSON(http.StatusCreated, answer.Header("ETag"), bytes.Clone(answer.Body()))
	default:
		r.StartJSON(http.StatusOK, answer.Header("ETag"), bytes.Clone(answer.Body()))
	}
	return nil
}

// isProof reports whether a stored object that is as the write leaves it shows that the write was carried out: it
// makes no difference who wrote it, or only this request can have written it. That is so for a name or uid that the
// gateway has made, and while no other gateway writes the object.
func (s sender) isProof(w *storage.Write, m *storage.Message) bool {
	i := &w.Info
	isNew := i.Verb == resource.VerbCreate
	switch {
	case s.Resource.Operation != nil, i.Subresource != "" && !isPartOf(s.Resource, i), !i.IsObject() && !isNew,
		isNew && i.Name == "":
		return false
	case w.IsRepeatable() && !s.namesVersion(w, m):
		return true
	case isNew:
		return w.HasGeneratedName || keeps(s.Resource, resource.SystemMetadata)
	}
	return w.Exchanges.HoldsLock() && !s.LocksAlone
}

// namesVersion reports whether a client names the version that it replaces in the object that it sends.
func (s sender) namesVersion(w *storage.Write, m *storage.Message) bool {
	isOwn := w.Existing.Pin == storage.PinnedByField || w.Existing.Pin == storage.PinnedByObject // the gateway's own
	path := s.Resource.Fields.Version
	if path == nil && s.Resource.Backend.Versions == resource.NativeVersions {
		path = resource.FieldPath{"metadata", "resourceVersion"}
	}
	if isOwn || path == nil || w.Info.Verb != resource.VerbUpdate {
		return false
	}
	sent, err := s.sent(w, m)
	if err != nil {
		return true
	}
	defer sent.Release()
	at, found := storage.Find(sent.Root(), path)
	return found && versionIn(at) != ""
}

// storedAt returns the target of the object that a write leaves.
func (s sender) storedAt(w *storage.Write) ([]byte, error) {
	if w.Info.Verb != resource.VerbCreate {
		return w.Exchanges.ItemTarget(&w.Info), nil
	}
	return newTarget(s.Resource, w)
}

// isLeft reports whether the answer to a read shows what the write leaves.
func (s sender) isLeft(w *storage.Write, m *storage.Message, answer *message.Response) bool {
	e := &w.Existing
	switch code := answer.Status(); {
	case w.Info.Verb == resource.VerbDelete || m.Method != nil && string(m.Method) == http.MethodDelete:
		return code == http.StatusNotFound || code == http.StatusGone
	case code != http.StatusOK || !isOneObject(answer) || isUnshown(s.Resource):
		return false
	case e.Pin == storage.PinnedByETag && bytes.Equal(answer.Header("ETag"), e.ETag):
		return false // the version that the write was to replace
	}
	stored, err := parseShown(s.Resource, w, answer.Body())
	if err != nil {
		return false
	}
	defer stored.Release()
	sent, err := s.sent(w, m)
	if err != nil {
		return false
	}
	defer sent.Release()
	if e.Pin == storage.PinnedByField {
		before, _ := storage.Find(e.Root(), s.Resource.Fields.Version)
		if now, _ := storage.Find(stored.Root(), s.Resource.Fields.Version); versionIn(now) == versionIn(before) {
			return false
		}
	}
	for _, d := range [...]*document.Document{stored, sent} {
		removeVersion(s.Resource, d)
	}
	return document.EqualNodes(stored.Root(), sent.Root()) || sendsPatch(s.Resource, w) && s.equalsCompleted(w, stored,
		sent)
}

// sent returns a copy of the object that a write leaves.
func (s sender) sent(w *storage.Write, m *storage.Message) (*document.Document, error) {
	if w.Object == nil {
		return w.Exchanges.ParseStored(m.Body)
	}
	return w.Object.Clone(), nil
}

// removeVersion removes from an object what the backend, or the gateway, makes anew with each write.
func removeVersion(r *resource.Resource, d *document.Document) {
	if at, found := storage.Find(d.Root(), r.Fields.Version); r.Fields.Version != nil && found {
		d.Remove(at)
	}
	if keeps(r, resource.ResourceVersions) {
		if at, found := storage.Metadata(d).Get("resourceVersion"); found {
			d.Remove(at)
		}
	}
}

// equalsCompleted compares what the backend made of a patch with the result that was judged, which has defaults.
func (s sender) equalsCompleted(w *storage.Write, stored, sent *document.Document) bool {
	schema := s.defaulting(resource.VerbPatch)
	if schema == nil || completeStored(stored, schema, s.Limits.Completed(), w.Exchanges.Memory) != nil {
		return false
	}
	return document.EqualNodes(stored.Root(), sent.Root())
}

// compares reports whether the backend is known to refuse requests of a method that name another version.
func (c *Comparison) compares(method string) bool {
	return c != nil && c.givesStrong() && c.of(method).get() == Compared
}

// isUntouched reports whether a read shows that an object still has the version that a write was to replace.
func (s sender) isUntouched(w *storage.Write) bool {
	answer, err := w.Exchanges.ReadAfterWrite(s.Backend, w.Exchanges.ItemTarget(&w.Info), s.Limits)
	return err == nil && answer.Status() == http.StatusOK && bytes.Equal(answer.Header("ETag"), w.Existing.ETag)
}
