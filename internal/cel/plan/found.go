package plan

import (
	"unique"

	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// Rules of policies share the beginnings of their paths: object.metadata,
// object.spec.template.spec. A Machine remembers where such a path led, for all expressions that
// one request evaluates.

// A pathKey is a path of names from a variable, the same for all expressions that have it.
type pathKey struct {
	id unique.Handle[string]
	at uint8 // its place in foundPaths.found
}

// newPathKey is the key of a path. The names are separated by a byte that no key of a document has.
func newPathKey(s value.Slot, path []document.Name) pathKey {
	text := []byte{byte(s)}
	for i := range path {
		text = append(append(text, 0), path[i].String()...)
	}
	at := uint32(2166136261)
	for _, b := range text { // FNV-1a
		at = (at ^ uint32(b)) * 16777619
	}
	return pathKey{unique.Make(string(text)), uint8(at>>16) % uint8(maxFound)}
}

// maxFound is how many paths a Machine remembers. One path takes the place of another if their keys
// say so.
const maxFound = 64

// foundPaths are the results of paths.
type foundPaths struct {
	roots [value.Slots]knownRoot
	found [maxFound]foundPath
	epoch uint32
}

// foundPath is the result of a path.
type foundPath struct {
	id    unique.Handle[string]
	epoch uint32
	index uint32 // of the value; absentIndex if all of the path is there but its last name
}

// absentIndex is the index of a root, which is no member.
const absentIndex = 0

// knownRoot is the value that a variable had when paths from it were found last.
type knownRoot struct {
	node     document.Node
	revision uint64
	epoch    uint32 // of what was found from it
}

// know makes the paths that were found before count only if they begin at what the variables are now.
func (f *Machine) know(roots []value.Slot, v *value.Bindings) {
	for _, s := range roots {
		node := v.Slots[s].Node
		if !node.Valid() {
			continue
		}
		r := &f.paths.roots[s]
		if revision := node.Document().Revision(); r.node != node || r.revision != revision {
			f.paths.epoch++
			if f.paths.epoch == 0 {
				f.paths.epoch, f.paths.found = 1, [maxFound]foundPath{} // what was found in an epoch of the same number is long gone
			}
			*r = knownRoot{node, revision, f.paths.epoch}
		}
	}
}

// walk is Walk along the path of the chain from the variable's node.
func (f *Machine) walk(c *chain, n document.Node) (document.Node, int) {
	if !c.keyed {
		return n.Walk(c.path)
	}
	r := &f.paths.roots[c.slot]
	if r.node != n {
		return n.Walk(c.path)
	}
	last := len(c.path) - 1
	if last > 0 {
		parent, ok := f.parent(c, n, r)
		if !ok {
			return n.Walk(c.path)
		}
		n = parent
	}
	e := &f.paths.found[c.whole.at]
	if e.id == c.whole.id && e.epoch == r.epoch {
		if e.index == absentIndex {
			return n, last
		}
		return n.Document().Node(e.index), last + 1
	}
	child, ok := n.Step(&c.path[last])
	if !ok {
		*e = foundPath{c.whole.id, r.epoch, absentIndex}
		return n, last
	}
	*e = foundPath{c.whole.id, r.epoch, child.Index()}
	return child, last + 1
}

// parent is the result of the path without its last name.
func (f *Machine) parent(c *chain, n document.Node, r *knownRoot) (document.Node, bool) {
	e := &f.paths.found[c.most.at]
	if e.id == c.most.id && e.epoch == r.epoch && e.index != absentIndex {
		return n.Document().Node(e.index), true
	}
	last := len(c.path) - 1
	parent, far := n.Walk(c.path[:last])
	if far < last {
		return parent, false
	}
	*e = foundPath{c.most.id, r.epoch, parent.Index()}
	return parent, true
}
