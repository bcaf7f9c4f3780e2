package document

import (
	"math/bits"
	"unicode/utf8"
	"unsafe"
)

// Words of eight equal bytes.
const (
	ones     = 0x0101010101010101
	highBits = 0x8080808080808080
	spaces   = 0x2020202020202020
)

// special marks, with the high bit of its byte, the first byte of w that may
// not pass unseen in a string: a quotation mark, a backslash or a control
// character. Bytes above the first marked one may be marked wrongly. XOR with 2
// takes the quotation mark to 0x20 and leaves control characters below it.
func special(w uint64) uint64 {
	control := (w ^ 0x02*ones) - 0x21*ones
	backslash := (w ^ '\\'*ones) - ones
	return (control | backslash) &^ w & highBits
}

// blank reports whether a byte is one of the four that are white space in JSON.
func blank(c byte) bool {
	return c <= ' ' && 1<<c&(1<<' '|1<<'\n'|1<<'\r'|1<<'\t') != 0
}

// skipBlank returns the offset of the next byte from i that is not blank.
func skipBlank(src []byte, i int) int {
	for i < len(src) {
		if !blank(src[i]) {
			return i
		}
		i++
		for i+8 <= len(src) && load64(unsafe.Pointer(unsafe.SliceData(src)), i) == spaces {
			i += 8
		}
	}
	return i
}

// plain returns the offset from i on of the quotation mark that ends a string, and whether there
// are bytes beyond ASCII up to there or little further. It is -1 if a backslash or a control
// character comes before, or the mark is not followed by the few bytes that it takes to look for it
// in words of eight; wide is the last offset at which such a word begins.
func plain(base unsafe.Pointer, i, wide int) (at int, ascii bool) {
	var all uint64 // every byte, or-ed together
	for ; i <= wide; i += 8 {
		word := load64(base, i)
		all |= word
		if mask := special(word); mask != 0 {
			i += bits.TrailingZeros64(mask) >> 3
			if *(*byte)(unsafe.Add(base, i)) != '"' {
				return -1, false
			}
			return i, all&highBits == 0
		}
	}
	return -1, false
}

// A scanner is one reading of a text onto the tape. Its methods take the offset
// of what they read and return the offset behind it, or fail.
type scanner struct {
	src    []byte
	tape   []entry // with all of its capacity
	n      uint32  // the next free entry
	origin uint32  // flags of entries
	depth  int     // how many containers may still be opened
	d      *Document
	limits Limits

	code  ErrorCode
	msg   string
	at    int
	where uint32 // the entry in error
}

// broken is the offset behind what cannot be read.
const broken = -1

// fail notes what is wrong at i, with the entry x or in it.
func (s *scanner) fail(i int, x uint32, code ErrorCode, msg string) int {
	s.at, s.where, s.code, s.msg = i, x, code, msg
	return broken
}

// scan parses one value from src[i:] to the end of src onto the tape. The value
// becomes the entry slot, whose place (key, parent, next, placement flags) is
// already filled in; what is below it goes to the tape's end, with the flags of
// origin.
func (d *Document) scan(src []byte, i int, slot, origin uint32, limits Limits) error {
	s := scanner{src: src, tape: d.room(), n: uint32(len(d.tape)), origin: origin, depth: limits.Depth, d: d, limits: limits}
	if limits.Nodes < len(s.tape) {
		s.tape = s.tape[:max(limits.Nodes, int(s.n))]
	}
	i = skipBlank(src, i)
	if i >= len(src) {
		i = s.fail(i, 0, Syntax, "document must not be empty")
	} else {
		i = s.value(i, slot, s.tape[slot].meta)
	}
	if i != broken && !limits.open {
		if i = skipBlank(src, i); i < len(src) {
			i = s.fail(i, 0, Syntax, unexpected(src, i, "the end of the document"))
		}
	}
	d.tape = s.tape[:s.n]
	if i == broken {
		return &Error{Offset: s.at, Path: d.pathOf(s.where), Code: s.code, Msg: s.msg}
	}
	if !d.charge() {
		return &Error{Code: NoMemory, Msg: msgNoMemory}
	}
	return nil
}

// value reads the value of entry x, which begins at i before the end.
func (s *scanner) value(i int, x, place uint32) int {
	t := &s.tape[x]
	t.off = uint32(i)
	var j int
	var flags uint32
	switch c := s.src[i]; {
	case c == '{':
		t.meta = place | uint32(Object)
		return s.object(i, x)
	case c == '[':
		t.meta = place | uint32(Array)
		return s.array(i, x)
	case c == '"':
		return s.text(i, x, place)
	case c == '-' || c-'0' <= 9:
		var code ErrorCode
		var msg string
		j, flags, code, msg = scanNumber(s.src, i)
		if msg != "" {
			return s.fail(j, x, code, msg)
		}
	default:
		if j, flags = scanLiteral(s.src, i); flags == 0 {
			code, msg := badValue(s.src, i)
			return s.fail(i, x, code, msg)
		}
	}
	t.end = uint32(j)
	t.meta = place | flags
	return j
}

// text reads a string.
func (s *scanner) text(i int, x, place uint32) int {
	t := &s.tape[x]
	t.off = uint32(i)
	flags := uint32(String)
	j, ascii := plain(unsafe.Pointer(unsafe.SliceData(s.src)), i+1, len(s.src)-8)
	if j < 0 || !ascii && !utf8.Valid(s.src[i+1:j]) {
		var code ErrorCode
		var msg string
		if j, flags, code, msg = scanString(s.src, i+1); msg != "" {
			return s.fail(j, x, code, msg)
		}
		flags |= uint32(String)
	}
	t.end = uint32(j + 1)
	t.meta = place | flags
	return j + 1
}

// grow makes room for another child of the container node, if there may be one.
func (s *scanner) grow(i int, node uint32) bool {
	tape, code := s.d.grow(s.tape, i, len(s.src), s.limits.Nodes)
	if tape == nil {
		s.tape = s.d.tape
		msg := msgNoMemory
		if code == TooManyNodes {
			msg = msgTooMany(s.limits.Nodes)
		}
		s.fail(i, node, code, msg)
		return false
	}
	s.tape = tape
	return true
}
