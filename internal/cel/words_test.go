package cel

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// internals are the marks of what only the program knows: addresses, types of Go, its packages, and what a run-time
// failure says.
var internals = regexp.MustCompile(`0x[0-9a-f]{4,}|&\{|\*[a-z]+\.[A-Z]|\b(value|types|plan|ref|ast|interpreter|structpb|traits|library|cel|celgo|netip|url|time)\.[A-Z]|` +
	`\b(net/url|net/netip|strconv|netip|encoding/\w+|time|parse|regexp/syntax|base64)(\.\w+)?: |net/|runtime error|github\.com/|goroutine |interface \{\}|%!|\bmap\[`)

// operands are values of every type that an expression can have, and some that no function takes.
var operands = []string{
	"object.spec", "object.spec.containers", "object.spec.nested[0]", "object.spec.text", "object.spec.replicas",
	"object.spec.ratio",
	"object.spec.paused", "object.spec.nothing", "object.spec.names", "object.spec.lists", "object.spec.mixed",
	"object.spec.containers[0].name", "object.metadata.labels", "object",
	"1", "-1", "9223372036854775807", "1u", "1.5", "double('NaN')", "1e300", "true", "null", "'a'", "''", `'\x01'`,
	`'\n'`, "'1e400'", "'99999999999999999999'", "'[('", "'%zz'",
	`'http://a b\x7f/%zz'`, "'%s %d %x %e %f %b %o %X'", "'%q'", "'http://[::1'", "b'a'", `b'\xff'`, "int",
	"type(object)", "timestamp('2024-01-02T03:04:05Z')", "duration('1s')",
	"optional.none()", "optional.of(object.spec)", "quantity('1')", "url('https://a/b')", "ip('10.0.0.1')",
	"cidr('10.0.0.0/8')", "semver('1.2.3')",
	"format.dns1123Label()", "[1, 'a', null]", "{'a': 1}", "{'a': 1, 'b': 2, 'c': 3, 'd': 4}", "{1: [2]}", "[]", "{}",
	"[object]", "[{'a': object.spec}]", "request", "variables", "authorizer", "http",
}

// sampleOf returns an operand of a type.
func sampleOf(t *types.Type) string {
	switch t.Kind() {
	case types.StringKind:
		return "'a'"
	case types.IntKind:
		return "1"
	case types.UintKind:
		return "1u"
	case types.DoubleKind:
		return "1.5"
	case types.BoolKind:
		return "true"
	case types.BytesKind:
		return "b'a'"
	case types.NullTypeKind:
		return "null"
	case types.ListKind:
		return "object.spec.nested[0]"
	case types.MapKind:
		return "object.metadata.labels"
	case types.DurationKind:
		return "duration('1s')"
	case types.TimestampKind:
		return "timestamp('2024-01-02T03:04:05Z')"
	case types.TypeKind:
		return "int"
	}
	switch t.TypeName() {
	case "optional_type":
		return "optional.of(1)"
	case "kubernetes.Quantity":
		return "quantity('1')"
	case "kubernetes.URL":
		return "url('https://a/b')"
	case "net.IP":
		return "ip('10.0.0.1')"
	case "net.CIDR":
		return "cidr('10.0.0.0/8')"
	case "kubernetes.Semver":
		return "semver('1.2.3')"
	case "kubernetes.NamedFormat":
		return "format.dns1123Label()"
	}
	return "object.spec"
}

// symbols are how expressions write the functions that have no names.
var symbols = map[string]string{
	"_&&_": "%s && %s", "_||_": "%s || %s", "_?_:_": "%s ? %s : %s", "_==_": "%s == %s", "_!=_": "%s != %s",
	"_<_": "%s < %s", "_<=_": "%s <= %s",
	"_>_": "%s > %s", "_>=_": "%s >= %s", "_+_": "%s + %s", "_-_": "%s - %s", "_*_": "%s * %s", "_/_": "%s / %s",
	"_%_": "%s %% %s", "-_": "-%s", "!_": "!%s",
	"_[_]": "%s[%s]", "@in": "%s in %s", "_[?_]": "%s[?%s]", "_?._": "%s[?%s]",
}

// callOf returns the call of an overload with operands; "" if no expression can be written for it.
func callOf(name string, isMember bool, args []string) string {
	if form, is := symbols[name]; is {
		if strings.Count(strings.ReplaceAll(form, "%%", ""), "%s") != len(args) {
			return ""
		}
		all := make([]any, len(args))
		for i, a := range args {
			all[i] = a
		}
		return fmt.Sprintf(form, all...)
	}
	if strings.ContainsAny(name, "@_") && !strings.Contains(name, "optional") {
		return ""
	}
	if isMember {
		return args[0] + "." + name + "(" + strings.Join(args[1:], ", ") + ")"
	}
	return name + "(" + strings.Join(args, ", ") + ")"
}

