package shared

import (
	"errors"
	"fmt"
)

const (
	// maxReplyDepth is how deep lists in a reply are nested at most; COMMAND nests them nine levels deep.
	maxReplyDepth = 32
	// maxReplyLine is how long a line is that is no string of announced length.
	maxReplyLine = 64 << 10
	// asideValues is how many values a list about another value counts beside its own: go-redis has a call open for it
	// until the value comes.
	asideValues = 16
)

var (
	errNotRESP     = errors.New("what Redis answers is not its protocol")
	errReplyNested = fmt.Errorf("an answer of Redis has lists that are nested more than %d levels deep", maxReplyDepth)
	errReplyLine   = fmt.Errorf("an answer of Redis has a line of more than %d bytes", maxReplyLine)
)

// replyBounds are how much a server may answer between two questions on a connection.
type replyBounds struct {
	bytes  int // in all
	values int // in lists
}

// frames reads the frames of replies (RESP2 and RESP3) as bytes arrive, and counts. It keeps nothing of them.
type frames struct {
	// Since they were set to 0. A string and a list count as soon as they are announced.
	bytes, values int

	state    frameState
	kind     byte // of the frame whose head is read
	number   int  // in the head
	isNull   bool // the head says that there is no value
	line     int  // bytes of the line so far
	previous byte // in the line
	skip     int  // bytes that are left of a string
	lists    []list
}

// A list is open, and has so many values left.
type list struct {
	left int
	// isAside says that it describes the value that follows, and is no value itself.
	isAside bool
}

type frameState uint8

const (
	atKind   frameState = iota // the next byte says what comes
	inLine                     // a value to the end of its line
	inHead                     // how long a string or a list is
	atFeed                     // the end of the head
	inString                   // of announced length
	atReturn                   // behind the string
	atEnd                      // of the string's line
)

// read reads bytes on. The error says that they are no frames, or beyond the bounds.
func (f *frames) read(p []byte, most *replyBounds) error {
	for len(p) > 0 {
		if f.state == inString {
			n := min(f.skip, len(p))
			p, f.skip = p[n:], f.skip-n
			if f.skip == 0 {
				f.state = atReturn
			}
			continue
		}
		if err := f.count(1, most); err != nil {
			return err
		}
		if err := f.step(p[0], most); err != nil {
			return err
		}
		p = p[1:]
	}
	return nil
}

// count counts bytes.
func (f *frames) count(n int, most *replyBounds) error {
	if f.bytes += n; f.bytes > most.bytes {
		return fmt.Errorf("an answer of Redis has more than %d bytes", most.bytes)
	}
	return nil
}

// step reads one byte that is not in a string.
func (f *frames) step(c byte, most *replyBounds) error {
	switch f.state {
	case atKind:
		return f.begin(c)
	case inLine:
		if f.line++; f.line > maxReplyLine {
			return errReplyLine
		}
		isEnd := c == '\n'
		if isEnd && f.previous != '\r' {
			return errNotRESP
		}
		if f.previous = c; isEnd {
			f.finish()
		}
		return nil
	case inHead:
		return f.head(c)
	case atReturn:
		f.state = atEnd
		return expect(c, '\r')
	case atEnd:
		f.finish()
		return expect(c, '\n')
	}
	if c != '\n' {
		return errNotRESP
	}
	return f.open(most)
}

func expect(c, want byte) error {
	if c != want {
		return errNotRESP
	}
	return nil
}

// begin begins a frame.
func (f *frames) begin(kind byte) error {
	f.kind, f.number, f.isNull, f.line, f.previous = kind, 0, false, 0, 0
	switch kind {
	case '+', '-', ':', '_', ',', '#', '(':
		f.state = inLine
	case '$', '!', '=', '*', '~', '>', '%', '|':
		f.state = inHead
	default:
		return errNotRESP
	}
	return nil
}

// maxDigits is how many digits a head has at most.
const maxDigits = 15

// head reads a byte of how long a string or a list is: a number, or -1.
func (f *frames) head(c byte) error {
	f.line++
	switch {
	case c == '\r' && f.line > 1 && (!f.isNull || f.line == 3 && f.number == 1):
		f.state = atFeed
	case c == '-' && f.line == 1 && (f.kind == '$' || f.kind == '*'):
		f.isNull = true
	case '0' <= c && c <= '9' && f.line <= maxDigits:
		f.number = f.number*10 + int(c-'0')
	default:
		return errNotRESP
	}
	return nil
}

// open begins the string or the list that a head announced.
func (f *frames) open(most *replyBounds) error {
	if f.isNull {
		f.finish()
		return nil
	}
	values, isAside := f.number, f.kind == '|'
	switch f.kind {
	case '$', '!', '=':
		f.state, f.skip = inString, f.number
		if f.skip == 0 {
			f.state = atReturn
		}
		return f.count(f.number, most)
	case '%', '|':
		values *= 2
	}
	if f.values += values; isAside {
		f.values += asideValues
	}
	if f.values > most.values {
		return fmt.Errorf("an answer of Redis has more than %d values", most.values)
	}
	f.state = atKind
	switch {
	case values > 0 && len(f.lists) == maxReplyDepth:
		return errReplyNested
	case values > 0:
		f.lists = append(f.lists, list{values, isAside})
	case !isAside:
		f.finish()
	}
	return nil
}

// finish ends a value, and the lists whose last value it is.
func (f *frames) finish() {
	f.state = atKind
	for n := len(f.lists); n > 0; n-- {
		last := &f.lists[n-1]
		if last.left--; last.left > 0 {
			return
		}
		isAside := last.isAside
		if f.lists = f.lists[:n-1]; isAside {
			return
		}
	}
}
