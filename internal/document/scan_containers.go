package document

import (
	"bytes"
	"unicode/utf8"
	"unsafe"
)

// container reads the object or list of the entry top, which begins at i, and all that is in it. A
// child that is a container is not read by a call: it becomes the innermost one that is open.
//
// The inner loop reads usual children that follow each other: keys and strings in ASCII without
// escapes, numbers without exponents, literals, containers that begin. It calls methods for what is
// unusual or long only, because the compiler writes registers to memory around calls. Methods read an
// unusual child as a whole; then the inner loop ends. The outer loop reads the ends of containers.
func (s *scanner) container(i int, top uint32) int {
	if s.depth <= 0 {
		return s.fail(i, top, TooDeep, msgTooDeep(s.limits.Depth))
	}
	s.top, s.node, s.last = top, top, top
	i = s.open(i, s.entry(top), s.src[i])
	s.prepare(i)
	base := s.base
	for { // i is behind a child, or behind the mark that opened a container
		c := s.peek(i)
		if c <= ' ' {
			i, c = s.skipBlank(i)
		}
		for c == s.closing {
			i++
			node := s.node
			ended := s.entry(node)
			ended.end, ended.last, ended.count = uint32(i), s.last, s.count
			if s.last != 0 {
				s.entry(s.last).next = 0
			}
			s.depth++
			if node == s.top {
				if !s.finish(node) {
					return broken
				}
				return i
			}
			if s.count > indexFrom && !s.finish(node) {
				return broken
			}
			ended.next = s.n
			s.leave(ended.parent)
			if c = s.peek(i); c <= ' ' {
				i, c = s.skipBlank(i)
			}
		}
		if s.count > 0 {
			if c != ',' {
				return s.badEnd(i)
			}
			i++
			if c = s.peek(i); c <= ' ' {
				i, c = s.skipBlank(i)
			}
		}
		if i >= len(s.src) {
			return s.badChild(i)
		}
	children:
		for { // c at i begins a child
			n := s.n
			if n >= s.room {
				if !s.grow(i, s.node) {
					return broken
				}
			}
			t := s.entry(n)
			t.parent = s.node
			s.last = n
			n++
			s.n = n
			t.next = n // as if it had no children
			s.count++
			if s.closing != '}' {
				t.meta = s.item
			} else {
				t.meta = s.member
				if c != '"' {
					return s.badChild(i)
				}
				i++
				j := s.seek(i)
				if j <= i || load32(base, j)&0xffff != '"'|':'<<8 {
					i = s.oddKey(i, t)
					break children
				}
				var fold uint64
				word, size := load64(base, i), j-i
				if size <= 8 {
					word &= ^uint64(0) >> (uint(-8*size) & 63)
					t.hash, fold = hashShort(word), coarseShort(word)
				} else if size <= 16 {
					last := load64(base, j-8)
					t.hash, fold = hashMedium(word, last, size), coarseMedium(word, last)
				} else {
					t.hash, fold = s.hashLong(i, size)
				}
				t.key, t.keyEnd = uint32(i), uint32(j)
				if !s.isApart(fold) && !s.meet() {
					return broken
				}
				i = j + 2
				if c = byteAt(base, i); c <= ' ' {
					i++
					if c = byteAt(base, i); c <= ' ' || byteAt(base, i-1) != ' ' {
						i = s.behindKey(j+1, t)
						break children
					}
				}
			}
			var (
				j    int
				kind uint32
			)
			switch {
			case c == '"':
				j = s.seek(i + 1)
				if j < 0 || byteAt(base, j) != '"' {
					i = s.text(i, t)
					break children
				}
				j++
				kind = uint32(String)
			case c|0x20 == '{':
				if s.depth <= 0 {
					i = s.choose(i, t)
					break children
				}
				i = s.open(i, t, c)
				if c = s.peek(i); c <= ' ' || c == s.closing {
					break children
				}
				continue
			case c-'0' <= 9 || c == '-':
				digits := i
				if c == '-' {
					digits++
				}
				j, kind = s.behindDigits(digits), uint32(Number)|flagInteger
				if j > digits+1 && byteAt(base, digits) == '0' {
					j = broken // the zero leads
				}
				if j > digits && byteAt(base, j) == '.' {
					digits, kind = j+1, uint32(Number)
					j = s.behindDigits(digits)
				}
				if j <= digits || byteAt(base, j)|0x20 == 'e' || j-i > maxDigits {
					i = s.scalar(i, s.last, t.meta)
					break children
				}
			default:
				if i <= s.wide {
					j, kind = literal(load64(base, i))
				}
				if kind == 0 {
					i = s.scalar(i, s.last, t.meta)
					break children
				}
				j += i
			}
			t.off, t.end = uint32(i), uint32(j)
			t.meta |= kind
			i = j
			if byteAt(base, i) != ',' {
				break
			}
			i++
			if c = byteAt(base, i); c <= ' ' {
				if i, c = s.skipBlank(i); i >= len(s.src) {
					return s.badChild(i)
				}
			}
		}
		if i == broken {
			return broken
		}
	}
}

