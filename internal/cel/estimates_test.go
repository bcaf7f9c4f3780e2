package cel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// makers write values of the types that no document has.
var makers = map[string][]string{
	"kubernetes.Quantity": {`quantity('1500m')`},
	"kubernetes.URL":      {`url('https://example.com:80/a?b=c')`},
	"net.IP":              {`ip('192.0.2.1')`, `ip('::1')`},
	"net.CIDR":            {`cidr('192.0.2.0/24')`},
	"kubernetes.Semver":   {`semver('1.2.3')`},
	"kubernetes.NamedFormat": {`format.dns1123Label()`, `format.uri()`, `format.byte()`, `format.uuid()`,
		`format.dns1123Subdomain()`},
	"optional_type": {`optional.of(object)`, `optional.none()`},
	"timestamp":     {`timestamp('2024-01-02T03:04:05Z')`},
	"duration":      {`duration('90s')`},
	"bool":          {`true`, `(object == 1)`},
	"double":        {`1.5`, `1e300`, `-0.0`},
	"uint":          {`1u`},
	"null_type":     {`null`},
	"type":          {`int`, `type(object)`},
}

// An argued call is a call of one overload with arguments whose sizes are random.
type argued struct {
	random  *rand.Rand
	members map[string]any // of the object that the arguments are in
	pattern bool           // the next argument is one
	// multiplies is set for functions that make as much as the product of their arguments' lengths.
	multiplies bool
}

// upTo is a number up to most, as often small as large, and often near it.
func (a *argued) upTo(most int) int {
	if a.random.IntN(3) == 0 {
		return most - a.random.IntN(1+most/4)
	}
	return int(math.Exp(a.random.Float64()*math.Log(float64(most)+1))) - 1
}

// texts are what random strings consist of. Digits, and what formats and patterns give a meaning to, are among them.
var texts = []string{"a", "ab", "7", "12345678", "a1", "é", "😀", "%s", "%.3f", "%d%%", "%.12e", "x:20261123", "a-b.",
	"1,", "[ab]", "(a|b)", " ", "\xc3\xa9"}

// text is a random string.
func (a *argued) text() string {
	unit := texts[a.random.IntN(len(texts))]
	if a.random.IntN(4) == 0 {
		unit += texts[a.random.IntN(len(texts))]
	}
	if len(unit) > 2 && a.random.IntN(2) == 0 { // mostly one letter many times: such patterns match fast
		unit = texts[a.random.IntN(6)]
	}
	most := 120_000
	if a.multiplies {
		most = 6000 // cel-go makes whatever it is
	}
	if a.pattern {
		most = 200 // matching takes time in proportion to it
		if a.random.IntN(2) == 0 {
			unit, most = "q7", 20_000 // unless nothing begins with it
		}
	}
	return strings.Repeat(unit, 1+a.upTo(most)/len(unit))
}

// list is a list of random items.
func (a *argued) list(of *types.Type, depth int) []any {
	items := make([]any, a.upTo(4600))
	kind := a.random.IntN(4)
	if depth == 0 && kind == 3 {
		kind = 0
	}
	if of.Kind() == types.StringKind {
		kind = 1
	}
	if of.Kind() == types.ListKind {
		kind = 3
	}
	if kind == 3 {
		items = items[:min(len(items), 60)]
	}
	for i := range items {
		switch kind {
		case 0:
			items[i] = i % 977
		case 1:
			items[i] = fmt.Sprint("item ", i)
		case 2:
			items[i] = float64(i) + 0.5
		case 3:
			items[i] = a.list(types.DynType, depth-1)
		}
	}
	return items
}

// argument writes an argument of a type.
func (a *argued) argument(t testing.TB, function string, of *types.Type) string {
	var v any
	switch of.Kind() {
	case types.StringKind:
		v = a.text()
	case types.BytesKind:
		return `bytes(` + a.argument(t, function, types.StringType) + `)`
	case types.IntKind:
		v = []int{0, 1, -1, 3, 1_000_001, math.MaxInt32 + 1, math.MaxInt, math.MinInt, a.upTo(1_000_000),
			a.upTo(100_000_000)}[a.random.IntN(10)]
	case types.ListKind:
		v = a.list(of.Parameters()[0], 2)
		if function == "format" {
			v = []any{1.5, 7, "12345678", a.text(), strings.Repeat("1", 64), []any{true, 2.5}}[:a.random.IntN(7)]
		}
	case types.MapKind:
		m := map[string]any{}
		for i := range a.upTo(3000) {
			m[fmt.Sprint("k", i)] = i
		}
		v = m
	case types.DynKind, types.TypeParamKind, types.AnyKind:
		switch a.random.IntN(4) {
		case 0:
			v = a.list(types.DynType, 2)
		case 1:
			v = a.upTo(1000)
		default:
			v = a.text()
		}
	default:
		choices := makers[of.TypeName()]
		if choices == nil {
			return ""
		}
		return choices[a.random.IntN(len(choices))]
	}
	if s, ok := v.(string); ok && len(s) < 2000 && !strings.Contains(s, "\xc3") && a.random.IntN(3) == 0 {
		return fmt.Sprintf("%q", s)
	}
	name := fmt.Sprintf("m%d", len(a.members))
	a.members[name] = v
	path := "object." + name
	switch v.(type) {
	case string:
		if a.random.IntN(3) == 0 {
			path = "(" + path + " + '')" // a computed one
		}
	case []any:
		if a.random.IntN(3) == 0 {
			path += ".map(x, x)"
		}
	}
	return path
}

