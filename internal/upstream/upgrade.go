package upstream

import (
	"bufio"
	"bytes"
	"net"
	"sync"
	"time"

	"github.com/admission-gateway/gateway/internal/wire"
)

// Tunnel is a connection to the backend that both ends agreed to use for something else than HTTP. It is never used for
// another request, and counts among the backend's connections until it is closed.
type Tunnel struct {
	// Conn is the connection, without deadlines.
	Conn net.Conn
	// Head is the head of the 101 (Switching Protocols), without the lines that end at this hop and without the empty line
	// at its end.
	Head []byte
	// Early are bytes of the new protocol that came with the head.
	Early []byte

	once  sync.Once
	close func()
}

// Close closes the connection. It may be called more than once, and while the connection is read from and written to.
func (t *Tunnel) Close() { t.once.Do(t.close) }

// switched takes the connection out of HTTP after an answer of status 101, whose head of n bytes is in br. What switches
// to another protocol than the one that was asked for is no answer.
func (c *Client) switched(cn *conn, br *bufio.Reader, req *Request, n int) *Error {
	a := &cn.answer
	switch {
	case req.Upgrade == nil:
		return c.notSwitched("the answer switches to another protocol, which the request did not ask for")
	case a.Upgrade == nil:
		return c.notSwitched("the answer switches to another protocol without saying to which one")
	case !bytes.EqualFold(a.Upgrade, req.Upgrade):
		return c.notSwitched("the answer switches to another protocol than the request asked for")
	case a.Chunked || a.ContentLength > 0:
		return c.notSwitched("the answer switches to another protocol and announces a body")
	}
	a.Drop("Content-Length")
	b, _ := br.Peek(n)
	head := append([]byte(nil), b[a.Compact(b):]...)
	_, _ = br.Discard(n)
	t := &Tunnel{Conn: cn.Conn, Head: head[:len(head)-len("\r\n")]}
	if n := br.Buffered(); n > 0 {
		early, _ := br.Peek(n)
		t.Early = append([]byte(nil), early...)
	}
	if err := cn.Conn.SetDeadline(time.Time{}); err != nil {
		return c.ioFailed(true, err)
	}
	req.Tunnel = t
	return nil
}

func (c *Client) notSwitched(message string) *Error {
	return c.failed(Malformed, true, &wire.Error{Code: 502, Message: message})
}
