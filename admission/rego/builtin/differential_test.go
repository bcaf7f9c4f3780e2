package builtin

import (
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// owns are the functions of this package, always metered, by the name of OPA's.
func owns() map[string]own {
	r := &regexps{}
	g := &globs{regexps: r}
	all := map[string]own{}
	for _, c := range patterned(r, g) {
		for _, name := range c.Names {
			all[name] = c.own
		}
	}
	all["indexof"], all["indexof_n"] = indexes(true), indexes(false)
	all["object.subset"], all["graph.reachable"], all["strings.render_template"] = subset, reachable, render
	return all
}

// numberName replaces the type of numbers in templates, which fmt prints for a verb like %d, with its name in OPA.
var numberName = strings.NewReplacer("builtin.number", "json.Number")

// sameAsOPA compares a function of this package with OPA's own: the same values, and the same
// errors.
func sameAsOPA(t *testing.T, name string, f own, operands ...*ast.Term) {
	t.Helper()
	want, wantErr := call(name, nil, operands...)
	var got []*ast.Term
	b := &purse{left: budgetBytes}
	err := f(topdown.BuiltinContext{Cancel: b, Metrics: metrics.New()}, b, operands, func(t *ast.Term) error {
		if text, ok := t.Value.(ast.String); ok {
			t = s(numberName.Replace(string(text)))
		}
		got = append(got, t)
		return nil
	})
	if b.over {
		return // OPA's has no end to what it takes
	}
	if err != nil {
		err = errors.New(numberName.Replace(err.Error()))
	}
	switch {
	case (err == nil) != (wantErr == nil):
		t.Errorf("%s(%v): got error %v, want %v", name, operands, err, wantErr)
	case err != nil:
		if !strings.HasSuffix(wantErr.Error(), err.Error()) && !strings.HasSuffix(err.Error(), wantErr.Error()) {
			t.Errorf("%s(%v): got error %v, want %v", name, operands, err, wantErr)
		}
	case len(got) != len(want) || len(got) > 0 && !got[0].Equal(want[0]):
		t.Errorf("%s(%v): got %v, want %v", name, operands, got, want)
	}
}

// pick returns a text of some of the parts.
func pick(r *rand.Rand, most int, parts ...string) string {
	var made strings.Builder
	for range r.Intn(most + 1) {
		made.WriteString(parts[r.Intn(len(parts))])
	}
	return made.String()
}

func s(text string) *ast.Term { return ast.StringTerm(text) }

// TestSameAsOPA: functions of this package say what OPA's say, for random operands that are small.
func TestSameAsOPA(t *testing.T) {
	Guard()
	all := owns()
	r := rand.New(rand.NewSource(1))
	expression := func() string {
		return pick(r, 6, "a", "b", "é", ".", "a*", "b+", "(a)", "(b|)", "|", "^", "$", `\b`, `\B`, "(?m)", "(?i)",
			"[a-b]", "[^a]", "x??", "(", ")", "{2}", `\n`, "(?P<n>a)", "a*?", `\z`, `\Qa`, `\pL`)
	}
	text := func() string { return pick(r, 12, "a", "b", "A", "é", "\n", "x", " ", ".", "\xff", "ab") }
	rounds := 10_000
	if testing.Short() {
		rounds = 3_000
	}
	for range rounds {
		limit := ast.IntNumberTerm(r.Intn(6) - 1)
		sameAsOPA(t, "regex.match", all["regex.match"], s(expression()), s(text()))
		sameAsOPA(t, "regex.is_valid", all["regex.is_valid"], s(expression()))
		sameAsOPA(t, "regex.find_n", all["regex.find_n"], s(expression()), s(text()), limit)
		sameAsOPA(t, "regex.find_all_string_submatch_n", all["regex.find_all_string_submatch_n"], s(expression()),
			s(text()), limit)
		sameAsOPA(t, "regex.split", all["regex.split"], s(expression()), s(text()))
		sameAsOPA(t, "regex.replace", all["regex.replace"], s(text()), s(expression()),
			s(pick(r, 3, "$1", "${n}", "x", "$0", "$")))
		template := pick(r, 5, "a", "<", ">", "<a*>", "<b|a>", ".", "<[>")
		sameAsOPA(t, "regex.template_match", all["regex.template_match"], s(template), s(text()), s(pick(r, 2, "<")),
			s(">"))
		sign := func() string {
			return pick(r, 5, "a", "b", ".", "[ab]", "[a-c]", "a*", "b+", ".*", ".+", `\.`, "[b-c]*", "[", "]", "*",
				"c")
		}
		sameAsOPA(t, "regex.globs_match", all["regex.globs_match"], s(sign()), s(sign()))
		wild := pick(r, 6, "a", "b", "*", "**", "?", ".", "[ab]", "[!a]", "[a-b]", "{a,b}", "{a*,", "}", `\*`, "é", "[",
			",", "-", "[^]", "/")
		separators := []*ast.Term{ast.NullTerm(), ast.ArrayTerm(), ast.ArrayTerm(s("/")), ast.ArrayTerm(s("."), s("a")),
			ast.ArrayTerm(s("ab"))}
		sameAsOPA(t, "glob.match", all["glob.match"], s(wild), separators[r.Intn(len(separators))],
			s(strings.ToValidUTF8(text(), "")+pick(r, 2, "/", ".", "*", "^", "-")))
		sameAsOPA(t, "indexof", all["indexof"], s(text()), s(pick(r, 3, "a", "b", "é", "\xff")))
		sameAsOPA(t, "indexof_n", all["indexof_n"], s(text()), s(pick(r, 3, "a", "b", "é", "\xff")))
		sameAsOPA(t, "object.subset", all["object.subset"], value(r, 3), value(r, 3))
		sameAsOPA(t, "graph.reachable", all["graph.reachable"], graph(r), value(r, 2))
		if t.Failed() {
			t.FailNow()
		}
	}
}

// value returns a random value.
func value(r *rand.Rand, depth int) *ast.Term {
	kind := r.Intn(6)
	if depth == 0 {
		kind = 3 + r.Intn(3)
	}
	items := make([]*ast.Term, r.Intn(4)*min(depth, 1))
	for i := range items {
		items[i] = value(r, max(depth-1, 0))
	}
	switch kind {
	case 0:
		return ast.ArrayTerm(items...)
	case 1:
		return ast.SetTerm(items...)
	case 2:
		o := ast.NewObject()
		for _, item := range items {
			o.Insert(s(pick(r, 1, "a", "b")), item)
		}
		return ast.NewTerm(o)
	case 3:
		return s(pick(r, 1, "a", "b"))
	case 4:
		return ast.IntNumberTerm(r.Intn(2))
	}
	return ast.BooleanTerm(r.Intn(2) == 0)
}

// graph returns a random graph.
func graph(r *rand.Rand) *ast.Term {
	o := ast.NewObject()
	for _, node := range []*ast.Term{s("a"), s("b"), ast.IntNumberTerm(0), ast.IntNumberTerm(1)} {
		if r.Intn(3) > 0 {
			o.Insert(node, value(r, 1))
		}
	}
	return ast.NewTerm(o)
}

// TestSameTemplates: templates that ask as they run make what they make with OPA.
func TestSameTemplates(t *testing.T) {
	Guard()
	variables := ast.MustParseTerm(`{"a": "x", "n": 2, "l": [1, "b", null], "m": {"k": 1, "j": {"i": []}}, "e": [], "t": true, "h": "<a b='c'>"}`)
	texts := []string{
		"", "{{.a}}", "{{.missing}}", "{{range .l}}<{{.}}>{{end}}", "{{range .missing}}a{{else}}b{{end}}",
		"{{range .e}}a{{else}}b{{end}}", "{{range $i, $v := .l}}{{$i}}={{$v}};{{end}}",
		"{{range $k, $v := .m}}{{$k}}={{$v}};{{end}}", "{{range .n}}a{{end}}", "{{range 3}}{{.}}{{end}}",
		"{{range .a}}b{{end}}", "{{range 1.5}}b{{end}}", "{{range .l}}{{break}}{{end}}",
		"{{range .l}}a{{continue}}b{{end}}",
		"{{define \"x\"}}[{{.}}]{{end}}{{template \"x\" .a}}", "{{template \"y\"}}", "{{define \"x\"}}{{if .m}}{{template \"x\" .m}}{{else}}end{{end}}{{end}}{{template \"x\" .}}", "{{with .m}}{{.k}}{{end}}", "{{if .t}}y{{else if .a}}z{{end}}",
		"{{printf \"%v-%5s-%d\" .l .a .n}}", "{{print .a .l}}", "{{println .a}}", "{{.h | html}}", "{{.h | js}}",
		"{{.h | urlquery}}", "{{len .l}}", "{{index .l 1}}", "{{slice .a 0 1}}", "{{eq .a \"x\"}}", "{{and .t .a}}",
		"{{not .t}}",
		"{{.a.b}}", "{{.l.b}}", "{{call .a}}", "{{nosuch .a}}", "{{", "{{end}}", "{{range}}", "{{$x := .a}}{{$x}}",
		"{{block \"z\" .}}{{.a}}{{end}}", "{{/* c */}}{{- .a -}} b", "{{(index .l 0) | printf \"%v\"}}", "{{.n}}",
		"{{lt .n 3}}",
		"{{range $i, $v := .n}}{{end}}", "{{range (index .l 2)}}a{{else}}b{{end}}", "{{range .l | len}}a{{end}}",
		"{{range $.m.j.i}}{{end}}", "{{html}}", "{{print}}", "{{printf}}", "{{printf .n}}",
		"{{.n.String}}", "{{.n.Int64}}", "{{.n.String 1}}", "{{.m.k.Float64}}", "{{range .l}}{{.Missing}}{{end}}",
		"{{$.t.String}}",
	}
	f := owns()["strings.render_template"]
	for _, text := range texts {
		sameAsOPA(t, "strings.render_template", f, s(text), variables)
	}
	r := rand.New(rand.NewSource(2))
	for range 5_000 {
		text := pick(r, 6, "{{range .l}}", "{{if .t}}", "{{else}}", "{{end}}", "{{.a}}", "{{.}}", "{{with .m}}",
			"{{define \"x\"}}", "{{template \"x\" .}}", "a", "{{break}}", "{{range $.m}}", "{{$x := .}}", "{{$x}}",
			"{{printf \"%s\" .}}")
		sameAsOPA(t, "strings.render_template", f, s(text), variables)
	}
}

// FuzzSameAsOPA compares the functions of this package with OPA's.
func FuzzSameAsOPA(f *testing.F) {
	names := []string{"regex.match", "regex.is_valid", "regex.find_n", "regex.find_all_string_submatch_n",
		"regex.split", "regex.replace", "regex.globs_match", "glob.match", "indexof", "indexof_n",
		"strings.render_template"}
	for i := range names {
		f.Add(uint8(i), "(a|b)*c", "abc abc", "$1")
		f.Add(uint8(i), "[ab]*", "a{b,c}", ".")
		f.Add(uint8(i), "{{range .l}}{{.}}{{end}}", "x", "y")
	}
	Guard()
	all := owns()
	f.Fuzz(func(t *testing.T, which uint8, a, b, c string) {
		if len(a)+len(b)+len(c) > 200 {
			return
		}
		name := names[int(which)%len(names)]
		operands := []*ast.Term{s(a), s(b), s(c)}
		switch name {
		case "regex.find_n", "regex.find_all_string_submatch_n":
			operands[2] = ast.IntNumberTerm(len(c) - 1)
		case "glob.match":
			operands[1], operands[2] = ast.NullTerm(), s(strings.ToValidUTF8(b, ""))
			if strings.Count(a, "*")+strings.Count(a, ",")+strings.Count(a, "{") > 5 {
				return // OPA's goes all ways
			}
		case "regex.globs_match":
			if len(a)+len(b) > 20 {
				return
			}
		case "strings.render_template":
			operands[1] = ast.MustParseTerm(fmt.Sprintf(`{"a": %q, "l": [1, 2]}`, "x"))
			if strings.Count(a, "range") > 2 || strings.Contains(a, "template") ||
				strings.ContainsAny(a, "0123456789") {
				return
			}
		}
		sameAsOPA(t, name, all[name], operands...)
	})
}
