package document

import (
	"math/bits"
	"unsafe"

	"github.com/admission-gateway/gateway/internal/octets"
)

// Words of eight equal bytes.
const (
	ones   = octets.Ones
	spaces = ' ' * ones
	zeros  = '0' * ones
)

// special marks, with the high bit of its byte, the first byte of w that may
// not pass unseen in a string: a quotation mark, a backslash or a control
// character. Bytes above the first marked one may be marked wrongly.
func special(w uint64) uint64 { return belowZero(w) &^ w & octets.Highs }

// specialOrWide is special that marks bytes beyond ASCII too.
func specialOrWide(w uint64) uint64 { return (belowZero(w) | w) & octets.Highs }

// belowZero sets the high bit of the bytes that special marks, and of others only if they had it or
// are above those. XOR with 2 takes the quotation mark to 0x20 and leaves control characters below.
func belowZero(w uint64) uint64 {
	control := (w ^ 0x02*ones) - 0x21*ones
	backslash := (w ^ '\\'*ones) - ones
	return control | backslash
}

// notDigit marks, with the high bit of its byte, the first byte of w that is no digit. Bytes above
// it may be marked wrongly.
func notDigit(w uint64) uint64 {
	w ^= zeros
	return (w + (0x80-10)*ones | w) & octets.Highs
}

// firstMarked is the place of the first byte that is marked, from 0. One must be.
func firstMarked(marks uint64) int { return bits.TrailingZeros64(marks) >> 3 }

// isBlank reports whether a byte is one of the four that are white space in JSON.
func isBlank(c byte) bool {
	return c <= ' ' && 1<<c&(1<<' '|1<<'\n'|1<<'\r'|1<<'\t') != 0
}

// skipBlank returns the offset of the next byte from i that is not blank.
func skipBlank(src []byte, i int) int {
	base := unsafe.Pointer(unsafe.SliceData(src))
	for i < len(src) && isBlank(src[i]) {
		i++
		for i+8 <= len(src) {
			word := load64(base, i) ^ spaces
			if word != 0 {
				i += firstMarked(word)
				break
			}
			i += 8
		}
	}
	return i
}

// A scanner is one reading of a text onto the tape. Its methods take the offset
// of what they read and return the offset behind it, or fail.
type scanner struct {
	src  []byte
	base unsafe.Pointer // of src
	wide int            // the last offset in src at which a word of eight bytes begins

	tape         []entry        // with all of its capacity
	entries      unsafe.Pointer // of tape
	room         uint32         // how many entries it has
	n            uint32         // the next free entry
	item, member uint32         // flags of values in lists and in objects

	// The innermost container that is open.
	node    uint32
	last    uint32 // the latest of its children
	count   uint32 // how many they are
	folds   uint64 // two bits for each of their keys, which keys share that differ in case alone
	closing byte   // the mark that ends it

	seeker // of the ends of strings

	top, first uint32 // the outermost container, and its first child
	depth      int    // how many containers may still be opened, but for an Outline

	d      *Document
	limits Limits

	code  ErrorCode
	msg   string
	at    int
	where uint32 // the entry in error
}

// use makes the scanner write to the tape.
func (s *scanner) use(tape []entry) {
	s.tape, s.entries, s.room = tape, unsafe.Pointer(unsafe.SliceData(tape)), uint32(len(tape))
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
	n, tape := uint32(len(d.tape)), d.room()
	s := scanner{
		src: src, base: unsafe.Pointer(unsafe.SliceData(src)), wide: len(src) - 8,
		n: n, item: origin, member: origin | flagMember,
		first: n, depth: limits.Depth, d: d, limits: limits,
	}
	if limits.Outline != nil {
		s.depth = 1
	}
	if limits.Nodes < len(tape) {
		tape = tape[:max(limits.Nodes, int(n))]
	}
	s.use(tape)
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
	if i == broken && limits.Outline != nil {
		return errOutline
	}
	if i == broken {
		d.tape = s.tape[:s.n]
		return &Error{Offset: s.at, Path: d.pathOf(s.where), Code: s.code, Msg: s.msg}
	}
	d.tape = s.tape[:s.n]
	if !d.charge() {
		return &Error{Code: NoMemory, Msg: msgNoMemory}
	}
	return nil
}

// value reads the value of entry x, which begins at i before the end.
func (s *scanner) value(i int, x, place uint32) int {
	if s.src[i]|0x20 == '{' {
		s.tape[x].meta = place
		return s.container(i, x)
	}
	return s.scalar(i, x, place)
}

// scalar is value for all but objects and lists.
func (s *scanner) scalar(i int, x, place uint32) int {
	j, flags, code, msg := scanScalar(s.src, i)
	if msg != "" {
		return s.fail(j, x, code, msg)
	}
	t := &s.tape[x]
	t.off, t.end, t.meta = uint32(i), uint32(j), place|flags
	return j
}

// scanScalar checks the value at src[i] if it is no object and no list. It returns the offset after
// it and its kind and flags, or the offset of the offending byte with a message.
func scanScalar(src []byte, i int) (at int, flags uint32, code ErrorCode, msg string) {
	switch c := src[i]; {
	case c == '"':
		at, flags, code, msg = scanString(src, i+1)
		if msg == "" {
			at, flags = at+1, flags|uint32(String)
		}
	case c == '-' || c-'0' <= 9:
		return scanNumber(src, i)
	default:
		if at, flags = scanLiteral(src, i); flags == 0 {
			code, msg = badValue(src, i)
		}
	}
	return at, flags, code, msg
}

// grow makes room for another child of the container node, if there may be one.
func (s *scanner) grow(i int, node uint32) bool {
	tape, code := s.d.grow(s.tape, i, len(s.src), s.limits.Nodes)
	if tape == nil {
		msg := msgNoMemory
		if code == TooManyNodes {
			msg = msgTooMany(s.limits.Nodes)
		}
		s.fail(i, node, code, msg)
		return false
	}
	s.use(tape)
	return true
}
