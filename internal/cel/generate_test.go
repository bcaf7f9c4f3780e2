package cel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"

	"github.com/admission-gateway/gateway/internal/document"
)

// A generator makes expressions and objects of bytes: the same of the same.
type generator struct {
	bytes   []byte
	roots   []string // what paths begin with
	members []string // what they go on with
	numbers []string // that are no small integers
	locals  []string
}

// ofObjects makes expressions about the objects that object makes.
func ofObjects(seed []byte) *generator {
	return &generator{bytes: seed, roots: []string{"object", "object", "object.l", "oldObject", "object.s"}, members: []string{"a", "b", "c", "l", "s"},
		numbers: []string{"1.5", "1.0", "-0", "1e3", "9007199254740993", "-9223372036854775808"}}
}

// ofTyped makes expressions about the objects of typedSchema that typed makes.
func ofTyped(seed []byte) *generator {
	return &generator{
		bytes: seed,
		roots: []string{
			"self.spec", "dyn(self.spec)", "oldSelf.spec", "dyn(self)", "self.spec.list", "self.spec.named", "self.spec.labels", "self.spec.name", "self.spec.replicas",
			"self.spec.set", "self.spec.lists", "self.spec.holder", "self.spec.maybes", "self.metadata.name",
		},
		members: []string{"replicas", "name", "labels", "list", "port", "ratio", "maybe", "named", "set", "when", "timeout", "any", "app", "known", "raw", "n", "with__dash__dash", "__namespace__", "spec"},
		numbers: []string{"1.5", "-0", "9007199254740993"}, // 1.0 is an integer here and none in Kubernetes
	}
}

// typed makes an object of typedSchema, most of the time.
func (g *generator) typed() string {
	var members []string
	for _, m := range [][]string{
		{"replicas", "3", "2"}, {"ratio", "2", "0.5"}, {"name", `"web"`, `"log"`}, {"paused", "true", "false"}, {"port", "80", `"http"`}, {"maybe", "null", `"x"`},
		{"when", `"2024-01-02T03:04:05Z"`}, {"day", `"2024-01-02"`}, {"timeout", `"90s"`, `"1m"`}, {"data", `"aGVsbG8="`}, {"with-dash", "1"}, {"namespace", `"ns"`},
		{"labels", `{"app":"web","name":"x"}`, "{}"}, {"maybes", `{"a":null,"name":"c"}`}, {"list", "[1,2,3]", "[3,1]", "[]"}, {"lists", `[["a"],[]]`},
		{"set", `["b","a"]`, `["a","b"]`}, {"named", `[{"name":"x","port":1},{"name":"y"}]`, `[{"name":"y"},{"name":"x","port":1}]`},
		{"any", `{"known":1,"unknown":[1]}`}, {"anything", "1"}, {"holder", `{"raw":{"a":[1]},"n":1}`, `{"n":2}`},
	} {
		switch g.pick(12) {
		case 0:
		case 1:
			members = append(members, fmt.Sprintf("%q:%s", m[0], g.json(1)))
		default:
			members = append(members, fmt.Sprintf("%q:%s", m[0], g.of(m[1:]...)))
		}
	}
	return `{"apiVersion":"lab.example.com/v1","kind":"Widget","metadata":{"name":"w1"},"spec":{` + strings.Join(members, ",") + "}}"
}

// pick is one of so many choices.
func (g *generator) pick(n int) int {
	if len(g.bytes) == 0 {
		return 0
	}
	b := g.bytes[0]
	g.bytes = g.bytes[1:]
	return int(b) % n
}

func (g *generator) of(choices ...string) string { return choices[g.pick(len(choices))] }

