package cel

import (
	"math"
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// and is a && b: false wins over an error, and the first error over a later one.
func and(a, b test) test {
	return func(f *Frame) verdict {
		switch a(f) {
		case isFalse:
			return isFalse
		case isTrue:
			return b(f)
		}
		err := f.err
		if b(f) == isFalse {
			return isFalse
		}
		return f.fail(err)
	}
}

// or is a || b: true wins over an error, and the first error over a later one.
func or(a, b test) test {
	return func(f *Frame) verdict {
		switch a(f) {
		case isTrue:
			return isTrue
		case isFalse:
			return b(f)
		}
		err := f.err
		if b(f) == isTrue {
			return isTrue
		}
		return f.fail(err)
	}
}

// not is !a. slow is what a value that is no condition gives.
func not(a code, slow func(*Frame, val) val) test {
	if t := a.test; t != nil {
		return func(f *Frame) verdict {
			switch t(f) {
			case isTrue:
				return isFalse
			case isFalse:
				return isTrue
			}
			return isErr
		}
	}
	eval := a.settled()
	return func(f *Frame) verdict {
		v := eval(f)
		if v.kind == valBool {
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
		return conditionCode(func(f *Frame) verdict {
			switch when(f) {
			case isTrue:
				return yes(f)
			case isFalse:
				return no(f)
			}
			return isErr
		})
	}
	yes, no := b.eval, c.eval
	return code{eval: func(f *Frame) val {
		switch when(f) {
		case isTrue:
			return yes(f)
		case isFalse:
			return no(f)
		}
		return errVal(f.err)
	}}
}

// equals is a == b, or a != b where equal is false.
func equals(a, b code, equal bool, counted *countedCall) test {
	x, y := a.settled(), b.settled()
	compare := func(f *Frame) verdict {
		v := x(f)
		w := y(f)
		f.charge(1)
		counted.two(f, v, w)
		if v.kind == valErr {
			return f.fail(v.ref())
		}
		if w.kind == valErr {
			return f.fail(w.ref())
		}
		if v.kind == w.kind && v.kind <= valString {
			return truthOf(sameScalar(v, w) == equal)
		}
		return f.equal(v, w, equal)
	}
	switch {
	case counted != nil:
	case b.lit != nil && b.lit.kind == valString:
		return isText(a, b.lit.str(), equal, compare)
	case a.lit != nil && a.lit.kind == valString:
		return isText(b, a.lit.str(), equal, compare)
	}
	if c, d := a.plain(kindString), b.plain(kindString); c != nil && d != nil {
		return isSameText(c, d, equal, compare)
	}
	return compare
}

// sameScalar compares two scalars of one kind.
func sameScalar(v, w val) bool {
	switch v.kind {
	case valString:
		return v.str() == w.str()
	case valDouble:
		return v.double() == w.double()
	}
	return v.num == w.num
}

// equal compares any two values that are no errors.
func (f *Frame) equal(v, w val, equal bool) verdict {
	switch {
	case v.kind == valNull || w.kind == valNull:
		return truthOf((v.kind == w.kind) == equal)
	case v.kind == valString && w.kind < valString, w.kind == valString && v.kind < valString:
		return truthOf(!equal)
	}
	result := types.Equal(f.ref(v), f.ref(w))
	if !equal {
		return truthOf(result != types.True)
	}
	switch result := result.(type) {
	case types.Bool:
		return truthOf(bool(result))
	}
	return f.truth(f.of(result))
}

// ordering is a comparison; slow is what values of different or unusual types give.
func ordering(function string, a, b code, counted *countedCall, slow func(*Frame, val, val) val) test {
	var less, same, more verdict
	switch function {
	case operators.Less:
		less = isTrue
	case operators.LessEquals:
		less, same = isTrue, isTrue
	case operators.Greater:
		more = isTrue
	case operators.GreaterEquals:
		more, same = isTrue, isTrue
	}
	pick := [3]verdict{less, same, more}
	x, y := a.settled(), b.settled()
	compare := func(f *Frame) verdict {
		v := x(f)
		w := y(f)
		f.charge(1)
		counted.two(f, v, w)
		if v.kind == w.kind {
			switch v.kind {
			case valInt:
				return pick[1+order(v.int(), w.int())]
			case valUint:
				return pick[1+order(v.num, w.num)]
			case valString:
				return pick[1+strings.Compare(v.str(), w.str())]
			case valDouble:
				if d, e := v.double(), w.double(); !math.IsNaN(d) && !math.IsNaN(e) {
					return pick[1+order(d, e)]
				}
			}
		}
		return f.truth(slow(f, v, w))
	}
	if b.lit != nil && b.lit.kind == valInt && counted == nil {
		return isOrdered(a, b.lit.int(), pick, compare)
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
