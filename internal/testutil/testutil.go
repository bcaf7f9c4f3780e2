// Package testutil holds what the tests of many packages need: waiting with one deadline, files, and free addresses.
package testutil

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
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

// FreeAddress returns an address on the loopback interface on which nothing listens now, with a port of [FreePort].
func FreeAddress(t testing.TB) string { return fmt.Sprint("127.0.0.1:", FreePort(t)) }

// FreePort returns a port of the loopback interface on which nothing listens now, and never the same port twice. The
// ports are below the range from which the system takes those of clients and of listeners on port 0. Otherwise any
// connection on the machine could take the port before the test listens on it.
func FreePort(t testing.TB) int {
	t.Helper()
	for range ports {
		port := lowest + int(next.Add(1)%ports)
		if !reserve(port) {
			continue
		}
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			_ = l.Close() // nothing was accepted
			return port
		}
	}
	t.Fatalf("something listens on each port from %d to %d", lowest, lowest+ports-1)
	return 0
}

// Redis uses a second port for its cluster, 10,000 above the first. It is outside of the system's range too.
const lowest, ports = 12000, 10000

// reserve takes a port for this process until it ends, by the lock of a file. It reports false if a test of another
// process has the port, which may not listen on it yet.
func reserve(port int) bool {
	f, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("gateway-test-port-%d", port)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		_ = f.Close() // nothing was written
		return false
	}
	reserved.Store(port, f) // the lock ends with the file
	return true
}

// reserved has the files of the ports of this process.
var reserved sync.Map

// next counts the ports from a random one on, so that tests of several processes seldom ask for the same one.
var next atomic.Uint32

func init() { next.Store(rand.Uint32()) }

// Sampled returns a part of the cases of a test with -short: one in n. Otherwise it returns all.
func Sampled[T any](n int, cases []T) []T {
	if !testing.Short() {
		return cases
	}
	var part []T
	for i := 0; i < len(cases); i += n {
		part = append(part, cases[i])
	}
	return part
}

// Amount returns how much a test does: less with -short.
func Amount(whole, short int) int {
	if testing.Short() {
		return short
	}
	return whole
}
