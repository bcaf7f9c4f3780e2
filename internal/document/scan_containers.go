package document

import (
	"bytes"
	"unicode/utf8"
	"unsafe"
)

// open begins a container, close ends it.
func (s *scanner) open(i int, node uint32) int {
	if s.depth == 0 {
		return s.fail(i, node, TooDeep, msgTooDeep(s.limits.Depth))
	}
	s.depth--
	if i++; i < len(s.src) && blank(s.src[i]) {
		i = skipBlank(s.src, i)
	}
	return i
}

func (s *scanner) close(i int, node, first, last, count uint32) {
	s.depth++
	t := &s.tape[node]
	t.end, t.last, t.count = uint32(i), last, count
	if last == 0 {
		return
	}
	s.tape[last].next = 0
	if first != node+1 {
		s.tape[last].next = wrap | first
		t.meta |= flagHead
	}
}

// array reads the list node, which begins at i.
func (s *scanner) array(i int, node uint32) int {
	if i = s.open(i, node); i == broken {
		return broken
	}
	src := s.src
	var last, count uint32
	first := s.n
	if i >= len(src) || src[i] != ']' {
		for {
			if i >= len(src) {
				return s.fail(i, node, Syntax, unexpected(src, i, "a value"))
			}
			x := s.n
			if int(x) >= len(s.tape) && !s.grow(i, node) {
				return broken
			}
			s.n = x + 1
			s.tape[x].parent = node
			last = x
			count++
			if i = s.value(i, x, s.origin); i == broken {
				return broken
			}
			s.tape[x].next = s.n // the index of the next one
			if i < len(src) && blank(src[i]) {
				i = skipBlank(src, i)
			}
			if i >= len(src) || src[i] != ',' {
				break
			}
			if i++; i < len(src) && blank(src[i]) {
				i = skipBlank(src, i)
			}
		}
		if i >= len(src) || src[i] != ']' {
			return s.fail(i, node, Syntax, unexpected(src, i, wantNext(false)))
		}
	}
	s.close(i+1, node, first, last, count)
	return i + 1
}

// object reads the object node, which begins at i. Texts without white space
// take the way of fewest looks.
func (s *scanner) object(i int, node uint32) int {
	if i = s.open(i, node); i == broken {
		return broken
	}
	src := s.src
	base, wide := unsafe.Pointer(unsafe.SliceData(src)), len(src)-8
	var last, count uint32
	var seen uint64  // a bit for each key hash so far, modulo 64
	var folds uint64 // the same by hashes that keys share which differ in case alone
	first := s.n
	if i < len(src) && src[i] == '}' {
		s.close(i+1, node, first, 0, 0)
		return i + 1
	}
	for {
		if i >= len(src) || src[i] != '"' {
			return s.fail(i, node, Syntax, unexpected(src, i, "a key in double quotes"))
		}
		x := s.n
		if int(x) >= len(s.tape) && !s.grow(i, node) {
			return broken
		}
		s.n = x + 1
		t := &s.tape[x]
		t.parent = node
		last = x
		count++

		start := i + 1
		place := s.origin | flagMember
		var hash uint32
		var fold uint64
		j, ascii := plain(base, start, wide)
		if j < 0 || !ascii && !utf8.Valid(src[start:j]) {
			var flags uint32
			if j, hash, flags = s.oddKey(start, node); j == broken {
				return broken
			}
			place |= flags
			if flags == 0 {
				fold = coarseOf(viewString(src[start:j]))
			} else {
				s.d.alike = true // perhaps: keys are compared as they are spelled
			}
		} else if size := j - start; size <= 8 { // plain has read eight bytes; a shift by 64 leaves no bits
			word := load64(base, start) & (1<<(size*8) - 1)
			hash, fold = hashShort(word, size), coarseShort(word)
		} else if size <= 16 {
			first, last := load64(base, start), load64(base, j-8)
			hash, fold = hashMedium(first, last, size), coarseMedium(first, last)
		} else {
			hash, fold = hashLong(unsafe.Add(base, start), size), coarseLong(unsafe.Add(base, start), size)
		}
		if !ascii && !isASCII(viewString(src[start:j])) {
			s.d.alike = true // perhaps: no other variants are looked for than ASCII has
		}
		t.key, t.keyEnd, t.hash, t.meta = uint32(start), uint32(j), hash, place
		// Few keys are compared pairwise, and only when the hash's bit was seen
		// before. Many are left to the index, which is built when the object ends.
		bit := uint64(1) << (hash & 63)
		if seen&bit != 0 && count <= indexFrom {
			if k := s.repeats(first, x); k != 0 && !s.limits.allow(&s.tape[k], t) {
				return s.fail(start-1, x, Duplicate, msgDuplicate(src, t))
			}
		}
		seen |= bit
		if bit = 1 << (fold >> 58); folds&bit != 0 && !s.d.alike {
			s.d.alike = count > pairsUpTo || s.isAlike(first, x)
		}
		folds |= bit

		if i = j + 1; i+1 < len(src) && src[i] == ':' && src[i+1] > ' ' {
			i++
		} else if i = s.colon(i, x); i == broken {
			return broken
		}
		if src[i] == '"' {
			if j, ascii := plain(base, i+1, wide); j >= 0 && (ascii || utf8.Valid(src[i+1:j])) {
				t.off, t.end, t.meta = uint32(i), uint32(j+1), place|uint32(String)
				i = j + 1
			} else if i = s.text(i, x, place); i == broken {
				return broken
			}
			if t.next = x + 1; i+1 < len(src) && src[i] == ',' && src[i+1] == '"' {
				i++
				continue
			}
		} else {
			if i = s.value(i, x, place); i == broken {
				return broken
			}
			s.tape[x].next = s.n // the index of the next member
		}
		if i < len(src) && blank(src[i]) {
			i = skipBlank(src, i)
		}
		if i >= len(src) || src[i] != ',' {
			break
		}
		if i++; i < len(src) && blank(src[i]) {
			i = skipBlank(src, i)
		}
	}
	if i >= len(src) || src[i] != '}' {
		return s.fail(i, node, Syntax, unexpected(src, i, wantNext(true)))
	}
	s.close(i+1, node, first, last, count)
	if count > indexFrom {
		if k := s.d.indexParsed(s.tape, src, node, last, count, &s.limits); k != 0 {
			return s.fail(int(s.tape[k].key)-1, k, Duplicate, msgDuplicate(src, &s.tape[k]))
		}
	}
	return i + 1
}

// oddKey reads a key from behind its opening quotation mark up to the closing
// one, whatever is in it.
func (s *scanner) oddKey(start int, object uint32) (end int, hash, flags uint32) {
	end, flags, code, msg := scanString(s.src, start)
	if msg == "" && flags&flagNUL != 0 && !s.limits.trusted {
		end, code, msg = start, Encoding, msgKeyNUL
	}
	if msg != "" {
		return s.fail(end, object, code, msg), 0, 0
	}
	if flags&flagEscaped != 0 {
		return end, hashEscaped(s.src[start:end]), flagKeyEscaped
	}
	return end, hashString(viewString(s.src[start:end])), 0
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

// colon reads what stands between the key of the member x and its value.
func (s *scanner) colon(i int, x uint32) int {
	if i = skipBlank(s.src, i); i >= len(s.src) || s.src[i] != ':' {
		return s.fail(i, x, Syntax, unexpected(s.src, i, "':'"))
	}
	if i = skipBlank(s.src, i+1); i >= len(s.src) {
		return s.fail(i, x, Syntax, unexpected(s.src, i, "a value"))
	}
	return i
}
