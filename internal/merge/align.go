package merge

import "github.com/admission-gateway/gateway/internal/document"

// items are the items of an associative list, each with a number for its identity.
type items struct {
	nodes []document.Node
	ids   []int
}

// numbering gives equal items of two lists equal numbers.
type numbering struct {
	list    *List
	numbers map[string]int
	text    []byte
}

func (n *numbering) items(list document.Node) items {
	all := items{nodes: make([]document.Node, 0, list.Len()), ids: make([]int, 0, list.Len())}
	for item := list.First(); item.Valid(); item = item.Next() {
		n.text, _ = identity(n.text[:0], n.list.Keys, item)
		id, ok := n.numbers[string(n.text)]
		if !ok {
			id = len(n.numbers)
			n.numbers[string(n.text)] = id
		}
		all.nodes = append(all.nodes, item)
		all.ids = append(all.ids, id)
	}
	return all
}

// align finds the order in which the items of two associative lists are merged, as
// structured-merge-diff does: like the left list as long as the right one allows it, and like the
// right one if it gives items in another order. An item that stands in the left list more than once
// is replaced if the right one has it too.
func align(l *List, left, right document.Node) []pair {
	n := numbering{list: l, numbers: make(map[string]int, left.Len()+right.Len())}
	there, given := n.items(left), n.items(right)
	const none, several = -1, -2
	leftAt, rightAt := make([]int, len(n.numbers)), make([]int, len(n.numbers))
	for id := range leftAt {
		leftAt[id], rightAt[id] = none, none
	}
	for i, id := range there.ids {
		if leftAt[id] == none {
			leftAt[id] = i
		} else {
			leftAt[id] = several
		}
	}
	for i, id := range given.ids {
		rightAt[id] = i
	}
	both := func(id int) pair {
		p := pair{right: given.nodes[rightAt[id]]}
		if at := leftAt[id]; at >= 0 {
			p.left = there.nodes[at]
		}
		return p
	}
	shared := make([]int, 0, len(given.ids)) // the numbers of what both have, in the right order
	for _, id := range given.ids {
		if leftAt[id] != none {
			shared = append(shared, id)
		}
	}
	merged := make([]bool, len(n.numbers))
	pairs := make([]pair, 0, max(len(there.ids), len(given.ids)))
	for i, j := 0, 0; i < len(there.ids) || j < len(given.ids); {
		if i < len(there.ids) && j < len(given.ids) {
			id := there.ids[i]
			if id == given.ids[j] {
				merged[id] = true
				pairs = append(pairs, both(id))
				i, j = i+1, j+1
				if len(shared) > 0 {
					shared = shared[1:]
				}
				continue
			}
			if rightAt[id] != none && len(shared) > 0 && shared[0] != id {
				i++ // its turn comes in the right list's order
				continue
			}
		}
		if i < len(there.ids) {
			id := there.ids[i]
			if rightAt[id] == none {
				pairs = append(pairs, pair{left: there.nodes[i]})
				i++
				continue
			}
			if merged[id] {
				i++
			}
		}
		if j < len(given.ids) {
			id := given.ids[j]
			merged[id] = true
			pairs = append(pairs, both(id))
			j++
			if len(shared) > 0 && shared[0] == id {
				shared = shared[1:]
			}
		}
	}
	return pairs
}
