package schema

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
)

// failures holds the faults that a walk found.
type failures struct {
	list      []failure
	more      int  // that were not kept
	listTypes bool // one of them is of list type set or map, kept or not
}

type failure struct {
	err   *field.Error
	at    uint32 // index of the value's node
	class class
}

// class is the kind of a failure that an update may leave as it was.
type class uint8

const (
	ofSchema   class = iota
	ofListType       // dropped when the old object breaks a list type
	ofResource       // of embedded resources: never dropped
)

// maxFailures is how many failures are kept. An answer names 100 of them; what a request can make us hold is bounded.
const maxFailures = 256

// full counts a failure that is not kept.
func (f *failures) full() bool {
	if len(f.list) < maxFailures {
		return false
	}
	f.more++
	return true
}

func (f *failures) add(x failure) { f.list = append(f.list, x) }

// mark is a point to go back to.
type mark struct {
	length, more int
}

func (f *failures) mark() mark { return mark{len(f.list), f.more} }

// rewind forgets what was found since the mark.
func (f *failures) rewind(m mark) {
	clear(f.list[m.length:])
	f.list, f.more = f.list[:m.length], m.more
}

// drop forgets failures since the mark that keep does not hold back.
func (f *failures) drop(m mark, keep func(failure) bool) {
	kept := f.list[:m.length]
	for _, x := range f.list[m.length:] {
		if keep(x) {
			kept = append(kept, x)
		}
	}
	clear(f.list[len(kept):])
	f.list, f.more = kept, m.more
}

// sort puts the failures in the order of the document.
func (f *failures) sort(root document.Node) {
	if len(f.list) < 2 {
		return
	}
	order := map[uint32]int{}
	for _, x := range f.list {
		order[x.at] = 0
	}
	ordinals(root, order, 0)
	slices.SortStableFunc(f.list, func(a, b failure) int { return order[a.at] - order[b.at] })
}

// ordinals sets how many values stand before each of those asked for.
func ordinals(n document.Node, order map[uint32]int, before int) int {
	if _, asked := order[n.Index()]; asked {
		order[n.Index()] = before
	}
	before++
	switch n.Kind() {
	case document.Object, document.Array:
		for c := n.First(); c.Valid(); c = c.Next() {
			before = ordinals(c, order, before)
		}
	}
	return before
}
