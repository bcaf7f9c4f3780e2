package h2conn

import "sync"

// pieceSize is the size of the pieces of memory in which data wait for their reader: that of a frame.
const pieceSize = 16 << 10

// dataChunk is a part of what a stream holds.
type dataChunk struct {
	next      *dataChunk
	r, w      int
	isGranted bool // by the budget
	data      [pieceSize]byte
}

// dataChunks are the data that a stream holds. Without any it has no memory for them.
type dataChunks struct {
	first, last *dataChunk
	length      int
}

// Budget grants memory.
type Budget interface {
	// Take asks for n bytes, and reports whether they may be taken.
	Take(n int) bool
	// Give gives back what Take granted.
	Give(n int)
}

// Memory is what the streams of several connections hold their data in.
type Memory struct {
	// Budget grants it, but for the first piece of each stream, which takes the place of the buffer that a connection
	// of HTTP/1.1 has. Without a budget all is granted.
	Budget Budget
	free   sync.Pool // of *piece
}

// get returns an empty piece; nil if the budget grants none.
func (m *Memory) get(isFirst bool) *dataChunk {
	isGranted := !isFirst && m.Budget != nil
	if isGranted && !m.Budget.Take(pieceSize) {
		return nil
	}
	one, ok := m.free.Get().(*dataChunk)
	if !ok {
		one = new(dataChunk)
	}
	one.next, one.r, one.w, one.isGranted = nil, 0, 0, isGranted
	return one
}

// put adds data to the end. It reports whether there was memory for all of them.
func (p *dataChunks) put(data []byte, from *Memory) bool {
	for len(data) > 0 {
		if p.last == nil || p.last.w == pieceSize {
			one := from.get(p.first == nil)
			switch {
			case one == nil:
				return false
			case p.last == nil:
				p.first = one
			default:
				p.last.next = one
			}
			p.last = one
		}
		n := copy(p.last.data[p.last.w:], data)
		p.last.w += n
		p.length += n
		data = data[n:]
	}
	return true
}

// take moves data from the start to b, and returns how many bytes there were.
func (p *dataChunks) take(b []byte, to *Memory) int {
	n := 0
	for p.first != nil && n < len(b) {
		one := p.first
		m := copy(b[n:], one.data[one.r:one.w])
		n += m
		if one.r += m; one.r == one.w {
			p.drop(to)
		}
	}
	p.length -= n
	return n
}

// drop gives the first piece back.
func (p *dataChunks) drop(to *Memory) {
	one := p.first
	if p.first = one.next; p.first == nil {
		p.last = nil
	}
	if one.isGranted {
		to.Budget.Give(pieceSize)
	}
	one.next = nil
	to.free.Put(one)
}

// clear gives all pieces back.
func (p *dataChunks) clear(to *Memory) {
	for p.first != nil {
		p.drop(to)
	}
	p.length = 0
}
