package builtin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/builtins"
	"github.com/open-policy-agent/opa/v1/types"
)

// A purse is a budget that counts what is spent.
type purse struct {
	left, spent int64
	over        bool
}

const budgetBytes = 64 << 20

func (p *purse) Cancel()         { p.over = true }
func (p *purse) Cancelled() bool { return !p.Spend(stepBytes) }
func (p *purse) Left() int64     { return p.left }
func (p *purse) Return(n int64)  { p.left += n }
func (p *purse) Spend(n int64) bool {
	if p.over || n < 0 || n > p.left {
		p.over = true
		return false
	}
	p.left -= n
	p.spent += n
	return true
}

// call calls a function as an evaluation does.
func call(name string, b Budget, operands ...*ast.Term) (values []*ast.Term, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: a panic: %v", name, r)
		}
	}()
	bctx := topdown.BuiltinContext{
		Context: context.Background(), Metrics: metrics.New(), Cache: builtins.Cache{},
		Time: ast.NumberTerm("1700000000000000000"),
		Seed: rand.New(rand.NewSource(1)), Capabilities: ast.CapabilitiesForThisVersion(),
	}
	if b != nil {
		bctx.Cancel = b
	}
	bctx.Capabilities.AllowNet = []string{}
	err = topdown.GetBuiltin(name)(bctx, operands, func(t *ast.Term) error {
		values = append(values, t)
		return nil
	})
	return values, err
}

func nested(open, inner, end string, depth int) string {
	return strings.Repeat(open, depth) + inner + strings.Repeat(end, depth)
}

