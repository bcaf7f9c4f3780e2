package plain

import (
	"time"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// Lock implements storage.Updater.
func (w *writer) Lock(r *storage.Request, isOpaque bool) error {
	return w.lockFor(r, !isOpaque && w.needsExisting(&r.Info, w.readsToWrite()))
}

// lockFor takes the lock of the request's object. Whether a backend compares the version that a write is pinned
// to shows nowhere before a write is lost. So no two writes that read the object first come at the same
// time, and no other write comes between if one of those would undo it.
func (w *writer) lockFor(r *storage.Request, readsFirst bool) error {
	switch b := &w.Resource.Backend; {
	case !r.Info.IsObject() || b.Concurrency != resource.BestEffort && b.Versions == resource.NativeVersions:
	case readsFirst || w.storesWhole() || r.Info.Verb == resource.VerbUpdate && w.patchesByRules():
		return w.lock(r, r.ItemTarget(&r.Info))
	}
	return nil
}

// storesWhole reports whether there are writes that change a part of an object by storing all of it as it was
// read, which undoes what was written in between.
func (s *definition) storesWhole() bool {
	return s.Resource.Backend.Patch == resource.PatchEmulated || s.keepsStatus() && s.status != nil || s.emulates(resource.ScaleSubresource)
}

// patchesByRules reports whether a patch that the backend applies is held to rules over several fields, so that
// another write in between breaks what was found to hold.
func (s *definition) patchesByRules() bool {
	if s.Resource.Backend.Patch != resource.PatchValidated {
		return false
	}
	patch := resource.Info{Verb: resource.VerbPatch, IsResource: true, Group: s.Resource.Group, Version: s.Resource.Version, Resource: s.Resource.Names.Plural}
	schema := s.Schema(resource.VerbPatch)
	return schema != nil && schema.HasRules() || s.Policies.Concerns(&patch, admission.Update)
}

// lockNew takes the lock of an object that is created. A POST of a name that exists is the backend's to refuse, unless
// it refuses nothing.
func (w *writer) lockNew(r *storage.Request, path []byte) error {
	if w.Resource.Backend.Concurrency != resource.BestEffort {
		return nil
	}
	return w.lock(r, path)
}

// maxWait bounds the wait for the writes to an object that came before.
const maxWait = 10 * time.Second

// lock takes the lock of the object at a path until Request.Unlock.
func (w *writer) lock(r *storage.Request, path []byte) error {
	if r.IsLocked() {
		return nil
	}
	by := time.Now().Add(maxWait)
	if deadline := r.Deadline(); !deadline.IsZero() && deadline.Before(by) {
		by = deadline
	}
	lock, err := w.Locks.Acquire(w.Backend.Name, str(path), func() time.Duration { return time.Until(by) }, r.Exchanges.Tracer)
	if err != nil {
		return status.ServiceUnavailable(err.Error(), 1)
	}
	r.KeepLock(lock)
	return nil
}
