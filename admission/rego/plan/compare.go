package plan

import (
	"cmp"

	"github.com/open-policy-agent/opa/v1/ast"
)

// isEqual reports whether two values are equal.
func isEqual(a, b Value) bool {
	if a.part == nil && b.part == nil {
		return a.term.Equal(b.term)
	}
	if a.part == b.part {
		return true
	}
	if a.part != nil && b.part != nil && a.part.Len() != b.part.Len() {
		return false
	}
	return compare(a, b) == 0
}

// compare orders two values as ast.Compare does.
func compare(a, b Value) int {
	if a.part != nil && b.part != nil {
		return compareParts(a.part, b.part)
	}
	if order := cmp.Compare(rank(a), rank(b)); order != 0 {
		return order
	}
	return ast.Compare(a.Whole(), b.Whole())
}

func compareParts(a, b LazyValue) int {
	if a == b {
		return 0
	}
	kind := a.Kind()
	if order := cmp.Compare(kind, b.Kind()); order != 0 {
		return order
	}
	if kind == Set {
		return ast.Compare(a.Whole(), b.Whole())
	}
	for i := range min(a.Len(), b.Len()) {
		if kind == Object {
			if order := ast.Compare(a.Key(i), b.Key(i)); order != 0 {
				return order
			}
		}
		if order := compare(a.At(i), b.At(i)); order != 0 {
			return order
		}
	}
	return cmp.Compare(a.Len(), b.Len())
}

// rank is the position of a value's type among the types of parts, in OPA's order.
func rank(v Value) Kind {
	if v.part != nil {
		return v.part.Kind()
	}
	switch v.term.Value.(type) {
	case *ast.Array:
		return List
	case ast.Object:
		return Object
	case ast.Set:
		return Set
	}
	return List - 1 // values that are no containers are less
}