// textBombs are texts of so many bytes, and of so many levels, in what functions read.
func textBombs(large, levels int) map[string]string {
	part := func(n int) int { return max(1, n*(large/1024)/3072) }
	fill := func(s string) string { return strings.Repeat(s, large/len(s)) }
	token := func(payload string) string {
		encode := base64.RawURLEncoding.EncodeToString
		return encode([]byte(`{"alg":"HS256"}`)) + "." + encode([]byte(payload)) + ".YQ"
	}
	aliases := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'l'; c++ {
		aliases += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 10))
	}
	chain := "a: &n0 [" + nested("[", "1", "]", 9000) + "]\n"
	for i := 1; i < 100; i++ {
		chain += fmt.Sprintf("b%d: &n%d %s\n", i, i, nested("[", fmt.Sprintf("*n%d", i-1), "]", 9000))
	}
	all := map[string]string{
		"letters":            fill("a"),
		"a long text":        `"` + fill("a") + `"`,
		"letters beyond":     fill("é"),
		"digits":             fill("9"),
		"a fraction":         "0." + fill("1"),
		"an exponent":        "1e999999",
		"amount":             fill("9") + "Mi",
		"dots":               fill("."),
		"slashes":            fill("/a"),
		"commas":             fill("a,"),
		"spaces":             fill("a "),
		"lines":              fill("- a\n"),
		"keys":               fill("a: b\n"),
		"parameters":         fill("a=&"),
		"durations":          fill("1d"),
		"verbs":              fill("%v"),
		"widths":             fill("%999999d"),
		"a flow list":        "[" + fill("1,") + "1]",
		"a flow list of {}":  "[" + fill("{},") + "1]",
		"open brackets":      strings.Repeat("[", levels),
		"brackets":           nested("[", "1", "]", levels),
		"open braces":        strings.Repeat("{", levels),
		"braces":             nested(`{"a":`, "1", "}", levels/2),
		"parentheses":        nested("(", "a", ")", levels),
		"not nested":         nested("(?:", "a", ")", 900),
		"selections":         nested("{a", "", "}", levels),
		"open selections":    strings.Repeat("{a", levels),
		"arguments":          "{a(x:" + strings.Repeat("[", levels),
		"balanced arguments": "{a(x:" + nested("[", "1", "]", levels/2) + ")}",
		"fields":             "{" + fill("a ") + "}",
		"types":              fill("type A{a:B}\n"),
		"list types":         "type A{a:" + nested("[", "A", "]", levels) + "}",
		"conditions":         nested("{{if .a}}", "", "{{end}}", part(180_000)),
		"open conditions":    strings.Repeat("{{if .a}}", part(330_000)),
		"loops":              nested("{{range .l}}", "", "{{end}}", 30),
		"loops in loops":     nested("{{range $.l}}", "", "{{end}}", 10),
		"a template":         `{{define "a"}}{{template "a"}}{{end}}{{template "a"}}`,
		"counting":           `{{range 9000000000}}{{end}}`,
		"printing":           strings.Repeat(`{{$x := printf "%999999d" 1}}`, part(8000)),
		"aliases":            aliases,
		"many aliases":       "a: &a [1]\nb:\n" + strings.Repeat("- *a\n", part(500_000)),
		"deep aliases":       chain,
		"itself":             "a: &a [*a]\n",
		"merges":             "a: &a {b: 1}\nc:\n  <<: [" + strings.Repeat("*a,", part(800_000)) + "]\n",
		"repetitions":        "(?:(?:a{30}){30}b|c){1}",
		"many repetitions":   strings.Repeat("a{1000}", part(3000)),
		"classes":            fill(`\pL`),
		"folding":            "(?i)" + fill(`[a-z]`),
		"alternatives":       fill("a|"),
		"groups":             strings.Repeat("(a)", part(100_000)),
		"stars":              strings.Repeat("a*", 30) + "b",
		"wildcards":          strings.Repeat("*a", 30) + "*",
		"choices":            strings.Repeat("{a,aa}", 30) + "b",
		"a look ahead":       "x|x.*y|(a|a.*b)",
		"sets":               strings.Repeat("[\x00-\U0010ffff]", part(100)),
		"pluses":             strings.Repeat("[ab]+", part(2000)),
		"PEM":                fill("-----BEGIN CERTIFICATE-----\n"),
		"JWK":                `{"kty":"RSA","e":"AQAB","n":"` + strings.Repeat("a", large) + `"}`,
		"a token":            token(`{"a":` + nested("[", "1", "]", levels) + `}`),
		"a token of values":  token("[" + strings.Repeat("1,", large/3) + "1]"),
		"rules":              "package p\n" + strings.Repeat("p if q\n", part(400_000)),
		"expressions":        "package p\np if " + nested("(", "1", ")", levels),
		"sums":               "package p\np if " + fill("1+") + "1",
		"network":            "0.0.0.0/0",
		"network of IPv6":    "::/0",
		"schema of itself":   `{"$ref":"#"}`,
		"schema of a file":   `{"$ref":"file:///dev/zero"}`,
		"schema by its name": `{"$id":"file:///dev/zero","properties":{"a":{"$id":"b","allOf":[{"$ref":"#/c"}]}}}`,
		"schema of choices":  choices(60),
		"schema of levels":   nested(`{"items":`, "true", "}", levels),
		"unique items":       `{"uniqueItems":true,"items":{"enum":["` + strings.Repeat("a", 1000) + `"]}}`,
		"a query":            "query{" + strings.Repeat("...f ", 20) + "}" + fragments(40),
	}
	return all
}

// choices is a schema in which each part is two of the next one.
func choices(depth int) string {
	var parts strings.Builder
	for i := range depth {
		fmt.Fprintf(&parts, `"d%d":{"anyOf":[{"$ref":"#/definitions/d%d"},{"$ref":"#/definitions/d%d"}]},`, i, i+1, i+1)
	}
	return `{"definitions":{` + parts.String() + fmt.Sprintf(`"d%d":{"type":"null"}},"$ref":"#/definitions/d0"}`, depth)
}

// fragments are fragments that each have the next one twice.
func fragments(count int) string {
	var all strings.Builder
	all.WriteString("fragment f on Q{...f0}")
	for i := range count {
		fmt.Fprintf(&all, "fragment f%d on Q{a{...f%d} b{...f%d}}", i, i+1, i+1)
	}
	fmt.Fprintf(&all, "fragment f%d on Q{c}", count)
	return all.String()
}

