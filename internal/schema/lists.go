package schema

import (
	"slices"

	"github.com/admission-gateway/gateway/internal/document"
)

// keyed is an item of a list with the hash of what tells it apart.
type keyed struct {
	hash uint64
	at   int
	node document.Node
}

// few is up to how many items are compared with each other rather than sorted.
const few = 8

// misfit is the first item of a list of type map that cannot have keys; invalid when there is none.
func (l *listRules) misfit(list document.Node) document.Node {
	if l.keys == nil {
		return document.Node{}
	}
	for n := list.First(); n.Valid(); n = n.Next() {
		if kind := n.Kind(); kind != document.Object && kind != document.Null {
			return n
		}
	}
	return document.Node{}
}

// position is where an item stands in its list.
func position(list, item document.Node) int {
	i := 0
	for n := list.First(); n.Valid() && n != item; n = n.Next() {
		i++
	}
	return i
}

// duplicates appends the places of items that repeat an earlier one, once for each value that is repeated, in order.
func (l *listRules) duplicates(places []int, list document.Node, scratch *[]keyed) []int {
	if list.Len() < 2 {
		return places
	}
	items := (*scratch)[:0]
	at := 0
	for n := list.First(); n.Valid(); n = n.Next() {
		items = append(items, keyed{at: at, node: n})
		at++
	}
	*scratch = items
	begin := len(places)
	if len(items) <= few {
		return l.pairwise(places, items)
	}
	for i := range items {
		items[i].hash = l.hash(items[i].node)
	}
	slices.SortFunc(items, func(a, b keyed) int {
		switch {
		case a.hash < b.hash:
			return -1
		case a.hash > b.hash:
			return 1
		}
		return a.at - b.at
	})
	for len(items) > 0 {
		run := 1
		for run < len(items) && items[run].hash == items[0].hash {
			run++
		}
		places = l.class(places, items[:run])
		items = items[run:]
	}
	slices.Sort(places[begin:])
	return places
}

// class finds the duplicates among items of one hash. They are all the same, unless two hashes collided.
func (l *listRules) class(places []int, items []keyed) []int {
	if len(items) < 2 {
		return places
	}
	for _, item := range items[1:] {
		if !l.same(items[0].node, item.node) {
			return l.pairwise(places, items)
		}
	}
	return append(places, items[1].at)
}

// pairwise compares every item with those before it.
func (l *listRules) pairwise(places []int, items []keyed) []int {
	for i := 1; i < len(items); i++ {
		earlier := 0
		for j := 0; j < i && earlier < 2; j++ {
			if l.same(items[j].node, items[i].node) {
				earlier++
			}
		}
		if earlier == 1 {
			places = append(places, items[i].at)
		}
	}
	return places
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

// sameItem compares scalars strictly and everything else by its encoding, as Kubernetes does.
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
	items []keyed       // sorted by hash; empty while the list is short
}

func (l *listRules) predecessors(old document.Node, scratch []keyed) predecessors {
	p := predecessors{list: l, items: scratch[:0]}
	if l == nil || l.keys == nil || !old.Valid() || old.Kind() != document.Array {
		return p
	}
	p.old = old
	if old.Len() <= few {
		return p
	}
	at := 0
	for n := old.First(); n.Valid(); n = n.Next() {
		p.items = append(p.items, keyed{hash: l.hash(n), at: at, node: n})
		at++
	}
	slices.SortFunc(p.items, func(a, b keyed) int {
		switch {
		case a.hash < b.hash:
			return -1
		case a.hash > b.hash:
			return 1
		}
		return a.at - b.at
	})
	return p
}

// of is the first old item with the keys of this one; invalid when there is none.
func (p *predecessors) of(item document.Node) document.Node {
	if !p.old.Valid() {
		return document.Node{}
	}
	if len(p.items) == 0 {
		for n := p.old.First(); n.Valid(); n = n.Next() {
			if p.list.correlates(item, n) {
				return n
			}
		}
		return document.Node{}
	}
	hash := p.list.hash(item)
	i, _ := slices.BinarySearchFunc(p.items, hash, func(k keyed, h uint64) int {
		switch {
		case k.hash < h:
			return -1
		case k.hash > h:
			return 1
		}
		return 0
	})
	for ; i < len(p.items) && p.items[i].hash == hash; i++ {
		if p.list.correlates(item, p.items[i].node) {
			return p.items[i].node
		}
	}
	return document.Node{}
}
