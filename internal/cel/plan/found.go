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

// A member is one of a path.
type member struct {
	name document.Name
	key  pathKey // of the path that ends with it, if that is keyed
}

// newPathKey is the key of a path and one name more. The names are separated by a byte that no key of a document has.
func newPathKey(s value.Slot, path []member, name string) pathKey {
	text := []byte{byte(s)}
	for i := range path {
		text = append(append(text, 0), path[i].name.String()...)
	}
	text = append(append(text, 0), name...)
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
	index uint32 // of the value; absentIndex if all of the path is there but its last member
}

// absentIndex is the index of a root, which is no member, and of what Step does not find.
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
				// what was found in an epoch of the same number is long gone
				f.paths.epoch, f.paths.found = 1, [maxFound]foundPath{}
			}
			*r = knownRoot{node, revision, f.paths.epoch}
		}
	}
}

// search follows the path of a chain from the root, from the longest beginning of it on that was followed before. It
// returns the value that it reached and how many names it followed.
func (f *Machine) search(c *chain, r *knownRoot) (n document.Node, far int) {
	n, far = r.node, len(c.path)
	end := far
	for ; far > 0; far-- {
		key := &c.path[far-1].key
		e := &f.paths.found[key.at]
		if e.id != key.id || e.epoch != r.epoch {
			continue
		}
		if e.index != absentIndex {
			n = n.Document().Node(e.index)
			break
		}
		end = far - 1
	}
	for ; far < end; far++ {
		m := &c.path[far]
		child, isThere := n.Step(&m.name)
		f.paths.found[m.key.at] = foundPath{m.key.id, r.epoch, child.Index()}
		if !isThere {
			break
		}
		n = child
	}
	return n, far
}
