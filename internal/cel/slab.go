package cel

import (
	"slices"
	"unsafe"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// A slab hands out values of one type from a chunk of memory. A full chunk is left to the garbage collector and a larger
// one takes its place, so that a slab never holds more than what is in use plus one chunk.
type slab[T any] struct {
	chunk []T
	next  int
	grown int // how often a chunk was replaced
}

const (
	firstChunk = 32
	maxChunk   = 1024
)

func (s *slab[T]) take() *T {
	if s.next == len(s.chunk) {
		s.grow()
	}
	p := &s.chunk[s.next]
	s.next++
	return p
}

// takeAll hands out a copy of values, one after another in memory.
func (s *slab[T]) takeAll(values []T) []T {
	if len(values) > maxChunk/2 {
		return slices.Clone(values) // too many to keep room for
	}
	for s.next+len(values) > len(s.chunk) {
		s.grow()
	}
	from := s.next
	s.next += len(values)
	taken := s.chunk[from:s.next:s.next]
	copy(taken, values)
	return taken
}

func (s *slab[T]) grow() {
	s.chunk = make([]T, min(max(2*len(s.chunk), firstChunk), maxChunk))
	s.next = 0
	s.grown++
}

// A mark is a place in a slab.
type mark struct{ next, grown int }

func (s *slab[T]) mark() mark { return mark{s.next, s.grown} }

// reset gives back what was handed out since the mark was set; nothing may use it any more.
func (s *slab[T]) reset(m mark) {
	if s.next == m.next && s.grown == m.grown {
		return
	}
	s.back(m)
}

func (s *slab[T]) back(m mark) {
	if m.grown != s.grown {
		m.next = 0 // the chunk is younger than the mark
	}
	clear(s.chunk[m.next:s.next])
	s.next = m.next
}

// shape is an interface value with methods, as the compiler lays it out.
type shape struct{ tab, data unsafe.Pointer }

// box makes a ref.Val of *p without the copy that the compiler's own conversion of a value that is no pointer allocates.
// like is any ref.Val that holds a value of type T; *p must not change while the result is in use.
func box[T any](like ref.Val, p *T) ref.Val {
	(*shape)(unsafe.Pointer(&like)).data = unsafe.Pointer(p)
	return like
}

func (f *Frame) newString(s string) ref.Val {
	p := f.strings.take()
	*p = types.String(s)
	return box(types.String(""), p)
}

func (f *Frame) newInt(i int64) ref.Val {
	if i == int64(uint8(i)) {
		return types.Int(i) // does not allocate: Go keeps these
	}
	p := f.ints.take()
	*p = types.Int(i)
	return box(types.IntZero, p)
}

func (f *Frame) newDouble(d float64) ref.Val {
	p := f.doubles.take()
	*p = types.Double(d)
	return box(types.Double(0), p)
}