// macros are written by their names, and take what they go over.
var macros = []string{"%s.all(x, x == 1)", "%s.exists(x, x)", "%s.exists_one(x, x == 1)", "%s.map(x, x.a)",
	"%s.filter(x, x > 1)", "%s.all(k, v, v.a)",
	"%s.transformMapEntry(k, v, {v: k})", "%s.transformMap(k, v, v.a)", "%s.transformList(k, v, v + 1)",
	"%s.sortBy(x, x)", "has(%s.a.b)", "%s.a", "%s.?a.b", "[?%s]", "{?'a': %s}",
	"{%s: 1}", "%s.optMap(x, x.a)", "%s.optFlatMap(x, x)", "'%%s'.format([%s])", "'%%d'.format([%s])",
	"'%%x'.format([%s])", "'%%e'.format([%s])", "'%%f'.format([%s])", "'%%b'.format([%s])",
	"'%%o'.format([%s])", "'%%.3f'.format([%s])", "'%%5d'.format([%s])", "%s", "[%s].sum()", "[%s, 1].max()",
	"[%s, 'a'].isSorted()", "[%s].join()", "['a', %s].join(', ')", "[%s].sort()",
	"%s in [1]", "1 in [%s]", "object[%s]", "object.spec.containers[%s]", "[1][%s]", "{'a': 1}[%s]",
	"[1, 2].slice(%s, 1)", "lists.range(%s)"}

// failures calls visit with each way in which an expression of the environment fails.
func failures(t *testing.T, visit func(expression, way, text string)) {
	e := adhocEnv(t)
	node := celtest.Parse(t,
		strings.Replace(celtest.PlainObject, `"replicas": 3`,
			`"names": ["a", {"b": 1}, 2], "lists": [["a"], {"b": 1}, 2], "replicas": 3`, 1))
	tried := map[string]bool{}
	try := func(expression string) {
		if expression == "" || tried[expression] {
			return
		}
		tried[expression] = true
		ast, issues := e.Compile(expression)
		if issues != nil {
			return // nothing of it reaches a client
		}
		natively, lazily, err := bothWays(t, e, expression, ast.NativeRep())
		if err != nil {
			return
		}
		for way, p := range map[string]*Program{"natively": natively, "lazily": lazily} {
			if p == nil {
				continue
			}
			o := ours(p, func(v *Vars) { v.Set(value.Object, node, nil) })
			if o.err != "" {
				visit(expression, way, o.err)
				for range 3 {
					if again := ours(p, func(v *Vars) { v.Set(value.Object, node, nil) }); again != o {
						t.Errorf("%s, %s: %v, and then %v", way, expression, o, again)
					}
				}
			}
			f := NewFrame(t.Context())
			f.Vars().Set(value.Object, node, nil)
			if _, err := p.EvalBool(f, f.Vars()); err != nil {
				visit(expression, way, strings.TrimPrefix(err.Error(), "expression '"+expression+"' "))
			}
			f.Release()
		}
	}
	functions := e.Env.Functions()
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		for _, o := range functions[name].OverloadDecls() {
			args := make([]string, len(o.ArgTypes()))
			for i, a := range o.ArgTypes() {
				args[i] = sampleOf(a)
			}
			try(callOf(name, o.IsMemberFunction(), args))
			for i := range args {
				for _, operand := range operands {
					changed := slices.Clone(args)
					changed[i] = operand
					try(callOf(name, o.IsMemberFunction(), changed))
					changed[i] = "dyn(" + operand + ")"
					try(callOf(name, o.IsMemberFunction(), changed))
					for k := range changed {
						if k != i {
							changed[k] = "dyn(" + changed[k] + ")"
						}
					}
					try(callOf(name, o.IsMemberFunction(), changed))
				}
			}
		}
	}
	for _, m := range macros {
		for _, operand := range operands {
			try(fmt.Sprintf(m, operand))
			try(fmt.Sprintf(m, "dyn("+operand+")"))
		}
	}
	t.Logf("%d expressions", len(tried))
}

// TestFailuresSayNothingInternal: failures are worded in terms of the language, whichever function
// fails over which values, natively and by cel-go: no address, no type of Go, and no package of the
// program.
func TestFailuresSayNothingInternal(t *testing.T) {
	if testing.Short() {
		t.Skip("calls each function with all kinds of values")
	}
	seen, bad := map[string]bool{}, map[string]string{}
	failures(t, func(expression, way, text string) {
		seen[text] = true
		if found := internals.FindString(text); found != "" && bad[found] == "" {
			bad[found] = way + " " + expression + ": " + text
		}
	})
	for _, found := range slices.Sorted(maps.Keys(bad)) {
		t.Errorf("%q in %s", found, bad[found])
	}
	if t.Logf("%d different failures", len(seen)); len(seen) < 100 {
		t.Error("too few")
	}
}
