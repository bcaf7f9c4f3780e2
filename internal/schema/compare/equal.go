// Package compare compares JSON values as Kubernetes compares what it decoded from them.
package compare

import (
	"math"

	"github.com/admission-gateway/gateway/internal/document"
)

// Equal reports whether two values are the same JSON. An integer and a double are two values even
// if they are as large, as in Kubernetes' decoded objects.
func Equal(a, b document.Node) bool { return Same(a, b, false) }

// Same is Equal, and if loose is set, numbers count by their value, as in Kubernetes' encoded objects.
func Same(a, b document.Node, loose bool) bool {
	kind := a.Kind()
	if kind != b.Kind() {
		return false
	}
	switch kind {
	case document.Null, document.Invalid:
		return true
	case document.Bool:
		return a.Bool() == b.Bool()
	case document.Number:
		x, y := NumberOf(a), NumberOf(b)
		return (loose || x.IsInt == y.IsInt) && x.Same(y)
	case document.String:
		return a.Str() == b.Str()
	case document.Array:
		if a.Len() != b.Len() {
			return false
		}
		y := b.First()
		for x := a.First(); x.Valid(); x = x.Next() {
			if !Same(x, y, loose) {
				return false
			}
			y = y.Next()
		}
		return true
	default:
		if a.Len() != b.Len() {
			return false
		}
		for x := a.First(); x.Valid(); x = x.Next() {
			y, found := b.Get(x.Key())
			if !found || !Same(x, y, loose) {
				return false
			}
		}
		return true
	}
}

// Hash is equal for values that Same holds equal, loose or not.
func Hash(n document.Node) uint64 {
	h := uint64(n.Kind()) + 1
	switch n.Kind() {
	case document.Bool:
		if n.Bool() {
			h = document.HashWords(h, 1)
		}
	case document.Number:
		f := NumberOf(n).Float()
		if f == 0 {
			f = 0 // -0 is 0
		}
		h = document.HashWords(h, math.Float64bits(f))
	case document.String:
		h = document.HashWords(h, uint64(document.Hash(n.Str())))
	case document.Array:
		for x := n.First(); x.Valid(); x = x.Next() {
			h = document.HashWords(h, Hash(x))
		}
	case document.Object:
		sum := uint64(0) // members come in any order
		for x := n.First(); x.Valid(); x = x.Next() {
			sum += document.HashWords(uint64(document.Hash(x.Key())), Hash(x))
		}
		h = document.HashWords(h, sum)
	}
	return h
}
