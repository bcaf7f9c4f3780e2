package testutil

// The modules of e2e and tools/gatekeeper have this file by a symbolic link: a requirement of this module would raise
// the versions of Kubernetes and Gatekeeper that they test against.

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
)

// FreeAddress returns an address on the loopback interface on which nothing listens now, with a port of [FreePort].
func FreeAddress(t testing.TB) string { return fmt.Sprint("127.0.0.1:", FreePort(t)) }

// FreePort returns a port of the loopback interface on which nothing listens now, and never the same port twice. The
// ports are below the range from which the system takes ports of clients and of listeners on port 0. Otherwise any
// connection on the machine could take the port before the test listens on it.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// ReservePort is [FreePort] for helpers that have no test at hand.
func ReservePort() (int, error) {
	for range ports {
		port := lowest + int(next.Add(1)%ports)
		if !reserve(port) {
			continue
		}
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("something listens on each port from %d to %d", lowest, lowest+ports-1)
}

// Redis uses a second port for its cluster, 10,000 above the first. It is outside of the system's range too.
const lowest, ports = 12000, 10000

// reserve takes a port for this process until it ends, by the lock of a file. It reports false if a test of another
// process has the port, which may not listen on it yet.
func reserve(port int) bool {
	f, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("gateway-test-port-%d", port)), os.O_CREATE|os.O_RDWR,
		0o600)
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
