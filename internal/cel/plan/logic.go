package plan

import (
	"math"
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/admission-gateway/gateway/internal/cel/value"
)

// and is a && b: false wins over an error, and the first error over a later one.
func and(a, b test) test {
	return func(f *Machine) verdict {
		switch a(f) {
		case IsFalse:
			return IsFalse
		case IsTrue:
			return b(f)
		}
		err := f.Err
		if b(f) == IsFalse {
			return IsFalse
		}
		return f.fail(err)
	}
}

// or is a || b: true wins over an error, and the first error over a later one.
func or(a, b test) test {
	return func(f *Machine) verdict {
		switch a(f) {
		case IsTrue:
			return IsTrue
		case IsFalse:
			return b(f)
		}
		err := f.Err
		if b(f) == IsTrue {
			return IsTrue
		}
		return f.fail(err)
	}
}

// not is !a. slow gives the result for a value that is no condition.
func not(a code, slow func(*Machine, Val) Val) test {
	if t := a.test; t != nil {
		return func(f *Machine) verdict {
			switch t(f) {
			case IsTrue:
				return IsFalse
			case IsFalse:
				return IsTrue
			}
			return isErr
		}
	}
	eval := a.scalar()
	return func(f *Machine) verdict {
		v := eval(f)
		if v.Kind == ValBool {
			return verdict(v.num ^ 1)
		}
		return f.truth(slow(f, v))
	}
}

// conditional is a ? b : c.
func conditional(a, b, c code) code {
	when := a.truth()
	if b.test != nil && c.test != nil {
		yes, no := b.test, c.test
		return conditionCode(func(f *Machine) verdict {
			switch when(f) {
			case IsTrue:
				return yes(f)
			case IsFalse:
				return no(f)
			}
			return isErr
		})
	}
	yes, no := b.eval, c.eval
	return code{eval: func(f *Machine) Val {
		switch when(f) {
		case IsTrue:
			return yes(f)
		case IsFalse:
			return no(f)
		}
		return ErrVal(f.Err)
	}}
}

// equals is a == b, or a != b if equal is false.
func equals(a, b code, equal bool, counted *countedCall) test {
	x, y := a.scalar(), b.scalar()
	compare := func(f *Machine) verdict {
		v := x(f)
		w := y(f)
		f.Arena.Charge(1)
		counted.two(f, v, w)
		if v.Kind == ValErr {
			return f.fail(v.Ref())
		}
		if w.Kind == ValErr {
			return f.fail(w.Ref())
		}
		if v.Kind == w.Kind && v.Kind <= ValString {
			return truthOf(sameScalar(v, w) == equal)
		}
		return f.equal(v, w, equal)
	}
	switch {
	case counted != nil:
	case b.lit != nil && b.lit.Kind == ValString:
		return isText(a, b.lit.Str(), equal, compare)
	case a.lit != nil && a.lit.Kind == ValString:
		return isText(b, a.lit.Str(), equal, compare)
	}
	if c, d := a.plain(value.KindString), b.plain(value.KindString); c != nil && d != nil {
		return isSameText(c, d, equal, compare)
	}
	return compare
}

// sameScalar compares two scalars of one kind.
func sameScalar(v, w Val) bool {
	switch v.Kind {
	case ValString:
		return v.Str() == w.Str()
	case valDouble:
		return v.double() == w.double()
	}
	return v.num == w.num
}

// equal compares any two values that are no errors.
func (f *Machine) equal(v, w Val, equal bool) verdict {
	switch {
	case v.Kind == ValNull || w.Kind == ValNull:
		return truthOf((v.Kind == w.Kind) == equal)
	case v.Kind == ValString && w.Kind < ValString, w.Kind == ValString && v.Kind < ValString:
		return truthOf(!equal)
	}
	result := types.Equal(f.Ref(v), f.Ref(w))
	if !equal {
		return truthOf(result != types.True)
	}
	switch result := result.(type) {
	case types.Bool:
		return truthOf(bool(result))
	}
	return f.truth(f.Of(result))
}

// ordering is a comparison; slow gives the result for values of different or unusual types.
func ordering(function string, a, b code, counted *countedCall, slow func(*Machine, Val, Val) Val) test {
	var less, same, more verdict
	switch function {
	case operators.Less:
		less = IsTrue
	case operators.LessEquals:
		less, same = IsTrue, IsTrue
	case operators.Greater:
		more = IsTrue
	case operators.GreaterEquals:
		more, same = IsTrue, IsTrue
	}
	pick := [3]verdict{less, same, more}
	x, y := a.scalar(), b.scalar()
	compare := func(f *Machine) verdict {
		v := x(f)
		w := y(f)
		f.Arena.Charge(1)
		counted.two(f, v, w)
		if v.Kind == w.Kind {
			switch v.Kind {
			case ValInt:
				return pick[1+order(v.Int(), w.Int())]
			case valUint:
				return pick[1+order(v.num, w.num)]
			case ValString:
				return pick[1+strings.Compare(v.Str(), w.Str())]
			case valDouble:
				if d, e := v.double(), w.double(); !math.IsNaN(d) && !math.IsNaN(e) {
					return pick[1+order(d, e)]
				}
			}
		}
		return f.truth(slow(f, v, w))
	}
	switch {
	case counted != nil:
	case b.lit != nil && b.lit.Kind == ValInt:
		return isOrdered(a, b.lit.Int(), pick, compare)
	case a.plain(value.KindInteger) != nil && b.plain(value.KindInteger) != nil:
		return isOrderedPair(a.plain(value.KindInteger), b.chain, pick, compare)
	}
	return compare
}

func order[T int64 | uint64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
