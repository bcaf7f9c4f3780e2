package proxy

import (
	"errors"
	"io"
	"slices"

	"github.com/admission-gateway/gateway/internal/upstream"
)

// copyFilled is copyStream for a body that is completed on its way. The head of a stream of events leaves at once, as
// each event does when its last byte has come. Any other head waits for the first part of the body, so that what is
// wrong with that can still be answered with a Status.
func (c *conn) copyFilled(head []byte, body *upstream.Body, e *filling, chunked bool) (sent int64, err error) {
	if e.events {
		c.answered = true
		if _, err := c.send(head); err != nil {
			return 0, errors.Join(errClientLeft, err)
		}
		head = nil
	}
	for err == nil {
		if !e.stream.Holding() {
			e.rest()
		}
		// No buffer is held while nothing comes.
		if err = body.Wait(); err != nil && err != io.EOF {
			return sent, err
		}
		var n int
		n, err = c.copyFilledPart(head, body, e, chunked)
		sent += int64(n)
		if c.answered {
			head = nil
		}
	}
	if err == io.EOF {
		err = nil
	}
	return sent, err
}

// copyFilledPart completes and sends what has arrived of the body. The error is io.EOF behind its end. Where the first
// part of an answer cannot be completed nothing is sent.
func (c *conn) copyFilledPart(head []byte, body *upstream.Body, e *filling, chunked bool) (sent int, err error) {
	in := c.server.copyBuffer()
	defer c.server.copies.Put(in)
	n, rerr := body.Read(in[:])
	for m := n; rerr == nil && m > 0 && n < len(in); n += m {
		m, rerr = body.ReadReady(in[n:])
	}
	out := c.server.copyBuffer()
	defer c.server.copies.Put(out)
	p := part{conn: c, head: head, chunked: chunked, memory: out[:0]}
	p.begin()
	for src := in[:n]; len(src) > 0 && err == nil; {
		var used int
		p.bytes, used, err = e.appendTo(p.bytes, src, copyBuffer)
		if src = src[used:]; len(src) > 0 && err == nil {
			err = p.send(false)
		}
	}
	if err == nil && rerr == io.EOF {
		p.bytes, err = e.close(p.bytes)
	}
	switch {
	case err != nil && !errors.Is(err, errClientLeft):
		if !c.answered {
			return 0, e.failed(err)
		}
		// What came before is good; a client that reads events has use for it.
		err = errors.Join(e.failed(err), p.send(false))
	case err == nil && rerr == nil, err == nil && rerr == io.EOF:
		if err = p.send(rerr == io.EOF); err == nil {
			err = rerr
		}
	case err == nil:
		err = errors.Join(rerr, p.send(false))
	}
	return p.sent, err
}

// part is what is sent at once: the head, where it has not left yet, and a chunk.
type part struct {
	conn    *conn
	head    []byte
	chunked bool
	memory  []byte // for bytes, where it suffices
	bytes   []byte // room for what stands before the chunk, and its data
	start   int    // of the data
	sent    int    // data so far
}

// begin makes room for head and size line.
func (p *part) begin() {
	p.start = len(p.head)
	if p.chunked {
		p.start += len("1234567890\r\n")
	}
	p.bytes = slices.Grow(p.memory, p.start)[:p.start]
}

// send sends what there is, and the end of the body where it is the last part.
func (p *part) send(last bool) error {
	n := len(p.bytes) - p.start
	from := p.start
	if p.chunked {
		if n > 0 {
			from = putChunkSize(p.bytes[:p.start], n)
			p.bytes = append(p.bytes, "\r\n"...)
		}
		if last {
			p.bytes = append(p.bytes, "0\r\n\r\n"...)
		}
	}
	if n == 0 && !last {
		return nil // the head waits too: what it announces may still turn out to be wrong
	}
	from -= copy(p.bytes[from-len(p.head):from], p.head)
	p.head = nil
	p.conn.answered = true
	if from < len(p.bytes) {
		if _, err := p.conn.send(p.bytes[from:]); err != nil {
			return errors.Join(errClientLeft, err)
		}
	}
	p.sent += n
	p.begin()
	return nil
}
