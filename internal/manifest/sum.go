package manifest

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// A Sum is the SHA-256 of what an object says, and of the lines and columns on which it says it, lines counted from its
// first. It stays the same if the object moves within its file, or to another one. Of an object that is from several
// files, the lines and the names of the files count as they are.
type Sum [sha256.Size]byte

// Sum returns the sum of the object. It must not be called by several goroutines at the same time.
func (o *Object) Sum() Sum {
	if o.sum == nil {
		h := sha256.New()
		number(h, len(o.JSON))
		_, _ = h.Write(o.JSON) // a hash takes everything
		o.places.addTo(h)
		o.sum = (*Sum)(h.Sum(nil))
	}
	return *o.sum
}

// addTo adds the table to a hash, lines counted from the first.
func (p *positionTable) addTo(h hash.Hash) {
	first := uint32(0)
	if len(p.files) == 0 && len(p.marks) > 0 {
		first = p.marks[0].line
	}
	number(h, len(p.marks))
	for _, m := range p.marks {
		number(h, int(m.offset))
		number(h, int(m.line-first))
		number(h, int(m.column))
	}
	for _, f := range p.files {
		number(h, int(f.offset))
		number(h, len(f.file))
		_, _ = h.Write([]byte(f.file)) // a hash takes everything
	}
	for _, l := range p.letters {
		number(h, int(l.offset))
		number(h, int(l.char))
	}
}

func number(h hash.Hash, n int) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	_, _ = h.Write(b[:])
}
