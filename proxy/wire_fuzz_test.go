package proxy

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
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

// FuzzConnection holds whole connections against net/http: each request that
// is served is one that net/http reads too, at the same place of the stream,
// with the same method, target and body.
func FuzzConnection(f *testing.F) {
	for _, c := range hostileCases() {
		if len(c.send) < 4096 {
			f.Add([]byte(c.send), uint16(0))
			f.Add([]byte(c.send+getHead+"\r\n"), uint16(7))
		}
	}
	budget := newBodyBudget(1 << 20)
	f.Fuzz(func(t *testing.T, in []byte, piece uint16) {
		type request struct{ method, target, body string }
		var served []request
		s := newServer(serverOptions{}, func(_ *fasthttp.RequestCtx, c *conn) {
			if c.refusal != nil {
				return
			}
			r := request{string(c.head.Method), string(c.head.Target), ""}
			body, err := c.readBody(1<<20, budget)
			if err != nil {
				return
			}
			r.body = string(body)
			served = append(served, r)
		})
		if err := s.fast.ServeConn(s.newConn(&canned{in: bytes.NewReader(in), piece: int(piece) + 1})); err != nil {
			t.Logf("fasthttp: %v", err)
		}
		if n := budget.inUse(); n != 0 || s.open() != 0 {
			t.Fatalf("%d bytes of the budget and %d connections are left", n, s.open())
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
