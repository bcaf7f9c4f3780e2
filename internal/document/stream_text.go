package document

import (
	"math/bits"
	"unsafe"
)

// streamPosition is where in the text a Stream is, as far as the text lies outside of items.
type streamPosition struct {
	state streamState
	stack []byte // the open containers, each by its opening character

	// The path to the items: how many of the open containers lie on it, how many of its keys have come, and whether the
	// value to come is on it.
	on     int
	keys   int
	onPath bool

	list    int    // the depth of the list of items, 0 outside of it
	items   int    // values in that list so far
	wrapped bool   // the root is an array that becomes a member
	members uint64 // a bit for each of the Members that have come
	filled  bool   // the root object has a member
	listed  bool   // there was a list of items
	emptied bool   // the root object was one without members
	sent    bool   // an item was, where there is nothing else
}

type streamState uint8

const (
	wantValue   streamState = iota
	wantElement             // or the end of the array, which is empty so far
	wantMember              // or the end of the object, which is empty so far
	wantKey
	wantColon
	wantMore // a comma, or the end of the container
	wantEnd  // the end of the text, or the next value of a sequence
)

// A streamToken is a part of the text that is only looked at as a whole.
type streamToken uint8

const (
	noToken streamToken = iota
	keyToken
	stringToken
	bareToken // a number or a literal, which ends where something else begins
	itemToken
)

// streamEvent is what a character outside of tokens means beyond the state that it leads to.
type streamEvent uint8

const (
	nothing     streamEvent = iota
	tokenBegins             // with this character
	rootWrapped             // the root is an array, and an object is to be made of it
	rootCloses              // an object that may get Members, or a wrapped array
)

// step reads the character at src[i], which is not blank and outside of tokens.
func (s *Stream) step(src []byte, i int) (streamEvent, *Error) {
	c := src[i]
	switch s.state {
	case wantColon:
		if c != ':' {
			return nothing, misplaced(src, i, "':'")
		}
		s.state = wantValue
		return nothing, nil
	case wantMore, wantElement, wantMember, wantKey:
		object := s.stack[len(s.stack)-1] == '{'
		switch {
		case s.state != wantKey && (c == '}' && object || c == ']' && !object):
			return s.closes(), nil
		case s.state == wantMore && c != ',':
			return nothing, misplaced(src, i, wantNext(object))
		case s.state == wantMore && object:
			s.state = wantKey
			return nothing, nil
		case s.state == wantMore:
			s.state = wantValue
			return nothing, nil
		case object && c != '"':
			return nothing, misplaced(src, i, "a key in double quotes")
		case object:
			s.token = keyToken
			return tokenBegins, nil
		}
	case wantEnd:
		if s.o.Place != Sequence {
			return nothing, misplaced(src, i, "the end of the document")
		}
	}
	return s.value(src, i)
}

// value reads the first character of a value.
func (s *Stream) value(src []byte, i int) (streamEvent, *Error) {
	inList := s.list > 0 && s.list == len(s.stack)
	if inList {
		s.items++
	}
	switch c := src[i]; {
	case c == '{' && (inList || len(s.stack) == 0 && s.o.Place != List):
		s.token = itemToken
	case c == '{' || c == '[':
		if len(s.stack) >= s.o.Limits.Depth {
			return nothing, &Error{Offset: i, Code: TooDeep, Msg: msgTooDeep(s.o.Limits.Depth)}
		}
		return s.opens(c), nil
	case c == '"':
		s.token = stringToken
	case isBare(c):
		s.token = bareToken
		s.listed = s.listed || c == 'n' && s.onPath && s.on == len(s.o.Path)
	default:
		if s.total > 0 {
			return nothing, misplaced(src, i, "a value")
		}
		code, msg := badValue(src, i)
		return nothing, &Error{Offset: i, Code: code, Msg: msg}
	}
	s.onPath = false
	return tokenBegins, nil
}

func misplaced(src []byte, i int, required string) *Error {
	return &Error{Offset: i, Msg: unexpected(src, i, required)}
}

// opens enters a container outside of items.
func (s *Stream) opens(c byte) streamEvent {
	root, onPath := len(s.stack) == 0, s.onPath
	s.onPath = false
	s.stack = append(s.stack, c)
	if s.state = wantElement; c == '{' {
		s.state = wantMember
	}
	if s.o.Place != List || !root && !onPath {
		return nothing
	}
	switch keys := len(s.o.Path); {
	case c == '{' && s.on < keys:
		s.on++
	case c == '[' && s.on == keys:
		s.list, s.listed = len(s.stack), true
	case c == '[' && root && keys == 1 && s.o.Wrap:
		s.list, s.wrapped, s.listed = 1, true, true
		return rootWrapped
	}
	return nothing
}

// closes leaves a container outside of items.
func (s *Stream) closes() (event streamEvent) {
	depth := len(s.stack)
	if depth == 1 && s.o.Place == List && (s.wrapped || s.stack[0] == '{') {
		event = rootCloses
		s.emptied = !s.wrapped && !s.filled
	}
	switch depth {
	case s.list:
		s.list = 0
	case s.on:
		s.on--
	}
	s.stack = s.stack[:depth-1]
	s.valueEnds()
	return event
}

