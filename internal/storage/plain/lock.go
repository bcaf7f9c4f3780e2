package plain

import (
	"strings"
	"time"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// lockFor takes the lock of the request's object. Whether a backend compares the version that a write is pinned
// to shows nowhere before a write is lost. So no two writes that read the object first come at the same
// time, and no other write comes between if one of those would undo it.
func (c *collection) lockFor(r *storage.Request, readsFirst bool) error {
	switch b := &c.Resource.Backend; {
	case c.comparesFor(&r.Info) && !c.isProved(methodOf(r.Head.Method)) || c.comparesWrite(&r.Info, r.Head):
		// A write that names no version must not come between the comparison of another one and its write.
		return c.lock(&r.Exchanges, r.ItemTarget(&r.Info))
	case !r.Info.IsObject() || b.Concurrency != resource.BestEffort && b.Versions == resource.NativeVersions:
	case readsFirst || c.storesWhole() || r.Info.Verb == resource.VerbUpdate && c.patchesByRules():
		return c.lock(&r.Exchanges, r.ItemTarget(&r.Info))
	}
	return nil
}

// storesWhole reports whether there are writes that change a part of an object by storing all of it as it was
// read, which undoes what was written in between.
func (c *collection) storesWhole() bool {
	return c.Resource.Backend.Patch == resource.PatchEmulated || c.keepsStatus() && c.status != nil || c.emulates(resource.ScaleSubresource)
}

// patchesByRules reports whether rules over several fields apply to a patch that the backend
// applies. Another write in between could break such a rule.
func (c *collection) patchesByRules() bool {
	if c.Resource.Backend.Patch != resource.PatchValidated {
		return false
	}
	patch := resource.Info{Verb: resource.VerbPatch, IsResource: true, Group: c.Resource.Group, Version: c.Resource.Version, Resource: c.Resource.Names.Plural}
	schema := c.schema(resource.VerbPatch)
	return schema != nil && schema.HasRules() || c.ObjectPolicies.Concerns(&patch, admission.Update)
}

// lockNew takes the lock of an object that is created. A POST of a name that exists is the backend's to refuse, unless
// it refuses nothing.
func (c *collection) lockNew(e *storage.Exchanges, path []byte) error {
	if c.Resource.Backend.Concurrency != resource.BestEffort {
		return nil
	}
	return c.lock(e, path)
}

// maxWait bounds the wait for the writes to an object that came before.
const maxWait = 10 * time.Second

// lock takes the lock of the object at a path until Request.Unlock.
func (c *collection) lock(e *storage.Exchanges, path []byte) error {
	if e.IsLocked() {
		return nil
	}
	by := time.Now().Add(maxWait)
	if deadline := e.Deadline(); !deadline.IsZero() && deadline.Before(by) {
		by = deadline
	}
	// A path with a slash at its end may be another spelling of the same.
	lock, err := c.Locks.Acquire(c.Backend.Name, strings.TrimSuffix(str(path), "/"), func() time.Duration { return time.Until(by) }, e.Tracer)
	if err != nil {
		return status.ServiceUnavailable(err.Error(), 1)
	}
	e.KeepLock(lock)
	return nil
}