// peek returns the byte at i, and a space behind the end.
func (s *scanner) peek(i int) byte {
	if i < len(s.src) {
		return byteAt(s.base, i)
	}
	return ' '
}

// skipBlank returns the offset of the next byte from i that is not blank, and the byte; 0 at the end.
func (s *scanner) skipBlank(i int) (int, byte) {
	for i < s.wide && isBlank(byteAt(s.base, i)) {
		i++
		word := load64(s.base, i) ^ spaces
		for word == 0 && i+8 <= s.wide {
			i += 8
			word = load64(s.base, i) ^ spaces
		}
		if word == 0 {
			break
		}
		i += firstMarked(word)
		if c := byteAt(s.base, i); c > ' ' {
			return i, c
		}
	}
	if i = skipBlank(s.src, i); i < len(s.src) {
		return i, byteAt(s.base, i)
	}
	return i, 0
}

// open begins the container that is the latest child t, at i with c. While it is open, the entry of
// the one around it keeps what the scanner knows of that: in end the number of its children, and in
// last and count the bits of their keys.
func (s *scanner) open(i int, t *entry, c byte) int {
	s.depth--
	p := s.entry(s.node)
	p.end, p.last, p.count = s.count, uint32(s.folds), uint32(s.folds>>32)
	s.node, s.last, s.count, s.folds, s.closing = s.last, 0, 0, 0, c+2
	t.off = uint32(i)
	t.meta |= kindOf(c)
	return i + 1
}

// leave goes on in the container around the innermost one.
func (s *scanner) leave(to uint32) {
	p := s.entry(to)
	s.last, s.node = s.node, to
	s.count, s.folds = p.end, uint64(p.last)|uint64(p.count)<<32
	s.closing = closers[p.meta&kindMask]
}

// closers are the marks that end containers, by kind.
const closers = "     }] "

// entry is the entry x of the tape, which must be there.
func (s *scanner) entry(x uint32) *entry {
	return (*entry)(unsafe.Add(s.entries, uintptr(x)*unsafe.Sizeof(entry{})))
}

// hashLong returns the hashes of a key of more than 16 bytes.
func (s *scanner) hashLong(i, size int) (hash uint32, fold uint64) {
	key := unsafe.Add(s.base, i)
	return hashLong(key, size), coarseLong(key, size)
}

// behindDigits returns the offset of the first byte from i that is no digit, -1 near the end of the
// text. At least one byte stands behind it.
func (s *scanner) behindDigits(i int) int {
	for ; i < s.wide; i += 8 {
		if marks := notDigit(load64(s.base, i)); marks != 0 {
			return i + firstMarked(marks)
		}
	}
	return -1
}

// kindOf is the kind of the container that begins with a mark.
func kindOf(c byte) uint32 {
	if c == '{' {
		return uint32(Object)
	}
	return uint32(Array)
}

// badEnd fails because no child and no end of the container follows a child.
func (s *scanner) badEnd(i int) int {
	return s.fail(i, s.node, Syntax, unexpected(s.src, i, wantNext(s.closing == '}')))
}

// badChild fails because no child of the container begins at i.
func (s *scanner) badChild(i int) int {
	required := "a value"
	if s.closing == '}' {
		required = "a key in double quotes"
	}
	return s.fail(i, s.node, Syntax, unexpected(s.src, i, required))
}

// finish ends the outermost container, or an object with many members, of which it makes the index.
func (s *scanner) finish(node uint32) bool {
	t := &s.tape[node]
	first, last := s.firstOf(node), t.last
	if last != 0 && first != node+1 {
		s.tape[last].next = wrap | first
		t.meta |= flagHead
	}
	if t.count <= indexFrom || t.meta&kindMask != uint32(Object) {
		return true
	}
	k := s.d.indexParsed(s.tape, s.src, node, last, t.count, &s.limits)
	if k != 0 {
		s.fail(int(s.tape[k].key)-1, k, Duplicate, msgDuplicate(s.src, &s.tape[k]))
	}
	return k == 0
}

// firstOf is the first child of a container that has children. Those of the outermost one may stand
// elsewhere than behind it.
func (s *scanner) firstOf(node uint32) uint32 {
	if node == s.top {
		return s.first
	}
	return node + 1
}

// isApart notes two bits of the coarse hash of a key of the object, and reports whether no earlier key
// can have had both.
func (s *scanner) isApart(fold uint64) bool {
	both, folds := uint64(1)<<(fold>>58)|1<<(fold>>52&63), s.folds
	s.folds = folds | both
	return folds&both != both
}

