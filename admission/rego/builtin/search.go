package builtin

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/builtins"
)

// A sequence is searched for another one. OPA compares them anew at each place.
type sequence[T any] struct {
	of    []T
	equal func(a, b T) bool
	back  []int // how much of the front is at the end of each of its parts
}

// prepare finds the positions at which the sequence is like its own front.
func (s *sequence[T]) prepare(m *meter) bool {
	s.back = make([]int, len(s.of))
	for i, k := 1, 0; i < len(s.of); i++ {
		for k > 0 && !s.equal(s.of[i], s.of[k]) {
			k = s.back[k-1]
		}
		if s.equal(s.of[i], s.of[k]) {
			k++
		}
		s.back[i] = k
		if !m.take(2) {
			return false
		}
	}
	return true
}

// in calls f with each position of the sequence in another one, until f is false. It reports
// whether the budget allowed for that.
func (s *sequence[T]) in(m *meter, all []T, f func(at int) bool) bool {
	k := 0
	for i, item := range all {
		for k > 0 && (k == len(s.of) || !s.equal(item, s.of[k])) {
			k = s.back[k-1]
		}
		if k < len(s.of) && s.equal(item, s.of[k]) {
			k++
		}
		if !m.take(2) {
			return false
		}
		if k == len(s.of) && !f(i-k+1) {
			return true
		}
	}
	return true
}

func same[T comparable](a, b T) bool { return a == b }

var errEmptySearch = errors.New("empty search character")

// indexes is indexof_n, or indexof, which has only the first place.
func indexes(onlyFirst bool) own {
	return func(bctx topdown.BuiltinContext, b Budget, operands []*ast.Term, iter func(*ast.Term) error) error {
		s, err := stringsOf(operands, 2)
		if err != nil {
			return err
		}
		if s[1] == "" {
			return errEmptySearch
		}
		isPlain := isASCII(s[0]) && isASCII(s[1])
		if onlyFirst && isPlain {
			b.Spend(int64(len(s[0])) / 16)
			return iter(ast.InternedTerm(strings.Index(s[0], s[1])))
		}
		m := &meter{budget: b}
		first, found := -1, []*ast.Term(nil)
		place := func(at int) bool {
			if first < 0 {
				first = at
			}
			if onlyFirst {
				return false
			}
			found = append(found, ast.InternedTerm(at))
			return m.take(itemBytes)
		}
		isOver := false
		if isPlain {
			isOver = !find(m, []byte(s[0]), []byte(s[1]), place)
		} else {
			isOver = !m.take(4*int64(len(s[0])+len(s[1]))) || !find(m, []rune(s[0]), []rune(s[1]), place)
		}
		if isOver || !m.ask() {
			return halt(b, bctx.Location)
		}
		if onlyFirst {
			return iter(ast.InternedTerm(first))
		}
		return iter(ast.ArrayTerm(found...))
	}
}

func find[T comparable](m *meter, all, of []T, place func(int) bool) bool {
	search := sequence[T]{of: of, equal: same[T]}
	return m.take(8*int64(len(of))) && search.prepare(m) && search.in(m, all, place)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// subset is object.subset.
func subset(bctx topdown.BuiltinContext, b Budget, operands []*ast.Term, iter func(*ast.Term) error) error {
	s := subsets{meter{budget: b}}
	is, known := s.of(operands[0].Value, operands[1].Value)
	if !s.meter.ask() {
		return halt(b, bctx.Location)
	}
	if !known {
		list, ok := operands[0].Value.(*ast.Array)
		set, isSet := operands[1].Value.(ast.Set)
		if !ok || !isSet {
			return builtins.ErrOperand("both arguments object.subset must be of the same type or array and set")
		}
		is = inList(list, set)
	}
	return iter(ast.InternedTerm(is))
}

// subsets find out whether values are part of others.
type subsets struct{ meter meter }

// of reports whether sub is part of a value of the same kind; known is false of other kinds.
func (s *subsets) of(super, sub ast.Value) (is, known bool) {
	if !s.meter.take(64) {
		return false, true
	}
	switch sub := sub.(type) {
	case ast.Object:
		if super, ok := super.(ast.Object); ok {
			return s.object(super, sub), true
		}
	case ast.Set:
		if super, ok := super.(ast.Set); ok {
			return !sub.Until(func(t *ast.Term) bool { return !s.meter.take(8) || !super.Contains(t) }), true
		}
	case *ast.Array:
		if super, ok := super.(*ast.Array); ok {
			return s.list(super, sub), true
		}
	}
	return false, false
}

func (s *subsets) object(super, sub ast.Object) bool {
	return !sub.Until(func(key, t *ast.Term) bool {
		within := super.Get(key)
		if within == nil || !s.meter.take(16) {
			return true
		}
		if is, known := s.of(within.Value, t.Value); known {
			return !is
		}
		return !s.equal(t, within)
	})
}

// list reports whether a list has the items of another one, one after the other.
func (s *subsets) list(super, sub *ast.Array) bool {
	if sub.Len() > super.Len() {
		return false
	}
	all, of := itemsOf(super), itemsOf(sub)
	if len(of) == 0 {
		return true
	}
	found := false
	search := sequence[*ast.Term]{of: of, equal: s.equal}
	return s.meter.take(32*int64(len(all))) && search.prepare(&s.meter) &&
		search.in(&s.meter, all, func(int) bool { found = true; return false }) && found
}

// equal reports whether values are equal. What they have in common is looked at once for each
// comparison.
func (s *subsets) equal(a, b *ast.Term) bool {
	if !s.meter.take(1 + sizeOf(a.Value, s.meter.budget.Left(), deepest)/64) {
		return false
	}
	return a.Equal(b)
}

func itemsOf(list *ast.Array) []*ast.Term {
	all := make([]*ast.Term, 0, list.Len())
	list.Foreach(func(t *ast.Term) { all = append(all, t) })
	return all
}

// inList reports whether a list has all that is in a set. An item that is there twice counts twice,
// as with OPA.
func inList(list *ast.Array, set ast.Set) bool {
	missing := set.Len()
	return list.Until(func(t *ast.Term) bool {
		if set.Contains(t) {
			missing--
		}
		return missing == 0
	})
}
