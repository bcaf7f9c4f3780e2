package secure

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
)

// socket is the end of a test beneath TLS. It sends in one piece what is written while it is corked.
type socket struct {
	net.Conn
	corked bool
	rest   []byte
}

func (s *socket) Write(p []byte) (int, error) {
	if s.corked {
		s.rest = append(s.rest, p...)
		return len(p), nil
	}
	return s.Conn.Write(p)
}

// SetWriteDeadline does nothing: everything corked is sent after TLS has set one.
func (s *socket) SetWriteDeadline(time.Time) error { return nil }

// ends returns the two ends of a connection, and the socket of the far one.
func ends(t *testing.T, version uint16) (near *Conn, far *tls.Conn, beneath *socket) {
	t.Helper()
	authority := credentialstest.NewAuthority(t, "a")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	beneath = &socket{Conn: accepted}
	near = Client(nc, &tls.Config{RootCAs: authority.Pool(), ServerName: "127.0.0.1", MaxVersion: version})
	far = tls.Server(beneath, authority.Server(t, []string{"127.0.0.1"}).Config(t))
	done := make(chan error, 1)
	go func() { done <- far.Handshake() }()
	if err := errors.Join(near.Handshake(), <-done); err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{near, far} {
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	return near, far, beneath
}

// together sends records, one for each part, in one piece.
func together(t *testing.T, far *tls.Conn, beneath *socket, parts ...[]byte) {
	t.Helper()
	beneath.corked = true
	for _, p := range parts {
		if _, err := far.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	beneath.corked = false
	if _, err := beneath.Conn.Write(beneath.rest); err != nil {
		t.Fatal(err)
	}
	beneath.rest = nil
}

// TestReadAfterWait reads after a Wait all that came with the byte for which it waited, over the borders of records.
func TestReadAfterWait(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		near, far, beneath := ends(t, version)
		for round := range 3 {
			together(t, far, beneath, []byte("a"), []byte("bc"), []byte("def"))
			for range 2 { // a second Wait finds what the first has found
				if err := near.Wait(); err != nil {
					t.Fatal(err)
				}
			}
			if has, err := near.Buffered(); !has || err != nil {
				t.Errorf("round %d: Buffered is %v, %v", round, has, err)
			}
			if n, err := near.Read(nil); n != 0 || err != nil {
				t.Errorf("round %d: a read of nothing is %d, %v", round, n, err)
			}
			var p [16]byte
			n, err := near.Read(p[:4])
			if got := string(p[:n]); got != "abcd" || err != nil {
				t.Fatalf("round %d: the first read is %q, %v", round, got, err)
			}
			n, err = near.ReadArrived(p[:])
			if got := string(p[:n]); got != "ef" || err != nil {
				t.Errorf("round %d: the second read is %q, %v", round, got, err)
			}
			if n, err = near.ReadArrived(p[:]); n != 0 || err != nil {
				t.Errorf("round %d: a read of what has not come is %d, %v", round, n, err)
			}
			if has, err := near.Buffered(); has || err != nil {
				t.Errorf("round %d: Buffered is %v, %v in the end", round, has, err)
			}
		}
	}
}

// TestEnds shows an end of the connection behind the bytes before it, again and again.
func TestEnds(t *testing.T) {
	near, far, beneath := ends(t, tls.VersionTLS13)
	beneath.corked = true
	if _, err := far.Write([]byte("last")); err != nil {
		t.Fatal(err)
	}
	if err := far.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	beneath.corked = false
	if _, err := beneath.Conn.Write(beneath.rest); err != nil {
		t.Fatal(err)
	}
	if err := near.Wait(); err != nil {
		t.Fatal(err)
	}
	var p [16]byte
	if n, err := near.Read(p[:]); string(p[:n]) != "last" || err != nil {
		t.Errorf("read %q, %v", p[:n], err)
	}
	for range 2 {
		if err := near.Wait(); err != io.EOF {
			t.Errorf("Wait: %v", err)
		}
		if n, err := near.ReadArrived(p[:]); n != 0 || err != io.EOF {
			t.Errorf("ReadArrived: %d, %v", n, err)
		}
		if n, err := near.Read(p[:]); n != 0 || err != io.EOF {
			t.Errorf("Read: %d, %v", n, err)
		}
		if has, err := near.Buffered(); has || err != io.EOF {
			t.Errorf("Buffered: %v, %v", has, err)
		}
	}
}

// TestInterruptedWait lets a deadline end a Wait and nothing else: what comes later is read, also the rest of a record
// that had come in part.
func TestInterruptedWait(t *testing.T) {
	near, far, beneath := ends(t, tls.VersionTLS13)
	sent := bytes.Repeat([]byte("x"), 16<<10)
	beneath.corked = true
	if _, err := far.Write(sent); err != nil {
		t.Fatal(err)
	}
	record := beneath.rest
	for _, part := range [][]byte{record[:3], record[3:100], record[100:]} {
		ended := make(chan error)
		go func() { ended <- near.Wait() }()
		_ = near.SetReadDeadline(time.Unix(1, 0))
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("Wait: %v", err)
		}
		_ = near.SetReadDeadline(time.Now().Add(20 * time.Second))
		if has, err := near.Buffered(); has || err != nil {
			t.Errorf("Buffered: %v, %v", has, err)
		}
		if _, err := beneath.Conn.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := near.Wait(); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 20<<10)
	if n, err := near.Read(p); err != nil || !bytes.Equal(p[:n], sent) {
		t.Errorf("%d bytes came, %v", n, err)
	}
}

// TestBrokenRecord ends the connection with what is no record of TLS.
func TestBrokenRecord(t *testing.T) {
	near, _, beneath := ends(t, tls.VersionTLS13)
	if _, err := beneath.Conn.Write(append([]byte{23, 3, 3, 0, 32}, make([]byte, 32)...)); err != nil {
		t.Fatal(err)
	}
	err := near.Wait()
	if err == nil || err == io.EOF {
		t.Fatalf("Wait: %v", err)
	}
	if _, again := near.Buffered(); again == nil || again.Error() != err.Error() {
		t.Errorf("Buffered: %v, after %v", again, err)
	}
}
