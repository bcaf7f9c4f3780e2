package h2conn

import "sync"

// pieceSize is the size of the pieces of memory in which data wait for their reader: that of a frame.
const pieceSize = 16 << 10

// piece is a part of what a stream holds.
type piece struct {
	next *piece
	r, w int
	data [pieceSize]byte
}

// pieces are the data that a stream holds. Without any it has no memory for them.
type pieces struct {
	first, last *piece
	length      int
}

// Memory is what the streams of several connections hold their data in.
type Memory struct{ free sync.Pool } // of *piece

func (m *Memory) get() *piece {
	if one, ok := m.free.Get().(*piece); ok {
		return one
	}
	return new(piece)
}

// put adds data to the end.
func (p *pieces) put(data []byte, from *Memory) {
	p.length += len(data)
	for len(data) > 0 {
		if p.last == nil || p.last.w == pieceSize {
			one := from.get()
			one.next, one.r, one.w = nil, 0, 0
			if p.last == nil {
				p.first = one
			} else {
				p.last.next = one
			}
			p.last = one
		}
		n := copy(p.last.data[p.last.w:], data)
		p.last.w += n
		data = data[n:]
	}
}

// take moves data from the start to b, and returns how many bytes there were.
func (p *pieces) take(b []byte, to *Memory) int {
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
func (p *pieces) drop(to *Memory) {
	one := p.first
	if p.first = one.next; p.first == nil {
		p.last = nil
	}
	one.next = nil
	to.free.Put(one)
}

// clear gives all pieces back.
func (p *pieces) clear(to *Memory) {
	for p.first != nil {
		p.drop(to)
	}
	p.length = 0
}
