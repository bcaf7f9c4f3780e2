package document

import (
	"bytes"
	"unsafe"
)

// container reads the object or list of the entry top, which begins at i, and all that is in it.
// Each turn of the loop reads a value, what follows it up to the next one, and the key of that. It is
// one long method so that what is usual takes no call, and is read in words of eight bytes. The
// methods below read all else, and the last bytes of the text.
//
// The entry of an open container keeps what the scanner knows of it while one of its children is
// read: in end the number of its children, and in last and count the bits of their keys.
func (s *scanner) container(i int, top uint32) int {
	t := s.entry(top) // the latest entry
	c := byteAt(s.base, i)
	s.top, s.node, s.last = top, top, top
	for {
		// The value of the latest entry begins at i, with c.
		if c == '"' {
			j := i + 1
			for {
				if j > s.wide {
					goto scalar
				}
				if marks := specialOrWide(load64(s.base, j)); marks != 0 {
					j += firstMarked(marks)
					break
				}
				j += 8
			}
			if byteAt(s.base, j) != '"' {
				goto scalar
			}
			t.off = uint32(i)
			i = j + 1
			t.end = uint32(i)
			t.meta |= uint32(String)
			if j <= s.wide && load32(s.base, j)&0xffffff == '"'|','<<8|'"'<<16 {
				i++
				c = '"'
				goto child
			}
			goto behind
		}
		if c|0x20 == '{' {
			if s.depth--; s.depth < 0 {
				return s.fail(i, s.last, TooDeep, msgTooDeep(s.limits.Depth))
			}
			p := s.entry(s.node)
			p.end, p.last, p.count = s.count, uint32(s.folds), uint32(s.folds>>32)
			s.node, s.last, s.count, s.folds = s.last, 0, 0, 0
			s.closing = c + 2
			kind := uint32(Array)
			if c == '{' {
				kind = uint32(Object)
			}
			t.meta |= kind
			t.off = uint32(i)
			if i++; i < len(s.src) && byteAt(s.base, i) == s.closing {
				goto behind
			}
			goto next
		}
		if i <= s.wide {
			word, size, kind := load64(s.base, i), 0, uint32(Number)|flagInteger
			if c-'0' > 9 {
				size, kind = literal(word)
			} else if marks := notDigit(word); marks != 0 {
				size = firstMarked(marks)
				if e := byte(word >> (8 * size)); e == '.' || e|0x20 == 'e' || c == '0' && size > 1 {
					goto scalar
				}
			}
			if size > 0 {
				t.off = uint32(i)
				i += size
				t.end = uint32(i)
				t.meta |= kind
				goto behind
			}
		}

	scalar:
		if i = s.scalar(i, s.last, t.meta); i == broken {
			return broken
		}

	behind: // a child of node, or an opening bracket that the closing one follows
		if i >= len(s.src) {
			return s.badEnd(i)
		}
		if c = byteAt(s.base, i); c <= ' ' {
			if i = skipBlank(s.src, i); i >= len(s.src) {
				return s.badEnd(i)
			}
			c = byteAt(s.base, i)
		}
		if c == s.closing {
			i++
			node := s.node
			p := s.entry(node)
			p.end, p.last, p.count = uint32(i), s.last, s.count
			if s.last != 0 {
				s.entry(s.last).next = 0
			}
			s.depth++
			if (s.count > indexFrom || node == s.top) && !s.finish(node) {
				return broken
			}
			if node == s.top {
				return i
			}
			p.next = s.n
			s.last, s.node = node, p.parent
			p = s.entry(p.parent)
			s.count, s.folds = p.end, uint64(p.last)|uint64(p.count)<<32
			s.closing = closers[p.meta&kindMask]
			goto behind
		}
		if c != ',' {
			return s.badEnd(i)
		}
		i++

	next: // a child of node must follow, unless node has just been opened
		if i >= len(s.src) {
			return s.badChild(i)
		}
		if c = byteAt(s.base, i); c <= ' ' {
			if i = skipBlank(s.src, i); i >= len(s.src) {
				return s.badChild(i)
			}
			if c = byteAt(s.base, i); c == s.closing && s.count == 0 {
				goto behind
			}
		}

	child: // begins at i, with c
		{
			x := s.n
			if x >= s.room && !s.grow(i, s.node) {
				return broken
			}
			t = s.entry(x)
			t.parent = s.node
			s.last = x
			s.count++
			s.n, t.next = x+1, x+1 // as if it had no children
		}
		if s.closing != '}' {
			t.meta = s.item
			continue
		}
		t.meta = s.member
		if c != '"' {
			return s.badChild(i)
		}
		if i++; i > s.wide {
			goto oddKey
		}
		{
			var (
				word  = load64(s.base, i)
				marks = specialOrWide(word)
				j     int
				hash  uint32
				fold  uint64
			)
			if marks != 0 {
				if j = i + firstMarked(marks); byteAt(s.base, j) != '"' {
					goto oddKey
				}
				word &= below(marks)
				hash, fold = hashShort(word), coarseShort(word)
			} else {
				if j = i + 8; j > s.wide {
					goto oddKey
				}
				if marks = specialOrWide(load64(s.base, j)); marks == 0 {
					goto longKey
				}
				if j += firstMarked(marks); byteAt(s.base, j) != '"' {
					goto oddKey
				}
				if j == i+8 {
					hash, fold = hashShort(word), coarseShort(word)
				} else {
					last := load64(s.base, j-8)
					hash, fold = hashMedium(word, last, j-i), coarseMedium(word, last)
				}
			}
			t.key, t.keyEnd, t.hash = uint32(i), uint32(j), hash
			i = j
			if !s.isApart(fold) && !s.meet() {
				return broken
			}
		}
		goto colon

	longKey:
		if i = s.longKey(i, t); i == broken {
			return broken
		}
		goto colon

	oddKey:
		if i = s.oddKey(i, t); i == broken {
			return broken
		}

	colon: // must follow the quotation mark at i
		if i < s.wide && byteAt(s.base, i+1) == ':' {
			if c = byteAt(s.base, i+2); c > ' ' {
				i += 2
				continue
			}
			if c == ' ' {
				if c = byteAt(s.base, i+3); c > ' ' {
					i += 3
					continue
				}
			}
		}
		if i = s.colon(i + 1); i == broken {
			return broken
		}
		c = byteAt(s.base, i)
	}
}

