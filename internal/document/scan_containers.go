package document

import (
	"bytes"
	"unicode/utf8"
)

// container reads the object or list of the entry top, which begins at i, and all that is in it. What
// is usual run reads. It returns for all else, which is read here, before run goes on.
func (s *scanner) container(i int, top uint32) int {
	if s.depth--; s.depth < 0 {
		return s.fail(i, top, TooDeep, msgTooDeep(s.limits.Depth))
	}
	t, c := &s.tape[top], s.src[i]
	s.top, s.node, s.closing = top, top, c+2
	t.off = uint32(i)
	t.meta |= kindOf(c)
	for i, at := s.run(i+1, atFirst); ; i, at = s.run(i, at) {
		t = &s.tape[s.n-1]
		switch at {
		case atValue:
			if !s.prepare(i + 1) {
				i, at = s.text(i, t), behind
			}
		case oddValue:
			if s.src[i] == '"' {
				i, at = s.text(i, t), behind
			} else {
				i, at = s.scalar(i, s.n-1, t.meta), behind
			}
		case deeper:
			if s.limits.Outline == nil {
				return s.fail(i, s.n-1, TooDeep, msgTooDeep(s.limits.Depth))
			}
			i, at = s.choose(i, t)
		case atFirst, atNext:
			if i = skipBlank(s.src, i); i >= len(s.src) {
				return s.badChild(i)
			}
			if at == atNext || s.src[i] != s.closing {
				at = atChild
			}
		case atChild:
			if !s.grow(i, s.node) {
				return broken
			}
		case noKey:
			return s.badChild(i)
		case atKey:
			if !s.prepare(i) {
				i, at = s.oddKey(i, t), atColon
			}
		case oddKey:
			i, at = s.oddKey(i, t), atColon
		case mayRepeat:
			if !s.meet() {
				return broken
			}
			at = atColon
		case behind:
			from := i
			if i = skipBlank(s.src, i); i >= len(s.src) || i == from {
				return s.badEnd(i)
			}
		case ended:
			if !s.finish(s.node) {
				return broken
			}
			if s.node == top {
				return i
			}
			at = closed
		}
		if i == broken {
			return broken
		}
		if at == atColon {
			if i, at = s.colon(i+1), atValue; i == broken {
				return broken
			}
		}
	}
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
