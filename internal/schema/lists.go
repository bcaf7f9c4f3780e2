package schema

import (
	"github.com/admission-gateway/gateway/internal/document"
)

// repeats appends the items that repeat an earlier one, once for each value that is repeated, in the list's order. Where
// a list of type map has an item that cannot have keys, that misfit is all there is to say.
func (l *listRules) repeats(found []document.Node, list document.Node, scratch *keyedItems) (repeated []document.Node, misfit document.Node) {
	length := list.Len()
	if length <= few && len(l.keys) <= 1 {
		return l.repeatsAmongFew(found, list)
	}
	scratch.reset(length)
	for n := list.First(); n.Valid(); n = n.Next() {
		if l.misfits(n) {
			return found[:0], n
		}
		if earlier := scratch.put(l, n, false); earlier != nil {
			if earlier.repeats++; earlier.repeats == 1 {
				found = append(found, n)
			}
		}
	}
	return found, document.Node{}
}

// repeatsAmongFew is repeats for a short list of items that one value tells apart.
func (l *listRules) repeatsAmongFew(found []document.Node, list document.Node) (repeated []document.Node, misfit document.Node) {
	var values [few]document.Node // invalid where an item has no key
	var again [few]bool
	i := 0
	for n := list.First(); n.Valid(); n = n.Next() {
		if l.misfits(n) {
			return found[:0], n
		}
		values[i] = n
		if l.keys != nil {
			values[i], _ = n.Lookup(l.keys[0])
		}
		for j := range i {
			if sameItem(values[j], values[i]) {
				if !again[j] {
					again[j] = true
					found = append(found, n)
				}
				break
			}
		}
		i++
	}
	return found, document.Node{}
}

// misfits tells whether an item cannot have keys though it needs some.
func (l *listRules) misfits(item document.Node) bool {
	if l.keys == nil {
		return false
	}
	kind := item.Kind()
	return kind != document.Object && kind != document.Null
}

// hash is that of the item in a set, and that of its keys in a list of type map. A missing key and a missing item
// are values like any other.
func (l *listRules) hash(item document.Node) uint64 {
	if l.keys == nil {
		return hash(item)
	}
	h := uint64(0)
	for _, key := range l.keys {
		value, found := item.Lookup(key)
		if !found {
			h = mix(h, 0)
			continue
		}
		h = mix(h, hash(value))
	}
	return h
}

func (l *listRules) same(a, b document.Node) bool {
	if l.keys == nil {
		return sameItem(a, b)
	}
	for _, key := range l.keys {
		x, inA := a.Lookup(key)
		y, inB := b.Lookup(key)
		if inA != inB {
			return false
		}
		if !inA {
			continue
		}
		if len(l.keys) == 1 && !sameItem(x, y) || !same(x, y, true) {
			return false
		}
	}
	return true
}

// sameItem compares scalars strictly and everything else by its encoding, as Kubernetes does. What is missing equals
// what is missing.
func sameItem(a, b document.Node) bool {
	kind := a.Kind()
	return same(a, b, kind == document.Object || kind == document.Array)
}

// correlates tells whether an item of a list of type map is the successor of an old one: both have all keys, all keys
// are scalars, and they are the same.
func (l *listRules) correlates(item, old document.Node) bool {
	for _, key := range l.keys {
		x, inItem := item.Lookup(key)
		y, inOld := old.Lookup(key)
		if !inItem || !inOld || !scalar(x) || !equal(x, y) {
			return false
		}
	}
	return true
}

func scalar(n document.Node) bool {
	switch n.Kind() {
	case document.Bool, document.Number, document.String:
		return true
	}
	return false
}

// predecessors finds the old items of a list of type map.
type predecessors struct {
	list  *listRules
	old   document.Node // the old list; invalid when nothing can be found
	items keyedItems    // empty while the list is short
}

func (l *listRules) predecessors(old document.Node) predecessors {
	if l == nil || l.keys == nil || old.Kind() != document.Array {
		return predecessors{}
	}
	p := predecessors{list: l, old: old}
	if length := old.Len(); length > few {
		p.items.reset(length)
		for n := old.First(); n.Valid(); n = n.Next() {
			p.items.put(l, n, true)
		}
	}
	return p
}

// of is the first old item with the keys of this one; invalid when there is none.
func (p *predecessors) of(item document.Node) document.Node {
	if !p.old.Valid() {
		return document.Node{}
	}
	if len(p.items.slots) > 0 {
		return p.items.get(p.list, item)
	}
	for n := p.old.First(); n.Valid(); n = n.Next() {
		if p.list.correlates(item, n) {
			return n
		}
	}
	return document.Node{}
}

// few is up to how many items are compared with each other rather than hashed.
const few = 6

// keyedItems are the items of a list by what tells them apart.
type keyedItems struct {
	items []keyedItem
	slots []uint32 // of a hash table: index into items plus one; empty while there are few
}

type keyedItem struct {
	hash    uint64
	node    document.Node
	repeats uint32 // how many later items are the same
}

// keptItems bounds what a walk that is given back keeps.
const keptItems = 4 << 10

// reset makes room for so many items.
func (k *keyedItems) reset(length int) {
	clear(k.items)
	k.items = k.items[:0]
	k.slots = k.slots[:0]
	if length <= few {
		return
	}
	size := 16
	for size < 2*length {
		size *= 2
	}
	if cap(k.slots) < size {
		k.slots = make([]uint32, size)
		return
	}
	k.slots = k.slots[:size]
	clear(k.slots)
}

// put adds an item, unless one that is the same is there already: that one is the result then. With strictly set, two
// items without keys are not the same.
func (k *keyedItems) put(l *listRules, n document.Node, strictly bool) *keyedItem {
	same := func(item *keyedItem) bool {
		if strictly {
			return l.correlates(item.node, n)
		}
		return l.same(item.node, n)
	}
	if len(k.slots) == 0 {
		for i := range k.items {
			if same(&k.items[i]) {
				return &k.items[i]
			}
		}
		k.items = append(k.items, keyedItem{node: n})
		return nil
	}
	h := l.hash(n)
	mask := uint64(len(k.slots) - 1)
	slot := h & mask
	for k.slots[slot] != 0 {
		if item := &k.items[k.slots[slot]-1]; item.hash == h && same(item) {
			return item
		}
		slot = (slot + 1) & mask
	}
	k.items = append(k.items, keyedItem{hash: h, node: n})
	k.slots[slot] = uint32(len(k.items))
	return nil
}

// get is the item that another one correlates with; invalid when there is none.
func (k *keyedItems) get(l *listRules, n document.Node) document.Node {
	h := l.hash(n)
	mask := uint64(len(k.slots) - 1)
	for slot := h & mask; k.slots[slot] != 0; slot = (slot + 1) & mask {
		if item := &k.items[k.slots[slot]-1]; item.hash == h && l.correlates(n, item.node) {
			return item.node
		}
	}
	return document.Node{}
}

// release forgets the items, and memory that only a long list needs.
func (k *keyedItems) release() {
	clear(k.items)
	k.items = k.items[:0]
	if cap(k.items) > keptItems {
		*k = keyedItems{}
	}
}