// json makes a value that a document may have.
func (g *generator) json(depth int) string {
	kinds := 12
	if depth == 0 {
		kinds = 9
	}
	switch g.pick(kinds) {
	case 0:
		return g.of("0", "1", "2", "-1", "10")
	case 1:
		return g.of(`"a"`, `"b"`, `""`, `"ab"`, `"1"`, `"team-a"`, `"\u00e9\n"`, `"10.0.0.1"`, `"500m"`)
	case 2:
		return "true"
	case 3:
		return "false"
	case 4:
		return "null"
	case 5:
		return g.of(g.numbers...)
	case 6:
		return "[]"
	case 7:
		return "{}"
	case 8:
		return `"a,b"`
	case 9:
		items := make([]string, g.pick(4))
		for i := range items {
			items[i] = g.json(depth - 1)
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	var members []string
	for _, name := range []string{"a", "b", "c", "x-y"} {
		if g.pick(3) > 0 {
			members = append(members, fmt.Sprintf("%q:%s", name, g.json(depth-1)))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (g *generator) object() string {
	return fmt.Sprintf(`{"a":%s,"b":%s,"c":%s,"l":[%s,%s,%s],"s":%q}`, g.json(3), g.json(2), g.json(1), g.json(2), g.json(2), g.json(1), g.of("a", "ab", "team-a", ""))
}

// path is a variable with members and items.
func (g *generator) path(depth int) string {
	roots := append(slices.Clip(g.roots), g.locals...)
	path := roots[g.pick(len(roots))]
	for range g.pick(3) {
		switch g.pick(9) {
		case 0, 1, 2, 3:
			path += "." + g.of(g.members...)
		case 4:
			path += "['" + g.of(append(slices.Clip(g.members), "x-y")...) + "']"
		case 5:
			path += "[" + g.of("0", "1", "-1", "7") + "]"
		case 6:
			path += "[" + g.value(depth-1) + "]"
		case 7:
			path += ".?" + g.of(g.members...)
		case 8:
			path += "[?" + g.of("0", "'a'", "5", g.value(depth-1)) + "]"
		}
	}
	return path
}

func (g *generator) literal() string {
	return g.of("0", "1", "2", "-1", "'a'", "'b'", "''", "true", "false", "null", "1.5", "1.0", "1u", "[]", "{}", "['a', 'b']", "[1, 2, 3]", "{'a': 1}", "[1, 1]", "'ab'")
}

// loop is a macro over something.
func (g *generator) loop(depth int) string {
	over := g.value(depth - 1)
	name := g.of("x", "y", "z")
	outer := g.locals
	g.locals = append(g.locals[:len(g.locals):len(g.locals)], name, name)
	defer func() { g.locals = outer }()
	body := func() string { return g.value(depth - 1) }
	switch g.pick(11) {
	case 0, 1:
		return fmt.Sprintf("(%s).all(%s, %s)", over, name, body())
	case 2, 3:
		return fmt.Sprintf("(%s).exists(%s, %s)", over, name, body())
	case 4:
		return fmt.Sprintf("(%s).exists_one(%s, %s)", over, name, body())
	case 5:
		return fmt.Sprintf("(%s).map(%s, %s)", over, name, body())
	case 6:
		return fmt.Sprintf("(%s).filter(%s, %s)", over, name, body())
	case 7:
		return fmt.Sprintf("(%s).map(%s, %s, %s)", over, name, body(), body())
	case 8:
		g.locals = append(g.locals, "i")
		return fmt.Sprintf("(%s).%s(i, %s, %s)", over, g.of("all", "exists", "existsOne", "transformList", "transformMap"), name, body())
	case 9:
		g.locals = append(g.locals, "i")
		return fmt.Sprintf("(%s).%s(i, %s, %s, %s)", over, g.of("transformList", "transformMap"), name, body(), body())
	}
	return fmt.Sprintf("(%s).%s(%s, %s)", over, g.of("optMap", "optFlatMap", "sortBy"), name, body())
}

// value is an expression of any type.
func (g *generator) value(depth int) string {
	if depth <= 0 {
		if g.pick(3) == 0 {
			return "dyn(" + g.literal() + ")"
		}
		return g.path(0)
	}
	next := func() string { return g.value(depth - 1) }
	switch g.pick(20) {
	case 0, 1, 2, 3:
		return g.path(depth)
	case 4:
		return "dyn(" + g.literal() + ")"
	case 5:
		return fmt.Sprintf("(%s %s %s)", next(), g.of("+", "-", "*", "/", "%"), next())
	case 6, 7:
		return fmt.Sprintf("(%s %s %s)", next(), g.of("==", "!=", "<", "<=", ">", ">="), g.of(next(), g.literal()))
	case 8, 9:
		return fmt.Sprintf("(%s %s %s)", next(), g.of("&&", "||"), next())
	case 10:
		return fmt.Sprintf("(%s in %s)", next(), g.of(next(), g.literal()))
	case 11:
		return fmt.Sprintf("(%s ? %s : %s)", next(), next(), next())
	case 12:
		return fmt.Sprintf("%s(%s)", g.of("!", "-", "size", "type", "string", "int", "double", "dyn", "bool", "uint", "optional.of", "optional.ofNonZeroValue"), next())
	case 13:
		return "has(" + g.path(0) + "." + g.of(g.members...) + ")"
	case 14:
		return fmt.Sprintf("(%s).%s(%s)", next(), g.of("startsWith", "endsWith", "contains", "matches", "split", "join", "indexOf", "lastIndexOf", "find", "findAll", "orValue", "or"), g.of("'a'", "'[a-c]+'", "','", next()))
	case 15:
		return fmt.Sprintf("(%s).%s()", next(), g.of("size", "lowerAscii", "upperAscii", "trim", "reverse", "distinct", "sort", "flatten", "first", "last", "hasValue", "value", "sum", "max", "isSorted", "join"))
	case 16:
		return g.of(
			fmt.Sprintf("(%s).replace('a', %s)", next(), g.of("'b'", next())), fmt.Sprintf("(%s).substring(%s)", next(), g.of("0", "1", next())),
			fmt.Sprintf("'%%s %%v'.format([%s])", next()), fmt.Sprintf("sets.contains(%s, %s)", next(), next()), fmt.Sprintf("quantity(%s).isLessThan(quantity('1'))", next()),
			fmt.Sprintf("isIP(%s)", next()), fmt.Sprintf("format.dns1123Label().validate(%s).hasValue()", next()), fmt.Sprintf("(%s).slice(0, 1)", next()),
		)
	case 17:
		return g.of(fmt.Sprintf("dyn([%s, %s])", next(), next()), fmt.Sprintf("dyn({'a': %s})", next()), fmt.Sprintf("dyn([?%s])", next()), fmt.Sprintf("dyn({?'a': %s})", next()), fmt.Sprintf("{%s: 1}", next()))
	}
	return g.loop(depth)
}

// compareGenerated compares an expression in three ways. ok is false where there is nothing to compare.
func compareGenerated(t *testing.T, e *env, judge *celgo.Env, expression string, objects [2]string, set func(*Vars), values map[string]any) (ok bool) {
	checked, issues := e.Compile(expression)
	if issues != nil {
		return false
	}
	theirAST, issues := judge.Compile(expression)
	if issues != nil {
		t.Errorf("%s does not compile: %v", expression, issues.Err())
		return false
	}
	natively, lazily, err := bothWays(t, e, expression, checked.NativeRep())
	theirs, theirErr := judge.Program(theirAST)
	if err != nil || theirErr != nil {
		if (err == nil) != (theirErr == nil) {
			t.Errorf("%s\nplanning: %v, Kubernetes %v", expression, err, theirErr)
		}
		return false
	}
	if natively == nil {
		t.Errorf("%s does not run natively", expression)
		return false
	}
	lazy, native := ours(lazily, set), ours(natively, set)
	if strings.Contains(lazy.err+native.err, "cost limit") {
		return true
	}
	if native != lazy {
		t.Errorf("%s\n%s\nnatively %v\nlazily   %v", expression, objects, native, lazy)
	}
	judged := kubernetes(theirs, values)
	for try := 0; try < 100 && !same(lazy, judged) && !uncomparable(lazy, judged); try++ {
		judged = kubernetes(theirs, values) // the order of a map's keys is random
	}
	if !same(lazy, judged) && !uncomparable(lazy, judged) {
		t.Errorf("%s\n%s\nlazily     %v\nKubernetes %v", expression, objects, lazy, judged)
	}
	return true
}

// generatedPlain compares expressions about plain JSON.
func generatedPlain(t testing.TB) func(t *testing.T, seed []byte) bool {
	e := adhocEnv(t)
	return func(t *testing.T, seed []byte) bool {
		g := ofObjects(seed)
		objects := [2]string{g.object(), g.object()}
		nodes := [2]document.Node{parse(t, objects[0]), parse(t, objects[1])}
		return compareGenerated(t, e, e.Env, g.value(3), objects, func(v *Vars) {
			v.Set(Object, nodes[0], nil)
			v.Set(OldObject, nodes[1], nil)
		}, map[string]any{
			"object":    types.DefaultTypeAdapter.NativeToValue(decode(t, objects[0])),
			"oldObject": types.DefaultTypeAdapter.NativeToValue(decode(t, objects[1])),
			"params":    nil, "namespaceObject": nil,
		})
	}
}

// generatedTyped compares expressions about what a schema describes.
func generatedTyped(t testing.TB) func(t *testing.T, seed []byte) bool {
	s := structural(t, typedSchema)
	typ := NewType(s, true)
	c := ruleCompiler{node: s, typ: typ, self: model.SchemaDeclType(s, true).MaybeAssignTypeName(selfTypeName)}
	e, err := c.env(false)
	if err != nil {
		t.Fatal(err)
	}
	judge := rulesEnv(t, s, true, false)
	withMeta := model.WithTypeAndObjectMeta(s)
	return func(t *testing.T, seed []byte) bool {
		g := ofTyped(seed)
		objects := [2]string{g.typed(), g.typed()}
		nodes := [2]document.Node{parse(t, objects[0]), parse(t, objects[1])}
		return compareGenerated(t, e, judge, g.value(3), objects, func(v *Vars) {
			v.Set(Self, nodes[0], typ)
			v.Set(OldSelf, nodes[1], typ)
		}, map[string]any{
			"self":    schemacel.UnstructuredToVal(decode(t, objects[0]), withMeta),
			"oldSelf": schemacel.UnstructuredToVal(decode(t, objects[1]), withMeta),
		})
	}
}

// TestGeneratedExpressions compares some expressions that nobody wrote.
func TestGeneratedExpressions(t *testing.T) {
	for name, compare := range map[string]func(*testing.T, []byte) bool{"plain": generatedPlain(t), "typed": generatedTyped(t)} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			compared := 0
			for range 4000 {
				seed := make([]byte, 200)
				for i := range seed {
					seed[i] = byte(random.Uint32())
				}
				if compare(t, seed) {
					compared++
				}
			}
			t.Logf("%d expressions were compared", compared)
			if compared < 500 {
				t.Errorf("only %d expressions were compared", compared)
			}
		})
	}
}

// FuzzExpressions compares expressions and objects made of bytes natively, by cel-go on lazy values, and by cel-go on
// Kubernetes' values.
func FuzzExpressions(f *testing.F) {
	for i := range 20 {
		seed := make([]byte, 120)
		for j := range seed {
			seed[j] = byte(i*37 + j*j*11)
		}
		f.Add(seed, i%2 == 0)
	}
	plain, typed := generatedPlain(f), generatedTyped(f)
	f.Fuzz(func(t *testing.T, seed []byte, schema bool) {
		if schema {
			typed(t, seed)
			return
		}
		plain(t, seed)
	})
}
