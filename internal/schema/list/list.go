// Package list says which items of lists are the same: by the keys of x-kubernetes-list-type map, or by their whole
// values in sets, and in lists with uniqueItems.
package list

import (
	"slices"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/compare"
)

// Type says how the items of a list are identified.
type Type struct {
	Keys     []document.Name // of x-kubernetes-list-type map; none for sets
	Defaults []document.Node // of the keys; invalid if there is none; the documents are kept for good
	// MayRepeat is set if the rules are for merging alone.
	MayRepeat bool
	// IsExact is set for uniqueItems of JSON Schema: numbers are equal by their exact values, and every item that
	// repeats another one counts.
	IsExact bool
}

// Repeats appends the items that repeat an earlier one, once for each value that is repeated unless the type is exact,
// in the list's order. If a list of type map has an item that cannot have keys, only that misfit is reported.
func (l *Type) Repeats(found []document.Node, list document.Node,
	scratch *Items) (repeated []document.Node, misfit document.Node) {
	if l.MayRepeat {
		return found[:0], document.Node{}
	}
	length := list.Len()
	if length <= few {
		return l.repeatsAmongFew(found, list, scratch.Filled)
	}
	scratch.reset(length)
	for c := list.Children(); c.Valid(); c.Next() {
		n := c.Node()
		if l.Keys != nil && c.Kind() != document.Object && l.misfits(n) {
			return found[:0], n
		}
		if same := scratch.put(l, n, false); same != nil {
			if same.repeats++; same.repeats == 1 || l.IsExact {
				found = append(found, n)
			}
		}
	}
	return found, document.Node{}
}

// repeatsAmongFew is Repeats for a short list.
func (l *Type) repeatsAmongFew(found []document.Node, list document.Node,
	filled bool) (repeated []document.Node, misfit document.Node) {
	var items, values [few]document.Node // values of the first key, invalid if there is none
	var again [few]bool
	i := 0
	for n := list.First(); n.Valid(); n = n.Next() {
		if l.misfits(n) {
			return found[:0], n
		}
		items[i], values[i] = n, n
		if l.Keys != nil {
			values[i] = l.value(n, 0, filled)
		}
		for j := range i {
			if !l.sameItem(values[j], values[i]) && (len(l.Keys) <= 1 || !compare.Same(values[j], values[i], true)) {
				continue
			}
			if len(l.Keys) > 1 && !l.same(items[j], items[i], filled) {
				continue
			}
			if !again[j] || l.IsExact {
				again[j] = true
				found = append(found, n)
			}
			break
		}
		i++
	}
	return found, document.Node{}
}

// value returns the value of an item's key, invalid if there is none. With filled set, a key that is missing has its
// default.
func (l *Type) value(item document.Node, key int, filled bool) document.Node {
	v, found := item.Step(&l.Keys[key])
	if !found && filled {
		return l.Defaults[key]
	}
	return v
}

// misfits reports whether an item cannot have keys though it needs some.
func (l *Type) misfits(item document.Node) bool {
	if l.Keys == nil {
		return false
	}
	kind := item.Kind()
	return kind != document.Object && kind != document.Null
}

// hash is the hash of an item in a set, and of the item's keys in a list of type map. A missing key
// and a missing item are values like any other.
func (l *Type) hash(item document.Node, filled bool) uint32 {
	h := uint64(0)
	switch {
	case l.Keys == nil:
		h = compare.Hash(item)
	case len(l.Keys) == 1:
		h = compare.Hash(l.value(item, 0, filled))
	default:
		for key := range l.Keys {
			h = document.HashWords(h, compare.Hash(l.value(item, key, filled)))
		}
	}
	return uint32(h ^ h>>32)
}

// alike reports whether two items are the same, strictly or not.
func (l *Type) alike(a, b document.Node, strictly, filled bool) bool {
	if strictly {
		return l.correlates(b, a)
	}
	return l.same(a, b, filled)
}

func (l *Type) same(a, b document.Node, filled bool) bool {
	if l.Keys == nil {
		return l.sameItem(a, b)
	}
	for key := range l.Keys {
		x, y := l.value(a, key, filled), l.value(b, key, filled)
		if x.Valid() != y.Valid() {
			return false
		}
		if !x.Valid() {
			continue
		}
		if len(l.Keys) == 1 && !l.sameItem(x, y) || !compare.Same(x, y, true) {
			return false
		}
	}
	return true
}

// sameItem compares scalars strictly and everything else by its encoding, as Kubernetes does. What is missing equals
// what is missing.
func (l *Type) sameItem(a, b document.Node) bool {
	if l.IsExact {
		return document.EqualNodes(a, b)
	}
	kind := a.Kind()
	return compare.Same(a, b, kind == document.Object || kind == document.Array)
}

