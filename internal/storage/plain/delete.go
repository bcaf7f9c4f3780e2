package plain

import (
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// objectDeletions delete objects of Kubernetes' form, which finalizers keep, at a backend that only drops objects.
type objectDeletions struct {
	nativeDeletions // of a collection, unless the gateway selects its objects
	writes          objectWrites
}

// deletionsOf returns how objects of the resource are deleted.
func deletionsOf(a *access, of storedObject) storage.Deleter {
	native := nativeDeletions{a, of}
	if !keeps(a.Resource, resource.Deletion) {
		return native
	}
	return objectDeletions{native, objectWrites{a}}
}

// PrepareForDelete implements storage.Deleter.
func (s objectDeletions) PrepareForDelete(w *storage.Write) error {
	if w.Info.Verb == resource.VerbDeleteCollection {
		return s.nativeDeletions.PrepareForDelete(w)
	}
	if err := w.ReadDeleteOptions(s.a.Limits); err != nil {
		return err
	}
	if err := s.stored.Get(w); err != nil {
		return err
	}
	return checkPreconditions(w)
}

// Delete deletes the object as Kubernetes does, at a backend that only drops objects (RW-5).
func (s objectDeletions) Delete(w *storage.Write) error {
	if w.Info.Verb == resource.VerbDeleteCollection {
		return s.nativeDeletions.Delete(w)
	}
	finalizers, isChanged := finalizersLeft(w)
	switch {
	case len(finalizers) > 0:
		return s.markDeleting(w, finalizers, isChanged)
	case !w.Info.Options.DryRun:
		if err := s.writes.sendDelete(w); err != nil {
			return err
		}
		switch code := w.Exchanges.Response.Status(); {
		case w.Refused(code) == storage.Absent:
			return status.NotFound(w.Info.GroupResource(), w.Info.Name)
		case !storage.IsDone(code):
			return nil // the backend's refusal is the answer
		}
	}
	uid := types.UID(storage.TextIn(storage.Metadata(w.Existing.Object), "uid"))
	text := status.AppendJSON(nil, status.Deleted(w.Info.GroupResource(), w.Info.Name, uid))
	w.Exchanges.Response.StartJSON(http.StatusOK, nil, text)
	return nil
}

// sendDelete deletes the object in exactly the version that was judged.
func (s objectWrites) sendDelete(w *storage.Write) error {
	m := storage.Message{
		Method: methodDelete, Target: w.Exchanges.ItemTarget(&w.Info), ContentType: noType,
		Precondition: preconditionOf(w),
	}
	if answersObject(s.a.Resource) && w.Info.HasBody() {
		m.IsEdited, m.Whole = true, 2*s.a.Limits.Body
	}
	if err := s.a.sender.send(w, &m); err != nil {
		return err
	}
	return refusedPin(w)
}

// noType takes the client's Content-Type away.
var noType = []byte{}

// nativeDeletions are left to the backend. If a policy reads the stored object, the deletion is pinned to its version.
type nativeDeletions struct {
	a      *access
	stored stored
}

// PrepareForDelete implements storage.Deleter.
func (s nativeDeletions) PrepareForDelete(w *storage.Write) error {
	if s.stored.NeedsExisting(w) {
		if err := s.stored.Get(w); err != nil {
			return err
		}
	}
	if err := s.a.conditions.compareUnread(w); err != nil {
		return err
	}
	return checkUnread(s.a.Resource, w)
}

// Delete implements storage.Deleter.
func (s nativeDeletions) Delete(w *storage.Write) error {
	if w.Info.Options.DryRun && emulates(s.a.Resource, resource.DryRun) {
		w.Exchanges.Response.StartJSON(http.StatusOK, nil,
			[]byte(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`))
		return nil
	}
	m := w.Message()
	m.Precondition = preconditionOf(w)
	if err := s.a.sender.send(w, &m); err != nil {
		return err
	}
	return refusedPin(w)
}

// DeleteCollection implements storage.Deleter.
func (nativeDeletions) DeleteCollection(*storage.Write) (storage.Collection, error) { return nil, nil }

// checkPreconditions compares the stored object with the preconditions in the options.
func checkPreconditions(w *storage.Write) error {
	r := w.Resource
	metadata, kind := storage.Metadata(w.Existing.Object), apischema.GroupResource{Group: r.Group,
		Resource: r.Names.Kind}
	if p := w.Options.Preconditions; p != nil {
		if uid := storage.TextIn(metadata, "uid"); p.UID != nil && string(*p.UID) != uid {
			return status.Conflict(kind, w.Info.Name, "the UID in the precondition ("+storage.Short(string(*p.UID))+
				") does not match the UID in record ("+uid+
				"). The object might have been deleted and then recreated")
		}
		version := storage.TextIn(metadata, "resourceVersion")
		if err := storage.CheckDeletedVersion(w.Options, kind, w.Info.Name, version); err != nil {
			return err
		}
	}
	if unsafe := w.Options.IgnoreStoreReadErrorWithClusterBreakingPotential; unsafe != nil && *unsafe {
		return status.Conflict(w.Info.GroupResource(), w.Info.Name,
			"an unsafe deletion is not allowed, because the stored object can be read")
	}
	return nil
}

// finalizersLeft returns the finalizers that the object keeps when it is deleted with the options,
// and whether they differ from the ones it has. Dependents are handled by the client that takes the
// finalizers out again.
func finalizersLeft(w *storage.Write) (left []string, isChanged bool) {
	stored, _ := storage.Metadata(w.Existing.Object).Get("finalizers")
	orphan, foreground := false, false
	for f := stored.First(); f.Valid(); f = f.Next() {
		switch name := f.Str(); {
		case f.Kind() != document.String:
		case name == metav1.FinalizerOrphanDependents:
			orphan = true
		case name == metav1.FinalizerDeleteDependents:
			foreground = true
		default:
			left = append(left, name)
		}
	}
	hadOrphan, hadForeground := orphan, foreground
	switch o := w.Options; {
	case storage.Orphans(o) != nil:
		orphan, foreground = *storage.Orphans(o), false
	case o.PropagationPolicy != nil:
		orphan, foreground = *o.PropagationPolicy == metav1.DeletePropagationOrphan,
			*o.PropagationPolicy == metav1.DeletePropagationForeground
	}
	if orphan {
		left = append(left, metav1.FinalizerOrphanDependents)
	}
	if foreground {
		left = append(left, metav1.FinalizerDeleteDependents)
	}
	return left, orphan != hadOrphan || foreground != hadForeground
}

// markDeleting stores that the object is being deleted, because finalizers keep it, and answers with it.
func (s objectDeletions) markDeleting(w *storage.Write, finalizers []string, isChanged bool) error {
	marked := w.Existing.Object.Clone()
	metadata := storage.EnsureMetadata(marked)
	storage.SetMissing(marked, marked.Root(), "kind", s.a.Resource.Names.Kind)
	storage.SetMissing(marked, marked.Root(), "apiVersion", s.a.Resource.APIVersion())
	if isChanged {
		marked.Set(metadata, "finalizers", appendStrings(nil, finalizers))
	}
	now := time.Now().UTC()
	if deleted, err := time.Parse(time.RFC3339, storage.TextIn(metadata, "deletionTimestamp")); err != nil ||
		deleted.After(now) {
		if generation, _ := metadata.Get("generation"); err != nil {
			if n, ok := generation.Int64(); ok && n > 0 {
				marked.Set(metadata, "generation", strconv.AppendInt(nil, n+1, 10))
			}
		}
		marked.SetString(metadata, "deletionTimestamp", now.Format(time.RFC3339))
	}
	if period, _ := metadata.Get("deletionGracePeriodSeconds"); string(period.Raw()) != "0" {
		marked.Set(metadata, "deletionGracePeriodSeconds", []byte("0"))
	}
	w.SetObject(marked)
	code := http.StatusOK
	if orphan := storage.Orphans(w.Options); orphan != nil && !*orphan {
		code = http.StatusAccepted
	}
	switch {
	case w.Info.Options.DryRun:
		return s.writes.answerUnwritten(w, code)
	case s.writes.isUnchanged(w):
		w.SetObject(w.Existing.Object)
		w.Existing.Object = nil
		return s.writes.answerObject(w, w.Object, code, w.PinnedETag())
	}
	return s.writes.replace(w, code)
}

func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = document.AppendString(dst, s)
	}
	return append(dst, ']')
}

// isLastUpdate reports whether an update takes the last finalizer from an object that is being deleted, which
// deletes it (RW-5). The deletion is pinned by the ETag.
func (s objectWrites) isLastUpdate(w *storage.Write) (bool, error) {
	e := &w.Existing
	if e.Object == nil || w.Info.Verb == resource.VerbCreate || !keeps(s.a.Resource, resource.Deletion) {
		return false, nil
	}
	metadata := storage.Metadata(w.Object)
	if _, isDeleting := storage.Given(storage.Metadata(e.Object), "deletionTimestamp"); !isDeleting {
		return false, nil
	}
	finalizers, _ := metadata.Get("finalizers")
	period, _ := storage.Given(metadata, "deletionGracePeriodSeconds")
	if seconds, _ := period.Int64(); finalizers.Len() > 0 || seconds != 0 {
		return false, nil
	}
	if e.Pin != storage.PinnedByField {
		return true, nil
	}
	switch {
	case len(strong(e.ETag)) > 0:
		e.Pin = storage.PinnedByETag
	case s.a.Resource.Backend.Concurrency == resource.BestEffort:
		e.Pin = storage.NotPinned
	default:
		return false, status.BadGateway("the backend gave the stored object no strong ETag, so that its deletion cannot be pinned to what was judged")
	}
	return true, nil
}

// remove deletes the object instead of updating it, and answers as Kubernetes does: with the object as it
// would have been stored.
func (s objectWrites) remove(w *storage.Write, code int) error {
	if err := s.toStoredForm(w); err != nil {
		return err
	}
	if err := s.sendDelete(w); err != nil {
		return err
	}
	switch done := w.Exchanges.Response.Status(); {
	case !storage.IsDone(done) && w.Refused(done) != storage.Absent:
		return nil // the backend's refusal is the answer
	case len(w.Existing.Version) == 0:
		if err := s.toStoredForm(w); err != nil {
			return err
		}
	}
	return s.answerObject(w, w.Object, code, w.PinnedETag())
}
