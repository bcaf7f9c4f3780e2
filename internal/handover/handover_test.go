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
	first, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	address := first.Addr().String()
	mustBeInUse := func() {
		t.Helper()
		if l, err := Listen(address); !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatalf("listened on %v with %v, want that the address is in use", l.Addr(), err)
		}
	}
	mustBeInUse()
	if err := first.Offer(); err != nil {
		t.Fatal(err)
	}
	second, err := Listen(address)
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
	third, err := Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = third.Close() }()
	mustBeInUse()
	_ = second.Close()
	mustAnswer(t, third, "third")
	mustBeInUse()
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
