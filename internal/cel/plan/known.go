package plan

import (
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/pattern"
)

// Functions that native code computes itself for the arguments that they are usually called with. The second result is
// false for all others, errors among them: then the library's own function is called.
var (
	knownUnary = map[string]func(*Machine, Val) (Val, bool){
		"size":           knownSize,
		"string":         knownString,
		"int":            knownInt,
		operators.Negate: knownNegate,
	}
	knownBinary = map[string]func(*Machine, Val, Val) (Val, bool){
		operators.Add:      knownAdd,
		operators.Subtract: knownSubtract,
		operators.Multiply: knownMultiply,
		operators.Divide:   knownDivide,
		operators.Modulo:   knownModulo,
	}
	knownTests = map[string]func(s, t string) bool{
		"startsWith": strings.HasPrefix,
		"endsWith":   strings.HasSuffix,
		"contains":   strings.Contains,
	}
)

// known compiles a call of a function that native code knows.
func (c *nativeCompiler) known(call *invocation) (code, bool) {
	if k, ok := c.pattern(call); ok {
		return k, true
	}
	switch len(call.args) {
	case 1:
		if call.function == "dyn" {
			return code{eval: call.args[0].scalar()}, true
		}
		fn, ok := knownUnary[call.function]
		if !ok {
			return code{}, false
		}
		arg := call.args[0].scalar()
		k := code{eval: func(f *Machine) Val {
			v := arg(f)
			if result, ok := fn(f, v); ok {
				f.Arena.Charge(1)
				return result
			}
			return call.one(f, v)
		}}
		if c := call.args[0].plain(value.KindInvalid); c != nil && call.function == "size" {
			k.count = c.size // of anything else the general way would make the value a second time
		}
		return k, true
	case 2:
		if is, ok := knownTests[call.function]; ok {
			return conditionCode(textTest(call, is)), true
		}
		fn, ok := knownBinary[call.function]
		if !ok {
			return code{}, false
		}
		a, b := call.args[0].scalar(), call.args[1].scalar()
		return code{eval: func(f *Machine) Val {
			v := a(f)
			w := b(f)
			if v.Kind == w.Kind {
				if result, ok := fn(f, v, w); ok {
					f.Arena.Charge(1)
					call.counted.two(f, v, w)
					return result
				}
			}
			return call.two(f, v, w)
		}}, true
	}
	return code{}, false
}

// takesPattern are the functions whose second argument is a regular expression.
var takesPattern = map[string]bool{"matches": true, "find": true, "findAll": true}

// pattern compiles matches, find and findAll with a literal pattern.
func (c *nativeCompiler) pattern(call *invocation) (code, bool) {
	if len(call.args) < 2 || !takesPattern[call.function] {
		return code{}, false
	}
	lit := call.args[1].lit
	if lit == nil || lit.Kind != ValString {
		return code{}, false
	}
	compiled, err := pattern.New(lit.Str())
	if err != nil {
		return code{}, false // cel-go has refused the expression
	}
	re := compiled.Regexp()
	eval, length := call.args[0].scalar(), call.counted.forPattern(lit.Str())
	subject := func(f *Machine) (string, Val) {
		f.Arena.Charge(1)
		v := eval(f)
		switch v.Kind {
		case ValString:
			f.Arena.Charge(patternUnits(v.Str(), length))
			return v.Str(), Val{}
		case ValErr:
			return "", v
		}
		if o, ok := v.optional(); ok {
			if s, ok := o.Value().(string); ok { // as in cel-go
				return s, Val{}
			}
		}
		return "", ErrVal(types.NoSuchOverloadErr())
	}
	switch call.function {
	case "matches":
		return conditionCode(matching(call.args[0], compiled, length, subject)), true
	case "find":
		return code{eval: func(f *Machine) Val {
			s, err := subject(f)
			if err.Kind == ValErr {
				return err
			}
			return stringVal(re.FindString(s))
		}}, true
	case "findAll":
		return findingAll(call, re, subject), true
	}
	return code{}, false
}

// patternUnits is the cost of matching a string with a pattern of so many characters; 0 characters: no more than
// reading the string.
func patternUnits(s string, length int64) int64 {
	if length == 0 {
		return 0
	}
	return matchUnits(int64(utf8.RuneCountInString(s)), length)
}

// matching is matches with a literal pattern.
func matching(a code, re *pattern.Pattern, length int64, subject func(*Machine) (string, Val)) test {
	match := func(f *Machine) verdict {
		s, err := subject(f)
		if err.Kind == ValErr {
			return f.fail(err.Ref())
		}
		return truthOf(re.Match(s))
	}
	c := a.plain(value.KindString)
	if c == nil {
		return match
	}
	return func(f *Machine) verdict {
		s, ok := c.text(f)
		if !ok {
			return match(f)
		}
		f.Arena.Charge(patternUnits(s, length))
		return truthOf(re.Match(s))
	}
}

