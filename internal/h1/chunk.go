// Package h1 is the framing of HTTP/1.1: it finds the ends of the bodies of messages. The heads are
// read by package message. It neither reads from nor writes to connections.
package h1

import "github.com/admission-gateway/gateway/internal/message"

// Chunked reads the framing of a chunked body: size lines, the line ends after
// the data, the trailers. The data itself it leaves to the caller, who may so
// read it straight to its place:
//
//	for !c.Done() {
//		if n := c.Left(); n > 0 { take up to n bytes of data; c.Take(taken) }
//		else { used, err := c.Next(bytes at hand); skip used bytes; … }
//	}
//
// The zero value is ready for the first size line.
type Chunked struct {
	state  chunkState
	digits uint8
	size   int64 // the size that is being read, then what is left of the data
	excess int64 // framing bytes beyond what the data warrants
	line   int   // length of the trailers so far
}

type chunkState uint8

const (
	chunkSize chunkState = iota
	chunkExtension
	chunkSizeLF
	chunkData
	chunkDataCR
	chunkDataLF
	trailerStart
	trailerName
	trailerValue
	trailerLF
	lastLF
	chunkDone
)

const (
	// maxTrailerBytes bounds the trailers, which are read and dropped.
	maxTrailerBytes = 8 << 10
	// maxExcess bounds the framing that a peer may send beyond 16 bytes for
	// each chunk and two for each byte of data: a body that is nearly all
	// chunk extensions is an attack on the reader.
	maxExcess = 16 << 10
)

// Left is the number of data bytes that come next; 0 if framing comes next or the body is over.
func (c *Chunked) Left() int64 {
	if c.state == chunkData {
		return c.size
	}
	return 0
}

// Take notes that n bytes of data were read, at most Left.
func (c *Chunked) Take(n int64) {
	c.size -= n
	if c.size == 0 {
		c.state = chunkDataCR
	}
}

// Done reports whether the body is over, trailers included.
func (c *Chunked) Done() bool { return c.state == chunkDone }

// Next reads framing from b until data follows, the body is over, or b is
// exhausted; it returns how many bytes it used.
func (c *Chunked) Next(b []byte) (used int, err *message.Flaw) {
	for i, ch := range b {
		switch c.state {
		case chunkSize:
			if v := message.HexDigit(ch); v >= 0 {
				// Sixteen digits hold every size that fits an int64.
				if c.digits == 16 || c.size > 1<<58 {
					return i, flaw("the body has a chunk size that is too large")
				}
				c.digits++
				c.size = c.size<<4 | int64(v)
				continue
			}
			if c.digits == 0 || ch != '\r' && ch != ';' {
				return i, flaw("the body has a chunk size that is not a hexadecimal number")
			}
			c.excess += int64(c.digits) + 4 - 16 - min(2*c.size, maxExcess)
			if c.excess < 0 {
				c.excess = 0
			}
			c.state = chunkSizeLF
			if ch == ';' {
				c.state = chunkExtension
			}
		case chunkExtension:
			if ch == '\r' {
				c.state = chunkSizeLF
				continue
			}
			if ch < ' ' && ch != '\t' || ch == 0x7f {
				return i, flaw("the body has a control character in a chunk extension")
			}
			if c.excess++; c.excess > maxExcess {
				return i, flaw("the body has too many chunk extensions")
			}
		case chunkSizeLF:
			if ch != '\n' {
				return i, flaw("the body has a chunk size whose line does not end in CR LF")
			}
			if c.excess > maxExcess {
				return i, flaw("the body has too much framing for its data")
			}
			c.digits = 0
			if c.size > 0 {
				c.state = chunkData
				return i + 1, nil
			}
			c.state = trailerStart
		case chunkData:
			return i, nil
		case chunkDataCR:
			if ch != '\r' {
				return i, flaw("the body has a chunk that is longer than its size")
			}
			c.state = chunkDataLF
		case chunkDataLF:
			if ch != '\n' {
				return i, flaw("the body has a chunk that is longer than its size")
			}
			c.state = chunkSize
		case chunkDone:
			return i, nil
		default:
			if err := c.trailer(ch); err != nil {
				return i, err
			}
			if c.state == chunkDone {
				return i + 1, nil
			}
		}
	}
	return len(b), nil
}

// trailer reads one byte of the trailers.
func (c *Chunked) trailer(ch byte) *message.Flaw {
	if c.line++; c.line > maxTrailerBytes {
		return &message.Flaw{Message: "the body has trailers that are too long", Code: 431}
	}
	switch c.state {
	case trailerStart:
		if ch == '\r' {
			c.state = lastLF
			return nil
		}
		if !message.IsInToken(ch) {
			return flaw("the body has a trailer without a valid name")
		}
		c.state = trailerName
	case trailerName:
		if ch == ':' {
			c.state = trailerValue
		} else if !message.IsInToken(ch) {
			return flaw("the body has a trailer without a valid name")
		}
	case trailerValue:
		if ch == '\r' {
			c.state = trailerLF
		} else if ch < ' ' && ch != '\t' || ch == 0x7f {
			return flaw("the body has a control character in a trailer")
		}
	case trailerLF:
		if ch != '\n' {
			return flaw("the body has a trailer that does not end in CR LF")
		}
		c.state = trailerStart
	case lastLF:
		if ch != '\n' {
			return flaw("the body has a last line that does not end in CR LF")
		}
		c.state = chunkDone
	}
	return nil
}

func flaw(text string) *message.Flaw { return &message.Flaw{Message: text, Code: 400} }
