package cel

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/admission-gateway/gateway/internal/document"
)

// membership compiles a in b.
func (c *nativeCompiler) membership(args []celast.Expr, call *invocation) code {
	a, b := call.args[0], call.args[1]
	if b.lit != nil && b.lit.kind == valList && call.overload == overloads.InList {
		if len(b.lit.list().vals) == 0 {
			return literal(falseVal) // as in cel-go, without a look at a
		}
		if set, ok := newScalarSet(b.lit.list().vals); ok {
			return conditionCode(set.contains(a))
		}
	}
	x, y := a.settled(), b.settled()
	return conditionCode(func(f *Frame) verdict {
		v := x(f)
		w := y(f)
		if v.kind == valErr {
			return f.fail(v.ref())
		}
		switch {
		case w.isMembers() && v.kind == valString:
			f.charge(1)
			found, how := f.member(w.node(), w.typ(), v, true)
			if how == present {
				found, how = f.sound(found)
			}
			if how == failed && w.q != nil {
				return f.fail(found.ref())
			}
			return truthOf(how != none)
		case w.isArray() && w.q == nil && v.kind == valString:
			return truthOf(f.hasText(w.node(), v.str()))
		}
		return f.truth(call.two(f, v, w))
	})
}

// hasText tells whether a string is an item of an array of any values.
func (f *Frame) hasText(n document.Node, s string) bool {
	for i := n.First(); i.Valid(); i = i.Next() {
		f.charge(1)
		if i.Is(s) {
			return true
		}
	}
	return false
}

// A scalarSet is a list of literals, all strings, numbers or truths, that is only asked what is in it. Like cel-go's own
// it finds a number of another type only if the two convert to each other.
type scalarSet struct {
	strings []string
	others  map[ref.Val]bool
}

func newScalarSet(vals []val) (*scalarSet, bool) {
	s := &scalarSet{others: make(map[ref.Val]bool)}
	for _, v := range vals {
		switch v.kind {
		case valString:
			s.strings = append(s.strings, v.str())
		case valBool:
			s.others[v.literal()] = true
		case valInt, valUint, valDouble:
			s.addNumber(v)
		default:
			return nil, false
		}
	}
	return s, true
}

func (s *scalarSet) addNumber(v val) {
	number := v.literal()
	s.others[number] = true
	for _, t := range []ref.Type{types.IntType, types.UintType, types.DoubleType} {
		same := number.ConvertToType(t)
		if t == number.Type() || types.IsError(same) {
			continue
		}
		if v.kind == valDouble && same.Equal(number) != types.True {
			continue
		}
		s.others[same] = true
	}
}

func (s *scalarSet) contains(a code) test {
	eval := a.settled()
	search := func(f *Frame) verdict { return s.has(f, eval(f)) }
	if len(s.others) > 0 {
		return search
	}
	return isAmong(a, s.strings, search)
}

func (s *scalarSet) has(f *Frame, v val) verdict {
	switch v.kind {
	case valString:
		return truthOf(slices.Contains(s.strings, v.str()))
	case valErr:
		return f.fail(v.ref())
	case valBool, valInt, valUint, valDouble:
		return truthOf(len(s.others) > 0 && s.others[f.ref(v)])
	case valRef:
		if _, ok := v.ref().(types.Bytes); ok {
			panic("runtime error: hash of unhashable type types.Bytes") // as in cel-go
		}
	}
	return isFalse
}
