package outcome

import "slices"

// assumptions has for each path what is known of the value beside its schema.
type assumptions map[string]assumption

// assumption says more of one value than the schema.
type assumption struct {
	set, unset bool
	min, max   *float64
	enum       []string
}

func (f assumptions) isSet(path string) bool { return path != "" && f[path].set }

// with returns the assumptions and one more.
func (f assumptions) with(path string, add func(*assumption)) assumptions {
	if path == "" {
		return f
	}
	all := make(assumptions, len(f)+1)
	for k, one := range f {
		all[k] = one
	}
	one := all[path]
	add(&one)
	all[path] = one
	return all
}

// narrow returns the shape within what is known.
func (f assumption) narrow(s *Shape) *Shape {
	if f.min == nil && f.max == nil && f.enum == nil {
		return s
	}
	n := *s
	n.Min, n.Max = tighter(n.Min, f.min, 1), tighter(n.Max, f.max, -1)
	switch {
	case n.Enum == nil:
		n.Enum = f.enum
	case f.enum != nil:
		n.Enum = slices.DeleteFunc(slices.Clone(n.Enum), func(s string) bool { return !slices.Contains(f.enum, s) })
	}
	return &n
}

// tighter returns the larger of two bounds, or the smaller one for the sign -1.
func tighter(a, b *float64, sign float64) *float64 {
	switch {
	case a == nil:
		return b
	case b == nil || sign**a >= sign**b:
		return a
	}
	return b
}
