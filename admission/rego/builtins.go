package rego

import (
	"math"
	"math/big"
	"net/netip"
	"strconv"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// refusals are the built-in functions that modules must not call, and why.
var refusals = map[string]string{
	ast.HTTPSend.Name:                                        noNetwork,
	ast.NetLookupIPAddr.Name:                                 noNetwork,
	ast.OPARuntime.Name:                                      "it shows the gateway's environment and configuration to policies",
	ast.ProvidersAWSSignReqObj.Name:                          "it signs requests, which policies cannot send",
	ast.CryptoX509ParseAndVerifyCertificates.Name:            changingTrust,
	ast.CryptoX509ParseAndVerifyCertificatesWithOptions.Name: changingTrust,
}

const (
	noNetwork     = "policies have no network, but for http.send to the hosts in `allowedHosts`"
	changingTrust = "whether a certificate is trusted changes with the time"
)

// refused are the functions that the options leave refused.
func (o *Options) refused() map[string]struct{} {
	all := make(map[string]struct{}, len(refusals))
	for name := range refusals {
		if name != ast.HTTPSend.Name || len(o.Hosts) == 0 {
			all[name] = struct{}{}
		}
	}
	return all
}

// guardBuiltins puts a guard before each built-in function, once. OPA looks for its own functions
// in one table of the process, and only then for functions that a query is given; no other package
// uses the table.
var guardBuiltins = sync.OnceFunc(func() {
	for _, decl := range ast.Builtins {
		f := topdown.GetBuiltin(decl.Name)
		if f == nil {
			continue
		}
		decl.CanSkipBctx = decl.CanSkipBctx && !makesMuch(decl)
		if !decl.CanSkipBctx {
			topdown.RegisterBuiltinFunc(decl.Name, guarded(decl.Name, f))
		}
	}
})

// makesMuch reports whether a function can make something that is larger than a few words.
func makesMuch(decl *ast.Builtin) bool {
	switch decl.Name {
	case ast.Equal.Name, ast.NotEqual.Name, ast.LessThan.Name, ast.LessThanEq.Name, ast.GreaterThan.Name, ast.GreaterThanEq.Name,
		ast.Count.Name, ast.StartsWith.Name, ast.EndsWith.Name, ast.Contains.Name, ast.Member.Name, ast.MemberWithKey.Name,
		ast.IsString.Name, ast.IsNumber.Name, ast.IsBoolean.Name, ast.IsArray.Name, ast.IsSet.Name, ast.IsObject.Name, ast.IsNull.Name,
		ast.TypeNameBuiltin.Name, ast.ObjectGet.Name, ast.Any.Name, ast.All.Name, ast.Max.Name, ast.Min.Name:
		return false
	}
	return true
}

// guarded lets a function run if the budget allows for what it may make, and charges what it made.
func guarded(name string, f topdown.BuiltinFunc) topdown.BuiltinFunc {
	estimate := estimates[name]
	return func(bctx topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
		b, ok := bctx.Cancel.(*budget)
		if !ok {
			return f(bctx, operands, iter)
		}
		if estimate != nil {
			if cost := estimate(b.left, operands); cost > b.left {
				return halt(b, bctx.Location)
			}
		}
		if checksNumbers[name] {
			for _, o := range operands {
				if s, ok := o.Value.(ast.String); ok && hasHugeExponent(string(s)) {
					return &topdown.Error{Code: topdown.BuiltinErr, Message: name + ": " + errNumber.Error(), Location: bctx.Location}
				}
			}
		}
		if name == ast.HTTPSend.Name {
			if option, reads := readsLocally(operands[0].Value); reads {
				return &topdown.Error{Code: topdown.BuiltinErr, Message: name + ": must not have the member '" + option + "'", Location: bctx.Location}
			}
		}
		return f(bctx, operands, func(t *ast.Term) error {
			if t == nil || b.spend(sizeOf(t.Value, b.left, 2)) {
				return iter(t)
			}
			return halt(b, bctx.Location)
		})
	}
}

// halt ends the evaluation, because the budget is used up.
func halt(b *budget, at *ast.Location) error {
	b.spend(math.MaxInt64)
	return topdown.Halt{Err: &topdown.Error{Code: topdown.CancelErr, Message: errBudget.Error(), Location: at}}
}

// checksNumbers are functions that read numbers in texts.
var checksNumbers = map[string]bool{
	ast.ToNumber.Name: true, ast.JSONUnmarshal.Name: true, ast.JSONIsValid.Name: true,
	ast.YAMLUnmarshal.Name: true, ast.YAMLIsValid.Name: true, ast.CastString.Name: true, ast.ParseDurationNanos.Name: true,
	ast.JWTDecode.Name: true, ast.JWTDecodeVerify.Name: true,
}

// estimates say about how many bytes a call may make at once; at least as many as it does, if that
// is more than left.
var estimates = map[string]func(left int64, operands []*ast.Term) int64{
	ast.Concat.Name: func(_ int64, o []*ast.Term) int64 {
		sum := int64(0)
		forEach(o[1].Value, func(t *ast.Term) { sum += length(t) + length(o[0]) })
		return sum
	},
	ast.Replace.Name: func(_ int64, o []*ast.Term) int64 { return replaced(o[0], o[1], o[2]) },
	ast.ReplaceN.Name: func(_ int64, o []*ast.Term) int64 {
		patterns, ok := o[0].Value.(ast.Object)
		if !ok {
			return 0
		}
		sum := length(o[1])
		patterns.Foreach(func(k, v *ast.Term) { sum = add(sum, replaced(o[1], k, v)) })
		return sum
	},
	ast.RegexReplace.Name: func(_ int64, o []*ast.Term) int64 {
		s, value := length(o[0]), length(o[2])
		groups := int64(strings.Count(textOf(o[2]), "$"))
		return add(multiply(s+1, value), multiply(s, groups))
	},
	ast.Sprintf.Name:            printed,
	ast.RegexTemplateMatch.Name: func(_ int64, o []*ast.Term) int64 { return length(o[0]) },
	ast.FormatInt.Name:          func(_ int64, o []*ast.Term) int64 { return length(o[0]) },
	ast.JSONMarshal.Name:        func(left int64, o []*ast.Term) int64 { return sizeOf(o[0].Value, left, math.MaxInt) },
	ast.JSONMarshalWithOptions.Name: func(left int64, o []*ast.Term) int64 {
		indent := int64(1)
		if options, ok := o[1].Value.(ast.Object); ok {
			for _, name := range []string{"prefix", "indent"} {
				if v := options.Get(ast.StringTerm(name)); v != nil {
					indent += length(v)
				}
			}
		}
		return multiply(sizeOf(o[0].Value, left, math.MaxInt), indent*int64(depthOf(o[0].Value, 100)))
	},
	ast.YAMLMarshal.Name:           func(left int64, o []*ast.Term) int64 { return multiply(2, sizeOf(o[0].Value, left, math.MaxInt)) },
	ast.URLQueryEncode.Name:        func(_ int64, o []*ast.Term) int64 { return 3 * length(o[0]) },
	ast.NumbersRange.Name:          func(_ int64, o []*ast.Term) int64 { return ranged(o[0], o[1], nil) },
	ast.NumbersRangeStep.Name:      func(_ int64, o []*ast.Term) int64 { return ranged(o[0], o[1], o[2]) },
	ast.BitsShiftLeft.Name:         func(_ int64, o []*ast.Term) int64 { return add(length(o[0]), shifted(o[1])) },
	ast.NetCIDRExpand.Name:         func(_ int64, o []*ast.Term) int64 { return hosts(o[0]) },
	ast.ReachablePathsBuiltin.Name: func(left int64, o []*ast.Term) int64 { return paths(left, o[0], o[1]) },
	ast.GraphQLParse.Name:          func(_ int64, o []*ast.Term) int64 { return multiply(64, add(length(o[0]), length(o[1]))) },
	ast.Plus.Name:                  calculated,
	ast.Minus.Name:                 calculated,
	ast.Multiply.Name:              calculated,
	ast.Divide.Name:                calculated,
	ast.Rem.Name:                   calculated,
	ast.ObjectUnionN.Name:          func(left int64, o []*ast.Term) int64 { return sizeOf(o[0].Value, left, 3) },
}

// calculated stands for the time that numbers with many digits take, which grows with the square of
// their number.
func calculated(_ int64, o []*ast.Term) int64 {
	digits := int64(0)
	for _, t := range o {
		digits += length(t)
	}
	return multiply(digits, digits) / 64
}

func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func multiply(a, b int64) int64 {
	if a != 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

func textOf(t *ast.Term) string {
	s, _ := t.Value.(ast.String)
	return string(s)
}

// length is how long a string or a number is.
func length(t *ast.Term) int64 {
	switch v := t.Value.(type) {
	case ast.String:
		return int64(len(v))
	case ast.Number:
		return int64(len(v))
	}
	return 0
}

func forEach(v ast.Value, f func(*ast.Term)) {
	switch v := v.(type) {
	case *ast.Array:
		v.Foreach(f)
	case ast.Set:
		v.Foreach(f)
	}
}

// replaced is how long a string may be in which one part is replaced.
func replaced(s, old, with *ast.Term) int64 {
	return add(length(s), multiply(int64(strings.Count(textOf(s), textOf(old))), length(with)))
}

// ranged returns how many bytes a list of the numbers of a range takes.
func ranged(from, to, step *ast.Term) int64 {
	numbers := make([]*big.Int, 0, 3)
	for _, t := range []*ast.Term{from, to, step} {
		if t == nil {
			continue
		}
		n, ok := t.Value.(ast.Number)
		if !ok || hasHugeExponent(string(n)) {
			return 0
		}
		f, _, err := big.ParseFloat(string(n), 10, 64, big.ToZero)
		if err != nil {
			return 0
		}
		i, _ := f.Int(nil)
		numbers = append(numbers, i)
	}
	size := new(big.Int).Sub(numbers[1], numbers[0])
	size.Abs(size)
	if len(numbers) == 3 && numbers[2].Sign() > 0 {
		size.Quo(size, numbers[2])
	}
	if !size.IsInt64() {
		return math.MaxInt64
	}
	return multiply(stepCost, size.Int64())
}

// shifted is how long a number becomes that is shifted by t bits.
func shifted(t *ast.Term) int64 {
	n, ok := t.Value.(ast.Number)
	if !ok {
		return 0
	}
	bits, err := strconv.ParseInt(string(n), 10, 64)
	if err != nil {
		return math.MaxInt64
	}
	return max(bits, 0) // the decimal digits take more, and so does finding them
}

// hosts returns how many bytes a list of the addresses of a network takes.
func hosts(t *ast.Term) int64 {
	prefix, err := netip.ParsePrefix(textOf(t))
	if err != nil {
		return 0
	}
	bits := prefix.Addr().BitLen() - prefix.Bits()
	if bits > 40 {
		return math.MaxInt64
	}
	return multiply(stepCost, 1<<bits)
}

// paths returns how many bytes a list of the paths in a graph takes.
func paths(left int64, graph, initial *ast.Term) int64 {
	g, ok := graph.Value.(ast.Object)
	if !ok {
		return 0
	}
	cost, within := int64(0), map[string]bool{}
	var visit func(t *ast.Term, depth int64)
	visit = func(t *ast.Term, depth int64) {
		key := t.String()
		if cost += stepCost * depth; cost > left || within[key] {
			return
		}
		edges := g.Get(t)
		if edges == nil {
			return
		}
		within[key] = true
		forEach(edges.Value, func(next *ast.Term) {
			if cost <= left {
				visit(next, depth+1)
			}
		})
		delete(within, key)
	}
	forEach(initial.Value, func(t *ast.Term) { visit(t, 1) })
	return cost
}

// printed is how long a text may become that sprintf makes: each verb may print any value in full,
// and the widths that it names.
func printed(left int64, o []*ast.Term) int64 {
	format := textOf(o[0])
	verbs := int64(strings.Count(format, "%"))
	largest, stars := int64(0), int64(0)
	forEach(o[1].Value, func(t *ast.Term) {
		largest = max(largest, sizeOf(t.Value, left, math.MaxInt))
		if n, ok := t.Value.(ast.Number); ok {
			if width, err := strconv.ParseInt(string(n), 10, 64); err == nil {
				stars = max(stars, min(max(width, -width), maxWidth))
			}
		}
	})
	if !strings.Contains(format, "*") {
		stars = 0
	}
	cost := add(int64(len(format)), multiply(verbs, add(largest, stars)))
	for i := 0; i < len(format); {
		if format[i] < '0' || format[i] > '9' {
			i++
			continue
		}
		width := int64(0)
		for ; i < len(format) && format[i] >= '0' && format[i] <= '9'; i++ {
			width = min(width*10+int64(format[i]-'0'), maxWidth)
		}
		cost = add(cost, width)
	}
	return cost
}

// maxWidth is the largest width that package fmt prints.
const maxWidth = 1_000_000

// sizeOf is about how many bytes a value takes, looking into containers to a depth. It stops when
// there are more than limit.
func sizeOf(v ast.Value, limit int64, depth int) int64 {
	switch v := v.(type) {
	case ast.String:
		return 16 + int64(len(v))
	case ast.Number:
		return 16 + int64(len(v))
	case *ast.Array:
		size := 32 * int64(v.Len())
		if depth > 1 {
			for i := 0; i < v.Len() && size <= limit; i++ {
				size = add(size, sizeOf(v.Elem(i).Value, limit-size, depth-1))
			}
		}
		return size
	case ast.Set:
		size := 64 * int64(v.Len())
		if depth > 1 {
			v.Until(func(t *ast.Term) bool {
				size = add(size, sizeOf(t.Value, limit-size, depth-1))
				return size > limit
			})
		}
		return size
	case ast.Object:
		size := 96 * int64(v.Len())
		if depth > 1 {
			v.Until(func(k, t *ast.Term) bool {
				size = add(size, add(sizeOf(k.Value, limit-size, depth-1), sizeOf(t.Value, limit-size, depth-1)))
				return size > limit
			})
		}
		return size
	}
	return 16
}

// depthOf is how deep a value is nested, at most most.
func depthOf(v ast.Value, most int) int {
	if most == 0 {
		return 1
	}
	depth := 0
	look := func(t *ast.Term) { depth = max(depth, depthOf(t.Value, most-1)) }
	if o, ok := v.(ast.Object); ok {
		o.Foreach(func(_, t *ast.Term) { look(t) })
	} else {
		forEach(v, look)
	}
	return depth + 1
}