// valueBombs are values by their type.
func valueBombs() map[string]map[string]*ast.Term {
	numbers := make([]*ast.Term, 600_000/fraction)
	floats := make([]*ast.Term, 300_000/fraction)
	texts := make([]*ast.Term, 300_000/fraction)
	pairs := make([][2]*ast.Term, 100_000/fraction)
	for i := range numbers {
		numbers[i] = ast.IntNumberTerm(i)
	}
	for i := range floats {
		floats[i] = ast.NumberTerm(json.Number(strconv.Itoa(i) + ".5"))
		texts[i] = ast.StringTerm("10.0." + strconv.Itoa(i/256%256) + "." + strconv.Itoa(i%256) + "/32")
	}
	for i := range pairs {
		pairs[i] = [2]*ast.Term{ast.StringTerm(strconv.Itoa(i)),
			ast.ArrayTerm(ast.StringTerm(strconv.Itoa(i+1)), ast.StringTerm("0"))}
	}
	deep, deepObject := ast.ArrayTerm(), ast.ObjectTerm()
	for range maxParsed {
		deep = ast.ArrayTerm(deep)
		deepObject = ast.ObjectTerm([2]*ast.Term{ast.StringTerm("a"), deepObject})
	}
	same := make([]*ast.Term, 300_000/fraction)
	operations := make([]*ast.Term, 20_000/fraction)
	for i := range same {
		same[i] = ast.IntNumberTerm(1)
	}
	for i := range operations {
		operations[i] = ast.MustParseTerm(`{"op":"add","path":"/0","value":1}`)
	}
	schema := ast.MustParseTerm(`{"a":{"$ref":"#"},"$ref":"file:///dev/zero"}`)
	complete := make([][2]*ast.Term, 800)
	for i := range complete {
		complete[i] = [2]*ast.Term{numbers[i], ast.ArrayTerm(numbers[:800]...)}
	}
	return map[string]map[string]*ast.Term{
		"array": {
			"numbers": ast.ArrayTerm(numbers...), "floats": ast.ArrayTerm(floats...), "texts": ast.ArrayTerm(texts...),
			"one number": ast.ArrayTerm(same...),
			"levels":     deep, "operations": ast.ArrayTerm(operations...),
			"a long path": ast.ArrayTerm(ast.StringTerm(strings.Repeat("/a", 1_500_000/fraction))),
			"a long number": ast.ArrayTerm(ast.NumberTerm(json.Number(strings.Repeat("9", MaxDigits))),
				ast.NumberTerm("1e9999")),
		},
		"set": {"numbers": ast.SetTerm(numbers[:300_000/fraction]...), "floats": ast.SetTerm(floats...),
			"texts": ast.SetTerm(texts...)},
		"object": {
			"members": ast.ObjectTerm(pairs...), "levels": deepObject, "a schema": schema,
			"a complete graph": ast.ObjectTerm(complete...),
			"a list":           ast.ObjectTerm([2]*ast.Term{ast.StringTerm("l"), ast.ArrayTerm(numbers[:100_000/fraction]...)}),
		},
		"number": {
			"digits":      ast.NumberTerm(json.Number(strings.Repeat("9", MaxDigits))),
			"an exponent": ast.NumberTerm("1e9999"), "a small one": ast.NumberTerm("1e-9999"),
			"large": ast.NumberTerm("9007199254740993"), "below zero": ast.NumberTerm("-1"),
		},
		"null": {"null": ast.NullTerm()}, "boolean": {"true": ast.BooleanTerm(true)},
	}
}

// kinds are the types that an operand may have.
func kinds(t types.Type) (all []string) {
	switch t := t.(type) {
	case types.Any:
		if len(t) == 0 {
			return []string{"string", "array", "set", "object", "number"}
		}
		for _, of := range t {
			all = append(all, kinds(of)...)
		}
		return all
	case *types.NamedType:
		return kinds(t.Type)
	case types.String:
		return []string{"string"}
	case types.Number:
		return []string{"number"}
	case *types.Array:
		return []string{"array"}
	case *types.Set:
		return []string{"set"}
	case *types.Object:
		return []string{"object"}
	case types.Boolean:
		return []string{"boolean"}
	}
	return []string{"null"}
}

// plains are operands that are small, so that a function gets to the one that is not.
var plains = map[string]*ast.Term{
	"string": ast.StringTerm("a"), "array": ast.MustParseTerm(`["a", 1]`), "set": ast.MustParseTerm(`{"a", {1}}`),
	"object": ast.MustParseTerm(`{"a": "b", "l": [1, 2]}`), "number": ast.NumberTerm("1"), "null": ast.NullTerm(),
	"boolean": ast.BooleanTerm(true),
}

