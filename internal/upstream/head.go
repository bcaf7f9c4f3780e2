package upstream

import (
	"bufio"
	"errors"

	"github.com/admission-gateway/gateway/internal/message"
)

// maxInterim bounds the 1xx answers before the final one.
const maxInterim = 16

const statusLine = "HTTP/1."

// readHead reads heads into cn.answer until one is not informational, and returns its length.
func readHead(cn *conn, br *bufio.Reader) (int, error) {
	for i := range maxInterim {
		n, err := readOneHead(cn, br)
		if err != nil {
			var failure *Error
			if i > 0 && errors.As(err, &failure) {
				failure.retry = never
			}
			return 0, err
		}
		if status := cn.answer.Status; status < 200 && status != 101 {
			_, _ = br.Discard(n)
			continue
		}
		return n, nil
	}
	return 0, malformed("too many informational answers")
}

// readOneHead waits for a whole head and scans it; it returns its length.
func readOneHead(cn *conn, br *bufio.Reader) (int, error) {
	from := 0
	for more := br.Buffered() == 0; ; more = true {
		if have := br.Buffered(); more {
			if _, err := br.Peek(have + 1); err != nil && br.Buffered() == have {
				return 0, noHead(have, err)
			}
		}
		if cn.hasEarly() {
			cn.countSurplus()
			failure := newError(Broken, true, errSurplus)
			failure.retry = noAnswer
			return 0, failure
		}
		b, _ := br.Peek(br.Buffered())
		if start := b[:min(len(b), len(statusLine))]; string(start) != statusLine[:len(start)] {
			return 0, malformed("the answer does not start with a status line")
		}
		if from == 0 { // most heads come whole
			if n := cn.answer.Read(b); n > 0 {
				return n, nil
			}
		}
		n, next, flaw := message.HeadEnd(b, from)
		if flaw != nil {
			return 0, newError(Malformed, true, flaw.OfAnswer())
		}
		if n == 0 {
			from = next
			continue
		}
		if err := cn.answer.Parse(b[:n]); err != nil {
			return 0, newError(Malformed, true, err)
		}
		return n, nil
	}
}

// noHead is the failure to read a head if only so many bytes of it arrived.
func noHead(have int, err error) error {
	if err == bufio.ErrBufferFull {
		return malformed("the head of the answer is too large")
	}
	e := ioFailed(true, err)
	if have == 0 && e.Kind == Broken {
		e.retry = noAnswer
	}
	return e
}
