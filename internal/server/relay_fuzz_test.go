package server

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/listeners"
)

// canned is a connection whose client sent some bytes, and no more.
type canned struct {
	net.Conn
	in    io.Reader
	piece int
}

func (c *canned) Read(p []byte) (int, error)       { return c.in.Read(p[:min(len(p), c.piece)]) }
func (c *canned) Write(p []byte) (int, error)      { return len(p), nil }
func (c *canned) Close() error                     { return nil }
func (c *canned) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
func (c *canned) LocalAddr() net.Addr              { return c.RemoteAddr() }
func (c *canned) SetReadDeadline(time.Time) error  { return nil }
func (c *canned) SetWriteDeadline(time.Time) error { return nil }

// FuzzConnection compares whole connections with net/http: each request that is served is one that
// net/http reads too, at the same place of the stream, with the same method, target and body.
func FuzzConnection(f *testing.F) {
	for _, c := range h1test.HostileCases() {
		if len(c.Send) < 4096 {
			f.Add([]byte(c.Send), uint16(0))
			f.Add([]byte(c.Send+h1test.GetHead+"\r\n"), uint16(7))
		}
	}
	budget := memoryOf(1 << 20)
	f.Fuzz(func(t *testing.T, in []byte, piece uint16) {
		type request struct{ method, target, body string }
		var served []request
		s := New(Options{Memory: budget}, func(r *Request) {
			defer reply(r, 200)
			if r.Refusal != nil {
				return
			}
			one := request{string(r.Head.Method), string(r.Head.Target), ""}
			body, err := r.ReadBody(1 << 20)
			if err != nil {
				return
			}
			one.body = string(body)
			served = append(served, one)
		})
		s.newConn(&canned{in: bytes.NewReader(in), piece: int(piece) + 1}, listeners.Any(nil).Socket("")).serve()
		if n := budget.InUse(); n != 0 || s.Open() != 0 {
			t.Fatalf("%d bytes of the budget and %d connections are left", n, s.Open())
		}
		br := bufio.NewReader(bytes.NewReader(in))
		for i, got := range served {
			r, err := http.ReadRequest(br)
			if err != nil {
				t.Fatalf("%q\nrequest %d is served as %+v; net/http: %v", in, i, got, err)
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Fatalf("%q\nrequest %d is served as %+v; net/http: %v", in, i, got, err)
			}
			// Of an absolute target only the part from the path on is served.
			if want := (request{r.Method, r.RequestURI, string(body)}); got != want && r.URL.Host == "" {
				t.Fatalf("%q\nrequest %d is served as %+v; net/http reads %+v", in, i, got, want)
			}
		}
	})
}
