package relay

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// TestFreeze: frozen connections carry nothing, not even their end, and later ones do.
func TestFreeze(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	servers := make(chan net.Conn, 2)
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			servers <- nc
		}
	}()
	r := New(t, l.Addr().String())
	connect := func() (client, server net.Conn) {
		client, err := net.Dial("tcp", r.Address())
		if err != nil {
			t.Fatal(err)
		}
		return client, <-servers
	}
	pass := func(from, to net.Conn) {
		t.Helper()
		got := make([]byte, 4)
		if _, err := from.Write([]byte("ping")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(to, got); err != nil || string(got) != "ping" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	client, server := connect()
	defer func() { _ = client.Close() }()
	pass(client, server)
	pass(server, client)
	if n := r.Freeze(); n != 1 || r.Connections() != 1 {
		t.Errorf("%d connections are frozen of %d", n, r.Connections())
	}
	if _, err := server.Write([]byte("lost")); err != nil {
		t.Error(err)
	}
	_ = server.Close()
	if err := client.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := client.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes came, %v", n, err)
	}
	if _, err := client.Write([]byte("lost")); err != nil {
		t.Error(err)
	}
	other, server := connect()
	pass(other, server)
	_ = other.Close()
	if n, err := server.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("%d bytes came, %v", n, err)
	}
}
