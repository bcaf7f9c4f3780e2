package document

import (
	"math/bits"
	"unicode/utf8"
	"unsafe"
)

// A frame is what the parser remembers of a container that is still open.
type frame struct {
	node, prev uint32 // the container, and its last child so far
	count      uint32
	object     bool
	seen       uint64 // a bit for each key hash so far, modulo 64
}

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

// blank tells the four bytes that JSON takes as white space.
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

// scan parses one value from src[i:] to the end of src onto the tape. The value
// becomes the entry slot, whose place (key, parent, next, placement flags) is
// already filled in; what is below it goes to the tape's end, with the flags of
// origin. It is one loop with labels for states rather than a function per kind
// of value, because calls would be most of the cost.
func (d *Document) scan(src []byte, i int, slot, origin uint32, limits Limits) *Error {
	var (
		base   = unsafe.Pointer(unsafe.SliceData(src))
		end    = len(src)
		wide   = len(src) - 8 // the last offset at which eight bytes can be read
		tape   = d.room()
		first  = uint32(len(d.tape)) // the slot's first child, if it has one
		n      = first               // the next free entry
		frames = d.frames
		depth  = 0

		f     frame  // the innermost open container
		x     = slot // the entry at work
		place = tape[slot].meta
		t     *entry
		c     byte
		j     int
		start int
		hash  uint32
		flags uint32
		word  uint64
		mask  uint64
		all   uint64 // every byte of a string, or-ed together
		code  ErrorCode
		msg   string
		where uint32 // the entry that an error is about
	)
	f.node = slot
	if limits.Nodes < len(tape) {
		tape = tape[:max(limits.Nodes, int(n))]
	}
	i = skipBlank(src, i)
	if i >= end {
		msg = "document must not be empty"
		goto fail
	}

value: // the value of entry x begins at i, which is before the end
	t = &tape[x]
	t.off = uint32(i)
	c = src[i]
	if c == '"' {
		start = i + 1
		j = start
		all = 0
		for {
			if j > wide {
				goto stringTail
			}
			word = load64(base, j)
			all |= word
			mask = special(word)
			if mask != 0 {
				break
			}
			j += 8
		}
		j += bits.TrailingZeros64(mask) >> 3
		if src[j] != '"' {
			goto stringTail
		}
		if all&highBits != 0 && !utf8.Valid(src[start:j]) {
			goto stringTail
		}
		flags = uint32(String)
		goto stringEnd

	stringTail:
		j, flags, code, msg = scanString(src, start)
		if msg != "" {
			i, where = j, x
			goto fail
		}
		flags |= uint32(String)

	stringEnd:
		i = j + 1
		t.end = uint32(i)
		t.meta = place | flags
		goto next
	}
	if c == '{' || c == '[' {
		if depth >= limits.Depth {
			code, msg, where = TooDeep, msgTooDeep(limits.Depth), x
			goto fail
		}
		if depth == len(frames) {
			frames = append(frames, make([]frame, max(16, len(frames)))...)
			d.frames = frames
		}
		frames[depth] = f
		depth++
		f = frame{node: x, object: c == '{'}
		i++
		i = skipBlank(src, i)
		if f.object {
			t.meta = place | uint32(Object)
			if i < end && src[i] == '}' {
				goto closing
			}
			goto member
		}
		t.meta = place | uint32(Array)
		if i < end && src[i] == ']' {
			goto closing
		}
		goto element
	}
	if c == '-' || c-'0' <= 9 {
		j, flags, code, msg = scanNumber(src, i)
		if msg != "" {
			i, where = j, x
			goto fail
		}
		i = j
		t.end = uint32(i)
		t.meta = place | flags
		goto next
	}
	j, flags = scanLiteral(src, i)
	if flags == 0 {
		where = x
		code, msg = badValue(src, i)
		goto fail
	}
	i = j
	t.end = uint32(i)
	t.meta = place | flags

next: // a value has ended before i
	if depth == 0 {
		goto done
	}
	if i < end && blank(src[i]) {
		i = skipBlank(src, i)
	}
	if i >= end {
		msg, where = unexpected(src, i, wantNext(f.object)), f.node
		goto fail
	}
	c = src[i]
	if c == ',' {
		i++
		if i < end && blank(src[i]) {
			i = skipBlank(src, i)
		}
		if f.object {
			goto member
		}
		goto element
	}
	if c == '}' && f.object || c == ']' && !f.object {
		goto closing
	}
	msg, where = unexpected(src, i, wantNext(f.object)), f.node
	goto fail

element: // a value of the array f must begin at i
	if i >= end {
		msg, where = unexpected(src, i, "a value"), f.node
		goto fail
	}
	if int(n) >= len(tape) {
		if tape = d.grow(tape, i, end, limits.Nodes); tape == nil {
			code, msg, where = TooManyNodes, msgTooMany(limits.Nodes), f.node
			tape = d.tape
			goto fail
		}
	}
	x = n
	n++
	place = origin
	tape[x].parent = f.node
	if f.prev != 0 {
		tape[f.prev].next = x
	}
	f.prev = x
	f.count++
	goto value

member: // a member of the object f must begin at i
	if i >= end || src[i] != '"' {
		msg, where = unexpected(src, i, "a key in double quotes"), f.node
		goto fail
	}
	if int(n) >= len(tape) {
		if tape = d.grow(tape, i, end, limits.Nodes); tape == nil {
			code, msg, where = TooManyNodes, msgTooMany(limits.Nodes), f.node
			tape = d.tape
			goto fail
		}
	}
	x = n
	n++
	t = &tape[x]
	t.parent = f.node
	if f.prev != 0 {
		tape[f.prev].next = x
	}
	f.prev = x
	f.count++

	start = i + 1
	j = start
	all = 0
	for {
		if j > wide {
			goto keyTail
		}
		word = load64(base, j)
		all |= word
		mask = special(word)
		if mask != 0 {
			break
		}
		j += 8
	}
	c = uint8(bits.TrailingZeros64(mask) >> 3)
	j += int(c)
	if src[j] != '"' {
		goto keyTail
	}
	if all&highBits != 0 && !utf8.Valid(src[start:j]) {
		goto keyTail
	}
	if j-start < 8 {
		hash = hashShort(word&(1<<(c*8)-1), j-start)
	} else if j-start == 8 {
		hash = hashShort(load64(base, start), 8)
	} else {
		hash = hashLong(unsafe.Add(base, start), j-start)
	}
	place = origin | flagMember
	goto keyEnd

keyTail:
	j, flags, code, msg = scanString(src, start)
	if msg == "" && flags&flagNUL != 0 && !limits.trusted {
		j, code, msg = start, Encoding, msgKeyNUL
	}
	if msg != "" {
		i, where = j, f.node
		goto fail
	}
	place = origin | flagMember
	if flags&flagEscaped != 0 {
		place |= flagKeyEscaped
		hash = hashEscaped(src[start:j])
	} else {
		hash = hashString(viewString(src[start:j]))
	}

keyEnd:
	t.key, t.keyEnd, t.hash, t.meta = uint32(start), uint32(j), hash, place
	// Few keys are compared pairwise, and only when the hash's bit was seen
	// before. Many are left to the index, which is built when the object ends.
	if mask = 1 << (hash & 63); f.seen&mask != 0 && f.count <= indexFrom {
		k := f.node + 1
		if f.node == slot {
			k = first
		}
		for ; k != x; k = tape[k].next {
			if tape[k].hash == hash && sameKey(src, &tape[k], t) {
				where = x
				i, code, msg = start-1, Duplicate, msgDuplicate(src, t)
				goto fail
			}
		}
	}
	f.seen |= 1 << (hash & 63)
	i = j + 1
	if i < end && blank(src[i]) {
		i = skipBlank(src, i)
	}
	if i >= end || src[i] != ':' {
		msg, where = unexpected(src, i, "':'"), x
		goto fail
	}
	i++
	if i < end && blank(src[i]) {
		i = skipBlank(src, i)
	}
	if i >= end {
		msg, where = unexpected(src, i, "a value"), x
		goto fail
	}
	goto value

closing: // src[i] closes the container f
	i++
	t = &tape[f.node]
	t.end = uint32(i)
	t.last = f.prev
	t.count = f.count
	if f.prev != 0 {
		tape[f.prev].next = 0
		if f.node == slot && first != slot+1 {
			tape[f.prev].next = wrap | first
			t.meta |= flagHead
		}
		if f.count > indexFrom && f.object {
			if where = d.indexParsed(tape, src, f); where != 0 {
				i, code, msg = int(tape[where].key)-1, Duplicate, msgDuplicate(src, &tape[where])
				goto fail
			}
		}
	}
	depth--
	f = frames[depth]
	goto next

done:
	i = skipBlank(src, i)
	if i < end {
		msg = unexpected(src, i, "the end of the document")
		goto fail
	}
	d.tape = tape[:n]
	return nil

fail:
	d.tape = tape[:n]
	return &Error{Offset: i, Path: d.pathOf(where), Code: code, Msg: msg}
}
