package document

import (
	"math/bits"
	"strings"
	"sync"
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
// passed over. The parser notes whether any keys are alike, so that for most documents this is one
// look; else it takes linear time, and no memory if objects have few members.
func (n Node) CaseTwins(names DataKeys) (first, second Node) {
	if n.d == nil || !n.d.alike {
		return Node{}, Node{}
	}
	return n.caseTwins(names)
}

// caseTwins looks at each object.
func (n Node) caseTwins(names DataKeys) (first, second Node) {
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
		if first, second = m.caseTwins(names); first.Valid() {
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
		var hashes [few]uint64
		return twinsIn(object, members[:0], hashes[:0])
	}
	var members [indexFrom]Node
	var hashes [indexFrom]uint64
	return twinsIn(object, members[:0], hashes[:0])
}

// few is the length of most objects, whose room takes no time to clear.
const few = 8

// twinsIn finds two keys of one object. It has room for all members, and for the hashes of their keys.
func twinsIn(object Node, members []Node, hashes []uint64) (first, second Node) {
	var seen uint64
	for m := object.First(); m.Valid(); m = m.Next() {
		h := coarse(m.Key())
		bit := uint64(1) << (h >> 58)
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

// coarse is a hash that keys share which differ in case alone. Clients can prepare collisions, but
// few keys have few of them.
func coarse(key string) uint64 {
	if isASCII(key) {
		return coarseOf(key)
	}
	var buf [64]byte
	return coarseOf(viewString(appendFolded(buf[:0], key)))
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
