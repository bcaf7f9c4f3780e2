package plan

import "github.com/open-policy-agent/opa/v1/ast"

// A Value is a value as steps see it: one of OPA's, or a Part. The zero Value is no value.
type Value struct {
	term *ast.Term
	part LazyValue
}

// Made returns a value of OPA's; none for nil.
func Made(t *ast.Term) Value { return Value{term: t} }

// Unmade returns the value of a part.
func Unmade(p LazyValue) Value { return Value{part: p} }

// IsValid reports whether there is a value.
func (v Value) IsValid() bool { return v.term != nil || v.part != nil }

// Whole returns the value as OPA has it; nil if there is none.
func (v Value) Whole() *ast.Term {
	if v.part != nil {
		return v.part.Whole()
	}
	return v.term
}

// Outline returns the value with empty objects in the place of objects that are not made yet, but for
// the value itself. OPA's index of rules looks no deeper into a value.
func Outline(v Value) *ast.Term {
	if v.part == nil || v.part.Kind() != Object {
		return v.Whole()
	}
	pairs := make([][2]*ast.Term, v.part.Len())
	for i := range pairs {
		of := v.part.At(i)
		if pairs[i] = ast.Item(v.part.Key(i), ast.InternedEmptyObject); of.part == nil || of.part.Kind() != Object {
			pairs[i][1] = of.Whole()
		}
	}
	return ast.ObjectTerm(pairs...)
}

// Member returns a member of a value; none if it has none for the key.
func (v Value) Member(key Value) Value {
	switch {
	case v.part == nil:
		return memberOf(v.term.Value, key)
	case v.part.Kind() == Set:
		return v.part.(*few).member(key)
	case key.part == nil:
		return v.part.Get(key.term)
	}
	return Value{}
}

// memberOf is Value.Member for OPA's values. An element of a set is its own key.
func memberOf(of ast.Value, key Value) Value {
	switch v := of.(type) {
	case ast.Object:
		return Made(v.Get(key.Whole()))
	case *ast.Array:
		if key.part == nil {
			return Made(v.Get(key.term))
		}
	case ast.Set:
		if v.Contains(key.Whole()) {
			return key
		}
	}
	return Value{}
}

// A visitor sees the members of a value. It returns false to see no more of them.
type visitor interface {
	visit(m *machine, key, value Value) bool
}

// each shows a visitor all members in OPA's order. It returns false if the visitor did.
func (v Value) each(m *machine, by visitor) bool {
	if v.part != nil {
		return eachOf(v.part, m, by)
	}
	switch v := v.term.Value.(type) {
	case *ast.Array:
		for i := range v.Len() {
			if !by.visit(m, Made(ast.InternedTerm(i)), Made(v.Elem(i))) {
				return false
			}
		}
	case ast.Object:
		return !v.Until(func(key, value *ast.Term) bool { return !by.visit(m, Made(key), Made(value)) })
	case ast.Set:
		for _, t := range v.Slice() {
			if !by.visit(m, Made(t), Made(t)) {
				return false
			}
		}
	}
	return true
}

func eachOf(p LazyValue, m *machine, by visitor) bool {
	isSet := p.Kind() == Set
	for i := range p.Len() {
		value := p.At(i)
		key := value
		if !isSet {
			key = Made(p.Key(i))
		}
		if !by.visit(m, key, value) {
			return false
		}
	}
	return true
}

// isContainer reports whether the value has members.
func (v Value) isContainer() bool { return rank(v) >= List }

// length returns how many members the value has.
func (v Value) length() int {
	if v.part != nil {
		return v.part.Len()
	}
	switch v := v.term.Value.(type) {
	case *ast.Array:
		return v.Len()
	case ast.Object:
		return v.Len()
	case ast.Set:
		return v.Len()
	}
	return 0
}

// item returns an item of a list.
func (v Value) item(i int) Value {
	if v.part != nil {
		return v.part.At(i)
	}
	return Made(v.term.Value.(*ast.Array).Elem(i))
}

// isText reports whether the value is a string.
func (v Value) isText() bool {
	if v.part != nil {
		return false
	}
	_, ok := v.term.Value.(ast.String)
	return ok
}

// isFalse reports whether the value is false, which ends a body.
func (v Value) isFalse() bool {
	if v.part != nil {
		return false
	}
	b, ok := v.term.Value.(ast.Boolean)
	return ok && !bool(b)
}

// hash is the same for values that isSame reports to be the same.
func (v Value) hash() int {
	if v.part != nil {
		return v.part.ID()
	}
	return v.term.Hash()
}

// isSame reports whether two values are equal for sure, without a comparison of parts.
func (v Value) isSame(as Value) bool {
	if v.part != nil || as.part != nil {
		return v.part == as.part
	}
	return v.term.Equal(as.term)
}
