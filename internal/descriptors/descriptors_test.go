package descriptors

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"
)

// TestClients: what is configured and does not fit is shared by halves, and the reserve stays free.
func TestClients(t *testing.T) {
	for _, c := range []struct{ limit, clients, backends, reserved, want int }{
		{1 << 20, 65536, 4096, 128, 65536},
		{20000, 65536, 4096, 128, 15776},
		{1024, 65536, 4096, 128, 448},
		{1024, 100, 4096, 128, 100},
		{1024, 65536, 10, 128, 886},
		{64, 65536, 4096, 16, 24},
		{1, 65536, 4096, 0, 1},
		{unlimited, 65536, 65536, 128, 65536},
	} {
		b := Budget{Limit: c.limit, Reserved: min(mostReserved, c.limit/4)}
		if got := b.Clients(c.clients, c.backends); b.Reserved != c.reserved || got != c.want {
			t.Errorf("of %d descriptors %d are reserved and %d are for clients, want %d and %d", c.limit, b.Reserved,
				got, c.reserved, c.want)
		}
		if b.forTraffic() > b.forAdmin() || b.forAdmin() > b.Limit {
			t.Errorf("of %d descriptors those from %d on are not for traffic, and from %d on not for the admin listener", c.limit, b.forTraffic(), b.forAdmin())
		}
	}
}

// failing is a listener whose first calls of Accept fail.
type failing struct {
	net.Listener
	errs []error
}

func (l *failing) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, err
	}
	return l.Listener.Accept()
}

// TestAccept: what accept(2) reports of a shortage or of one connection ends no listener; what it reports of the socket
// does.
func TestAccept(t *testing.T) {
	passing := []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.ECONNRESET,
		syscall.EPERM,
		syscall.EPROTO, syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.EHOSTUNREACH,
		syscall.ENOPROTOOPT,
		syscall.EOPNOTSUPP, syscall.EAGAIN, syscall.EINTR,
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = inner.Close() }()
	connect := func() {
		nc, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nc.Close() })
	}
	for _, code := range passing {
		t.Run(code.Error(), func(t *testing.T) {
			connect()
			wrapped := &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", code)}
			var pauses []time.Duration
			var told []string
			failed, now := 0, time.Now()
			l := &Listener{
				Listener: &failing{inner, slices.Repeat([]error{wrapped}, 11)}, Failed: func(error) { failed++ },
				Tell: func(cause error, times int) { told = append(told, fmt.Sprint(cause == error(wrapped), times)) },
				now:  func() time.Time { return now },
				wait: func(d time.Duration) { pauses = append(pauses, d/time.Millisecond); now = now.Add(d) },
			}
			nc, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			_ = nc.Close()
			if want := []time.Duration{5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000}; !slices.Equal(pauses,
				want) || failed != len(want) {
				t.Errorf("after %d failures it paused for %v, want %v", failed, pauses, want)
			}
			if want := []string{"true 1", "true 8", "true 1", "true 1"}; !slices.Equal(told, want) {
				t.Errorf("told %v, want %v", told, want)
			}
		})
	}
	for _, err := range []error{
		net.ErrClosed, io.EOF, errors.New("another listener's"),
		&net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EINVAL)},
		syscall.EBADF, syscall.ENOTSOCK,
	} {
		l := &Listener{Listener: &failing{inner, []error{err}},
			wait: func(time.Duration) { t.Errorf("pauses after %v", err) }}
		if _, got := l.Accept(); got != err {
			t.Errorf("accept returned %v, want %v", got, err)
		}
	}
}

// TestIsShortage: a shortage is known in the errors that packages of Go wrap around it.
func TestIsShortage(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}, true},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.ENFILE)}, true},
		{fmt.Errorf("dial: %w", syscall.ENOBUFS), true},
		{syscall.ENOMEM, true},
		{syscall.ECONNREFUSED, false},
		{io.EOF, false},
		{nil, false},
	} {
		if got := IsShortage(c.err); got != c.want {
			t.Errorf("%v is a shortage: %t, want %t", c.err, got, c.want)
		}
	}
}