// call writes a call of the overload.
func (a *argued) call(t testing.TB, function string, o *decls.OverloadDecl) (expression string, ok bool) {
	args := make([]string, len(o.ArgTypes()))
	a.multiplies = function == "join" || function == "replace"
	for i, of := range o.ArgTypes() {
		a.pattern = i > 0 && (function == "matches" || function == "find" || function == "findAll")
		if args[i] = a.argument(t, function, of); args[i] == "" {
			return "", false
		}
	}
	if o.IsMemberFunction() {
		return "(" + args[0] + ")." + function + "(" + strings.Join(args[1:], ", ") + ")", true
	}
	if operator := operatorOf(function); operator != "" && len(args) == 2 {
		return "(" + args[0] + ") " + operator + " (" + args[1] + ")", true
	}
	if strings.ContainsAny(function, "_@?!") {
		return "", false // syntax, not a function that is called by its name
	}
	return function + "(" + strings.Join(args, ", ") + ")", true
}

func operatorOf(function string) string {
	if function == "@in" {
		return "in"
	}
	if len(function) > 2 && function[0] == '_' && function[len(function)-1] == '_' {
		switch operator := function[1 : len(function)-1]; operator {
		case "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%":
			return operator
		}
	}
	return ""
}

// weight is how many bytes a value takes to read, ten for each item, and how many items it has in all.
func weight(v ref.Val) (bytes, items int64) {
	switch v := v.(type) {
	case types.String:
		return int64(len(v)), 0
	case types.Bytes:
		return int64(len(v)), 0
	case traits.Lister:
		n := int64(v.Size().(types.Int))
		bytes, items = 10*n, n
		for i := range n {
			b, more := weight(v.Get(types.Int(i)))
			bytes, items = bytes+b, items+more
		}
	case *types.Optional:
		if v.HasValue() {
			return weight(v.GetValue())
		}
	}
	return bytes, items
}

// TestEstimates proves of every function that there is, with arguments of random sizes: if our count of its cost, which
// is asked before the work is done, refuses a call, then what cel-go counts for it by Kubernetes' prices exceeds the
// limit. To these prices come a unit for ten bytes that are read, read again as an argument, or made: Kubernetes counts
// nothing for some of them. The other reason is that more than 16 MiB are made. And what is made before the count is
// bounded.
func TestEstimates(t *testing.T) {
	e := adhocEnv(t)
	random := rand.New(rand.NewPCG(5, 22))
	rounds := 4
	if testing.Short() {
		rounds = 1
	}
	refused, called := map[string]int{}, map[string]int{}
	for _, name := range functionNames() {
		for _, o := range base().Functions()[name].OverloadDecls() {
			n := rounds
			switch name {
			case "format", "replace", "split", "join", "matches", "find", "findAll", "validate", "distinct", "sort",
				"flatten", "lists.range",
				"sets.contains", "sets.equivalent", "sets.intersects":
				n *= testutil.Amount(4, 2)
			}
			for range n {
				a := &argued{random: random, members: map[string]any{}}
				expression, ok := a.call(t, name, o)
				if !ok {
					break
				}
				compiled, over := holdEstimate(t, e, expression, a)
				if compiled {
					called[name]++
				}
				if over {
					refused[name]++
				}
			}
		}
	}
	t.Logf("refused, by function: %v", refused)
	for _, name := range []string{"format", "replace", "split", "join", "matches", "find", "findAll", "validate",
		"sets.contains", "distinct", "sort", "flatten", "lists.range", "contains", "indexOf", "includes", "_==_", "@in",
		"quantity", "cidr", "semver", "url"} {
		if called[name] == 0 {
			t.Errorf("%s is not called", name)
		}
	}
	if !testing.Short() && len(refused) < 6 {
		t.Errorf("only calls of %v are refused: the sizes are too small to prove anything", refused)
	}
}

// FuzzEstimates does what TestEstimates does with one call of any function.
func FuzzEstimates(f *testing.F) {
	for i := range uint64(12) {
		f.Add(i, i*i)
	}
	e := adhocEnv(f)
	f.Fuzz(func(t *testing.T, one, other uint64) {
		a := &argued{random: rand.New(rand.NewPCG(one, other)), members: map[string]any{}}
		names := functionNames()
		name := names[a.random.IntN(len(names))]
		overloads := base().Functions()[name].OverloadDecls()
		if expression, ok := a.call(t, name, overloads[a.random.IntN(len(overloads))]); ok {
			holdEstimate(t, e, expression, a)
		}
	})
}

