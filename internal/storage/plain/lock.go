package plain

import (
	"net/url"
	"strings"
	"time"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/presence"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// lockFor takes the lock of the request's object.
func (l locker) lockFor(r *storage.Request, readsFirst bool) error {
	need := l.lockNeed(r, readsFirst)
	if need == storage.NeedsNone {
		return nil
	}
	return l.lock(&r.Exchanges, r.ItemTarget(&r.Info), need)
}

// lockNeed returns what a write needs the lock of its object for. Whether a backend compares the version that a write
// is pinned to shows nowhere before a write is lost. So no two writes that read the object first come at the same
// time, and no other write comes between if one of those would undo it.
func (l locker) lockNeed(r *storage.Request, readsFirst bool) storage.Need {
	b := &l.Resource.Backend
	isVersioned := b.Concurrency != resource.BestEffort && b.Versions == resource.NativeVersions
	switch {
	case !r.Info.IsObject():
		return storage.NeedsNone
	case l.comparesWrite(&r.Info, r.Head):
		return storage.ForItself
	case !isVersioned && (readsFirst || storesWhole(l.Resource) || r.Info.Verb == resource.VerbUpdate &&
		l.patchesByRules()):
		return storage.ForItself
	case !l.comparesFor(&r.Info) || l.isProved(methodOf(r.Head.Method)):
		return storage.NeedsNone
	case b.Preconditions == resource.GatewayPreconditions:
		return storage.ForItself
	}
	// The write names no version, and must not come between the comparison of another one and its write.
	return storage.ForOthers
}

// storesWhole reports whether there are writes that change a part of an object by storing all of it as it was
// read, which undoes what was written in between.
func storesWhole(r *resource.Resource) bool {
	return r.Backend.Patch == resource.PatchEmulated || keepsStatus(r) && storage.StatusPath(r) != nil ||
		emulates(r, resource.ScaleSubresource)
}

// patchesByRules reports whether rules over several fields apply to a patch that the backend
// applies. Another write in between could break such a rule.
func (l locker) patchesByRules() bool {
	if l.Resource.Backend.Patch != resource.PatchValidated {
		return false
	}
	patch := resource.Info{Verb: resource.VerbPatch, IsResource: true, Group: l.Resource.Group,
		Version: l.Resource.Version, Resource: l.Resource.Names.Plural}
	schema := l.schema(resource.VerbPatch)
	return schema != nil && schema.HasRules() || l.ObjectPolicies.Concerns(&patch, admission.Update)
}

// lockNew takes the lock of an object that is created. A POST of a name that exists is the backend's to refuse, unless
// it refuses nothing.
func (l locker) lockNew(e *storage.Exchanges, path []byte) error {
	if l.Resource.Backend.Concurrency != resource.BestEffort {
		return nil
	}
	return l.lock(e, path, storage.ForItself)
}

// maxWait bounds the wait for the writes to an object that came before.
const maxWait = 10 * time.Second

// lock takes the lock of the object at a path until Request.Unlock.
func (l locker) lock(e *storage.Exchanges, path []byte, need storage.Need) error {
	if e.IsLocked() {
		return nil
	}
	by := time.Now().Add(maxWait)
	if deadline := e.Deadline(); !deadline.IsZero() && deadline.Before(by) {
		by = deadline
	}
	lock, err := l.Locks.Acquire(l.Backend.Name, lockName(str(path)), need, storage.Wait{Client: e.Client, By: by},
		e.Tracer)
	switch {
	case err == presence.ErrLeft:
		return err
	case err != nil:
		return status.ServiceUnavailable(err.Error(), 1)
	}
	e.KeepLock(lock)
	return nil
}

// lockName returns one name for all spellings of a path that a backend may read alike: encoded or not, and with a
// slash at the end or without. Paths that become equal so wait for each other, which does no harm.
func lockName(path string) string {
	path = strings.TrimSuffix(path, "/")
	if decoded, err := url.PathUnescape(path); err == nil {
		return decoded
	}
	return path
}
