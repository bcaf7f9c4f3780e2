package document

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"sync"
	"unsafe"
)

// DataKeys says which keys are names that users chose, such as keys of labels, and not fields that
// a reader could take one for the other.
type DataKeys interface {
	// IsData reports whether the keys of an object are data.
	IsData(object Node) bool
}

// CaseTwins returns two members of one object, in n or anywhere below it, whose keys differ in case
// alone: a reader that folds case, as encoding/json does, takes them for one field, and one of the
// values for the other. The Nodes are invalid if there are none. Objects whose keys are data are
// passed over. It takes linear time, and no memory if objects have few members.
func (n Node) CaseTwins(names DataKeys) (first, second Node) {
	switch n.Kind() {
	case Object:
		if n.Len() > 1 {
			if first, second = twins(n); first.Valid() && !names.IsData(n) {
				return first, second
			}
		}
	case Array:
	default:
		return Node{}, Node{}
	}
	for m := n.First(); m.Valid(); m = m.Next() {
		if first, second = m.CaseTwins(names); first.Valid() {
			return first, second
		}
	}
	return Node{}, Node{}
}

// twins finds two keys of one object.
func twins(object Node) (first, second Node) {
	if object.Len() > indexFrom {
		return twinsOfMany(object)
	}
	if object.Len() <= few {
		var members [few]Node
		var hashes [few]uint32
		return twinsIn(object, members[:0], hashes[:0])
	}
	var members [indexFrom]Node
	var hashes [indexFrom]uint32
	return twinsIn(object, members[:0], hashes[:0])
}

// few is the length of most objects, whose room takes no time to clear.
const few = 8

// twinsIn finds two keys of one object. It has room for all members, and for the hashes of their keys.
func twinsIn(object Node, members []Node, hashes []uint32) (first, second Node) {
	var seen uint64
	for m := object.First(); m.Valid(); m = m.Next() {
		h := coarse(m.Key())
		bit := uint64(1) << (h & 63)
		if seen&bit != 0 {
			for i, other := range hashes {
				if other == h && strings.EqualFold(members[i].Key(), m.Key()) {
					return members[i], m
				}
			}
		}
		seen |= bit
		members, hashes = append(members, m), append(hashes, h)
	}
	return Node{}, Node{}
}

// coarse is a hash that is the same for keys that differ in case alone. Clients can prepare
// collisions, but few keys have few of them.
func coarse(key string) uint32 {
	h, isASCII := coarseOf(unsafe.Slice(unsafe.StringData(key), len(key)))
	if !isASCII {
		var buf [64]byte
		h, _ = coarseOf(appendFolded(buf[:0], key))
	}
	return h
}

// coarseOf hashes a key by words of eight bytes, and reports whether it is ASCII.
func coarseOf(key []byte) (h uint32, isASCII bool) {
	const lower, high, prime = 0x2020202020202020, 0x8080808080808080, 0x9E3779B97F4A7C15
	sum, seen := uint64(len(key)), uint64(0)
	for ; len(key) >= 8; key = key[8:] {
		word := binary.LittleEndian.Uint64(key)
		seen |= word
		sum = (sum ^ (word | lower)) * prime
	}
	word := uint64(0)
	for i, c := range key {
		word |= uint64(c) << (8 * i)
	}
	seen |= word
	sum = (sum ^ (word | lower)) * prime
	return uint32(sum >> 32), seen&high == 0
}

// twinFinder is the memory for an object of many members: slots has numbers of members, from 1.
type twinFinder struct {
	folded  []byte
	members []foldedMember
	slots   []uint32
}

type foldedMember struct{ hash, node uint32 }

var twinFinders = sync.Pool{New: func() any { return new(twinFinder) }}

// maxKeptMembers is how many members a twinFinder may have had to be kept.
const maxKeptMembers = 4096

// twinsOfMany is twins for an object of many members, by a hash table. The hash has a secret of the
// process, so that an attacker cannot prepare keys that collide.
func twinsOfMany(object Node) (first, second Node) {
	f := twinFinders.Get().(*twinFinder)
	defer func() {
		if cap(f.members) <= maxKeptMembers {
			twinFinders.Put(f)
		}
	}()
	size := 1 << bits.Len(uint(object.Len()+object.Len()/2))
	if cap(f.slots) < size {
		f.slots, f.members = make([]uint32, size), make([]foldedMember, 0, object.Len())
	}
	f.slots, f.members = f.slots[:size], f.members[:0]
	clear(f.slots)
	mask := uint32(size - 1)
	for m := object.First(); m.Valid(); m = m.Next() {
		f.folded = appendFolded(f.folded[:0], m.Key())
		h := hashString(viewString(f.folded))
		at := h & mask
		for ; f.slots[at] != 0; at = (at + 1) & mask {
			if o := &f.members[f.slots[at]-1]; o.hash == h {
				if other := (Node{object.d, o.node}); strings.EqualFold(other.Key(), m.Key()) {
					return other, m
				}
			}
		}
		f.members = append(f.members, foldedMember{h, m.i})
		f.slots[at] = uint32(len(f.members))
	}
	return Node{}, Node{}
}
