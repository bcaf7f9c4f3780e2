package peek

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// pair returns both ends of a connection, and the socket of the first.
func pair(t *testing.T) (near, far net.Conn, socket syscall.RawConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	if far, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if near, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	if socket, err = near.(*net.TCPConn).SyscallConn(); err != nil {
		t.Fatal(err)
	}
	return near, far, socket
}

// TestSet: what is waited for is told once.
func TestSet(t *testing.T) {
	s := NewSet(10 * time.Millisecond)
	defer s.Close()
	for name, test := range map[string]struct {
		by     time.Duration // 0 is for ever
		then   func(near, far net.Conn)
		isLate bool
	}{
		"bytes": {0, func(_, far net.Conn) { _, _ = far.Write([]byte("x")) }, false},
		"end":   {time.Hour, func(_, far net.Conn) { _ = far.Close() }, false},
		"reset": {0, func(_, far net.Conn) { _ = far.(*net.TCPConn).SetLinger(0); _ = far.Close() }, false},
		"late":  {time.Millisecond, func(net.Conn, net.Conn) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			near, far, socket := pair(t)
			var w Wait
			for range 3 { // its place and its memory are used again
				told := make(chan bool, 2)
				by := time.Time{}
				if test.by > 0 {
					by = time.Now().Add(test.by)
				}
				if !s.Add(&w, socket, by, func(isLate bool) { told <- isLate }) {
					t.Fatal("the socket is not waited for")
				}
				test.then(near, far)
				if isLate := <-told; isLate != test.isLate {
					t.Errorf("late is %v", isLate)
				}
				if s.Remove(&w) {
					t.Error("the wait is not over")
				}
				if len(told) > 0 {
					t.Error("told twice")
				}
			}
		})
	}
}

// TestSetForgets: a wait that was ended is not told, whatever becomes of its socket and of who has its place next.
func TestSetForgets(t *testing.T) {
	s := NewSet(time.Millisecond)
	defer s.Close()
	_, far, socket := pair(t)
	var w, next Wait
	if s.Remove(&w) {
		t.Error("there was no wait")
	}
	if !s.Add(&w, socket, time.Now().Add(time.Hour), func(bool) { t.Error("told") }) || !s.Remove(&w) || s.Remove(&w) {
		t.Error("the wait did not end once")
	}
	_, other, otherSocket := pair(t)
	told := make(chan bool, 1)
	if !s.Add(&next, otherSocket, time.Time{}, func(isLate bool) { told <- isLate }) {
		t.Fatal("the socket is not waited for")
	}
	_, _ = far.Write([]byte("x"))
	_, _ = other.Write([]byte("x"))
	if <-told {
		t.Error("late")
	}
}

// TestSetOfClosed: a socket that is closed is not waited for, and a set that is closed lets all go.
func TestSetOfClosed(t *testing.T) {
	s := NewSet(time.Hour)
	near, _, socket := pair(t)
	_ = near.Close()
	if s.Add(new(Wait), socket, time.Time{}, func(bool) { t.Error("told") }) {
		t.Error("a closed socket is waited for")
	}
	_, _, socket = pair(t)
	told := make(chan bool, 1)
	if !s.Add(new(Wait), socket, time.Time{}, func(isLate bool) { told <- isLate }) {
		t.Fatal("the socket is not waited for")
	}
	s.Close()
	if !<-told {
		t.Error("not late")
	}
	if s.Add(new(Wait), socket, time.Time{}, func(bool) { t.Error("told") }) {
		t.Error("a closed set waits")
	}
	var none *Set
	if none.Add(new(Wait), socket, time.Time{}, nil) || none.Remove(new(Wait)) {
		t.Error("no set waits")
	}
	none.Close()
}

// TestSetTogether: each wait ends once, however callers, sockets and the clock meet.
func TestSetTogether(t *testing.T) {
	s := NewSet(time.Millisecond)
	defer s.Close()
	const sockets = 20
	var begun, ended atomic.Int64
	var group sync.WaitGroup
	for i := range sockets {
		near, far, socket := pair(t)
		group.Go(func() {
			for n := range 200 {
				var w Wait
				told := make(chan bool, 1)
				by := time.Now().Add(time.Duration(n%7) * time.Millisecond)
				if !s.Add(&w, socket, by, func(isLate bool) { told <- isLate }) {
					t.Error("the socket is not waited for")
					return
				}
				begun.Add(1)
				if (n+i)%3 == 0 {
					_, _ = far.Write([]byte("x"))
				}
				if (n+i)%4 == 0 && s.Remove(&w) {
					ended.Add(1)
				} else {
					<-told
					ended.Add(1)
				}
				if (n+i)%3 == 0 {
					_, _ = near.Read(make([]byte, 1))
				}
			}
		})
	}
	group.Wait()
	testutil.Eventually(t, "all places to be free", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.free) == len(s.places) && len(s.places) <= sockets
	})
	if begun.Load() != ended.Load() || begun.Load() != sockets*200 {
		t.Errorf("%d begun, %d ended", begun.Load(), ended.Load())
	}
}
