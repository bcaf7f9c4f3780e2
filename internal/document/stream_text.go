package document

import (
	"unsafe"
)

// streamPosition is the position of a Stream in the text outside of items.
type streamPosition struct {
	state streamState
	stack []byte // the open containers, each by its opening character

	path    pathProgress
	list    itemList
	root    rootForm
	members uint64 // a bit for each of the Members that have come
	sent    bool   // an item has been sent, with ItemsOnly
}

// pathProgress is how far the text has followed the path to the items.
type pathProgress struct {
	depth int  // how many of the open containers lie on the path
	keys  int  // how many of its keys have come
	next  bool // the value to come is on the path
}

// itemList is the list of items.
type itemList struct {
	depth int  // 0 outside of the list
	items int  // values in it so far
	found bool // there was one, or a root object without any member
}

// rootForm is the form of the text's root.
type rootForm uint8

const (
	rootEmpty   rootForm = iota // without a member so far
	rootFilled                  // an object with a member
	rootWrapped                 // an array that becomes a member
)

// openToken is the token that is being read, as a whole or in parts.
type openToken struct {
	kind   tokenKind
	begin  int // in the text
	text   textState
	nested int    // containers that are open within an item
	kept   []byte // what earlier calls read of it
	room   []byte // memory for small tokens, which is kept for the next text
}

// ends forgets the token, which has been read.
func (t *openToken) ends() { t.kind, t.kept = noToken, t.room[:0] }

// textState is the place of the next character of a token, relative to the strings in it.
type textState uint8

const (
	outsideText textState = iota
	insideText
	afterBackslash
)

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
type tokenKind uint8

const (
	noToken tokenKind = iota
	keyToken
	stringToken
	bareToken // a number or a literal, which ends where something else begins
	itemToken
)

// streamEvent is the meaning of a character outside of tokens, besides the state that it leads to.
type streamEvent uint8

const (
	nothing     streamEvent = iota
	tokenBegins             // with this character
	rootOpens               // the root is an array, to be turned into an object
	rootCloses              // an object that may get Members, or a wrapped array
)