// findingAll is findAll with a literal pattern.
func findingAll(call *invocation, re *regexp.Regexp, subject func(*Machine) (string, Val)) code {
	most := func(*Machine) Val { return intVal(-1) }
	if len(call.args) == 3 {
		most = call.args[2].scalar()
	}
	return code{eval: func(f *Machine) Val {
		s, err := subject(f)
		if err.Kind == ValErr && err.Ref() != types.NoSuchOverloadErr() {
			return err // of the argument itself, so that the others are not looked at
		}
		n := most(f)
		switch {
		case n.Kind == ValErr:
			return n
		case err.Kind == ValErr:
			return err
		case n.Kind != ValInt:
			return ErrVal(types.NoSuchOverloadErr())
		}
		found := f.findAll(re, s, int(n.Int()))
		f.count(len(found) * valBytes)
		mark := len(f.stack)
		for _, s := range found {
			f.push(stringVal(s))
		}
		return f.newBuilt(mark)
	}}
}

// textTest is a test of two strings.
func textTest(call *invocation, is func(s, t string) bool) test {
	a, b := call.args[0].scalar(), call.args[1].scalar()
	compare := func(f *Machine) verdict {
		v := a(f)
		w := b(f)
		if v.Kind == ValString && w.Kind == ValString {
			f.Arena.Charge(1)
			call.counted.two(f, v, w)
			return truthOf(is(v.Str(), w.Str()))
		}
		return f.truth(call.two(f, v, w))
	}
	if lit := call.args[1].lit; lit != nil && lit.Kind == ValString && call.counted == nil {
		word := lit.Str()
		return onText(call.args[0], func(s string) bool { return is(s, word) }, compare)
	}
	return compare
}

func knownSize(_ *Machine, v Val) (Val, bool) {
	switch v.Kind {
	case ValString:
		return intVal(int64(utf8.RuneCountInString(v.Str()))), true
	case valNode:
		if kind := v.node().Kind(); kind == document.Object || kind == document.Array {
			return intVal(int64(v.node().Len())), true
		}
	case ValList:
		return intVal(int64(len(v.List().vals))), true
	}
	return Val{}, false
}

func knownString(_ *Machine, v Val) (Val, bool) { return v, v.Kind == ValString }

func knownInt(_ *Machine, v Val) (Val, bool) { return v, v.Kind == ValInt }

func knownNegate(_ *Machine, v Val) (Val, bool) {
	switch v.Kind {
	case ValInt:
		return intVal(-v.Int()), v.Int() != math.MinInt64
	case valDouble:
		return doubleVal(-v.double()), true
	}
	return Val{}, false
}

func knownAdd(f *Machine, v, w Val) (Val, bool) {
	switch v.Kind {
	case ValInt:
		sum := v.Int() + w.Int()
		return intVal(sum), (sum > v.Int()) == (w.Int() > 0)
	case valDouble:
		return doubleVal(v.double() + w.double()), true
	case ValString:
		f.count(len(v.Str()) + len(w.Str()))
		return stringVal(v.Str() + w.Str()), true
	}
	return Val{}, false
}

func knownSubtract(_ *Machine, v, w Val) (Val, bool) {
	switch v.Kind {
	case ValInt:
		difference := v.Int() - w.Int()
		return intVal(difference), (difference < v.Int()) == (w.Int() > 0)
	case valDouble:
		return doubleVal(v.double() - w.double()), true
	}
	return Val{}, false
}

func knownMultiply(_ *Machine, v, w Val) (Val, bool) {
	switch v.Kind {
	case ValInt:
		const most = 1 << 31
		x, y := v.Int(), w.Int()
		return intVal(x * y), x < most && x > -most && y < most && y > -most
	case valDouble:
		return doubleVal(v.double() * w.double()), true
	}
	return Val{}, false
}

func knownDivide(_ *Machine, v, w Val) (Val, bool) {
	switch v.Kind {
	case ValInt:
		if w.Int() > 0 {
			return intVal(v.Int() / w.Int()), true
		}
	case valDouble:
		return doubleVal(v.double() / w.double()), true
	}
	return Val{}, false
}

func knownModulo(_ *Machine, v, w Val) (Val, bool) {
	if v.Kind == ValInt && w.Int() > 0 {
		return intVal(v.Int() % w.Int()), true
	}
	return Val{}, false
}
