package server

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/peek"
)

// socketPair returns a socket as a connection without TLS has it, and the client's end.
func socketPair(t *testing.T) (*socket, *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = conn.Close(), client.Close() })
	s := &socket{Conn: conn}
	if s.bare.open(conn); (s.bare.raw != nil) != peek.IsAble {
		t.Fatal("the descriptor is not used")
	}
	return s, client.(*net.TCPConn)
}

// longText is more than two sockets hold.
var longText = bytes.Repeat([]byte("0123456789abcdef"), 1<<20)

// TestSocketWaits: a client that reads slowly gets all of an answer.
func TestSocketWaits(t *testing.T) {
	s, client := socketPair(t)
	got := make(chan []byte, 1)
	go func() {
		time.Sleep(10 * time.Millisecond) // the sockets are full by then, most likely
		all, _ := io.ReadAll(client)      // what is missing shows below
		got <- all
	}()
	n, err := s.send(longText, time.Minute)
	if n != len(longText) || err != nil {
		t.Fatalf("%d of %d bytes were sent: %v", n, len(longText), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if all := <-got; !bytes.Equal(all, longText) {
		t.Errorf("the client got %d other bytes", len(all))
	}
}

// TestSocketEnds: a client that stops reading, or is gone, ends a write, which says how much was sent.
func TestSocketEnds(t *testing.T) {
	t.Run("silent", func(t *testing.T) {
		s, client := socketPair(t)
		n, err := s.send(longText, 20*time.Millisecond)
		if !isTimeout(err) || n == 0 || n == len(longText) {
			t.Fatalf("%d bytes were sent: %v", n, err)
		}
		_ = s.Close()
		if all, _ := io.ReadAll(client); len(all) != n {
			t.Errorf("the client got %d bytes, and %d were sent", len(all), n)
		}
	})
	t.Run("gone", func(t *testing.T) {
		s, client := socketPair(t)
		_, _ = client.SetLinger(0), client.Close()
		for range 2 { // the first one may meet the socket before the end does
			if n, err := s.send(longText, time.Minute); err == nil || isTimeout(err) || n == len(longText) {
				t.Errorf("%d bytes were sent: %v", n, err)
			}
		}
	})
	t.Run("closed", func(t *testing.T) {
		s, _ := socketPair(t)
		_ = s.Close()
		if n, err := s.send([]byte("x"), time.Minute); err == nil || n != 0 {
			t.Errorf("%d bytes were sent: %v", n, err)
		}
	})
}

// TestSocketAllocates: an answer takes no memory to be sent.
func TestSocketAllocates(t *testing.T) {
	s, client := socketPair(t)
	text, got := []byte("HTTP/1.1 200 OK\r\n\r\n"), make([]byte, 64)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := s.send(text, time.Minute); err != nil {
			t.Error(err)
		}
		_, _ = io.ReadFull(client, got[:len(text)])
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