// functionNames are the names of all functions that there are, sorted.
func functionNames() []string { return slices.Sorted(maps.Keys(base().Functions())) }

// TestFormatOfDigits proves that digits in what a format prints, or in the format itself, are not taken for a
// precision.
func TestFormatOfDigits(t *testing.T) {
	for _, c := range []struct{ expression, object, want string }{
		{`'id-%s'.format([object.a]) == 'id-12345678'`, `{"a":"12345678"}`, ""},
		{`'%s'.format([object.a]) != ''`, `{"a":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}`,
			""},
		{`'x:99999999 %s %%.99999999f'.format([object.a]) == 'x:99999999 20261123 %.99999999f'`, `{"a":"20261123"}`, ""},
		{`'%.2f'.format([object.a]) == '1.50'`, `{"a":1.5}`, ""},
		{`object.f.format(object.l).size() > 0`, `{"f":"` + strings.Repeat("%.65000e", 300) + `","l":[` +
			strings.Repeat("1.5,", 299) + `1.5]}`, "OverLimit"},
		{`object.f.format(object.l).size() > 0`, `{"f":"` + strings.Repeat("%f", 60_000) + `","l":[` +
			strings.Repeat("1e300,", 59_999) + `1e300]}`, "OverLimit"},
	} {
		ok, err := verdictOn(t, c.expression, c.object)
		if c.want == "" && (!ok || err != nil) || c.want != "" && causeOf(err) != c.want {
			t.Errorf("%s on %.60s: %v, %v, want %q", c.expression, c.object, ok, err, c.want)
		}
	}
}

// mostAllocated is how many bytes a call may allocate besides what is in proportion to its arguments, and mostTimes in
// what proportion: a compiled pattern, the result while it grows.
const (
	mostAllocated = 6 * value.MadeLimit
	mostTimes     = 400
)

// allocatedBytes is how many bytes this process has ever allocated.
func allocatedBytes() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// holdEstimate evaluates a call in both ways, and by cel-go if it is refused.
func holdEstimate(t *testing.T, e *env, expression string, a *argued) (compiled, over bool) {
	ast, issues := e.Compile(expression)
	if issues != nil {
		return false, false // such as a literal that no regular expression is
	}
	natively, lazily, err := bothWays(t, e, expression, ast.NativeRep())
	if err != nil {
		return false, false
	}
	text, err := json.Marshal(a.members)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 3<<20 {
		return false, false // no such request is read
	}
	node := celtest.Parse(t, string(text))
	for way, p := range map[string]*Program{"natively": natively, "lazily": lazily} {
		if p == nil {
			continue
		}
		f := NewFrame(context.Background())
		f.Vars().Set(value.Object, node, nil)
		before := allocatedBytes()
		_, err := p.evalKept(f, f.Vars())
		if allocated := allocatedBytes() - before; allocated > uint64(mostAllocated+
			mostTimes*(len(text)+len(expression))) {
			t.Errorf("%s: %.200s\n%d bytes of arguments allocate %d bytes", way, expression, len(text), allocated)
		}
		if used := PolicyBudget - f.Budget(); used < 0 || used > ExpressionLimit {
			t.Errorf("%s: %.200s\ntakes %d units of the budget", way, expression, used)
		}
		f.Release()
		var failure *Error
		if errors.As(err, &failure) && failure.Cause == value.OverLimit {
			over = true
			holdRefusal(t, e, ast, way, expression, string(text))
		}
	}
	return true, over
}

// holdRefusal reports a refusal that cel-go's own count does not bear out.
func holdRefusal(t *testing.T, e *env, ast *celgo.Ast, way, expression, object string) {
	program, err := e.Program(ast, celgo.CostLimit(math.MaxUint64))
	if err != nil {
		t.Fatal(err)
	}
	arguments := types.DefaultTypeAdapter.NativeToValue(celtest.Decode(t, object))
	out, details, err := program.Eval(map[string]any{"object": arguments})
	if details == nil || details.ActualCost() == nil {
		t.Errorf("%s: %.200s is refused; cel-go says %v", way, expression, err)
		return
	}
	read := int64(len(object) + len(expression))
	for _, c := range object {
		if c == ',' {
			read += 10
		}
	}
	made, items := weight(out)
	cost := int64(*details.ActualCost()) + (2*read+made)/value.BytesPerUnit
	if cost > ExpressionLimit || made+items*plan.RefBytes > value.MadeLimit {
		return
	}
	t.Errorf("%s: %.300s with %d bytes is refused at %d units; cel-go counts %d for it, and %d bytes in %d items are made: %v",
		way, expression, len(object), ExpressionLimit, *details.ActualCost(), made, items, err)
}
