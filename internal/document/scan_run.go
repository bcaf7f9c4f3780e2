package document

import "unsafe"

// A state is what comes next at an offset within a container.
type state uint8

const (
	atFirst   state = iota // the first child, or the mark that ends the container
	atNext                 // a child
	atChild                // the same: it begins at the offset, and has no entry yet
	noKey                  // the same, in an object, and it does not begin with a quotation mark
	atKey                  // the key of the latest entry, from behind its opening quotation mark
	oddKey                 // the same, and it is unusual
	mayRepeat              // a colon behind the key, which an earlier member may have, too
	atColon                // a colon behind the key, at whose closing quotation mark the offset is
	atValue                // the value of the latest entry, which begins at the offset
	oddValue               // the same, and it is unusual
	deeper                 // the same, a container for which depth leaves no room
	opening                // the same, and it is read nevertheless
	behind                 // of a child: a comma, or the mark that ends the container
	ended                  // the container has ended, and it has many children or is the outermost one
	closed                 // the same, and is finished
)

// run reads on from i, where the state says what comes next, as long as that is usual: keys and
// strings in ASCII without escapes, numbers without exponents, literals. It returns the offset of
// what is not, and its state.
//
// It makes no call but for long keys, so that what each step needs stays in registers: the compiler
// writes registers to memory around calls, and reads them again. It is one long method for the same
// reason. Each label is a state, or a place within one.
//
// The entry of an open container keeps what the scanner knows of it while one of its children is
// read: in end the number of its children, and in last and count the bits of their keys.
func (s *scanner) run(i int, at state) (int, state) {
	var (
		base = s.base
		n    = s.n
		t    = s.entry(n - 1) // the latest entry
		c    byte
	)
	switch at {
	case atValue:
		c = byteAt(base, i)
		goto value
	case atFirst:
		goto first
	case atNext:
		goto next
	case atChild:
		c = byteAt(base, i)
		goto child
	case atKey:
		goto key
	case opening:
		c = byteAt(base, i)
		goto opening
	case closed:
		goto closed
	}

behind: // a child, which ends at i
	if i >= len(s.src) {
		at = behind
		goto stop
	}
	c = byteAt(base, i)

mark: // c at i, behind a child: a comma, or what ends the container
	if c == s.closing {
		goto ending
	}
	if c != ',' {
		at = behind
		goto blank
	}
	i++

next: // a child must begin at i, perhaps behind white space
	if i >= len(s.src) {
		at = atNext
		goto stop
	}
	if c = byteAt(base, i); c > ' ' {
		goto child
	}
	at = atNext
	goto blank

first: // the same, unless the container ends at once
	if i >= len(s.src) {
		at = atFirst
		goto stop
	}
	if c = byteAt(base, i); c == s.closing {
		goto ending
	}
	if c <= ' ' {
		at = atFirst
		goto blank
	}

child: // begins at i with c
	if n >= s.room {
		at = atChild
		goto stop
	}
	t = (*entry)(unsafe.Add(unsafe.Pointer(t), unsafe.Sizeof(*t)))
	t.parent = s.node
	s.last = n
	s.count++
	n++
	t.next = n // as if it had no children
	if s.closing != '}' {
		t.meta = s.item
		goto value
	}
	t.meta = s.member
	if c != '"' {
		at = noKey
		goto stop
	}
	i++

key: // begins at i, behind its quotation mark
	{
		j := s.seek(i)
		if j < 0 {
			at = atKey
			goto stop
		}
		end := load32(base, j)
		if end&0xffff != '"'|':'<<8 {
			at = oddKey
			goto stop
		}
		var (
			size = j - i
			word = load64(base, i)
			hash uint32
			fold uint64
		)
		if uint(size-1) < 8 {
			word &= ^uint64(0) >> (uint(-8*size) & 63)
			hash, fold = hashShort(word), coarseShort(word)
		} else if uint(size-1) < 16 {
			last := load64(base, j-8)
			hash, fold = hashMedium(word, last, size), coarseMedium(word, last)
		} else if size == 0 {
			at = oddKey
			goto stop
		} else {
			key := unsafe.Add(base, i)
			hash, fold = hashLong(key, size), coarseLong(key, size)
		}
		t.key, t.keyEnd, t.hash = uint32(i), uint32(j), hash
		i = j
		if !s.isApart(fold) {
			if s.count <= pairsUpTo {
				at = mayRepeat
				goto stop
			}
			s.d.alike = true // perhaps; the index finds keys that are the same
		}
		if c = byte(end >> 16); c > ' ' {
			i += 2
			goto value
		}
		if c == ' ' {
			if c = byte(end >> 24); c > ' ' {
				i += 3
				goto value
			}
		}
		at = atColon
		goto stop
	}

value: // of the latest entry begins at i with c
	if c == '"' {
		j := s.seek(i + 1)
		if j < 0 {
			at = atValue
			goto stop
		}
		end := load32(base, j)
		if byte(end) != '"' {
			at = oddValue
			goto stop
		}
		t.off = uint32(i)
		i = j + 1
		t.end = uint32(i)
		t.meta |= uint32(String)
		if c = byte(end >> 8); c == ',' {
			if c = byte(end >> 16); c > ' ' {
				i++
				goto child
			}
			c = ','
		}
		goto mark
	}
	if c|0x20 == '{' {
		if s.depth <= 0 {
			at = deeper
			goto stop
		}
		goto opening
	}
	if i > s.wide {
		at = oddValue
		goto stop
	}
	if c-'0' <= 9 || c == '-' {
		digits := i
		if c == '-' {
			digits++
		}
		j := s.behindDigits(digits)
		if j <= digits || j > digits+1 && byteAt(base, digits) == '0' {
			at = oddValue
			goto stop
		}
		kind := uint32(Number) | flagInteger
		if c = byteAt(base, j); c == '.' {
			digits, kind = j+1, uint32(Number)
			if j = s.behindDigits(digits); j <= digits {
				at = oddValue
				goto stop
			}
			c = byteAt(base, j)
		}
		if c|0x20 == 'e' || j-i > maxDigits {
			at = oddValue
			goto stop
		}
		t.off = uint32(i)
		i = j
		t.end = uint32(i)
		t.meta |= kind
		goto mark
	}
	{
		size, kind := literal(load64(base, i))
		if size == 0 {
			at = oddValue
			goto stop
		}
		t.off = uint32(i)
		i += size
		t.end = uint32(i)
		t.meta |= kind
	}
	goto behind

opening: // c at i begins a container, which is the value of the latest entry
	{
		s.depth--
		p := s.entry(s.node)
		p.end, p.last, p.count = s.count, uint32(s.folds), uint32(s.folds>>32)
		s.node, s.last, s.count, s.folds = n-1, 0, 0, 0
		s.closing = c + 2
		t.off = uint32(i)
		t.meta |= kindOf(c)
		i++
		goto first
	}

blank: // c at i may be white space; the state says what may come behind it
	for c <= ' ' {
		if i+1 >= s.wide || !isBlank(c) {
			goto stop
		}
		i++
		if word := load64(base, i) ^ spaces; word != 0 {
			i += firstMarked(word)
		} else {
			i += 8
		}
		c = byteAt(base, i)
	}
	if at == atNext {
		goto child
	}
	if c == s.closing {
		goto ending
	}
	if at == atFirst {
		goto child
	}
	if c == ',' {
		goto mark
	}
	goto stop

ending: // the mark at i ends the container
	i++
	{
		node := s.node
		p := s.entry(node)
		p.end, p.last, p.count = uint32(i), s.last, s.count
		if s.last != 0 {
			s.entry(s.last).next = 0
		}
		s.depth++
		if s.count > indexFrom || node == s.top {
			at = ended
			goto stop
		}
	}

closed: // has been a container that is a child itself
	{
		node := s.node
		p := s.entry(node)
		parent := p.parent
		p.next = n
		s.last, s.node = node, parent
		p = s.entry(parent)
		s.count, s.folds = p.end, uint64(p.last)|uint64(p.count)<<32
		s.closing = closers[p.meta&kindMask]
	}
	goto behind

stop: // what comes is unusual
	s.n = n
	return i, at
}

// behindDigits returns the offset of the first byte from i that is no digit, -1 near the end of the
// text.
func (s *scanner) behindDigits(i int) int {
	for ; i <= s.wide; i += 8 {
		if marks := notDigit(load64(s.base, i)); marks != 0 {
			return i + firstMarked(marks)
		}
	}
	return -1
}

// entry is the entry x of the tape, which must be there.
func (s *scanner) entry(x uint32) *entry {
	return (*entry)(unsafe.Add(s.entries, uintptr(x)*unsafe.Sizeof(entry{})))
}

// closers are the marks that end containers, by kind.
const closers = "     }] "
