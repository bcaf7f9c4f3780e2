package celtest

import (
	"fmt"
	"slices"
	"strings"
)

// A Generator makes expressions and objects of bytes: the same of the same.
type Generator struct {
	bytes   []byte
	Roots   []string // what paths begin with
	members []string // what they go on with
	numbers []string // that are no small integers
	locals  []string
}

// OfObjects makes expressions about the objects that object makes.
func OfObjects(seed []byte) *Generator {
	return &Generator{bytes: seed, Roots: []string{"object", "object", "object.l", "oldObject", "object.s"},
		members: []string{"a", "b", "c", "l", "s"},
		numbers: []string{"1.5", "1.0", "-0", "1e3", "9007199254740993", "-9223372036854775808"}}
}

// OfTyped makes expressions about the objects of typedSchema that typed makes.
func OfTyped(seed []byte) *Generator {
	return &Generator{
		bytes: seed,
		Roots: []string{
			"self.spec", "dyn(self.spec)", "oldSelf.spec", "dyn(self)", "self.spec.list", "self.spec.named",
			"self.spec.labels", "self.spec.name", "self.spec.replicas",
			"self.spec.set", "self.spec.lists", "self.spec.holder", "self.spec.maybes", "self.metadata.name",
		},
		members: []string{"replicas", "name", "labels", "list", "port", "ratio", "maybe", "named", "set", "when",
			"timeout", "any", "app", "known", "raw", "n", "with__dash__dash", "__namespace__", "spec"},
		numbers: []string{"1.5", "-0", "9007199254740993"}, // 1.0 is an integer here and none in Kubernetes
	}
}

// Typed makes an object of typedSchema, most of the time.
func (g *Generator) Typed() string {
	var members []string
	for _, m := range [][]string{
		{"replicas", "3", "2"}, {"ratio", "2", "0.5"}, {"name", `"web"`, `"log"`}, {"paused", "true", "false"},
		{"port", "80", `"http"`}, {"maybe", "null", `"x"`},
		{"when", `"2024-01-02T03:04:05Z"`}, {"day", `"2024-01-02"`}, {"timeout", `"90s"`, `"1m"`},
		{"data", `"aGVsbG8="`}, {"with-dash", "1"}, {"namespace", `"ns"`},
		{"labels", `{"app":"web","name":"x"}`, "{}"}, {"maybes", `{"a":null,"name":"c"}`},
		{"list", "[1,2,3]", "[3,1]", "[]"}, {"lists", `[["a"],[]]`},
		{"set", `["b","a"]`, `["a","b"]`},
		{"named", `[{"name":"x","port":1},{"name":"y"}]`, `[{"name":"y"},{"name":"x","port":1}]`},
		{"any", `{"known":1,"unknown":[1]}`}, {"anything", "1"}, {"holder", `{"raw":{"a":[1]},"n":1}`, `{"n":2}`},
	} {
		switch g.Pick(12) {
		case 0:
		case 1:
			members = append(members, fmt.Sprintf("%q:%s", m[0], g.json(1)))
		default:
			members = append(members, fmt.Sprintf("%q:%s", m[0], g.Of(m[1:]...)))
		}
	}
	return `{"apiVersion":"lab.example.com/v1","kind":"Widget","metadata":{"name":"w1"},"spec":{` + strings.Join(members, ",") + "}}"
}

// Pick is one of so many choices.
func (g *Generator) Pick(n int) int {
	if len(g.bytes) == 0 {
		return 0
	}
	b := g.bytes[0]
	g.bytes = g.bytes[1:]
	return int(b) % n
}

func (g *Generator) Of(choices ...string) string { return choices[g.Pick(len(choices))] }

