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
	long := Wait{By: time.Now().Add(time.Minute)}
	over := Wait{}
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
		wait := Wait{By: time.Now().Add(10 * time.Second)}
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

func (n *noLocker) Lock(string, Wait) (SharedLock, error) { return n, n.err }
func (n *noLocker) IsValid() bool                         { return false }
func (n *noLocker) Release()                              {}

// TestSharedLock: a write that depends on what is stored has no lock without the one of all gateways, and a lock that
// was lost is known to be. A write that takes it for others has the gateway's own if nothing is known of other
// gateways.
func TestSharedLock(t *testing.T) {
	over := Wait{}
	taken, away := errors.New("another gateway has it"), &LocksAwayError{errors.New("away")}
	for _, c := range []struct {
		name    string
		answers error
		need    Need
		want    error
		isValid bool
	}{
		{"given, for itself", nil, ForItself, nil, false},
		{"given, for others", nil, ForOthers, nil, false},
		{"taken, for itself", taken, ForItself, taken, false},
		{"taken, for others", taken, ForOthers, taken, false},
		{"away, for itself", away, ForItself, away, false},
		{"away, for others", away, ForOthers, nil, true},
	} {
		locks := NewLocks()
		locks.Share(&noLocker{c.answers})
		l, err := locks.Acquire("u", "/a", c.need, over, nil)
		if err != c.want {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
		if err == nil {
			if l.IsValid() != c.isValid {
				t.Errorf("%s: the lock counts: %v", c.name, l.IsValid())
			}
			if again := locks.Of("u", "/a").Acquire(over); again != ErrLockSlow {
				t.Errorf("%s: the gateway's own lock is given twice: %v", c.name, again)
			}
			l.Release()
		}
		if err := locks.Of("u", "/a").Acquire(over); err != nil {
			t.Errorf("%s: the gateway's own lock was not given back: %v", c.name, err)
		}
	}
}

// TestLeftToTheNext: what a write leaves is for the one that waited before it was sent, and for no later one.
func TestLeftToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := NewLocks()
		long := Wait{By: time.Now().Add(time.Minute)}
		got := map[string]bool{}
		acquire := func(name string) {
			l, err := locks.Acquire("u", "/a", ForItself, long, nil)
			if err != nil {
				t.Error(err)
			}
			got[name] = l.before != nil
			l.Release()
		}
		first, err := locks.Acquire("u", "/a", ForItself, long, nil)
		if err != nil || first.before != nil || first.isAwaited() {
			t.Fatalf("a free lock: %+v, %v", first, err)
		}
		go acquire("before")
		synctest.Wait()
		if !first.isAwaited() {
			t.Error("nobody waits")
		}
		time.Sleep(time.Second)
		first.after = &LastStored{sent: time.Now()}
		first.Release()
		synctest.Wait()

		if first, err = locks.Acquire("u", "/a", ForItself, long, nil); err != nil || first.before != nil {
			t.Fatalf("the lock after all: %+v, %v", first, err)
		}
		sent := time.Now()
		time.Sleep(time.Second)
		go acquire("late")
		synctest.Wait()
		go func() {
			time.Sleep(time.Second)
			acquire("last")
		}()
		first.after = &LastStored{sent: sent}
		first.Release()
		time.Sleep(time.Minute)
		synctest.Wait()
		for name, want := range map[string]bool{"before": true, "late": false, "last": false} {
			if got[name] != want {
				t.Errorf("%s: got what was stored: %v, want %v", name, got[name], want)
			}
		}
	})
}
