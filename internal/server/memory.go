package server

import (
	"math/bits"
	"sync"

	"github.com/admission-gateway/gateway/internal/memory"
)

// Memory keeps the bodies of requests: within the budget for all requests, and in memory that is
// used again. A body that fits the buffer that each connection has anyway takes none of it.
type Memory struct {
	*memory.Budget
	full func() error
	// pools have memory in powers of two from 32 KiB to 4 MiB; larger memory is left to the garbage
	// collector.
	pools [largestClass - smallestClass + 1]sync.Pool
}

const (
	smallestClass = 15
	largestClass  = 22

	// firstBody is how much memory a body may take that does not fit the buffer of the connection.
	firstBody = 64 << 10
	// growth is how many times as much memory as it fills a body may take then, and promised the
	// same of a body whose client has said how long it is: each step copies what has arrived.
	growth, promised = 2, 8
)

// NewMemory returns the memory that a budget allows for; full returns the answer to a request
// beyond it.
func NewMemory(budget *memory.Budget, full func() error) *Memory {
	return &Memory{Budget: budget, full: full}
}

// Take returns 1<<class bytes.
func (m *Memory) Take(class int) []byte {
	if class <= largestClass {
		if p, ok := m.pools[class-smallestClass].Get().(*[]byte); ok {
			return *p
		}
	}
	return make([]byte, 1<<class)
}

// Give gives memory back that Take returned.
func (m *Memory) Give(memory []byte, class int) {
	if class <= largestClass {
		m.pools[class-smallestClass].Put(&memory)
	}
}

// A bodyBuffer has the body of a request: a part of the connection's buffer, or memory that is
// taken as bytes arrive.
type bodyBuffer struct {
	bytes  []byte
	taken  []byte // memory; nil if there is none
	class  int    // of the memory
	memory *Memory
	holder *memory.Reservation // whose memory it is
}

// open sets the source of the memory, and the owner it is taken for.
func (b *bodyBuffer) open(m *Memory, holder *memory.Reservation) { b.memory, b.holder = m, holder }

func (b *bodyBuffer) hasMemory() bool { return b.taken != nil }

// append adds bytes to the body, which may become so long.
func (b *bodyBuffer) append(p []byte, most int) error {
	for len(p) > 0 {
		room, err := b.room(most, growth)
		if err != nil {
			return err
		}
		n := copy(room, p)
		b.grow(n)
		p = p[n:]
	}
	return nil
}

// grow adds the first n bytes of the room to the body.
func (b *bodyBuffer) grow(n int) { b.bytes = b.bytes[:len(b.bytes)+n] }

// room returns free memory behind the body, not beyond so many bytes of body. If there is none the
// memory grows so many times.
func (b *bodyBuffer) room(most, times int) ([]byte, error) {
	n := len(b.bytes)
	if n == len(b.taken) {
		if err := b.enlarge(min(most, max(times*n, firstBody))); err != nil {
			return nil, err
		}
	}
	return b.taken[n:min(len(b.taken), most)], nil
}

// enlarge moves the body to memory of at least so many bytes.
func (b *bodyBuffer) enlarge(size int) error {
	class := max(bits.Len(uint(size-1)), smallestClass)
	if !b.holder.Grow(1 << class) {
		return b.memory.full()
	}
	n, larger := len(b.bytes), b.memory.Take(class)
	copy(larger, b.bytes)
	b.giveBack()
	b.taken, b.class = larger, class
	b.bytes = larger[:n]
	return nil
}

// release forgets the body.
func (b *bodyBuffer) release() {
	b.giveBack()
	b.bytes, b.taken, b.class = nil, nil, 0
}

func (b *bodyBuffer) giveBack() {
	if b.taken != nil {
		b.memory.Give(b.taken, b.class)
		b.holder.Shrink(1 << b.class)
	}
}
