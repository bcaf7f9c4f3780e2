// Package redistest starts real Redis servers for tests, on free ports of the loopback interface, and stops them.
package redistest

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// Server is a running redis-server.
type Server struct {
	// Address is the address it listens on, as host and port.
	Address string

	t       testing.TB
	dir     string
	args    []string
	process *exec.Cmd
	ended   chan struct{}
}

// Start runs a server that keeps nothing on disk, with further arguments as on the command line of
// redis-server, and waits until it answers. The test is skipped if Redis is not installed. The
// server ends with the test.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return StartAt(t, testutil.FreePort(t), args...)
}

// StartAt runs a server on a certain port.
func StartAt(t testing.TB, port int, args ...string) *Server {
	t.Helper()
	s := New(t, port, append([]string{"--save", "", "--appendonly", "no"}, args...)...)
	s.Run()
	return s
}

// StartSentinel runs a sentinel with the lines of its configuration, which it rewrites.
func StartSentinel(t testing.TB, lines ...string) *Server {
	t.Helper()
	s := New(t, testutil.FreePort(t))
	file := filepath.Join(s.dir, "sentinel.conf")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.args = append([]string{file, "--sentinel"}, s.args...)
	s.Run()
	return s
}

// New prepares a server without running it.
func New(t testing.TB, port int, args ...string) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not installed: 'make redis' installs it on Debian")
	}
	dir := t.TempDir()
	s := &Server{t: t, dir: dir, Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	// A server that speaks TLS alone names its ports itself.
	if !slices.Contains(args, "--tls-port") {
		s.args = append(s.args, "--port", strconv.Itoa(port))
	}
	s.args = append(append(s.args, "--bind", "127.0.0.1", "--dir", dir, "--loglevel", "warning", "--unixsocket",
		unixSocket), args...)
	return s
}

// Run starts the server, the first time or after Kill, and waits until it accepts connections.
func (s *Server) Run() {
	s.t.Helper()
	// Redis makes its Unix socket after it has taken its ports. Whether a port answers does not show that: another
	// process may have taken it.
	ready := filepath.Join(s.dir, unixSocket)
	if err := os.Remove(ready); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Fatal(err)
	}
	s.process = exec.Command("redis-server", s.args...)
	var output bytes.Buffer
	s.process.Stdout, s.process.Stderr = &output, &output
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	process, ended := s.process, make(chan struct{})
	s.ended = ended
	go func() {
		_ = process.Wait()
		close(ended)
	}()
	s.t.Cleanup(func() { kill(process, ended) })
	for {
		if _, err := os.Stat(ready); err == nil {
			return
		}
		select {
		case <-ended:
			s.t.Fatalf("redis-server %s ended: %s", strings.Join(s.args, " "), &output)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// unixSocket is relative to the server's directory, because the path of a socket must be short.
const unixSocket = "redis.sock"

// Kill ends the server at once, and waits until it has ended.
func (s *Server) Kill() { kill(s.process, s.ended) }

func kill(process *exec.Cmd, ended <-chan struct{}) {
	_ = process.Process.Signal(syscall.SIGKILL) // fails if it has ended
	_ = process.Process.Signal(syscall.SIGCONT)
	<-ended
}

// Pause stops the server as it is: its connections stay, and it does not answer. Resume lets it go
// on.
func (s *Server) Pause()  { s.signal(syscall.SIGSTOP) }
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(signal syscall.Signal) {
	if err := s.process.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}

// Port is the number of the server's port.
func (s *Server) Port() int {
	_, port, _ := net.SplitHostPort(s.Address)
	n, _ := strconv.Atoi(port)
	return n
}
