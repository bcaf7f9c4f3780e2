package syntax

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
)

// A judge parses expressions as Kubernetes does, and here.
type judge struct {
	env    *celgo.Env
	parser *Parser
}

func newJudge(t testing.TB) *judge {
	t.Helper()
	env, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv().Extend(celgo.EnableMacroCallTracking())
	if err != nil {
		t.Fatal(err)
	}
	return &judge{env, New(env.Macros())}
}

// compare parses an expression in both ways, and reports whether both have a tree.
func (j *judge) compare(t *testing.T, expression string) (isParsed, isDeclined bool) {
	t.Helper()
	got := j.parser.Parse(expression, common.NewTextSource(expression))
	parsed, issues := j.env.Parse(expression)
	switch {
	case got == nil:
		return false, issues.Err() == nil
	case issues.Err() != nil:
		t.Fatalf("%q is parsed, and a mistake for cel-go: %v", expression, issues.Err())
	case !reflect.DeepEqual(got, parsed.NativeRep()):
		t.Fatalf("%q:\ngot  %s\nwant %s", expression, describe(got), describe(parsed.NativeRep()))
	}
	return true, false
}

// describe writes a tree with its numbers and places.
func describe(a *ast.AST) string {
	e, err := ast.ExprToProto(a.Expr())
	return fmt.Sprint(e, err, a.SourceInfo().OffsetRanges(), a.SourceInfo().MacroCalls(), a.SourceInfo().LineOffsets())
}

