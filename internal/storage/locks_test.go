package storage

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestObjectLock passes a lock from hand to hand, and lets those go that waited for too long.
func TestObjectLock(t *testing.T) {
	locks := NewLocks()
	a, b := locks.Of("u", "/a"), locks.Of("u", "/b")
	long := func() time.Duration { return time.Minute }
	over := func() time.Duration { return 0 }
	if a.Acquire(over) != nil || b.Acquire(over) != nil {
		t.Fatal("a lock that nobody holds is not given")
	}
	if a.Acquire(over) != ErrLockSlow {
		t.Fatal("a lock is given twice")
	}
	inside, count := 0, 0
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 20 {
				if a.Acquire(long) != nil {
					t.Error("a lock did not come")
					return
				}
				if inside++; inside != 1 {
					t.Errorf("%d hold the lock", inside)
				}
				count++
				inside--
				a.Release()
				if a.Acquire(over) == nil {
					a.Release()
				}
			}
		})
	}
	a.Release()
	all.Wait()
	b.Release()
	if count != 1000 {
		t.Errorf("the lock was held %d times, want 1000", count)
	}
	for i := range locks.shards {
		if n := len(locks.shards[i].taken); n > 0 {
			t.Errorf("shard %d remembers %d locks", i, n)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _ = a.Acquire(over); a.Release() }); n > 0 {
		t.Errorf("a lock that nobody waits for takes %v allocations", n)
	}
}

// TestCrowdedLock: no more than so many wait for a lock, and none for longer than it said.
func TestCrowdedLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLocks().Of("u", "/a")
		wait := func() time.Duration { return 10 * time.Second }
		if err := l.Acquire(wait); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for range maxWaiters {
			go func() {
				if err := l.Acquire(wait); err != ErrLockSlow || time.Since(start) != 10*time.Second {
					t.Errorf("after %v: %v", time.Since(start), err)
				}
			}()
		}
		synctest.Wait()
		if err := l.Acquire(wait); err != ErrLockCrowded || time.Since(start) != 0 {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		l.Release()
		if err := l.Acquire(wait); err != nil {
			t.Error(err)
		}
	})
}

// noLocker is a Locker that does not answer, and a lock that is lost.
type noLocker struct{ err error }

func (n *noLocker) Lock(string, time.Duration) (SharedLock, error) { return n, n.err }
func (n *noLocker) IsValid() bool                                  { return false }
func (n *noLocker) Release()                                       {}

// TestSharedLock: without the lock of all gateways there is none, and one that was lost is known to be.
func TestSharedLock(t *testing.T) {
	locks, shared := NewLocks(), &noLocker{err: errors.New("away")}
	locks.Share(shared)
	over := func() time.Duration { return 0 }
	if _, err := locks.Acquire("u", "/a", over, nil); err != shared.err {
		t.Errorf("got %v", err)
	}
	shared.err = nil
	l, err := locks.Acquire("u", "/a", over, nil)
	if err != nil || l.IsValid() {
		t.Errorf("got %v, valid %v", err, l.IsValid())
	}
	l.Release()
}