// step reads the character at src[i], which is not blank and outside of tokens.
func (s *Stream) step(src []byte, i int) (streamEvent, error) {
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
			s.token.kind = keyToken
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
func (s *Stream) value(src []byte, i int) (streamEvent, error) {
	inList := s.list.depth > 0 && s.list.depth == len(s.stack)
	if inList {
		s.list.items++
	}
	switch c := src[i]; {
	case c == '{' && (inList || len(s.stack) == 0 && s.o.Place != List):
		s.token.kind = itemToken
	case c == '{' || c == '[':
		if len(s.stack) >= s.o.Limits.Depth {
			return nothing, &Error{Offset: i, Code: TooDeep, Msg: msgTooDeep(s.o.Limits.Depth)}
		}
		return s.opens(c), nil
	case c == '"':
		s.token.kind = stringToken
	case isBare(c):
		s.token.kind = bareToken
		s.list.found = s.list.found || c == 'n' && s.path.next && s.path.depth == len(s.o.Path)
	default:
		if s.total > 0 {
			return nothing, misplaced(src, i, "a value")
		}
		code, msg := badValue(src, i)
		return nothing, &Error{Offset: i, Code: code, Msg: msg}
	}
	s.path.next = false
	return tokenBegins, nil
}

func misplaced(src []byte, i int, required string) *Error {
	return &Error{Offset: i, Msg: unexpected(src, i, required)}
}

// opens enters a container outside of items.
func (s *Stream) opens(c byte) streamEvent {
	root, onPath := len(s.stack) == 0, s.path.next
	s.path.next = false
	s.stack = append(s.stack, c)
	if s.state = wantElement; c == '{' {
		s.state = wantMember
	}
	if s.o.Place != List || !root && !onPath {
		return nothing
	}
	switch keys := len(s.o.Path); {
	case c == '{' && s.path.depth < keys:
		s.path.depth++
	case c == '[' && s.path.depth == keys:
		s.list.depth, s.list.found = len(s.stack), true
	case c == '[' && root && keys == 1 && s.o.Wrap:
		s.list.depth, s.list.found, s.root = 1, true, rootWrapped
		return rootOpens
	}
	return nothing
}

// closes leaves a container outside of items.
func (s *Stream) closes() (event streamEvent) {
	depth := len(s.stack)
	if depth == 1 && s.o.Place == List && (s.root == rootWrapped || s.stack[0] == '{') {
		event = rootCloses
		s.list.found = s.list.found || s.root == rootEmpty
	}
	switch depth {
	case s.list.depth:
		s.list.depth = 0
	case s.path.depth:
		s.path.depth--
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

// isBare reports whether numbers and literals consist of such characters.
func isBare(c byte) bool {
	return c-'0' <= 9 || c|0x20-'a' <= 'z'-'a' || c == '-' || c == '+' || c == '.'
}

// tokenEnd finds the end of the token that src[i:] begins with or goes on with.
func (s *Stream) tokenEnd(src []byte, i int) (end int, whole bool) {
	first := len(s.token.kept) == 0
	switch s.token.kind {
	case bareToken:
		for i < len(src) && isBare(src[i]) {
			i++
		}
		return i, i < len(src)
	case itemToken:
		if first {
			s.token.nested = 0
			if s.ends == nil {
				s.ends = new(skipper)
			}
			if end = s.ends.skip(src, i); end != broken {
				return end, true
			}
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
		if s.token.text == afterBackslash {
			s.token.text = insideText
			i++
			continue
		}
		for i+8 <= len(src) {
			if stop := special(load64(base, i)); stop != 0 {
				i += firstMarked(stop)
				break
			}
			i += 8
		}
		if i == len(src) {
			break
		}
		switch src[i] {
		case '"':
			s.token.text = outsideText
			return i + 1, true
		case '\\':
			s.token.text = afterBackslash
		}
		i++
	}
	return i, false
}

// itemEnd finds the end of an item of which a part is there, by its brackets alone. The parser reads it afterwards.
func (s *Stream) itemEnd(src []byte, i int) (end int, whole bool) {
	for i < len(src) {
		if s.token.text != outsideText {
			if i, whole = s.stringEnd(src, i); !whole {
				return i, false
			}
			continue
		}
		switch src[i] {
		case '"':
			s.token.text = insideText
		case '{', '[':
			s.token.nested++
		case '}', ']':
			if s.token.nested--; s.token.nested == 0 {
				return i + 1, true
			}
		}
		i++
	}
	return i, false
}

// check reads a whole token that is no item.
func (s *Stream) check(raw []byte) error {
	at, flags, code, msg := scanScalar(raw, 0)
	if msg == "" && at < len(raw) {
		msg = unexpected(raw, at, "the end of a value")
	}
	if msg == "" && s.token.kind == keyToken {
		code, msg = s.key(raw[1:len(raw)-1], flags)
		at = 0
	}
	if msg != "" {
		return &Error{Offset: s.token.begin + at, Code: code, Msg: msg}
	}
	if s.token.kind != keyToken {
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
	if depth := len(s.stack); depth == s.path.depth && is(s.o.Path[depth-1]) {
		if s.path.keys >= depth {
			return Duplicate, "duplicate key '" + s.o.Path[depth-1] + "'"
		}
		s.path.keys, s.path.next = depth, true
	}
	if len(s.stack) > 1 || s.o.Place != List {
		return 0, ""
	}
	s.root = rootFilled
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
		if s.root != rootEmpty {
			dst = append(dst, ',')
		} else {
			s.root = rootFilled
		}
		dst = append(AppendString(dst, s.o.Members[i].Name), ':')
		dst = append(dst, s.o.Members[i].Value...)
	}
	return dst
}

// path returns the path of the item at which the text is, "" if it is at none.
func (s *Stream) itemPath() string {
	if s.list.depth == 0 {
		return ""
	}
	var b []byte
	for _, key := range s.o.Path {
		b = AppendPathKey(b, key)
	}
	return string(AppendPathIndex(b, s.list.items-1))
}
