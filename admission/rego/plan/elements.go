package plan

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// maxParts is how many parts a set has at most, each of which is compared with all others.
const maxParts = 8

// An elements collects the elements of a set: parts as long as they are few and nothing else is
// in it, or OPA's values.
type elements struct {
	parts *parts
	set   ast.Set
}

func (e *elements) add(v Value) {
	if v.part == nil || e.set != nil || !e.addPart(v.part) {
		e.whole().Add(v.Whole())
	}
}

// addPart adds a part, unless the set has an equal one. It returns false if the set is full. OPA's
// sets look for equal elements among those of the same hash: equal numbers of a document have it, for
// they are in the range of a double.
func (e *elements) addPart(p Part) bool {
	if e.parts == nil {
		e.parts = new(parts)
	}
	for _, was := range e.parts.list() {
		if compareParts(was, p) == 0 {
			return true
		}
	}
	if e.parts.count == maxParts {
		return false
	}
	e.parts.all[e.parts.count] = p
	e.parts.count++
	return true
}

// whole returns the elements as OPA's set.
func (e *elements) whole() ast.Set {
	if e.set == nil {
		e.set = ast.NewSetWithCapacity(fewElements)
		for _, p := range e.parts.list() {
			e.set.Add(p.Whole())
		}
		e.parts = nil
	}
	return e.set
}

// value returns the set. No element is added any more.
func (e *elements) value() Value {
	switch {
	case e.set != nil:
		return Made(ast.NewTerm(e.set))
	case e.parts == nil:
		return Made(ast.InternedEmptySet)
	}
	slices.SortFunc(e.parts.list(), compareParts)
	return Unmade(e.parts)
}

// fewElements is how many elements a set of OPA's has room for at first.
const fewElements = 4

// parts is a set of parts, in OPA's order.
type parts struct {
	all   [maxParts]Part
	count int
	made  *ast.Term
}

func (p *parts) list() []Part {
	if p == nil {
		return nil
	}
	return p.all[:p.count]
}

// Kind implements Part.
func (p *parts) Kind() Kind { return Set }

// Len implements Part.
func (p *parts) Len() int { return p.count }

// Key implements Part.
func (p *parts) Key(int) *ast.Term { return nil }

// At implements Part.
func (p *parts) At(i int) Value { return Unmade(p.all[i]) }

// Get implements Part.
func (p *parts) Get(key *ast.Term) Value { return p.member(Made(key)) }

// member returns the element that equals a value.
func (p *parts) member(key Value) Value {
	for _, one := range p.list() {
		if one == key.part {
			return key
		}
	}
	if rank(key) != List && rank(key) != Object {
		return Value{} // and no part
	}
	return memberOf(p.Whole().Value, key)
}

// Whole implements Part.
func (p *parts) Whole() *ast.Term {
	if p.made == nil {
		of := elements{parts: p}
		p.made = ast.NewTerm(of.whole())
	}
	return p.made
}

// ID implements Part.
func (p *parts) ID() int { return p.count }
