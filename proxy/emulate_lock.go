package proxy

import (
	"hash/maphash"
	"time"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// stripes let the writes to one object come one after the other, where its backend cannot refuse one that comes between.
// Objects that share a stripe wait for each other too.
type stripes struct {
	seed  maphash.Seed
	locks [256]chan struct{}
}

func newStripes() *stripes {
	s := &stripes{seed: maphash.MakeSeed()}
	for i := range s.locks {
		s.locks[i] = make(chan struct{}, 1)
	}
	return s
}

// of is the lock of an object.
func (s *stripes) of(upstream, path string) chan struct{} {
	var h maphash.Hash
	h.SetSeed(s.seed)
	_, _ = h.WriteString(upstream) // never fails, as the next
	_, _ = h.WriteString(path)
	return s.locks[h.Sum64()%uint64(len(s.locks))]
}

// lock makes the exchange the only one of this gateway that writes to the object, where the resource says that its writes
// may not be pinned (concurrency BestEffort). It waits no longer than for the backend itself.
func (x *exchange) lock() error {
	if x.res == nil || x.res.Concurrency != resource.BestEffort || !x.upstream.plain || x.info.Name == "" || x.locked != nil {
		return nil
	}
	path := x.itemPath()
	if x.info.Verb == resource.VerbCreate {
		var err error
		if path, err = x.createdPath(); err != nil {
			return err
		}
	}
	lock := x.gateway.stripes.of(x.upstream.name, str(path))
	select {
	case lock <- struct{}{}:
	default:
		wait := x.upstream.patience
		if deadline := x.deadline(); !deadline.IsZero() {
			wait = min(wait, time.Until(deadline))
		}
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case lock <- struct{}{}:
		case <-timer.C:
			return status.Timeout("the writes to this object that came before took too long", 1)
		}
	}
	x.locked = lock
	return nil
}

// unlock lets the next write in, before the answer goes out.
func (x *exchange) unlock() {
	if x.locked != nil {
		<-x.locked
		x.locked = nil
	}
}