// json makes a value that a document may have.
func (g *Generator) json(depth int) string {
	kinds := 12
	if depth == 0 {
		kinds = 9
	}
	switch g.Pick(kinds) {
	case 0:
		return g.Of("0", "1", "2", "-1", "10")
	case 1:
		return g.Of(`"a"`, `"b"`, `""`, `"ab"`, `"1"`, `"team-a"`, `"\u00e9\n"`, `"10.0.0.1"`, `"500m"`)
	case 2:
		return "true"
	case 3:
		return "false"
	case 4:
		return "null"
	case 5:
		return g.Of(g.numbers...)
	case 6:
		return "[]"
	case 7:
		return "{}"
	case 8:
		return `"a,b"`
	case 9:
		items := make([]string, g.Pick(4))
		for i := range items {
			items[i] = g.json(depth - 1)
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	var members []string
	for _, name := range []string{"a", "b", "c", "x-y"} {
		if g.Pick(3) > 0 {
			members = append(members, fmt.Sprintf("%q:%s", name, g.json(depth-1)))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (g *Generator) Object() string {
	return fmt.Sprintf(`{"a":%s,"b":%s,"c":%s,"l":[%s,%s,%s],"s":%q}`, g.json(3), g.json(2), g.json(1), g.json(2),
		g.json(2), g.json(1), g.Of("a", "ab", "team-a", ""))
}

// path is a variable with members and items.
func (g *Generator) path(depth int) string {
	roots := append(slices.Clip(g.Roots), g.locals...)
	path := roots[g.Pick(len(roots))]
	for range g.Pick(3) {
		switch g.Pick(9) {
		case 0, 1, 2, 3:
			path += "." + g.Of(g.members...)
		case 4:
			path += "['" + g.Of(append(slices.Clip(g.members), "x-y")...) + "']"
		case 5:
			path += "[" + g.Of("0", "1", "-1", "7") + "]"
		case 6:
			path += "[" + g.Value(depth-1) + "]"
		case 7:
			path += ".?" + g.Of(g.members...)
		case 8:
			path += "[?" + g.Of("0", "'a'", "5", g.Value(depth-1)) + "]"
		}
	}
	return path
}

func (g *Generator) literal() string {
	return g.Of("0", "1", "2", "-1", "'a'", "'b'", "''", "true", "false", "null", "1.5", "1.0", "1u", "[]", "{}",
		"['a', 'b']", "[1, 2, 3]", "{'a': 1}", "[1, 1]", "'ab'")
}

// loop is a macro over something.
func (g *Generator) loop(depth int) string {
	over := g.Value(depth - 1)
	name := g.Of("x", "y", "z")
	outer := g.locals
	g.locals = append(g.locals[:len(g.locals):len(g.locals)], name, name)
	defer func() { g.locals = outer }()
	body := func() string { return g.Value(depth - 1) }
	switch g.Pick(11) {
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
		return fmt.Sprintf("(%s).%s(i, %s, %s)", over,
			g.Of("all", "exists", "existsOne", "transformList", "transformMap"), name, body())
	case 9:
		g.locals = append(g.locals, "i")
		return fmt.Sprintf("(%s).%s(i, %s, %s, %s)", over, g.Of("transformList", "transformMap"), name, body(), body())
	}
	return fmt.Sprintf("(%s).%s(%s, %s)", over, g.Of("optMap", "optFlatMap", "sortBy"), name, body())
}

// Value is an expression of any type.
func (g *Generator) Value(depth int) string {
	if depth <= 0 {
		if g.Pick(3) == 0 {
			return "dyn(" + g.literal() + ")"
		}
		return g.path(0)
	}
	next := func() string { return g.Value(depth - 1) }
	switch g.Pick(20) {
	case 0, 1, 2, 3:
		return g.path(depth)
	case 4:
		return "dyn(" + g.literal() + ")"
	case 5:
		return fmt.Sprintf("(%s %s %s)", next(), g.Of("+", "-", "*", "/", "%"), next())
	case 6, 7:
		return fmt.Sprintf("(%s %s %s)", next(), g.Of("==", "!=", "<", "<=", ">", ">="), g.Of(next(), g.literal()))
	case 8, 9:
		return fmt.Sprintf("(%s %s %s)", next(), g.Of("&&", "||"), next())
	case 10:
		return fmt.Sprintf("(%s in %s)", next(), g.Of(next(), g.literal()))
	case 11:
		return fmt.Sprintf("(%s ? %s : %s)", next(), next(), next())
	case 12:
		return fmt.Sprintf("%s(%s)", g.Of("!", "-", "size", "type", "string", "int", "double", "dyn", "bool", "uint",
			"optional.of", "optional.ofNonZeroValue"), next())
	case 13:
		return "has(" + g.path(0) + "." + g.Of(g.members...) + ")"
	case 14:
		return fmt.Sprintf("(%s).%s(%s)", next(), g.Of("startsWith", "endsWith", "contains", "matches", "split", "join",
			"indexOf", "lastIndexOf", "find", "findAll", "orValue", "or"), g.Of("'a'", "'[a-c]+'", "','", next()))
	case 15:
		return fmt.Sprintf("(%s).%s()", next(), g.Of("size", "lowerAscii", "upperAscii", "trim", "reverse", "distinct",
			"sort", "flatten", "first", "last", "hasValue", "value", "sum", "max", "isSorted", "join"))
	case 16:
		return g.Of(
			fmt.Sprintf("(%s).replace('a', %s)", next(), g.Of("'b'", next())),
			fmt.Sprintf("(%s).substring(%s)", next(), g.Of("0", "1", next())),
			fmt.Sprintf("'%%s %%v'.format([%s])", next()), fmt.Sprintf("sets.contains(%s, %s)", next(), next()),
			fmt.Sprintf("quantity(%s).isLessThan(quantity('1'))", next()),
			fmt.Sprintf("isIP(%s)", next()), fmt.Sprintf("format.dns1123Label().validate(%s).hasValue()", next()),
			fmt.Sprintf("(%s).slice(0, 1)", next()),
			"lists.range("+g.Of("3", "200", "600000", "1000001", "9223372036854775807", next())+")",
		)
	case 17:
		return g.Of(fmt.Sprintf("dyn([%s, %s])", next(), next()), fmt.Sprintf("dyn({'a': %s})", next()),
			fmt.Sprintf("dyn([?%s])", next()), fmt.Sprintf("dyn({?'a': %s})", next()), fmt.Sprintf("{%s: 1}", next()))
	}
	return g.loop(depth)
}
