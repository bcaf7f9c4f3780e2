package decisions

import (
	"bytes"
	"compress/gzip"
)

// chunks makes bodies of events: lists in JSON that gzip compressed, of a bounded size.
type chunks struct {
	limit int
	ratio float64 // of compressed bytes to others, in the last body
	body  bytes.Buffer
	gzip  *gzip.Writer
}

func newChunks(limit int) *chunks {
	return &chunks{limit: limit, ratio: 1, gzip: gzip.NewWriter(nil)}
}

// next makes a body of the first of the lines. It returns how many bytes of them were taken, and how
// many events they are: none if the first event is too large for any body. An event that is too
// large with its input goes without.
func (c *chunks) next(lines []byte) (body []byte, taken, events int) {
	most := int(float64(c.limit)/c.ratio) - len("[]")
	for {
		taken, events = first(lines, most)
		if c.compress(lines[:taken]); c.body.Len() <= c.limit {
			c.ratio = max(float64(c.body.Len())/float64(taken), 0.01)
			return c.body.Bytes(), taken, events
		}
		if events == 1 {
			break
		}
		most = taken / 2
	}
	if smaller := withoutInput(lines[:taken-1]); smaller != nil {
		if c.compress(smaller); c.body.Len() <= c.limit {
			return c.body.Bytes(), taken, 1
		}
	}
	return nil, taken, 0
}

// first returns how many lines have at most so many bytes; at least one.
func first(lines []byte, most int) (taken, events int) {
	for taken < len(lines) {
		end := taken + bytes.IndexByte(lines[taken:], '\n') + 1
		if events > 0 && end > most {
			break
		}
		taken, events = end, events+1
	}
	return taken, events
}

// compress makes the body of lines.
func (c *chunks) compress(lines []byte) {
	c.body.Reset()
	c.gzip.Reset(&c.body)
	separator := []byte("[")
	for line := range bytes.Lines(lines) {
		_, _ = c.gzip.Write(separator) // to memory
		_, _ = c.gzip.Write(bytes.TrimSuffix(line, []byte("\n")))
		separator = []byte(",")
	}
	_, _ = c.gzip.Write([]byte("]"))
	_ = c.gzip.Close()
}
