package storage

import (
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/presence"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// Locks let the writes to one object come one after the other: a backend whose ETag is made by middleware, or that
// has none, does not refuse a write that comes between. Only objects that are being written take memory.
type Locks struct {
	shared Locker // nil if no other gateway writes
	seed   maphash.Seed
	shards [64]lockShard
}

type lockShard struct {
	mu    sync.Mutex
	taken []takenLock
}

// takenLock is the lock of an object that is being written. Objects whose hashes are equal wait for each other too.
type takenLock struct {
	object  uint64
	waiters int
	isLate  bool // it is kept for a write that has no answer, and may still be carried out
	// turn passes the lock on to one of the waiters, with what the write before stored, as far as that is known. It is
	// nil until there is a first waiter.
	turn chan *LastStored
}

// A Locker locks objects for several gateways.
type Locker interface {
	// Lock waits for another gateway that writes the object, no longer than wait says. The error is a LocksAwayError if
	// nothing is known of other gateways, and presence.ErrLeft if the client leaves.
	Lock(object string, wait Wait) (SharedLock, error)
}

// A SharedLock is a lock that several gateways know.
type SharedLock interface {
	// IsValid reports whether no other gateway can have the lock.
	IsValid() bool
	Release()
}

// maxWaiters bounds how many writes wait for one object.
const maxWaiters = 100

// lateWait bounds how long a write waits for a late one to end.
const lateWait = time.Second

// The errors by which a lock is refused.
var (
	ErrLockCrowded = errors.New("too many writes to this object wait for each other")
	ErrLockSlow    = errors.New("the writes to this object that came before took too long")
	ErrLockLate    = errors.New("an earlier write to this object got no answer in time, and the backend may still carry it out")
)

// A LocksAwayError says that what keeps the locks of several gateways does not answer.
type LocksAwayError struct{ Err error }

// Error implements error.
func (e *LocksAwayError) Error() string { return e.Err.Error() }

// Unwrap returns why it does not answer.
func (e *LocksAwayError) Unwrap() error { return e.Err }

// A Need says what a write needs the lock of its object for.
type Need uint8

const (
	// NeedsNone: the write takes no lock.
	NeedsNone Need = iota
	// ForOthers: for the writes of others, which it must not come between. It goes on with the gateway's own lock if
	// what keeps the locks of several gateways does not answer: then others that depend on that are refused.
	ForOthers
	// ForItself: it depends on what is stored, and is refused without the lock.
	ForItself
)

// NewLocks returns locks that are free.
func NewLocks() *Locks { return &Locks{seed: maphash.MakeSeed()} }

// ObjectLock is the lock of one object. The zero value is none.
type ObjectLock struct {
	shard  *lockShard
	object uint64
	shared SharedLock // nil if no other gateway writes
	// before is what the write before stored, and after what this one leaves; nil if that is not known.
	before, after *LastStored
}

// Share lets the writes of several gateways come one after the other.
func (o *Locks) Share(with Locker) { o.shared = with }

// A Wait says how long a lock is waited for.
type Wait struct {
	Client *presence.Client // whose request waits; nil if nobody can leave
	By     time.Time        // when the wait is over
}

// Acquire takes the lock of an object, and waits for it no longer than wait says. The tracer may be nil. The error is
// presence.ErrLeft if the client leaves meanwhile.
func (o *Locks) Acquire(upstream, path string, need Need, wait Wait, tracer Tracer) (ObjectLock, error) {
	l := o.Of(upstream, path)
	var err error
	if l.before, err = l.acquire(wait); err != nil || o.shared == nil {
		return l, err
	}
	l.before = nil // another gateway may have written since
	began := time.Now()
	shared, err := o.shared.Lock(upstream+" "+path, wait)
	if tracer != nil {
		tracer.Locked(began, err)
	}
	var away *LocksAwayError
	switch {
	case err == nil:
		l.shared = shared
	case need == ForItself || !errors.As(err, &away):
		l.Release()
		return ObjectLock{}, err
	}
	return l, nil
}

// Of returns the lock of an object.
func (o *Locks) Of(upstream, path string) ObjectLock {
	var h maphash.Hash
	h.SetSeed(o.seed)
	_, _ = h.WriteString(upstream) // never fails, as the next
	_, _ = h.WriteString(path)
	sum := h.Sum64()
	return ObjectLock{shard: &o.shards[sum%uint64(len(o.shards))], object: sum}
}

// Acquire takes the lock, and waits for it no longer than wait says. The error is ErrLockCrowded,
// ErrLockSlow or presence.ErrLeft.
func (l ObjectLock) Acquire(wait Wait) error {
	_, err := l.acquire(wait)
	return err
}

// acquire is Acquire, and returns what the write before stored; nil if that is not known.
func (l ObjectLock) acquire(wait Wait) (*LastStored, error) {
	s := l.shard
	s.mu.Lock()
	at := s.find(l.object)
	if at < 0 {
		s.taken = append(s.taken, takenLock{object: l.object})
		s.mu.Unlock()
		return nil, nil
	}
	h := &s.taken[at]
	if h.waiters == maxWaiters {
		s.mu.Unlock()
		return nil, ErrLockCrowded
	}
	if h.turn == nil {
		h.turn = make(chan *LastStored, 1)
	}
	h.waiters++
	turn, isLate := h.turn, h.isLate
	s.mu.Unlock()
	asked := time.Now()
	longest, failed := time.Until(wait.By), ErrLockSlow
	if isLate {
		longest, failed = min(longest, lateWait), ErrLockLate
	}
	timer := time.NewTimer(longest)
	defer timer.Stop()
	client := wait.Client.Signal()
	defer client.Done()
	select {
	case before := <-turn:
		return before.unlessPast(asked), nil
	case <-timer.C:
	case <-client.Left():
		failed = presence.ErrLeft
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case before := <-turn: // it came at the last moment
		return before.unlessPast(asked), nil
	default:
		s.taken[s.find(l.object)].waiters--
		return nil, failed
	}
}

// Release gives the lock to one of those who wait for it, if there are any, and reports whether there was one.
func (l ObjectLock) Release() (isPassedOn bool) {
	if l.shared != nil {
		l.shared.Release()
	}
	s := l.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.find(l.object)
	if h := &s.taken[at]; h.waiters > 0 {
		h.waiters--
		h.isLate = false
		h.turn <- l.after // has room: only who holds the lock sends, and the last turn was taken
		return true
	}
	last := len(s.taken) - 1
	s.taken[at] = s.taken[last]
	s.taken[last] = takenLock{}
	s.taken = s.taken[:last]
	return false
}

// maxLate bounds how many locks of late writes are kept at a time.
const maxLate = 4 << 10

// late counts them.
var late atomic.Int32

// keepUntil keeps the lock for a late write until its exchange has ended, at most for upstream.LateTimeout. It
// reports false if too many locks are kept.
func (l ObjectLock) keepUntil(ended <-chan struct{}) bool {
	if late.Add(1) > maxLate {
		late.Add(-1)
		return false
	}
	l.shard.mu.Lock()
	l.shard.taken[l.shard.find(l.object)].isLate = true
	l.shard.mu.Unlock()
	go func() {
		timer := time.NewTimer(upstream.LateTimeout)
		defer timer.Stop()
		select {
		case <-ended:
		case <-timer.C:
		}
		late.Add(-1)
		l.Release()
	}()
	return true
}

// isAwaited reports whether another write waits for the lock.
func (l ObjectLock) isAwaited() bool {
	s := l.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.find(l.object)
	return at >= 0 && s.taken[at].waiters > 0
}

// IsValid reports whether the lock is still exclusively ours.
func (l ObjectLock) IsValid() bool { return l.shared == nil || l.shared.IsValid() }

// find returns the index of an object's lock; -1 if it is free.
func (s *lockShard) find(object uint64) int {
	for i := range s.taken {
		if s.taken[i].object == object {
			return i
		}
	}
	return -1
}
