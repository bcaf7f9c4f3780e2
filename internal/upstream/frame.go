package upstream

import (
	"bufio"
	"io"

	"github.com/admission-gateway/gateway/internal/h1"
	"github.com/admission-gateway/gateway/internal/message"
)

// frame is the framing of the body of one answer: how its end is found.
type frame struct {
	kind  frameKind
	left  int64 // of a body of known length
	ended bool  // the connection that delimits the body has ended
	chunk h1.Chunked
}

type frameKind uint8

const (
	frameNone frameKind = iota
	frameLength
	frameChunked
	frameClose
)

func frameOf(a *message.ResponseHead, headRequest bool) frame {
	switch {
	case a.NoBody(headRequest):
		return frame{}
	case a.Chunked:
		return frame{kind: frameChunked}
	case a.ContentLength >= 0:
		return frame{kind: frameLength, left: a.ContentLength}
	}
	return frame{kind: frameClose}
}

// done reports whether the whole body was read.
func (f *frame) done() bool {
	switch f.kind {
	case frameLength:
		return f.left == 0
	case frameChunked:
		return f.chunk.Done()
	case frameClose:
		return f.ended
	}
	return true
}

// read reads body bytes into p, io.EOF after the last. A connection that ends
// too early is io.ErrUnexpectedEOF.
func (f *frame) read(br *bufio.Reader, p []byte) (int, error) {
	for {
		var most int64
		switch f.kind {
		case frameLength:
			most = f.left
		case frameChunked:
			most = f.chunk.Left()
		case frameClose:
			most = int64(len(p))
		}
		if f.done() {
			return 0, io.EOF
		}
		if most > 0 {
			n, err := br.Read(p[:min(most, int64(len(p)))])
			f.take(int64(n))
			if n > 0 {
				return n, nil
			}
			if err == io.EOF {
				if f.ended = f.kind == frameClose; !f.ended {
					err = io.ErrUnexpectedEOF
				}
			}
			return 0, err
		}
		if br.Buffered() == 0 {
			if _, err := br.Peek(1); err != nil {
				if err == io.EOF {
					err = io.ErrUnexpectedEOF
				}
				return 0, err
			}
		}
		b, _ := br.Peek(br.Buffered())
		used, flaw := f.chunk.Next(b)
		_, _ = br.Discard(used)
		if flaw != nil {
			return 0, flaw.OfAnswer()
		}
	}
}

func (f *frame) take(n int64) {
	switch {
	case n == 0:
	case f.kind == frameLength:
		f.left -= n
	case f.kind == frameChunked:
		f.chunk.Take(n)
	}
}
