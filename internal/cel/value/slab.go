package value

import (
	"slices"
	"unsafe"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// A Slab hands out values of one type from a chunk of memory. A full chunk is left to the garbage collector and a
// larger one takes its place, so that a slab never holds more than what is in use plus one chunk.
type Slab[T any] struct {
	chunk []T
	next  int
	grown int // how often a chunk was replaced
}

const (
	FirstChunk = 32
	maxChunk   = 1024
)

func (s *Slab[T]) Take() *T {
	if s.next == len(s.chunk) {
		s.grow()
	}
	p := &s.chunk[s.next]
	s.next++
	return p
}

// TakeAll hands out a copy of values, one after another in memory.
func (s *Slab[T]) TakeAll(values []T) []T {
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

func (s *Slab[T]) grow() {
	s.chunk = make([]T, min(max(2*len(s.chunk), FirstChunk), maxChunk))
	s.next = 0
	s.grown++
}

// A Mark is a place in a slab.
type Mark struct{ next, grown int }

func (s *Slab[T]) Mark() Mark { return Mark{s.next, s.grown} }

// Reset gives back what was handed out since the mark was set; nothing may use it any more.
func (s *Slab[T]) Reset(m Mark) {
	if s.next == m.next && s.grown == m.grown {
		return
	}
	s.back(m)
}

func (s *Slab[T]) back(m Mark) {
	if m.grown != s.grown {
		m.next = 0 // the chunk is younger than the mark
	}
	clear(s.chunk[m.next:s.next])
	s.next = m.next
}

// shape is an interface value with methods, as the compiler lays it out.
type shape struct{ tab, data unsafe.Pointer }

// Words are the two words that an interface value is.
func Words(v ref.Val) (tab, data unsafe.Pointer) {
	s := (*shape)(unsafe.Pointer(&v))
	return s.tab, s.data
}

// Joined is the interface value of two words.
func Joined(tab, data unsafe.Pointer) (v ref.Val) {
	*(*shape)(unsafe.Pointer(&v)) = shape{tab, data}
	return v
}

// box makes a ref.Val of *p without the copy that the compiler's own conversion of a value that is no pointer
// allocates. like is any ref.Val that holds a value of type T; *p must not change while the result is in use.
func box[T any](like ref.Val, p *T) ref.Val {
	(*shape)(unsafe.Pointer(&like)).data = unsafe.Pointer(p)
	return like
}

func (f *Arena) NewString(s string) ref.Val {
	p := f.strings.Take()
	*p = types.String(s)
	return box(types.String(""), p)
}

func (f *Arena) NewInt(i int64) ref.Val {
	if i == int64(uint8(i)) {
		return types.Int(i) // does not allocate: Go keeps these
	}
	p := f.ints.Take()
	*p = types.Int(i)
	return box(types.IntZero, p)
}

func (f *Arena) NewDouble(d float64) ref.Val {
	p := f.doubles.Take()
	*p = types.Double(d)
	return box(types.Double(0), p)
}
