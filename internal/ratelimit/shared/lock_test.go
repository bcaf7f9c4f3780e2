package shared

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/ratelimit/redistest"
)

func openLocks(t *testing.T, address string) *Store {
	t.Helper()
	s, err := Open(Options{
		Mode: Single, Addresses: []string{address}, Prefix: "t:", Timeout: time.Second, ConnectTimeout: time.Second,
		Connections: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestLock: of two gateways one has the lock of a name at a time, and who lost it knows.
func TestLock(t *testing.T) {
	server := redistest.Start(t)
	a, b := openLocks(t, server.Address), openLocks(t, server.Address)
	first, err := a.Lock("x", 0, nil)
	if err != nil || !first.IsValid() {
		t.Fatalf("got %v", err)
	}
	if _, err := b.Lock("x", 0, nil); !errors.Is(err, ErrLocked) {
		t.Fatalf("a lock is given twice: %v", err)
	}
	if other, err := b.Lock("y", 0, nil); err != nil {
		t.Fatalf("the lock of another name is not given: %v", err)
	} else {
		other.Release()
	}
	inside := 0
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			l, err := [...]*Store{a, b}[i%2].Lock("x", time.Minute, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if inside++; inside != 1 {
				t.Errorf("%d have the lock", inside)
			}
			inside--
			l.Release()
			if l.IsValid() {
				t.Error("a lock counts after it was given back")
			}
		})
	}
	first.Release()
	all.Wait()
}

// TestLockLost: a lock that Redis gave to another one is not renewed, nor ended by who had it before.
func TestLockLost(t *testing.T) {
	server := redistest.Start(t)
	a, b := openLocks(t, server.Address), openLocks(t, server.Address)
	lost, err := a.Lock("x", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	lost.renew()
	if !lost.IsValid() {
		t.Error("a renewed lock does not count")
	}
	ctx, cancel := a.lockContext()
	defer cancel()
	if err := a.locker().Del(ctx, "t:lock:"+digestOf("x")).Err(); err != nil { // as if its time were over
		t.Fatal(err)
	}
	now, err := b.Lock("x", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	lost.renew()
	if lost.IsValid() {
		t.Error("a lost lock counts")
	}
	lost.Release()
	now.renew()
	if !now.IsValid() {
		t.Error("who lost a lock has ended the lock of another gateway")
	}
	now.Release()
}

// TestLockWithoutRedis: without Redis there is no lock.
func TestLockWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	s := openLocks(t, server.Address)
	kept, err := s.Lock("x", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if _, err := s.Lock("y", 0, nil); err == nil || errors.Is(err, ErrLocked) {
		t.Errorf("got %v", err)
	}
	kept.renew()
	if !kept.IsValid() {
		t.Error("a lock ends before its time")
	}
	kept.Release()
}