// closers are the marks that end containers, by kind.
const closers = "     }] "

// entry is the entry x of the tape, which must be there.
func (s *scanner) entry(x uint32) *entry {
	return (*entry)(unsafe.Add(s.entries, uintptr(x)*unsafe.Sizeof(entry{})))
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

// isApart notes the coarse hash of a key of the object, and reports whether no earlier key has the
// same bit.
func (s *scanner) isApart(fold uint64) bool {
	bit, folds := uint64(1)<<(fold>>58), s.folds
	s.folds = folds | bit
	return folds&bit == 0
}

// longKey reads the key of the member t if it has more than 16 bytes, all of them ASCII without
// escapes, which holds for the first 16; else as oddKey.
func (s *scanner) longKey(start int, t *entry) int {
	for end := start + 16; end <= s.wide; end += 8 {
		marks := specialOrWide(load64(s.base, end))
		if marks == 0 {
			continue
		}
		end += firstMarked(marks)
		key, size := unsafe.Add(s.base, start), end-start
		if byteAt(s.base, end) != '"' || size == 16 {
			break
		}
		t.key, t.keyEnd, t.hash = uint32(start), uint32(end), hashLong(key, size)
		if !s.isApart(coarseLong(key, size)) && !s.meet() {
			return broken
		}
		return end
	}
	return s.oddKey(start, t)
}

// oddKey reads the key of the member t from behind its opening quotation mark up to the closing
// one, whatever is in it.
func (s *scanner) oddKey(start int, t *entry) int {
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
	return end
}

// meet compares the latest member of an object with the earlier ones. One of them may have the same
// key, or one that differs in case alone. It reports whether the member may be there. Few keys are
// compared pairwise, many when the object ends.
func (s *scanner) meet() bool {
	x := s.last
	first, t := s.firstOf(s.node), &s.tape[x]
	if s.count <= indexFrom {
		if k := s.repeats(first, x); k != 0 && !s.limits.allow(&s.tape[k], t) {
			s.fail(int(t.key)-1, x, Duplicate, msgDuplicate(s.src, t))
			return false
		}
	}
	s.d.alike = s.d.alike || s.count > pairsUpTo || s.isAlike(first, x)
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
