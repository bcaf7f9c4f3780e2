package cel

import (
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/admission-gateway/gateway/internal/document"
)

// Functions that native code computes itself for the arguments that they are usually called with. The second result is
// false for all others, also for those that are errors: then the library's own function is called.
var (
	knownUnary = map[string]func(*Frame, val) (val, bool){
		"size":           knownSize,
		"string":         knownString,
		"int":            knownInt,
		operators.Negate: knownNegate,
	}
	knownBinary = map[string]func(*Frame, val, val) (val, bool){
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
	switch len(call.args) {
	case 1:
		if call.function == "dyn" {
			return code{eval: call.args[0].settled()}, true
		}
		fn, ok := knownUnary[call.function]
		if !ok {
			return code{}, false
		}
		arg := call.args[0].settled()
		k := code{eval: func(f *Frame) val {
			v := arg(f)
			if result, ok := fn(f, v); ok {
				f.charge(1)
				return result
			}
			return call.one(f, v)
		}}
		if call.function == "size" {
			k.count = counting(call.args[0])
		}
		return k, true
	case 2:
		if k, ok := c.pattern(call); ok {
			return k, true
		}
		if is, ok := knownTests[call.function]; ok {
			return conditionCode(textTest(call, is)), true
		}
		fn, ok := knownBinary[call.function]
		if !ok {
			return code{}, false
		}
		a, b := call.args[0].settled(), call.args[1].settled()
		return code{eval: func(f *Frame) val {
			v := a(f)
			w := b(f)
			if v.kind == w.kind {
				if result, ok := fn(f, v, w); ok {
					f.charge(1)
					call.counted.two(f, v, w)
					return result
				}
			}
			return call.two(f, v, w)
		}}, true
	}
	return code{}, false
}

// pattern compiles matches and find with a literal pattern.
func (c *nativeCompiler) pattern(call *invocation) (code, bool) {
	lit := call.args[1].lit
	if lit == nil || lit.kind != valString || call.function != "matches" && call.function != "find" {
		return code{}, false
	}
	re, err := regexp.Compile(lit.str)
	if err != nil {
		return code{}, false // cel-go has refused the expression
	}
	eval := call.args[0].settled()
	pattern := *lit
	subject := func(f *Frame) (string, val) {
		v := eval(f)
		switch v.kind {
		case valString:
			call.counted.two(f, v, pattern)
			return v.str, val{}
		case valErr:
			return "", v
		}
		return "", errVal(types.NoSuchOverloadErr())
	}
	if call.function == "find" {
		return code{eval: func(f *Frame) val {
			s, err := subject(f)
			if err.kind == valErr {
				return err
			}
			return stringVal(re.FindString(s))
		}}, true
	}
	match := func(f *Frame) verdict {
		s, err := subject(f)
		if err.kind == valErr {
			return f.fail(err.ref())
		}
		return truthOf(re.MatchString(s))
	}
	units := call.counted.forPattern(lit.str)
	if c := call.args[0].plain(kindString); c != nil {
		general := match
		match = func(f *Frame) verdict {
			s, ok := c.text(f)
			if !ok {
				return general(f)
			}
			f.charge(units * int64(len(s)+1) / (4 * bytesPerUnit))
			return truthOf(re.MatchString(s))
		}
	}
	return conditionCode(match), true
}

// counting is size() where its value is a number.
func counting(a code) func(*Frame) (int64, bool) {
	arg := a.settled()
	if c := a.plain(kindInvalid); c != nil && len(c.path) > 0 {
		return c.size
	}
	return func(f *Frame) (int64, bool) {
		v := arg(f)
		if v.kind != valString {
			return 0, false
		}
		return int64(utf8.RuneCountInString(v.str)), true
	}
}

// textTest is a test of two strings.
func textTest(call *invocation, is func(s, t string) bool) test {
	a, b := call.args[0].settled(), call.args[1].settled()
	compare := func(f *Frame) verdict {
		v := a(f)
		w := b(f)
		if v.kind == valString && w.kind == valString {
			f.charge(1)
			call.counted.two(f, v, w)
			return truthOf(is(v.str, w.str))
		}
		return f.truth(call.two(f, v, w))
	}
	if lit := call.args[1].lit; lit != nil && lit.kind == valString && call.counted == nil {
		word := lit.str
		return onText(call.args[0], func(s string) bool { return is(s, word) }, compare)
	}
	return compare
}

func knownSize(_ *Frame, v val) (val, bool) {
	switch v.kind {
	case valString:
		return intVal(int64(utf8.RuneCountInString(v.str))), true
	case valNode:
		if kind := v.node.Kind(); kind == document.Object || kind == document.Array {
			return intVal(int64(v.node.Len())), true
		}
	case valList:
		return intVal(int64(len(v.list().vals))), true
	}
	return val{}, false
}

func knownString(_ *Frame, v val) (val, bool) { return v, v.kind == valString }

func knownInt(_ *Frame, v val) (val, bool) { return v, v.kind == valInt }

func knownNegate(_ *Frame, v val) (val, bool) {
	switch v.kind {
	case valInt:
		return intVal(-v.int()), v.int() != math.MinInt64
	case valDouble:
		return doubleVal(-v.double()), true
	}
	return val{}, false
}

func knownAdd(f *Frame, v, w val) (val, bool) {
	switch v.kind {
	case valInt:
		sum := v.int() + w.int()
		return intVal(sum), (sum > v.int()) == (w.int() > 0)
	case valDouble:
		return doubleVal(v.double() + w.double()), true
	case valString:
		f.hold(len(v.str) + len(w.str))
		return stringVal(v.str + w.str), true
	}
	return val{}, false
}

func knownSubtract(_ *Frame, v, w val) (val, bool) {
	switch v.kind {
	case valInt:
		difference := v.int() - w.int()
		return intVal(difference), (difference < v.int()) == (w.int() > 0)
	case valDouble:
		return doubleVal(v.double() - w.double()), true
	}
	return val{}, false
}

func knownMultiply(_ *Frame, v, w val) (val, bool) {
	switch v.kind {
	case valInt:
		const most = 1 << 31
		x, y := v.int(), w.int()
		return intVal(x * y), x < most && x > -most && y < most && y > -most
	case valDouble:
		return doubleVal(v.double() * w.double()), true
	}
	return val{}, false
}

func knownDivide(_ *Frame, v, w val) (val, bool) {
	switch v.kind {
	case valInt:
		if w.int() > 0 {
			return intVal(v.int() / w.int()), true
		}
	case valDouble:
		return doubleVal(v.double() / w.double()), true
	}
	return val{}, false
}

func knownModulo(_ *Frame, v, w val) (val, bool) {
	if v.kind == valInt && w.int() > 0 {
		return intVal(v.int() % w.int()), true
	}
	return val{}, false
}
