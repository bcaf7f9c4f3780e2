// Package mergetest makes random values and patches of types, for tests that compare the merges
// with Kubernetes' libraries.
package mergetest

import (
	"math/rand/v2"
	"slices"

	"github.com/admission-gateway/gateway/internal/merge"
)

// A Generator makes values, with the same seed always the same.
type Generator struct {
	*rand.Rand
	// Odd is how many values in a thousand are null, or not of their type.
	Odd int
}

// Value is one that mostly has the type, nested at most so deep.
func (g Generator) Value(t *merge.Type, depth int) any {
	switch {
	case g.IntN(1000) < g.Odd:
		return nil
	case t == nil, t == merge.Deduced(), t == merge.Opaque(), g.IntN(1000) < g.Odd/2:
		return g.any(depth)
	case t.Object != nil:
		return g.object(t.Object, depth)
	case t.List != nil:
		l := []any{}
		if depth > 0 {
			for range g.IntN(5) {
				v := g.Value(t.List.Items, depth-1)
				if t.List.Merged && len(t.List.MergeKeys) == 0 && slices.Contains(l, v) {
					continue // Kubernetes' library shuffles sets with duplicates
				}
				l = append(l, v)
			}
		}
		return l
	}
	return g.scalar(t.Scalar)
}

func (g Generator) object(o *merge.Object, depth int) any {
	m := map[string]any{}
	fields := o.Fields()
	for _, f := range fields {
		// Large types get few members each, small ones most.
		if g.IntN(max(3, len(fields)/2)) < 2 && depth > 0 || f.Name == "name" || f.Name == "k" && g.IntN(8) != 0 {
			m[f.Name] = g.Value(f.Type, depth-1)
		}
	}
	if depth > 0 && (o.Rest != nil || g.IntN(1000) < g.Odd) {
		for range g.IntN(3) {
			m[g.word()+"."+g.word()] = g.Value(o.Rest, depth-1)
		}
	}
	return m
}

func (g Generator) scalar(s merge.Scalar) any {
	switch s {
	case merge.Numeric:
		return int64(g.IntN(4))
	case merge.Text:
		return g.word()
	case merge.Boolean:
		return g.IntN(2) == 0
	}
	return []any{int64(g.IntN(3)), g.word(), g.IntN(2) == 0}[g.IntN(3)]
}

func (g Generator) word() string { return string(rune('x' + g.IntN(3))) }

// any is a value of no type.
func (g Generator) any(depth int) any {
	switch n := g.IntN(7); {
	case g.IntN(1000) < 5*g.Odd:
		return nil
	case n < 4 || depth <= 0:
		return g.scalar(merge.Any)
	case n == 4:
		l := []any{}
		for range g.IntN(3) {
			l = append(l, g.any(depth-1))
		}
		return l
	}
	m := map[string]any{}
	for range g.IntN(3) {
		m[g.word()] = g.any(depth - 1)
	}
	return m
}

// Applicable takes out of a value most of what may not be in an apply
// configuration of its type.
func (g Generator) Applicable(t *merge.Type, v any) any {
	if t == nil {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		if t.Object == nil {
			return v
		}
		for _, f := range t.Object.Fields() {
			value, ok := v[f.Name]
			if !ok {
				continue
			}
			_, isList := value.([]any)
			_, isObject := value.(map[string]any)
			atomic := isObject && f.Type.Object != nil && f.Type.Object.Atomic || isList && f.Type.List != nil &&
				f.Type.List.Relation == merge.Atomic
			if atomic && g.IntN(20) != 0 {
				delete(v, f.Name)
			} else {
				v[f.Name] = g.Applicable(f.Type, value)
			}
		}
	case []any:
		if t.List != nil {
			for i := range v {
				v[i] = g.Applicable(t.List.Items, v[i])
			}
		}
	}
	return v
}