// TestBombs: each function is called with operands of 3 MB and of a million levels, or of an eighth of that, of each
// type that it takes. What it allocates is counted, no stack is exhausted, and each call ends.
func TestBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("calls 200 functions with megabytes")
	}
	if os.Getenv("BOMBED") != "" {
		bombed(t)
		return
	}
	const runs = 4
	for run := range runs {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestBombs$", "-test.v")
		cmd.Env = append(os.Environ(), fmt.Sprintf("BOMBED=%d/%d", run, runs))
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			t.Errorf("%v: %s", err, lastLines(out))
		}
	}
}

// lastLines says in which call a process ended, and what it found before.
func lastLines(out []byte) string {
	var last string
	var found []string
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "calls "); ok {
			last = name
		} else if len(found) < 40 && !strings.HasPrefix(lines.Text(), "=== ") {
			found = append(found, lines.Text())
		}
	}
	return "the last call: " + last + "\n" + strings.Join(found, "\n")
}

// fraction is what operands are a part of: an eighth of a body's size is enough to measure what a
// function allocates for each byte. E2E_ALL asks for whole ones.
var fraction = func() int {
	if os.Getenv("E2E_ALL") != "" {
		return 1
	}
	return 8
}()

// sizes are of texts: what nothing allows for, and what there may be room for.
var sizes = []struct{ bytes, levels int }{{3 << 20 / fraction, 1_000_000 / fraction}, {100 << 10, 30_000},
	{8 << 10, 2_500}}

// bombed makes the calls of one run, to a part of the functions.
func bombed(t *testing.T) {
	debug.SetMaxStack(128 << 20) // a stack without end is found early
	debug.SetGCPercent(50)
	var run, runs int
	if _, err := fmt.Sscanf(os.Getenv("BOMBED"), "%d/%d", &run, &runs); err != nil {
		t.Fatal(err)
	}
	Guard()
	values := valueBombs()
	values["string"] = map[string]*ast.Term{}
	for _, size := range sizes {
		for name, text := range textBombs(size.bytes, size.levels) {
			values["string"][fmt.Sprintf("%s of %d", name, size.bytes)] = ast.StringTerm(text)
		}
	}
	for i, decl := range ast.Builtins {
		if i%runs != run || topdown.GetBuiltin(decl.Name) == nil || contract(t, decl.Name).Keeper == Refused {
			continue
		}
		args := decl.Decl.FuncArgs().Args
		for at := range args {
			for _, kind := range kinds(args[at]) {
				for name, bomb := range values[kind] {
					for _, both := range []bool{false, true} {
						if both && (len(args) == 1 || at > 0 || len(args) > 1 && kinds(args[1])[0] != kind) {
							continue
						}
						operands := make([]*ast.Term, len(args))
						for j := range args {
							operands[j] = plains[kinds(args[j])[0]]
							if j == at || both && kinds(args[j])[0] == kind {
								operands[j] = bomb
							}
						}
						bomber(t, decl.Name, fmt.Sprintf("%s %d %s both:%v", kind, at, name, both), operands)
					}
				}
			}
		}
	}
}

// bomber makes a call.
func bomber(t *testing.T, name, which string, operands []*ast.Term) {
	_, _ = fmt.Printf("calls %s: %s\n", name, which)
	b := &purse{left: budgetBytes}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	_, err := call(name, b, operands...)
	took := time.Since(begin)
	runtime.ReadMemStats(&after)
	made := int64(after.TotalAlloc - before.TotalAlloc)
	size := int64(0) // an estimate may look at a copy of the operands
	for _, o := range operands {
		size += sizeOf(o.Value, budgetBytes, deepest)
	}
	if most := 2*b.spent + 4*size + 2<<20; made > most {
		t.Errorf("%s: %s: made %d bytes, and asked for %d", name, which, made, b.spent)
	}
	if took > time.Second {
		t.Logf("%s: %s: took %v, and asked for %d", name, which, took, b.spent)
	}
	var halted topdown.Halt
	if b.over && !errors.As(err, &halted) {
		t.Errorf("%s: %s: the budget is over: %v, but the error is %v", name, which, b.over, shorten(fmt.Sprint(err)))
	}
}
