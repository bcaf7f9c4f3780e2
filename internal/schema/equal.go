package schema

import (
	"math"

	"github.com/admission-gateway/gateway/internal/document"
)

// equal tells whether two values are the same JSON. An integer and a double are two values even where they are as
// large, as in Kubernetes' decoded objects.
func equal(a, b document.Node) bool { return same(a, b, false) }

// same is equal, and where loose is set, numbers count by their value, as in Kubernetes' encoded objects.
func same(a, b document.Node, loose bool) bool {
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
		x, y := numberOf(a), numberOf(b)
		return (loose || x.integer == y.integer) && x.same(y)
	case document.String:
		return a.Str() == b.Str()
	case document.Array:
		if a.Len() != b.Len() {
			return false
		}
		y := b.First()
		for x := a.First(); x.Valid(); x = x.Next() {
			if !same(x, y, loose) {
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
			if !found || !same(x, y, loose) {
				return false
			}
		}
		return true
	}
}

// hash is equal for values that same holds equal, loose or not.
func hash(n document.Node) uint64 {
	h := uint64(n.Kind()) + 1
	switch n.Kind() {
	case document.Bool:
		if n.Bool() {
			h = document.HashWords(h, 1)
		}
	case document.Number:
		f := numberOf(n).float()
		if f == 0 {
			f = 0 // -0 is 0
		}
		h = document.HashWords(h, math.Float64bits(f))
	case document.String:
		h = document.HashWords(h, uint64(document.Hash(n.Str())))
	case document.Array:
		for x := n.First(); x.Valid(); x = x.Next() {
			h = document.HashWords(h, hash(x))
		}
	case document.Object:
		sum := uint64(0) // members come in any order
		for x := n.First(); x.Valid(); x = x.Next() {
			sum += document.HashWords(uint64(document.Hash(x.Key())), hash(x))
		}
		h = document.HashWords(h, sum)
	}
	return h
}