// correlates reports whether an item of a list of type map is the successor of an old one: both have all keys, all keys
// are scalars, and they are the same.
func (l *Type) correlates(item, old document.Node) bool {
	for _, key := range l.Keys {
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

// Predecessors finds the old items of a list of type map.
type Predecessors struct {
	list  *Type
	old   document.Node // the old list; invalid when nothing can be found
	items Items         // empty while the list is short
}

func (l *Type) Predecessors(old document.Node) Predecessors {
	if l == nil || l.Keys == nil || old.Kind() != document.Array {
		return Predecessors{}
	}
	p := Predecessors{list: l, old: old}
	if length := old.Len(); length > few {
		p.items.reset(length)
		for n := old.First(); n.Valid(); n = n.Next() {
			p.items.put(l, n, true)
		}
	}
	return p
}

// Of is the first old item with the keys of this one; invalid when there is none.
func (p *Predecessors) Of(item document.Node) document.Node {
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

// Items are the items of a list by their keys.
type Items struct {
	items  []entry
	slots  []uint64 // of a hash table: hash and index into items plus one, 32 bits each; empty while there are few
	Filled bool     // keys that are missing have their defaults
	idle   int      // how many walks in a row needed little of the room for items
}

type entry struct {
	node    document.Node
	repeats uint32 // how many later items are the same
}

// A walk that is given back keeps room for so many items whatever it was used for, and for keptLarge times as many
// until keptIdle walks in a row needed little of it.
const (
	keptItems = 4 << 10
	keptLarge = 16
	keptIdle  = 16
)

// reset makes room for so many items.
func (k *Items) reset(length int) {
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
func (k *Items) put(l *Type, n document.Node, strictly bool) *entry {
	item, slot, hash := k.search(l, n, strictly)
	if item != nil {
		return item
	}
	k.items = append(k.items, entry{node: n})
	if len(k.slots) > 0 {
		k.slots[slot] = uint64(hash)<<32 | uint64(len(k.items))
	}
	return nil
}

// search looks for an item that is the same, and else for the slot that it would have.
func (k *Items) search(l *Type, n document.Node, strictly bool) (item *entry, slot int, hash uint32) {
	if len(k.slots) == 0 {
		for i := range k.items {
			if l.alike(k.items[i].node, n, strictly, k.Filled) {
				return &k.items[i], 0, 0
			}
		}
		return nil, 0, 0
	}
	hash = l.hash(n, k.Filled)
	mask := len(k.slots) - 1
	for slot = int(hash) & mask; k.slots[slot] != 0; slot = (slot + 1) & mask {
		if uint32(k.slots[slot]>>32) != hash {
			continue
		}
		if item := &k.items[uint32(k.slots[slot])-1]; l.alike(item.node, n, strictly, k.Filled) {
			return item, slot, hash
		}
	}
	return nil, slot, hash
}

// get is the item that another one correlates with; invalid when there is none.
func (k *Items) get(l *Type, n document.Node) document.Node {
	if item, _, _ := k.search(l, n, true); item != nil {
		return item.node
	}
	return document.Node{}
}

// find is the item that is the same; invalid when there is none.
func (k *Items) find(l *Type, n document.Node) document.Node {
	if item, _, _ := k.search(l, n, false); item != nil {
		return item.node
	}
	return document.Node{}
}

// Release forgets the items, and memory that only a long list needs.
func (k *Items) Release() {
	clear(k.items)
	if len(k.items) >= cap(k.items)/4 {
		k.idle = 0
	} else {
		k.idle++
	}
	k.items, k.Filled = k.items[:0], false
	if room := cap(k.items); room > keptItems && (room > keptLarge*keptItems || k.idle >= keptIdle) {
		*k = Items{}
	}
}

// SameItems reports whether two lists of one length have the same items, none of them twice. The function compares the
// two items with the same keys.
func (l *Type) SameItems(a, b document.Node, same func(a, b document.Node) bool) bool {
	known := Items{Filled: true}
	known.reset(a.Len())
	for n := b.First(); n.Valid(); n = n.Next() {
		if l.misfits(n) || known.put(l, n, false) != nil {
			return false
		}
	}
	for n := a.First(); n.Valid(); n = n.Next() {
		if l.misfits(n) {
			return false
		}
		found := known.put(l, n, false)
		if found == nil || found.repeats > 0 || !same(n, found.node) {
			return false
		}
		found.repeats++
	}
	return true
}

// Ancestors finds the old items of a list of type map if missing keys have their defaults: before
// an object's defaults are set, and after.
type Ancestors struct {
	list  *Type
	items Items
}

func (l *Type) Ancestors(old document.Node) Ancestors {
	if l == nil || l.Keys == nil || old.Kind() != document.Array {
		return Ancestors{}
	}
	a := Ancestors{list: l, items: Items{Filled: true}}
	a.items.reset(old.Len())
	for n := old.First(); n.Valid(); n = n.Next() {
		if !l.misfits(n) {
			a.items.put(l, n, false)
		}
	}
	return a
}

// Of is the first old item with the keys of this one; invalid when there is none, or a key is missing or no scalar.
func (a *Ancestors) Of(item document.Node) document.Node {
	if a.list == nil || item.Kind() != document.Object {
		return document.Node{}
	}
	for key := range a.list.Keys {
		if !scalar(a.list.value(item, key, true)) {
			return document.Node{}
		}
	}
	return a.items.find(a.list, item)
}
