package plain

import (
	"net/http"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// storedObject reads the object itself, also for a write of a subresource that is a part of it.
type storedObject struct {
	a *access
	// isRead says that a write depends on the object for more than its status.
	isRead bool
}

// wholeObject returns what writes of objects depend on.
func wholeObject(a *access) storedObject { return storedObject{a, readsToWrite(a.Resource)} }

// partOfObject returns what writes of a subresource that is a part of the object depend on.
func partOfObject(a *access) storedObject { return storedObject{a, false} }

// NeedsExisting implements storage.Updater.
func (s storedObject) NeedsExisting(w *storage.Write) bool {
	return s.a.reader.needsExisting(&w.Info, s.isRead)
}

// Get implements storage.Updater.
func (s storedObject) Get(w *storage.Write) error { return s.a.reader.getObject(w) }

// Lock implements storage.Updater.
func (s storedObject) Lock(r *storage.Request, isOpaque bool) error {
	return s.a.locker.lockFor(r, !isOpaque && s.a.reader.needsExisting(&r.Info, s.isRead))
}

// needsExisting reports whether the stored object decides anything about the write. isRead says that the
// write of an object depends on it for more than its status.
func (s storedReader) needsExisting(i *resource.Info, isRead bool) bool {
	if !i.IsObject() {
		return false
	}
	if isUnshown(s.Resource) {
		return s.needsUnshown(i) != "" || s.mayCreate(i) || i.Verb == resource.VerbUpdate &&
			!s.Resource.Writes.CreateOnUpdate
	}
	if storage.ReadsExisting(s.Policies, i) || s.mayCreate(i) {
		return true
	}
	if i.Verb == resource.VerbDelete {
		return false
	}
	if isRead || i.Verb == resource.VerbPatch || s.status != nil && keepsStatus(s.Resource) {
		return true
	}
	schema := s.schema(i.Verb)
	return schema != nil && schema.NeedsOld()
}

// mayCreate reports whether it matters to policies if a PUT creates the object, so that it has to be known.
func (s storedReader) mayCreate(i *resource.Info) bool {
	return storage.NamesObject(i, s.Resource) && s.Policies.Concerns(i, admission.Create) &&
		s.Policies.Differs(i, admission.Create, admission.Update)
}

// readsToWrite reports whether the write of an object depends on what is stored beyond its status: for what
// the system owns of the metadata, for the version that it may name, or because it must not create the object.
func readsToWrite(r *resource.Resource) bool {
	if keeps(r, resource.SystemMetadata|resource.Deletion) || !r.Writes.CreateOnUpdate {
		return true
	}
	return emulates(r, resource.ResourceVersions) && (r.Backend.Versions != resource.ETagVersions ||
		r.Fields.Version != nil)
}

// getObject reads the object that a write replaces.
func (s storedReader) getObject(w *storage.Write) error {
	return s.get(w, w.Exchanges.ItemTarget(&w.Info), true)
}

// get reads what a write replaces. isObject says that it is an object of the resource, and not one of
// another kind.
func (s storedReader) get(w *storage.Write, target []byte, isObject bool) error {
	e := w.Exchanges
	isUnshown := isObject && isUnshown(s.Resource)
	if isUnshown {
		if err := s.refuseUnshown(&w.Info); err != nil {
			return err
		}
	}
	last := s.lastStored(w, target)
	if last != nil && !isUnshown && s.goesOnFrom(last) {
		w.Existing.Unread = last.Unread
		if err := s.take(w, last.Body, last.ETag, isObject); err != nil {
			return err
		}
		return s.pin(w)
	}
	answer, err := e.ReadStored(s.Backend, target, s.Limits)
	if err != nil {
		return err
	}
	s.compareLast(w, last, answer)
	if answer.Status() == http.StatusMethodNotAllowed && w.Info.Subresource != "" {
		// A subresource that can only be written is a view of the object itself.
		if answer, err = e.ReadStored(s.Backend, e.ItemTarget(&w.Info), s.Limits); err != nil {
			return err
		}
	}
	switch code := answer.Status(); {
	case code == http.StatusNotFound && storage.NamesObject(&w.Info, s.Resource):
		return s.absent(w)
	case code != http.StatusOK:
		return s.unread(w, answer)
	}
	if isUnshown { // that there is one is all that is known
		w.Existing.ETag = append(w.Existing.ETag[:0], answer.Header("ETag")...)
	} else if err := s.take(w, answer.Body(), answer.Header("ETag"), isObject); err != nil {
		return err
	}
	if hasPreconditions(w.Exchanges.Head) && s.Resource.Backend.Versions != resource.NativeVersions {
		if err := s.compareRead(w, answer); err != nil {
			return err
		}
	}
	return s.pin(w)
}

// unread ends a write if the backend does not give the stored object: by the backend's own answer if its errors pass.
func (c *collection) unread(w *storage.Write, answer *message.Response) error {
	switch code := answer.Status(); {
	case code >= http.StatusBadRequest && c.mediaTypes.Errors == storage.Anything:
		w.Exchanges.Response.CopyFrom(answer)
		return storage.ErrAnswered
	case code == http.StatusNotFound:
		return status.NotFound(w.Info.GroupResource(), w.Info.Name)
	}
	return storage.NewBackendError(&w.Info, answer)
}

// take takes an object that was read as the stored one, as a client that reads it would see it.
func (s storedReader) take(w *storage.Write, body, etag []byte, isObject bool) (err error) {
	e := &w.Existing
	if !isObject {
		e.Object, err = w.Exchanges.ParseStored(body)
		e.ETag = append(e.ETag[:0], etag...)
		return err
	}
	if e.Object, err = parseShown(s.Resource, w, body); err != nil {
		return err
	}
	if err := s.checkShown(w, e.Root()); err != nil {
		return err
	}
	e.ETag = append(e.ETag[:0], etag...)
	if emulates(s.Resource, resource.ResourceVersions|resource.ScaleSubresource) {
		e.Version = versionOf(e.Version[:0], s.Resource, e.Object.Root(), etag)
	}
	if schema := s.defaulting(resource.VerbPatch); schema != nil { // as far as the API shows it
		if err := completeStored(e.Object, schema, s.Limits.Completed(), w.Exchanges.Memory); err != nil {
			return err
		}
	}
	e.IsCompleted = e.Object.Edited()
	if keeps(s.Resource, resource.ResourceVersions) && len(e.Version) > 0 {
		setVersion(e.Object, e.Object.Root(), e.Version)
	}
	return nil
}

// absent is how a write goes on if nothing is stored under the name.
func (s storedReader) absent(w *storage.Write) error {
	w.Existing.IsAbsent = true
	return s.compareAbsent(w)
}

// pin makes the write conditional on the version that was read.
func (s storedReader) pin(w *storage.Write) error {
	e := &w.Existing
	if s.Resource.Backend.Versions == resource.NativeVersions {
		return w.PinResourceVersion(s.Limits, storage.Unversioned{})
	}
	isBestEffort := s.Resource.Backend.Concurrency == resource.BestEffort
	switch {
	case isUnshown(s.Resource) && s.Resource.Backend.Versions == resource.FieldVersions:
	case s.Resource.Backend.Versions == resource.FieldVersions && w.Info.HasBody():
		if stored, found := storage.Find(e.Root(), s.Resource.Fields.Version); found && versionIn(stored) != "" {
			e.Pin = storage.PinnedByField
		} else if !isBestEffort {
			return status.BadGateway("the stored object has no version in `" +
				storage.PathString(s.Resource.Fields.Version) +
				"`, so that the write cannot be pinned to what was judged")
		}
	case s.Resource.Backend.Versions == resource.NoVersions:
	case len(strong(e.ETag)) > 0:
		s.Comparison.noteStrong()
		e.Pin = storage.PinnedByETag
	case len(e.ETag) > 0: // which no If-Match matches: the lock of the object alone keeps other writers away
		s.Comparison.noteETags(Weak)
	default:
		s.Comparison.noteETags(None)
	}
	return nil
}

// sendsPatch reports whether the write is a patch that the backend applies itself: without a version that it
// compares, what others write at the same time stays all the same.
func sendsPatch(r *resource.Resource, w *storage.Write) bool {
	return w.Info.Verb == resource.VerbPatch && r.Backend.Patch == resource.PatchValidated
}

// checkVersion checks the version and the uid that a write names: another one than the stored
// object's is a Conflict, none is Invalid if the resource asks for one (RW-1).
func checkVersion(r *resource.Resource, w *storage.Write) error {
	if err := checkUnread(r, w); err != nil {
		return err
	}
	switch {
	case w.Info.Verb == resource.VerbCreate:
		return nil
	case w.Existing.Pin == storage.PinnedByObject && w.Info.Verb == resource.VerbPatch:
		if storage.TextIn(storage.Metadata(w.Object), "resourceVersion") != storage.TextIn(
			storage.Metadata(w.Existing.Object), "resourceVersion") {
			return w.Conflict()
		}
		return nil
	case emulates(r, resource.ResourceVersions) && r.Envelope == resource.Bare:
		named := versionOf(nil, r, w.Object.Root(), nil)
		return compareVersion(r, w, string(named), r.Fields.Version...)
	case !keeps(r, resource.ResourceVersions|resource.SystemMetadata):
		return nil
	}
	metadata := storage.Metadata(w.Object)
	if err := checkUID(r, w, metadata); err != nil {
		return err
	}
	if !emulates(r, resource.ResourceVersions) {
		return nil
	}
	named, err := textOf(r, w, metadata, "resourceVersion")
	if err != nil {
		return err
	}
	return compareVersion(r, w, named, "metadata", "resourceVersion")
}

// textOf reads a member of metadata that must be a string; if it is not, the patch is to blame.
func textOf(r *resource.Resource, w *storage.Write, metadata document.Node, key string) (string, error) {
	text, err := storage.Text(metadata, key, "metadata.")
	if err != nil && w.Info.Verb == resource.VerbPatch && appliesPatches(r) && r.Envelope == resource.Kubernetes {
		return "", w.Unreadable(err.Error())
	}
	return text, err
}

// checkUnread refuses a write of what was not read if the client's own precondition can never hold: middleware that
// compares nothing would let it pass.
func checkUnread(r *resource.Resource, w *storage.Write) error {
	if isRegistered(r) && w.Existing.Object == nil && !w.Existing.IsAbsent && !w.Existing.IsCompared &&
		neverMatches(w.Exchanges.Head) {
		return refusedBy(&w.Subject, w.Exchanges.Head, &validators{}, unmatched)
	}
	return nil
}

// checkUID compares the uid in a PUT, which is a precondition. A patch starts from the stored one, so that it
// can only try to change it, which the schema's checks refuse.
func checkUID(r *resource.Resource, w *storage.Write, metadata document.Node) error {
	if w.Info.Verb != resource.VerbUpdate || w.Existing.Object == nil && !w.Existing.IsAbsent ||
		!emulates(r, resource.SystemMetadata) {
		return nil
	}
	named, err := textOf(r, w, metadata, "uid")
	if err != nil || named == "" {
		return err
	}
	if stored := storage.TextIn(storage.Metadata(w.Existing.Object), "uid"); named != stored {
		return status.Conflict(w.Info.GroupResource(), w.Info.Name, "Precondition failed: UID in precondition: "+
			storage.Short(named)+", UID in object meta: "+stored)
	}
	return nil
}

// untold refuses an update that names a version, or has to, if the backend gives none.
func untold() error {
	return status.Internal("the backend gave the stored object no strong ETag, so that an update can name no version that it replaces; " +
		"an APIResource may state `concurrency: BestEffort` to make versions of the content")
}

// compareVersion compares the version that a write names at a path; Kubernetes reads "0" as none.
func compareVersion(r *resource.Resource, w *storage.Write, named string, path ...string) error {
	e := &w.Existing
	isUntold := e.Object != nil && len(e.Version) == 0
	switch {
	case named == "" || named == "0":
		if !r.Writes.UnconditionalUpdate && !e.IsAbsent && !namesETag(w.Exchanges.Head) {
			if isUntold {
				return untold()
			}
			kind := apischema.GroupKind{Group: w.Info.Group, Kind: w.Info.Resource}
			at := field.NewPath(path[0], path[1:]...)
			return status.Invalid(kind, w.Info.Name,
				field.ErrorList{field.Invalid(at, 0, "must be specified for an update")}, 0)
		}
		if e.Object != nil && r.Envelope == resource.Kubernetes && len(e.Version) > 0 {
			setVersion(w.Object, w.Object.Root(), e.Version)
		}
	case isUntold:
		return untold()
	case e.IsAbsent, e.Object != nil && named != str(e.Version):
		return w.Conflict()
	case e.Object == nil:
		return pinToNamed(r, w, named)
	case w.Info.Verb == resource.VerbUpdate: // in a patch it is the stored one
		w.IsPinned = true
	}
	return nil
}

// pinToNamed pins a write to the version that the client names, without a look at what is stored.
func pinToNamed(r *resource.Resource, w *storage.Write, version string) error {
	etag, ok := appendETag(w.Existing.ETag[:0], version)
	if w.Existing.ETag = etag; !ok {
		return w.Conflict()
	}
	w.Existing.Pin, w.IsPinned = storage.PinnedByETag, true
	return nil
}

// namesETag reports whether the client named the version in a header.
func namesETag(head *message.Head) bool {
	version, found := head.Lookup("If-Match")
	return found && len(strong(version)) > 0 && string(version) != "*"
}
