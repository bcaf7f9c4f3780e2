package cel

import (
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/pattern"
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
	if k, ok := c.pattern(call); ok {
		return k, true
	}
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

// pattern compiles matches, find and findAll with a literal pattern.
func (c *nativeCompiler) pattern(call *invocation) (code, bool) {
	if len(call.args) < 2 {
		return code{}, false
	}
	lit := call.args[1].lit
	if lit == nil || lit.kind != valString {
		return code{}, false
	}
	compiled, err := pattern.New(lit.str())
	if err != nil {
		return code{}, false // cel-go has refused the expression
	}
	re := compiled.Regexp()
	eval, units := call.args[0].settled(), call.counted.forPattern(lit.str())
	subject := func(f *Frame) (string, val) {
		f.charge(1)
		v := eval(f)
		switch v.kind {
		case valString:
			f.charge(patternUnits(units, v.str()))
			return v.str(), val{}
		case valErr:
			return "", v
		}
		if o, ok := v.optional(); ok {
			if s, ok := o.Value().(string); ok { // as in cel-go
				return s, val{}
			}
		}
		return "", errVal(types.NoSuchOverloadErr())
	}
	switch call.function {
	case "matches":
		return conditionCode(matching(call.args[0], compiled, units, subject)), true
	case "find":
		return code{eval: func(f *Frame) val {
			s, err := subject(f)
			if err.kind == valErr {
				return err
			}
			return stringVal(re.FindString(s))
		}}, true
	case "findAll":
		return findingAll(call, re, subject), true
	}
	return code{}, false
}

// patternUnits is what matching a pattern of so many units with a string costs; 0 units: no more than reading the string.
func patternUnits(units int64, s string) int64 { return units * int64(len(s)+1) / (4 * bytesPerUnit) }

// matching is matches with a literal pattern.
func matching(a code, re *pattern.Pattern, units int64, subject func(*Frame) (string, val)) test {
	match := func(f *Frame) verdict {
		s, err := subject(f)
		if err.kind == valErr {
			return f.fail(err.ref())
		}
		return truthOf(re.Match(s))
	}
	c := a.plain(kindString)
	if c == nil {
		return match
	}
	return func(f *Frame) verdict {
		s, ok := c.text(f)
		if !ok {
			return match(f)
		}
		f.charge(patternUnits(units, s))
		return truthOf(re.Match(s))
	}
}

// findingAll is findAll with a literal pattern.
func findingAll(call *invocation, re *regexp.Regexp, subject func(*Frame) (string, val)) code {
	most := func(*Frame) val { return intVal(-1) }
	if len(call.args) == 3 {
		most = call.args[2].settled()
	}
	return code{eval: func(f *Frame) val {
		s, err := subject(f)
		if err.kind == valErr && err.ref() != types.NoSuchOverloadErr() {
			return err // of the argument itself, so that the others are not looked at
		}
		n := most(f)
		switch {
		case n.kind == valErr:
			return n
		case err.kind == valErr:
			return err
		case n.kind != valInt:
			return errVal(types.NoSuchOverloadErr())
		}
		found := re.FindAllString(s, int(n.int()))
		f.hold(len(found) * valBytes)
		mark := len(f.stack)
		for _, s := range found {
			f.push(stringVal(s))
		}
		return f.newBuilt(mark)
	}}
}

// counting is size() where its value is a number.
func counting(a code) func(*Frame) (int64, bool) {
	arg := a.settled()
	if c := a.plain(kindInvalid); c != nil {
		return c.size
	}
	return func(f *Frame) (int64, bool) {
		v := arg(f)
		if v.kind != valString {
			return 0, false
		}
		return int64(utf8.RuneCountInString(v.str())), true
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
			return truthOf(is(v.str(), w.str()))
		}
		return f.truth(call.two(f, v, w))
	}
	if lit := call.args[1].lit; lit != nil && lit.kind == valString && call.counted == nil {
		word := lit.str()
		return onText(call.args[0], func(s string) bool { return is(s, word) }, compare)
	}
	return compare
}

func knownSize(_ *Frame, v val) (val, bool) {
	switch v.kind {
	case valString:
		return intVal(int64(utf8.RuneCountInString(v.str()))), true
	case valNode:
		if kind := v.node().Kind(); kind == document.Object || kind == document.Array {
			return intVal(int64(v.node().Len())), true
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
		f.hold(len(v.str()) + len(w.str()))
		return stringVal(v.str() + w.str()), true
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