// text reads the string of the latest entry, which begins at i, whatever is in it.
func (s *scanner) text(i int, t *entry) int {
	end, flags := i+1, uint32(String)
	for {
		j := s.seek(end)
		if j < 0 {
			if s.prepare(end) {
				continue
			}
			break
		}
		c := byteAt(s.base, j)
		if c == '"' {
			t.off, t.end = uint32(i), uint32(j+1)
			t.meta |= flags
			return j + 1
		}
		end = j
		if c == '\\' && isShortEscape(byteAt(s.base, j+1)) {
			flags |= flagEscaped
			end = j + 2
			continue
		}
		if c >= utf8.RuneSelf {
			if end = skipWide(s.src, j); end > j {
				continue
			}
		}
		break
	}
	end, more, code, msg := scanString(s.src, end)
	if msg != "" {
		return s.fail(end, s.n-1, code, msg)
	}
	t.off, t.end = uint32(i), uint32(end+1)
	t.meta |= flags | more
	return end + 1
}

// oddKey reads the member t from behind the opening quotation mark of its key, whatever is in the key
// and behind it.
func (s *scanner) oddKey(start int, t *entry) int {
	s.prepare(start) // for the next ones
	end, flags, code, msg := scanString(s.src, start)
	if flags&flagNUL != 0 && msg == "" && !s.limits.trusted {
		end, code, msg = start, Encoding, msgKeyNUL
	}
	if msg != "" {
		return s.fail(end, s.node, code, msg)
	}
	var buf [64]byte
	raw := s.src[start:end]
	key := viewString(raw)
	if flags != 0 {
		t.meta |= flagKeyEscaped
		key = viewString(appendDecoded(buf[:0], raw))
	}
	if flags != 0 || !isASCII(key) {
		s.d.alike = true // perhaps: no other variants are looked for than ASCII has without escapes
	}
	t.key, t.keyEnd, t.hash = uint32(start), uint32(end), hashString(key)
	if !s.isApart(coarseOf(key)) && !s.meet() {
		return broken
	}
	return s.behindKey(end+1, t)
}

// meet compares the latest member of an object with the earlier ones. One of them may have the same
// key, or one that differs in case alone. It reports whether the member may be there. Few keys are
// compared pairwise, many when the object ends.
func (s *scanner) meet() bool {
	if s.count > pairsUpTo {
		s.d.alike = true // perhaps; the index finds keys that are the same
		return true
	}
	x := s.last
	first, t := s.firstOf(s.node), &s.tape[x]
	if s.count <= indexFrom {
		if k := s.repeats(first, x); k != 0 && !s.limits.allow(&s.tape[k], t) {
			s.fail(int(t.key)-1, x, Duplicate, msgDuplicate(s.src, t))
			return false
		}
	}
	s.d.alike = s.d.alike || s.isAlike(first, x)
	return true
}

// repeats returns the earlier member of the object that has the key of the member x, 0 if there is
// none.
func (s *scanner) repeats(first, x uint32) uint32 {
	t := &s.tape[x]
	for k := first; k != x; k = s.tape[k].next {
		if s.tape[k].hash == t.hash && sameKey(s.src, &s.tape[k], t) {
			return k
		}
	}
	return 0
}

// pairsUpTo is up to how many members the keys of an object are compared pairwise if their hashes
// make them look alike.
const pairsUpTo = 32

// isAlike reports whether an earlier member of the object has a key that differs from the one of the
// member x in case alone. All of them are ASCII.
func (s *scanner) isAlike(first, x uint32) bool {
	t := &s.tape[x]
	key := s.src[t.key:t.keyEnd]
	for k := first; k != x; k = s.tape[k].next {
		if o := &s.tape[k]; o.keyEnd-o.key == t.keyEnd-t.key && bytes.EqualFold(s.src[o.key:o.keyEnd], key) {
			return true
		}
	}
	return false
}

// allow reports whether a key may be repeated, and records it if so.
func (l *Limits) allow(first, again *entry) bool {
	if l.Repeated == nil {
		return false
	}
	l.Repeated(int(first.key)-1, int(again.key)-1)
	return true
}

// behindKey reads on at i, behind the key of the latest member t: the colon and the value, whatever
// they are.
func (s *scanner) behindKey(i int, t *entry) int {
	if i = s.colon(i); i == broken {
		return broken
	}
	switch c := s.src[i]; {
	case c == '"':
		return s.text(i, t)
	case c|0x20 != '{':
		return s.scalar(i, s.last, t.meta)
	case s.depth > 0:
		return s.open(i, t, c)
	}
	i = s.choose(i, t)
	return i
}

// colon reads what stands between the key of the latest member and its value.
func (s *scanner) colon(i int) int {
	if i = skipBlank(s.src, i); i >= len(s.src) || s.src[i] != ':' {
		return s.fail(i, s.last, Syntax, unexpected(s.src, i, "':'"))
	}
	if i = skipBlank(s.src, i+1); i >= len(s.src) {
		return s.fail(i, s.last, Syntax, unexpected(s.src, i, "a value"))
	}
	return i
}