// grammar has expressions of each rule of the grammar, and what is near them.
var grammar = []string{
	``, `a`, `.a`, `a.b`, `.a.b.c`, `a.?b`, `a.?b.c.?d`, "a.`b-c`", "a.?`b/c`.d", "a.``", "`a`", `a[0]`, `a[?0]`, `a[?'b'].c`, `a.b()`, `a.b(1, c)`, `b(1)`, `.b(1)`, `a.b(1,)`, `a.b(,)`,
	`1`, `-1`, `--1`, `---1`, `- 1`, `-  -1`, `0x1F`, `-0x1f`, `0x`, `0xu`, `0x1Fu`, `1u`, `1U`, `-1u`, `1.5`, `-1.5`, `--1.5`, `.5`, `-.5`, `1.`, `1.e5`, `1e5`, `1e`, `1E+5`, `1e-5`, `1.5e5`, `1.5u`, `007`, `1a`, `5in[5]`,
	`9223372036854775807`, `9223372036854775808`, `-9223372036854775808`, `--9223372036854775808`, `18446744073709551615u`, `18446744073709551616u`, `1e999`, `-1.x`, `-1.size()`, `!-1`, `-!a`, `!-a`,
	`true`, `false`, `null`, `trueish`, `a.true`, `a.in`, `a.if`, `if`, `if(a)`, `a.if(b)`, `namespace`, `a.namespace`, `in`, `a in b`, `a in b in c`, `ain`,
	`'a'`, `"a"`, `''`, `""`, `'''a'''`, `""" " """`, "'''a\n'\\n''b'''", `'''a''`, `''''''`, `'''''`, `"""\""""`, "r'''a\r\nb'''", "'''a\rb'''", `r"""\""""`, `r''`, `r''''''`, `'a\'b'`, `"a\"b\\c\n\t"`, `'\x41'`, `'\u0041'`, `'\101'`, `'\z'`, `'\`, `'a`, "'a\nb'", "'a\rb'", `r'a\'`, `R"\d+"`, `r'''a'''`, `b'a'`, `br'a'`, `rb'a'`, `r'a' 'b'`, `'a''b'`, `"é" + 'ü€😀' + c`,
	"'\xff'", "'a' // é\n + b", `a // b`, `a / b`, `a /`, "a\n.b\r\n .c\t[\f0]", "'é'.matches(r'é\\d')", "\ufeffa", "a\u00a0",
	`[]`, `[,]`, `[1]`, `[1,]`, `[1,,]`, `[?a]`, `[?a, b, ?c,]`, `[1 2]`, `{}`, `{,}`, `{a: b}`, `{'a': b, ?c: d,}`, `{a ? b : c : d}`, `{a: b ? c : d}`, `{a}`, `{a: }`, `{1: 2, 3: {4: [5]}}`,
	`A{}`, `a.B{}`, `.a.B{c: d}`, `A{b: c, ?d: e,}`, "A{`b-c`: d}", `A{,}`, `A{1: 2}`, `a.b.c{d: e.f{}}`, `Object{spec: Object.spec{replicas: 3}}`, `a.?b{}`, `if{}`, `a.if{}`, `A {b: c}.b`,
	`a ? b : c`, `a ? b : c ? d : e`, `a ? b ? c : d : e`, `(a ? b : c) ? d : e`, `a ? (b ? c : d) : e`, `a ?`, `a ? b`, `a ? b :`,
	`a || b`, `a || b || c`, `a || b || c || d || e`, `a && b || c && d`, `a && b && c && d && e && f && g`, `a || (b || c) || d`, `a ||`, `|| a`, `a | b`, `a & b`, `a = b`,
	`a < b`, `a <= b`, `a >= b`, `a > b`, `a == b`, `a != b`, `a < b < c`, `a == b != c`, `a + b`, `a - b`, `a -1`, `a-1`, `a - -1`, `a--1`, `a---1`, `a * b + c * d`, `a + b * c - d / e % f`, `a * -b`, `-a * b`, `!a`, `!!a`, `!!!a`, `! a.b`, `-a`, `--a`, `-(a)`, `!(a || b)`, `-a.b`, `-1 + 2`, `1 - 2 - 3`,
	`(a)`, `((a))`, `(a`, `a)`, `(a).b`, `(a.b)(c)`, `()`, `a b`, `a.`, `a..b`, `a[`, `a[]`, `a.1`, `a;`, `a#`, `$a`, `a@b`,
	`has(a.b)`, `has(a)`, `has(a.b.c)`, `has(a.?b)`, `has()`, `has(a.b, c)`, `a.has(b.c)`, `has(has(a.b).c)`, `!has(a.b)`,
	`a.all(x, x > 0)`, `a.all(1, x)`, `a.all(x, y, x != y)`, `a.exists(x, x)`, `a.exists_one(x, x)`, `a.existsOne(x, x)`, `a.existsOne(i, x, x)`, `a.map(x, x)`, `a.map(x, x, x)`, `a.filter(x, x)`, `a.map(@x, 1)`, `a.all(x.y, x)`,
	`a.all(x, b.all(y, x == y))`, `a.map(x, b.filter(y, c.exists(z, z == x))).all(w, has(w.v))`, `[a.all(x, x), {b: c.map(y, y)}].map(z, [has(z.a), f(has(z.b))])`, `f(a.all(x, x)).b.all(y, g(y.map(z, z)))`,
	`a.transformList(i, x, x)`, `a.transformMap(k, v, k != v, v)`, `a.transformMapEntry(k, v, {v: k})`, `a.optMap(x, x)`, `a.?b.optFlatMap(x, x.?c)`, `cel.bind(x, a, x + x)`, `a.sortBy(x, x.y)`, `a.sortBy(x.y, x)`,
	`a.b.sortBy(x, {x.y: [x.z, A{b: x}]})`, `sets.contains(a, b)`, `proto.hasExt(a, b)`, `'%s'.format([a])`, `a.map(x, x.map(x, x.map(x, x)))`, `a.sortBy(x, x.all(y, has(y.z)))`,
}

// TestParse: each rule of the grammar has the tree that cel-go makes, and is not declined without a reason.
func TestParse(t *testing.T) {
	j := newJudge(t)
	rare := map[string]bool{
		`'\x41'`: true, `'\u0041'`: true, `'\101'`: true, `b'a'`: true, `br'a'`: true, "'\xff'": true, "r'''a\r\nb'''": true, "'''a\rb'''": true,
	}
	for _, expression := range grammar {
		if _, isDeclined := j.compare(t, expression); isDeclined != rare[expression] {
			t.Errorf("%q is declined: %v, want %v", expression, isDeclined, rare[expression])
		}
	}
	for _, deep := range []string{
		strings.Repeat("(", 60) + "a" + strings.Repeat(")", 60), "a" + strings.Repeat(".b", 100), strings.Repeat("a && ", 500) + "a", strings.Repeat("a.b[0].c == 1 || ", 200) + "a",
		"a" + strings.Repeat(" + a", 100), strings.Repeat("[", 100) + strings.Repeat("]", 100), strings.Repeat("a ? b : ", 100) + "c", "a" + strings.Repeat(".f(1)", 50),
	} {
		if isParsed, _ := j.compare(t, deep); !isParsed {
			t.Errorf("%.80q is declined", deep)
		}
	}
	for _, deeper := range []string{
		strings.Repeat("(", 260) + "a" + strings.Repeat(")", 260), "a" + strings.Repeat(".b", 260), "a" + strings.Repeat(" + a", 260), strings.Repeat("[", 260) + strings.Repeat("]", 260),
		strings.Repeat("a ? b : ", 260) + "c", "a" + strings.Repeat(".f(1)", 260), strings.Repeat("a, ", maxLength), strings.Repeat("(a && ", 260) + "a" + strings.Repeat(")", 260),
	} {
		if isParsed, _ := j.compare(t, deeper); isParsed {
			t.Errorf("%.80q is parsed", deeper)
		}
	}
}

// TestParseSuites: nearly all expressions in recorded policies are parsed here.
func TestParseSuites(t *testing.T) {
	j := newJudge(t)
	var parsed, declined int
	for _, object := range celtest.PolicyDocuments(t) {
		var v any
		if len(object) == 0 {
			continue // the request of a case has no body
		}
		if err := json.Unmarshal(object, &v); err != nil {
			t.Fatal(err)
		}
		each(v, func(text string) {
			isParsed, isDeclined := j.compare(t, text)
			if isParsed {
				parsed++
			}
			if isDeclined {
				declined++
				t.Logf("declined: %s", text)
			}
		})
	}
	if t.Logf("%d texts are parsed, %d declined", parsed, declined); parsed < 1000 || declined*100 > parsed {
		t.Errorf("%d texts are parsed, %d declined", parsed, declined)
	}
}

// each calls do for each string in a value.
func each(v any, do func(string)) {
	switch v := v.(type) {
	case string:
		do(v)
	case []any:
		for _, item := range v {
			each(item, do)
		}
	case map[string]any:
		for _, member := range v {
			each(member, do)
		}
	}
}

// FuzzParse: what is parsed here has the tree that cel-go makes of it.
func FuzzParse(f *testing.F) {
	for i, expression := range grammar {
		f.Add(expression, []byte{byte(i), byte(i * 7), byte(i * 31), byte(i), 3, 5, 9, 200, byte(i * 3)})
	}
	j := newJudge(f)
	f.Fuzz(func(t *testing.T, expression string, seed []byte) {
		if len(expression) > 300 || len(seed) > 100 {
			return
		}
		j.compare(t, expression)
		j.compare(t, celtest.OfTyped(seed).Value(4))
		j.compare(t, made(seed))
	})
}

// made makes a text of tokens and blanks.
func made(seed []byte) string {
	tokens := strings.Split("a b . .? ( ) [ [? ] { } , : ? ! - + * / % < <= == != in && || 1 1u 0x1 1.5 .5 'a' \"é\" r'\\' true null has all map exists `x-y` // \n A{ \\ \r\n 'a\\n' size optMap cel.bind x ,x, (x, @", " ")
	var b strings.Builder
	for _, c := range seed {
		b.WriteString(tokens[int(c)%len(tokens)])
		if c >= 200 {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// BenchmarkParse compares the time of both ways.
func BenchmarkParse(b *testing.B) {
	j := newJudge(b)
	const expression = `object.spec.template.spec.containers.all(c, !c.image.endsWith(':test1')) && (!has(object.metadata.annotations) || !('example.com/frozen' in object.metadata.annotations))`
	b.Run("here", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if j.parser.Parse(expression, common.NewTextSource(expression)) == nil {
				b.Fatal("declined")
			}
		}
	})
	b.Run("cel-go", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, issues := j.env.Parse(expression); issues.Err() != nil {
				b.Fatal(issues.Err())
			}
		}
	})
}
