package state

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/admission-gateway/gateway/internal/document"
)

// view is a collection at one moment, in the order of namespaces and names. It is immutable.
type view struct {
	keys    []string // namespace/name; objects without metadata have equal keys
	objects []document.Node
	sizes   []int // of the objects' JSON, in bytes
}

// find is the object with the name; an invalid node if there is none.
func (v *view) find(namespace, name string) document.Node {
	if i, found := slices.BinarySearch(v.keys, namespace+"/"+name); found {
		return v.objects[i]
	}
	return document.Node{}
}

// within returns the objects in a namespace; a collection without namespaces has all objects in the
// empty one.
func (v *view) within(namespace string) []document.Node {
	from, _ := slices.BinarySearch(v.keys, namespace+"/")
	to, _ := slices.BinarySearch(v.keys, namespace+"0") // the character after '/'
	return v.objects[from:to]
}

// store is a collection that changes. Reading costs nothing while it does not.
type store struct {
	published atomic.Pointer[view] // nil: changed since, or never filled

	mu     sync.Mutex
	now    view
	bytes  int64
	shared bool // now is published: it must be copied before it is changed
	filled bool
}

// view is the collection as it is now; nil when it was never filled.
func (s *store) view() *view {
	if v := s.published.Load(); v != nil {
		return v
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.filled {
		return nil
	}
	v := s.now
	s.shared = true
	s.published.Store(&v)
	return &v
}

// fill replaces everything.
func (s *store) fill(all listing) {
	v := view{keys: make([]string, len(all.objects)), objects: all.objects, sizes: all.sizes}
	sorted := true
	for i, o := range all.objects {
		v.keys[i] = keyOf(o)
		sorted = sorted && (i == 0 || v.keys[i-1] <= v.keys[i])
	}
	if !sorted {
		v.sort()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.bytes, s.shared, s.filled = v, all.bytes, false, true
	s.published.Store(nil)
}

func (v *view) sort() {
	order := make([]int, len(v.keys))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(v.keys[a], v.keys[b]) })
	sorted := view{keys: make([]string, len(order)), objects: make([]document.Node, len(order)),
		sizes: make([]int, len(order))}
	for to, from := range order {
		sorted.keys[to], sorted.objects[to], sorted.sizes[to] = v.keys[from], v.objects[from], v.sizes[from]
	}
	*v = sorted
}

// forget drops everything: nothing is known any more.
func (s *store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.bytes, s.shared, s.filled = view{}, 0, false, false
	s.published.Store(nil)
}

// put adds or replaces an object of so many bytes, and returns what is kept then.
func (s *store) put(o document.Node, size int) (objects int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own()
	k := keyOf(o)
	i, found := slices.BinarySearch(s.now.keys, k)
	if found {
		s.bytes -= int64(s.now.sizes[i])
		s.now.objects[i], s.now.sizes[i] = o, size
	} else {
		s.now.keys = slices.Insert(s.now.keys, i, k)
		s.now.objects = slices.Insert(s.now.objects, i, o)
		s.now.sizes = slices.Insert(s.now.sizes, i, size)
	}
	s.bytes += int64(size)
	return len(s.now.objects), s.bytes
}

// remove takes an object away.
func (s *store) remove(o document.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, found := slices.BinarySearch(s.now.keys, keyOf(o))
	if !found {
		return
	}
	s.own()
	s.bytes -= int64(s.now.sizes[i])
	s.now.keys = slices.Delete(s.now.keys, i, i+1)
	s.now.objects = slices.Delete(s.now.objects, i, i+1)
	s.now.sizes = slices.Delete(s.now.sizes, i, i+1)
}

// own makes the collection changeable; s.mu is held.
func (s *store) own() {
	if s.shared {
		s.now = view{keys: slices.Clone(s.now.keys), objects: slices.Clone(s.now.objects),
			sizes: slices.Clone(s.now.sizes)}
		s.shared = false
	}
	s.published.Store(nil)
}

// keyOf is the namespace and name of an object.
func keyOf(o document.Node) string {
	metadata, _ := o.Get("metadata")
	return text(metadata, "namespace") + "/" + text(metadata, "name")
}
