// Package testutil holds what the tests of many packages need: waiting with one deadline, files, and free addresses.
package testutil

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Patience is how long a test waits for an event that must come. It guards against hanging and measures no speed: a
// loaded machine may take long.
const Patience = time.Minute

const interval = time.Millisecond

// Eventually waits until ok returns true, and ends the test if that takes longer than [Patience]. The message of the
// failure is "not yet: " and what.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !within(Patience, ok) {
		t.Fatalf("not yet: %s, after %v", what, Patience)
	}
}

// Becomes waits until got returns want, and ends the test if that takes longer than [Patience].
func Becomes[T comparable](t testing.TB, want T, got func() T) {
	t.Helper()
	var last T
	if !within(Patience, func() bool { last = got(); return last == want }) {
		t.Fatalf("is %v, want %v, after %v", last, want, Patience)
	}
}

// within reports whether ok returned true before the time was over. It asks at least once.
func within(patience time.Duration, ok func() bool) bool {
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(interval) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// FreeAddress returns an address on the loopback interface on which nothing listens now. Another
// process may take it: a test that can listen on port 0 itself needs none.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		_ = l.Close() // nothing was accepted
		if _, twice := given.LoadOrStore(address, true); !twice {
			return address
		}
	}
}

// given are the addresses that this process got, so that no test gets one for two listeners.
var given sync.Map
