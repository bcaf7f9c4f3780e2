package plan

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// membership compiles a in b.
func (c *nativeCompiler) membership(args []celast.Expr, call *invocation) code {
	a, b := call.args[0], call.args[1]
	if b.lit != nil && b.lit.Kind == ValList && call.overload == overloads.InList {
		if len(b.lit.List().vals) == 0 {
			return literal(falseVal) // as in cel-go, without a look at a
		}
		if set, ok := newScalarSet(b.lit.List().vals); ok {
			return conditionCode(set.contains(a))
		}
	}
	x, y := a.scalar(), b.scalar()
	return conditionCode(isMember(a, b, func(f *Machine) verdict {
		v := x(f)
		w := y(f)
		if v.Kind == ValErr {
			return f.fail(v.Ref())
		}
		switch {
		case w.isMembers() && v.Kind == ValString:
			f.Arena.Charge(1)
			found, how := f.member(w.node(), w.typ(), v, true)
			if how == present {
				found, how = f.sound(found)
			}
			if how == failed && w.q != nil {
				return f.fail(found.Ref())
			}
			return truthOf(how != none)
		case w.isArray() && w.q == nil && v.Kind == ValString:
			return truthOf(f.hasText(w.node(), v.Str()))
		}
		return f.truth(call.two(f, v, w))
	}))
}

// isMember looks for a literal name in an object of plain JSON that is read along a path.
func isMember(a, b code, otherwise test) test {
	c := b.plain(value.KindInvalid)
	if a.lit == nil || a.lit.Kind != ValString || c == nil || len(c.path) == 0 || c.root != nil || c.typ != nil {
		return otherwise
	}
	name := document.NewName(a.lit.Str())
	return func(f *Machine) verdict {
		if n, far, ok := c.lead(f); ok && far == len(c.path) && n.Kind() == document.Object {
			f.Arena.Charge(c.units)
			_, ok := n.Step(&name)
			return truthOf(ok)
		}
		return otherwise(f)
	}
}

// hasText reports whether a string is an item of an array of any values.
func (f *Machine) hasText(n document.Node, s string) bool {
	for i := n.First(); i.Valid(); i = i.Next() {
		f.Arena.Charge(1)
		if i.Is(s) {
			return true
		}
	}
	return false
}

// A scalarSet is a list of literals, all strings, numbers or truths, that is only asked what is in it. Like cel-go's
// own it finds a number of another type only if the two convert to each other.
type scalarSet struct {
	strings []string
	others  map[ref.Val]bool
}

func newScalarSet(vals []Val) (*scalarSet, bool) {
	s := &scalarSet{others: make(map[ref.Val]bool)}
	for _, v := range vals {
		switch v.Kind {
		case ValString:
			s.strings = append(s.strings, v.Str())
		case ValBool:
			s.others[v.literal()] = true
		case ValInt, valUint, valDouble:
			s.addNumber(v)
		default:
			return nil, false
		}
	}
	return s, true
}

func (s *scalarSet) addNumber(v Val) {
	number := v.literal()
	s.others[number] = true
	for _, t := range []ref.Type{types.IntType, types.UintType, types.DoubleType} {
		same := number.ConvertToType(t)
		if t == number.Type() || types.IsError(same) {
			continue
		}
		if v.Kind == valDouble && same.Equal(number) != types.True {
			continue
		}
		s.others[same] = true
	}
}

func (s *scalarSet) contains(a code) test {
	eval := a.scalar()
	search := func(f *Machine) verdict { return s.has(f, eval(f)) }
	if len(s.others) > 0 {
		return search
	}
	return isAmong(a, s.strings, search)
}

func (s *scalarSet) has(f *Machine, v Val) verdict {
	switch v.Kind {
	case ValString:
		return truthOf(slices.Contains(s.strings, v.Str()))
	case ValErr:
		return f.fail(v.Ref())
	case ValBool, ValInt, valUint, valDouble:
		return truthOf(len(s.others) > 0 && s.others[f.Ref(v)])
	case valRef:
		if _, ok := v.Ref().(types.Bytes); ok {
			panic("runtime error: hash of unhashable type types.Bytes") // as in cel-go
		}
	}
	return IsFalse
}
