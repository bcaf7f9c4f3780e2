package upstream

import (
	"bufio"
	"bytes"
	"time"
)

// switchProtocol takes the connection out of HTTP after an answer of status 101, whose head of n bytes is in br. An
// answer that switches to another protocol than the one that was asked for is refused.
func switchProtocol(cn *conn, br *bufio.Reader, req *Request, n int) error {
	a := &cn.answer
	switch {
	case req.Upgrade == nil:
		return malformed("the answer switches to another protocol, which the request did not ask for")
	case a.Upgrade == nil:
		return malformed("the answer switches to another protocol without saying to which one")
	case !bytes.EqualFold(a.Upgrade, req.Upgrade):
		return malformed("the answer switches to another protocol than the request asked for")
	case a.Chunked || a.ContentLength > 0:
		return malformed("the answer switches to another protocol and announces a body")
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
		return ioFailed(true, err)
	}
	req.Tunnel = t
	return nil
}
