package builtin

import (
	"math"

	"github.com/open-policy-agent/opa/v1/ast"
)

// deepest is deeper than any value is nested.
const deepest = math.MaxInt

// What values take by measurement.
const (
	textBytes   = 64   // a string, beside its bytes
	itemBytes   = 128  // a string that is in a list
	parsedBytes = 512  // a value that a parser makes, with what it made on the way
	frameBytes  = 2048 // a level of nesting, for a function that calls itself
)

func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func multiply(a, b int64) int64 {
	if a != 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// square returns the cost of work that grows with the square of n, of which a unit does each.
func square(n, each int64) int64 { return multiply(n, n) / each }

func textOf(t *ast.Term) string {
	s, _ := t.Value.(ast.String)
	return string(s)
}

// length is how long a string or a number is.
func length(t *ast.Term) int64 {
	switch v := t.Value.(type) {
	case ast.String:
		return int64(len(v))
	case ast.Number:
		return int64(len(v))
	}
	return 0
}

// lenOf is how many members a container has, or bytes a string or number.
func lenOf(t *ast.Term) int {
	switch v := t.Value.(type) {
	case *ast.Array:
		return v.Len()
	case ast.Set:
		return v.Len()
	case ast.Object:
		return v.Len()
	}
	return int(length(t))
}

// isScalar reports whether nothing is in a value.
func isScalar(v ast.Value) bool {
	switch v.(type) {
	case *ast.Array, ast.Set, ast.Object:
		return false
	}
	return true
}

// forEach calls f for each member of a list or a set.
func forEach(v ast.Value, f func(*ast.Term)) {
	switch v := v.(type) {
	case *ast.Array:
		v.Foreach(f)
	case ast.Set:
		v.Foreach(f)
	}
}

// texts returns how long the strings of a list, a set or a string are, and how many there are.
func texts(t *ast.Term) (bytes, count int64) {
	if _, ok := t.Value.(ast.String); ok {
		return length(t), 1
	}
	forEach(t.Value, func(item *ast.Term) {
		bytes += length(item)
		count++
	})
	return bytes, count
}

// sizeOf is roughly how many bytes a value takes, looking into containers to a depth. It stops when
// there are more than limit.
func sizeOf(v ast.Value, limit int64, depth int) int64 {
	switch v := v.(type) {
	case ast.String:
		return 16 + int64(len(v))
	case ast.Number:
		return 16 + int64(len(v))
	case *ast.Array:
		size := 32 * int64(v.Len())
		if depth > 1 {
			for i := 0; i < v.Len() && size <= limit; i++ {
				size = add(size, sizeOf(v.Elem(i).Value, limit-size, depth-1))
			}
		}
		return size
	case ast.Set:
		size := 64 * int64(v.Len())
		if depth > 1 {
			for _, t := range v.Slice() {
				if size = add(size, sizeOf(t.Value, limit-size, depth-1)); size > limit {
					break
				}
			}
		}
		return size
	case ast.Object:
		size := 96 * int64(v.Len())
		if depth > 1 {
			v.Until(func(k, t *ast.Term) bool {
				size = add(size, add(sizeOf(k.Value, limit-size, depth-1), sizeOf(t.Value, limit-size, depth-1)))
				return size > limit
			})
		}
		return size
	}
	return 16
}

// nodesOf is how many values there are in a value, itself included. It stops when there are more
// than limit.
func nodesOf(v ast.Value, limit int64) int64 {
	nodes := int64(1)
	if isScalar(v) {
		return nodes
	}
	until := func(t *ast.Term) bool {
		nodes += nodesOf(t.Value, limit-nodes)
		return nodes > limit
	}
	switch v := v.(type) {
	case *ast.Array:
		v.Until(until)
	case ast.Set:
		v.Until(until)
	case ast.Object:
		v.Until(func(k, t *ast.Term) bool { return until(k) || until(t) })
	}
	return nodes
}

// depthOf is how deep a value is nested, at most most.
func depthOf(v ast.Value, most int) int {
	if most == 0 || isScalar(v) {
		return 1
	}
	depth := 0
	look := func(t *ast.Term) { depth = max(depth, depthOf(t.Value, most-1)) }
	if o, ok := v.(ast.Object); ok {
		o.Foreach(func(_, t *ast.Term) { look(t) })
	} else {
		forEach(v, look)
	}
	return depth + 1
}