// valueEnds is called behind every value.
func (s *Stream) valueEnds() {
	if s.state = wantMore; len(s.stack) == 0 {
		s.state = wantEnd
	}
}

// isBare tells the characters that numbers and literals consist of.
func isBare(c byte) bool {
	return c-'0' <= 9 || c|0x20-'a' <= 'z'-'a' || c == '-' || c == '+' || c == '.'
}

// tokenEnd finds the end of the token that src[i:] begins with or goes on with.
func (s *Stream) tokenEnd(src []byte, i int) (end int, whole bool) {
	first := len(s.held) == 0
	switch s.token {
	case bareToken:
		for i < len(src) && isBare(src[i]) {
			i++
		}
		return i, i < len(src)
	case itemToken:
		if first {
			s.nested = 0
		}
		return s.itemEnd(src, i)
	}
	if first {
		i++
	}
	return s.stringEnd(src, i)
}

// stringEnd finds the end of a string from behind its opening quotation mark.
func (s *Stream) stringEnd(src []byte, i int) (end int, whole bool) {
	base := unsafe.Pointer(unsafe.SliceData(src))
	for i < len(src) {
		if s.escape {
			s.escape = false
			i++
			continue
		}
		for i+8 <= len(src) {
			if stop := special(load64(base, i)); stop != 0 {
				i += bits.TrailingZeros64(stop) >> 3
				break
			}
			i += 8
		}
		if i == len(src) {
			break
		}
		switch src[i] {
		case '"':
			return i + 1, true
		case '\\':
			s.escape = true
		}
		i++
	}
	return i, false
}

// itemEnd finds the end of an item by its brackets alone: whether it is good JSON the parser tells.
func (s *Stream) itemEnd(src []byte, i int) (end int, whole bool) {
	for i < len(src) {
		if s.quoted {
			if i, whole = s.stringEnd(src, i); !whole {
				return i, false
			}
			s.quoted = false
			continue
		}
		switch src[i] {
		case '"':
			s.quoted = true
		case '{', '[':
			s.nested++
		case '}', ']':
			if s.nested--; s.nested == 0 {
				return i + 1, true
			}
		}
		i++
	}
	return i, false
}

// check reads a whole token that is no item.
func (s *Stream) check(raw []byte) *Error {
	var (
		at    int
		flags uint32
		code  ErrorCode
		msg   string
	)
	switch c := raw[0]; {
	case c == '"':
		if at, flags, code, msg = scanString(raw, 1); msg == "" {
			at++
		}
	case c == '-' || c-'0' <= 9:
		at, _, code, msg = scanNumber(raw, 0)
	default:
		if at, flags = scanLiteral(raw, 0); flags == 0 {
			code, msg = badValue(raw, 0)
		}
	}
	if msg == "" && at < len(raw) {
		msg = unexpected(raw, at, "the end of a value")
	}
	if msg == "" && s.token == keyToken {
		code, msg = s.key(raw[1:len(raw)-1], flags)
		at = 0
	}
	if msg != "" {
		return &Error{Offset: s.begin + at, Code: code, Msg: msg}
	}
	if s.token != keyToken {
		s.valueEnds()
	}
	return nil
}

// key reads the key of a member of an object that is no item.
func (s *Stream) key(key []byte, flags uint32) (ErrorCode, string) {
	if flags&flagNUL != 0 && !s.o.Limits.trusted {
		return Encoding, msgKeyNUL
	}
	is := func(name string) bool {
		if flags&flagEscaped != 0 {
			return decodedIs(key, name)
		}
		return string(key) == name
	}
	s.state = wantColon
	if depth := len(s.stack); depth == s.on && is(s.o.Path[depth-1]) {
		if s.keys >= depth {
			return Duplicate, "duplicate key '" + s.o.Path[depth-1] + "'"
		}
		s.keys, s.onPath = depth, true
	}
	if len(s.stack) > 1 || s.o.Place != List {
		return 0, ""
	}
	s.filled = true
	for i := range s.o.Members {
		if !is(s.o.Members[i].Name) {
			continue
		}
		if s.members&(1<<i) != 0 {
			return Duplicate, "duplicate key '" + s.o.Members[i].Name + "'"
		}
		s.members |= 1 << i
	}
	return 0, ""
}

// appendMembers appends the members that the root object lacks.
func (s *Stream) appendMembers(dst []byte) []byte {
	for i := range s.o.Members {
		if s.members&(1<<i) != 0 {
			continue
		}
		if s.filled || s.wrapped {
			dst = append(dst, ',')
		}
		s.filled = true
		dst = append(AppendString(dst, s.o.Members[i].Name), ':')
		dst = append(dst, s.o.Members[i].Value...)
	}
	return dst
}

// path is that of the item at which the text is, "" where it is at none.
func (s *Stream) path() string {
	if s.list == 0 {
		return ""
	}
	var b []byte
	for _, key := range s.o.Path {
		b = AppendPathKey(b, key)
	}
	return string(AppendPathIndex(b, s.items-1))
}
