package handover

import (
	"errors"
	"io"
	"net"
	"runtime"
	"syscall"
	"testing"
)

// TestListen: an address can be taken over once it is offered, and not before. The process that
// took it over does not offer it.
func TestListen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("how a kernel shares an address is known of Linux")
	}
	var one, two, three Claims // of processes
	first, err := one.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	address := first.Addr().String()
	mustBeInUse := func() {
		t.Helper()
		var other Claims
		if l, err := other.Listen(address); !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatalf("listened on %v with %v, want that the address is in use", l.Addr(), err)
		}
	}
	mustBeInUse()
	if err := first.Offer(); err != nil {
		t.Fatal(err)
	}
	second, err := two.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Close() }()
	mustBeInUse()
	_ = first.Close()
	mustBeInUse()
	mustAnswer(t, second, "second")
	if err := second.Offer(); err != nil {
		t.Fatal(err)
	}
	third, err := three.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = third.Close() }()
	mustBeInUse()
	_ = second.Close()
	mustAnswer(t, third, "third")
	mustBeInUse()
}

// TestListenOnPort: a process takes over all addresses of a port that another one offers, and no third process does
// meanwhile.
func TestListenOnPort(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("how a kernel shares an address is known of Linux")
	}
	var before, next, other Claims
	first, err := before.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(first.Addr().String())
	addresses := []string{"127.0.0.1:" + port, "127.0.0.2:" + port}
	second, err := before.Listen(addresses[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []*Listener{first, second} {
		if err := l.Offer(); err != nil {
			t.Fatal(err)
		}
	}
	var taken []*Listener
	for _, a := range addresses {
		l, err := next.Listen(a)
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, l)
	}
	_, _ = first.Close(), second.Close()
	if err := taken[0].Close(); err != nil { // one of the two is enough for the claim
		t.Error(err)
	}
	if l, err := other.Listen(addresses[1]); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("listened on %v with %v, want that the address is in use", l.Addr(), err)
	}
	mustAnswer(t, taken[1], "next")
	if err := taken[1].Close(); err != nil {
		t.Error(err)
	}
	if len(next.held) > 0 {
		t.Errorf("%d claims are held", len(next.held))
	}
	last, err := other.Listen(addresses[1])
	if err != nil {
		t.Fatal(err)
	}
	_ = last.Close()
}

// mustAnswer has all further connections accepted by one listener, which is the only one.
func mustAnswer(t *testing.T, l net.Listener, name string) {
	t.Helper()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, name)
			_ = c.Close()
		}
	}()
	for range 8 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if said, err := io.ReadAll(c); string(said) != name {
			t.Errorf("read %q, %v", said, err)
		}
		_ = c.Close()
	}
}
