package schema

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/compare"
	"github.com/admission-gateway/gateway/internal/schema/wording"
	"github.com/admission-gateway/gateway/internal/status"
)

// repeats appends the items that repeat an earlier one, once for each value that is repeated, in
// the list's order. If a list of type map has an item that cannot have keys, only that misfit is
// reported.
func (l *listType) repeats(found []document.Node, list document.Node, scratch *keyedItems) (repeated []document.Node, misfit document.Node) {
	if l.mayRepeat {
		return found[:0], document.Node{}
	}
	length := list.Len()
	if length <= few {
		return l.repeatsAmongFew(found, list, scratch.filled)
	}
	scratch.reset(length)
	for c := list.Children(); c.Valid(); c.Next() {
		n := c.Node()
		if l.keys != nil && c.Kind() != document.Object && l.misfits(n) {
			return found[:0], n
		}
		if same := scratch.put(l, n, false); same != nil {
			if same.repeats++; same.repeats == 1 {
				found = append(found, n)
			}
		}
	}
	return found, document.Node{}
}

// repeatsAmongFew is repeats for a short list.
func (l *listType) repeatsAmongFew(found []document.Node, list document.Node, filled bool) (repeated []document.Node, misfit document.Node) {
	var items, values [few]document.Node // values of the first key, invalid if there is none
	var again [few]bool
	i := 0
	for n := list.First(); n.Valid(); n = n.Next() {
		if l.misfits(n) {
			return found[:0], n
		}
		items[i], values[i] = n, n
		if l.keys != nil {
			values[i] = l.value(n, 0, filled)
		}
		for j := range i {
			if !sameItem(values[j], values[i]) && (len(l.keys) <= 1 || !compare.Same(values[j], values[i], true)) {
				continue
			}
			if len(l.keys) > 1 && !l.same(items[j], items[i], filled) {
				continue
			}
			if !again[j] {
				again[j] = true
				found = append(found, n)
			}
			break
		}
		i++
	}
	return found, document.Node{}
}

// value returns the value of an item's key, invalid if there is none. With filled set, a key that is missing has its default.
func (l *listType) value(item document.Node, key int, filled bool) document.Node {
	v, found := item.Step(&l.keys[key])
	if !found && filled {
		return l.defaults[key]
	}
	return v
}

// misfits reports whether an item cannot have keys though it needs some.
func (l *listType) misfits(item document.Node) bool {
	if l.keys == nil {
		return false
	}
	kind := item.Kind()
	return kind != document.Object && kind != document.Null
}

// setDefaults notes the defaults that the items' shape has for the keys.
func (l *listType) setDefaults(items *Shape) {
	l.defaults = make([]document.Node, len(l.keys))
	for i, key := range l.keys {
		if items == nil {
			continue
		}
		if p := items.Property(key.String()); p != nil && p.Shape.Default() != nil {
			if d, err := document.Parse(p.Shape.Default(), document.Limits{}); err == nil {
				l.defaults[i] = d.Root()
			}
		}
	}
}

// hash is the hash of an item in a set, and of the item's keys in a list of type map. A missing key
// and a missing item are values like any other.
func (l *listType) hash(item document.Node, filled bool) uint32 {
	h := uint64(0)
	switch {
	case l.keys == nil:
		h = compare.Hash(item)
	case len(l.keys) == 1:
		h = compare.Hash(l.value(item, 0, filled))
	default:
		for key := range l.keys {
			h = document.HashWords(h, compare.Hash(l.value(item, key, filled)))
		}
	}
	return uint32(h ^ h>>32)
}

// alike reports whether two items are the same, strictly or not.
func (l *listType) alike(a, b document.Node, strictly, filled bool) bool {
	if strictly {
		return l.correlates(b, a)
	}
	return l.same(a, b, filled)
}

func (l *listType) same(a, b document.Node, filled bool) bool {
	if l.keys == nil {
		return sameItem(a, b)
	}
	for key := range l.keys {
		x, y := l.value(a, key, filled), l.value(b, key, filled)
		if x.Valid() != y.Valid() {
			return false
		}
		if !x.Valid() {
			continue
		}
		if len(l.keys) == 1 && !sameItem(x, y) || !compare.Same(x, y, true) {
			return false
		}
	}
	return true
}

// sameItem compares scalars strictly and everything else by its encoding, as Kubernetes does. What is missing equals
// what is missing.
func sameItem(a, b document.Node) bool {
	kind := a.Kind()
	return compare.Same(a, b, kind == document.Object || kind == document.Array)
}

