package plan

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// mostFew is how many elements a set has at most, each of which is compared with all others.
const mostFew = 8

// An elements collects the elements of a set: few as they are, or OPA's values.
type elements struct {
	few *few
	set ast.Set
}

func (e *elements) add(v Value) {
	if e.set != nil || !isPlain(v) || !e.addFew(v) {
		e.whole().Add(v.Whole())
	}
}

// isPlain reports whether OPA's sets find a value by comparison alone. They look for it among the
// elements of the same hash, which equal numbers have if they are in the range of a double, as those
// of a document are. Others may not have it.
func isPlain(v Value) bool {
	if v.part != nil {
		return v.part.Kind() != Set
	}
	switch v.term.Value.(type) {
	case ast.String, ast.Boolean, ast.Null:
		return true
	}
	return false
}

// addFew adds an element, unless the set has an equal one. It returns false if the set is full.
func (e *elements) addFew(v Value) bool {
	if e.few == nil {
		e.few = new(few)
	}
	return e.few.has(v) || e.few.add(v)
}

// whole returns the elements as OPA's set.
func (e *elements) whole() ast.Set {
	if e.set == nil {
		e.set = ast.NewSetWithCapacity(max(e.few.Len(), 4))
		for _, v := range e.few.list() {
			e.set.Add(v.Whole())
		}
		e.few = nil
	}
	return e.set
}

// value returns the set. No element is added any more.
func (e *elements) value() Value {
	if e.set != nil {
		return Made(ast.NewTerm(e.set))
	}
	return e.few.value()
}

// few is a set of few values.
type few struct {
	all   [mostFew]Value
	count int
	made  *ast.Term
}

// value returns the set, in OPA's order from now on.
func (f *few) value() Value {
	if f.Len() == 0 {
		return Made(ast.InternedEmptySet)
	}
	slices.SortFunc(f.list(), compare)
	return Unmade(f)
}

func (f *few) list() []Value {
	if f == nil {
		return nil
	}
	return f.all[:f.count]
}

func (f *few) has(v Value) bool {
	return slices.ContainsFunc(f.list(), func(one Value) bool { return isEqual(one, v) })
}

func (f *few) add(v Value) bool {
	if f.count == mostFew {
		return false
	}
	f.all[f.count] = v
	f.count++
	return true
}

// Kind implements Part.
func (f *few) Kind() Kind { return Set }

// Len implements Part.
func (f *few) Len() int { return len(f.list()) }

// Key implements Part.
func (f *few) Key(int) *ast.Term { return nil }

// At implements Part.
func (f *few) At(i int) Value { return f.all[i] }

// Get implements Part.
func (f *few) Get(key *ast.Term) Value { return f.member(Made(key)) }

// member returns the element that equals a value.
func (f *few) member(key Value) Value {
	if !isPlain(key) {
		return memberOf(f.Whole().Value, key)
	}
	if f.has(key) {
		return key
	}
	return Value{}
}

// Whole implements Part.
func (f *few) Whole() *ast.Term {
	if f.made == nil {
		of := elements{few: f}
		f.made = ast.NewTerm(of.whole())
	}
	return f.made
}

// ID implements Part.
func (f *few) ID() int { return f.count }

// without returns the elements that another set does not have.
func (f *few) without(other *few) Value {
	var left elements
	for _, v := range f.list() {
		if !other.has(v) {
			left.addFew(v)
		}
	}
	return left.value()
}

// A minus is the difference of two numbers or sets. That of sets of few values takes none of OPA's.
type minus struct{ builtin }

func (s *minus) run(m *machine) bool {
	a, b := s.args[0].get(m), s.args[1].get(m)
	from, isFew := a.part.(*few)
	other, alike := b.part.(*few)
	if !isFew || !alike {
		return s.builtin.run(m)
	}
	return s.goOn(m, from.without(other))
}