// correlates reports whether an item of a list of type map is the successor of an old one: both have all keys, all keys
// are scalars, and they are the same.
func (l *listType) correlates(item, old document.Node) bool {
	for _, key := range l.keys {
		x, inItem := item.Lookup(key)
		y, inOld := old.Lookup(key)
		if !inItem || !inOld || !scalar(x) || !compare.Equal(x, y) {
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
	list  *listType
	old   document.Node // the old list; invalid when nothing can be found
	items keyedItems    // empty while the list is short
}

func (l *listType) predecessors(old document.Node) predecessors {
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

// keyedItems are the items of a list by their keys.
type keyedItems struct {
	items  []keyedItem
	slots  []uint64 // of a hash table: hash and index into items plus one, 32 bits each; empty while there are few
	filled bool     // keys that are missing have their defaults
	idle   int      // how many walks in a row needed little of the room for items
}

type keyedItem struct {
	node    document.Node
	repeats uint32 // how many later items are the same
}

// A walk that is given back keeps room for so many items whatever it was used for, and for keptLarge times as many until
// keptIdle walks in a row needed little of it.
const (
	keptItems = 4 << 10
	keptLarge = 16
	keptIdle  = 16
)

// reset makes room for so many items.
func (k *keyedItems) reset(length int) {
	clear(k.items)
	k.items = k.items[:0]
	k.slots = k.slots[:0]
	if length <= few {
		return
	}
	k.items = slices.Grow(k.items, length)
	size := 16
	for size < 2*length {
		size *= 2
	}
	if cap(k.slots) < size {
		k.slots = make([]uint64, size)
		return
	}
	k.slots = k.slots[:size]
	clear(k.slots)
}

// put adds an item, unless one that is the same is there already: that one is the result then. With strictly set, two
// items without keys are not the same.
func (k *keyedItems) put(l *listType, n document.Node, strictly bool) *keyedItem {
	item, slot, hash := k.search(l, n, strictly)
	if item != nil {
		return item
	}
	k.items = append(k.items, keyedItem{node: n})
	if len(k.slots) > 0 {
		k.slots[slot] = uint64(hash)<<32 | uint64(len(k.items))
	}
	return nil
}

// search looks for an item that is the same, and else for the slot that it would have.
func (k *keyedItems) search(l *listType, n document.Node, strictly bool) (item *keyedItem, slot int, hash uint32) {
	if len(k.slots) == 0 {
		for i := range k.items {
			if l.alike(k.items[i].node, n, strictly, k.filled) {
				return &k.items[i], 0, 0
			}
		}
		return nil, 0, 0
	}
	hash = l.hash(n, k.filled)
	mask := len(k.slots) - 1
	for slot = int(hash) & mask; k.slots[slot] != 0; slot = (slot + 1) & mask {
		if uint32(k.slots[slot]>>32) != hash {
			continue
		}
		if item := &k.items[uint32(k.slots[slot])-1]; l.alike(item.node, n, strictly, k.filled) {
			return item, slot, hash
		}
	}
	return nil, slot, hash
}

// get is the item that another one correlates with; invalid when there is none.
func (k *keyedItems) get(l *listType, n document.Node) document.Node {
	if item, _, _ := k.search(l, n, true); item != nil {
		return item.node
	}
	return document.Node{}
}

// find is the item that is the same; invalid when there is none.
func (k *keyedItems) find(l *listType, n document.Node) document.Node {
	if item, _, _ := k.search(l, n, false); item != nil {
		return item.node
	}
	return document.Node{}
}

// release forgets the items, and memory that only a long list needs.
func (k *keyedItems) release() {
	clear(k.items)
	if len(k.items) >= cap(k.items)/4 {
		k.idle = 0
	} else {
		k.idle++
	}
	k.items, k.filled = k.items[:0], false
	if room := cap(k.items); room > keptItems && (room > keptLarge*keptItems || k.idle >= keptIdle) {
		*k = keyedItems{}
	}
}

// duplicateFailure shows the item of a set, and the keys of an item of a list of type map.
func duplicateFailure(path *field.Path, l *listType, v document.Node) *field.Error {
	if l.keys == nil {
		return status.Duplicate(path.String(), wording.Shown(v))
	}
	keys := map[string]any{}
	for _, name := range l.keys {
		if value, found := v.Lookup(name); found {
			keys[name.String()] = wording.Shown(value)
		}
	}
	return status.Duplicate(path.String(), keys)
}
