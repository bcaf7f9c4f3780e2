// Package regotest makes what tests of Rego share: modules and inputs.
package regotest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// A Grammar writes modules whose rules are named r0, r1, and so on. Each rule may use the ones
// before.
type Grammar struct {
	*rand.Rand
	rules int
	vars  []string // that have a value at the end of the text so far
	names int
	Kinds []string // of the rules
}

func (g *Grammar) pick(from ...string) string { return from[g.IntN(len(from))] }

func (g *Grammar) fresh() string {
	g.names++
	return fmt.Sprintf("v%d", g.names)
}

// Module writes a module, of rules with which it compiles.
func (g *Grammar) Module(compiles func(text string) bool) string {
	text := "package t\n"
	for range 20 {
		kind := g.pick("complete", "complete", "set", "set", "object", "function", "else")
		more := text
		for range 1 + g.IntN(2) {
			more += g.rule(kind) + "\n"
		}
		if !compiles(more) {
			continue
		}
		text = more
		g.Kinds = append(g.Kinds, kind)
		if g.rules++; g.rules == 6 {
			break
		}
	}
	return text
}

func (g *Grammar) rule(kind string) string {
	name := fmt.Sprintf("r%d", g.rules)
	g.vars = nil
	switch kind {
	case "function":
		g.vars = []string{"x"}
		body := g.body(2)
		return fmt.Sprintf("%s(x) := %s if { %s }", name, g.term(), body)
	case "set":
		body := g.body(3)
		return fmt.Sprintf("%s contains %s if { %s }", name, g.term(), body)
	case "object":
		body := g.body(3)
		return fmt.Sprintf("%s[%s] := %s if { %s }", name, g.term(), g.term(), body)
	case "else":
		first := g.body(2)
		value := g.pick("1", "true", g.term())
		g.vars = nil
		second := g.body(2)
		return fmt.Sprintf("%s := %s if { %s } else := %s if { %s }", name, value, first, g.term(), second)
	}
	body := g.body(3)
	return fmt.Sprintf("%s := %s if { %s }", name, g.pick("true", "1", g.term()), body)
}

func (g *Grammar) body(depth int) string {
	var parts []string
	for range 1 + g.IntN(3) {
		parts = append(parts, g.expr(depth))
	}
	return strings.Join(parts, "; ")
}

// term is a term without variables that have no value.
func (g *Grammar) term() string {
	if len(g.vars) > 0 && g.IntN(2) == 0 {
		return g.vars[g.IntN(len(g.vars))]
	}
	switch g.IntN(9) {
	case 0:
		return "[" + g.term() + ", " + g.term() + "]"
	case 1:
		return `{"a": ` + g.term() + "}"
	case 2:
		return "{" + g.term() + ", 1}"
	case 3:
		return g.pick("input.review.a", "input.review.b", "input.review.map.a", "input.review.list[0]")
	case 4:
		return g.pick("input.parameters.a", "input.parameters.b", "input.parameters.map.a", "input.parameters.list[0]",
			`object.get(input.parameters, "most", 1)`, `object.get(object.get(input, "parameters", {}), "least", "x")`,
			"data.fixed.a")
	}
	if g.IntN(3) == 0 {
		return g.pick("1", "2", `"x"`, `"a"`, "true", "false", "null")
	}
	return g.pick("input.review.k.one", "input.review.k.two", "input.review.k.x", "input.review.k.a",
		"input.review.k.yes", "input.review.k.no")
}

// collection has members, perhaps.
func (g *Grammar) collection() string {
	if g.rules > 0 && g.IntN(2) == 0 {
		if i := g.IntN(g.rules); g.Kinds[i] != "function" {
			return fmt.Sprintf("r%d", i)
		}
	}
	return g.pick("input.review.list", "input.review.map", "input.review", "input.review.list", "input.review.map",
		"[1, 2, 2]", `{"x": 1, "a": 2}`, `{1, "x", [1, 2]}`,
		"input.parameters.list", "input.parameters.map", "input.parameters", "input", "data.fixed", "data.fixed.list",
		"data.fixed.map")
}

func (g *Grammar) expr(depth int) string {
	if g.IntN(8) == 0 {
		return g.simple(depth) + g.replacing()
	}
	return g.simple(depth)
}

// replacing is what stands behind an expression for which documents are replaced.
func (g *Grammar) replacing() (text string) {
	for range 1 + g.IntN(2) {
		target := g.pick("input", "input.review", "input.parameters", "input.review.list", "input.review.map",
			"input.review.map.a", "input.review.k",
			"input.review.k.one", "input.parameters.list", "input.parameters.map.b", "input.review.list.x",
			"data.fixed", "data.fixed.list", "data.fixed.map.a", "data.fixed.none")
		value := g.pick(g.term(), g.collection(), g.collection(), "input.review", `{"review": `+g.collection()+"}",
			`{"a": 1, "map": `+g.collection()+"}")
		text += " with " + target + " as " + value
	}
	return text
}

func (g *Grammar) simple(depth int) string {
	if depth == 0 {
		return g.test()
	}
	switch g.IntN(12) {
	case 0, 1:
		from, v := g.collection(), g.fresh()
		g.vars = append(g.vars, v)
		return fmt.Sprintf("some %s in %s", v, from)
	case 2:
		from, k, v := g.collection(), g.fresh(), g.fresh()
		g.vars = append(g.vars, k, v)
		return fmt.Sprintf("some %s; %s = %s[%s]", k, v, from, k)
	case 3:
		value, v := g.value(), g.fresh()
		g.vars = append(g.vars, v)
		return v + " := " + value
	case 4:
		return "not " + g.test()
	case 5:
		before := len(g.vars)
		v, from := g.fresh(), g.collection()
		g.vars = append(g.vars, v)
		body := g.body(depth - 1)
		g.vars = g.vars[:before]
		return fmt.Sprintf("every %s in %s { %s }", v, from, body)
	case 6, 7:
		before := len(g.vars)
		body := g.body(depth - 1)
		item, key := g.term(), g.term()
		g.vars = g.vars[:before]
		v := g.fresh()
		g.vars = append(g.vars, v)
		return v + " := " + g.pick("["+item+" | "+body+"]", "{"+item+" | "+body+"}", "{"+key+": "+item+" | "+body+"}")
	case 8:
		a, b := g.fresh(), g.fresh()
		from := g.pick(g.term(), g.collection()+"[_]")
		g.vars = append(g.vars, a, b)
		return fmt.Sprintf("some %s, %s; %s = %s", a, b,
			g.pick("["+a+", "+b+"]", `{"a": `+a+`, "b": `+b+"}", "["+a+", ["+b+"]]"), from)
	case 9:
		p, v := g.fresh(), g.fresh()
		from := g.collection()
		g.vars = append(g.vars, p, v)
		return fmt.Sprintf("some %s, %s; walk(%s, [%s, %s])", p, v, from, p, v)
	}
	return g.test()
}

// value is a call.
func (g *Grammar) value() string {
	if g.rules > 0 && g.IntN(3) == 0 {
		if i := g.IntN(g.rules); g.Kinds[i] == "function" {
			return fmt.Sprintf("r%d(%s)", i, g.term())
		}
	}
	switch g.IntN(8) {
	case 0:
		return "count(" + g.collection() + ")"
	case 1:
		return `sprintf("%v-%v", [` + g.term() + ", " + g.term() + "])"
	case 2:
		return "object.get(" + g.collection() + ", " + g.term() + ", " + g.term() + ")"
	case 3:
		return g.term() + g.pick(" + ", " - ", " * ") + g.term()
	case 4:
		return "to_number(" + g.term() + ")"
	case 5:
		return g.collection() + "[" + g.term() + "]"
	case 6:
		return "startswith(" + g.term() + ", " + g.term() + ")"
	}
	return g.term() + g.pick(" == ", " != ", " < ", " >= ") + g.term()
}

// test is an expression that gives no variable a value.
func (g *Grammar) test() string {
	switch g.IntN(6) {
	case 0:
		return g.term() + " in " + g.collection()
	case 1:
		return g.collection() + "[" + g.pick(g.term(), "_") + "]"
	case 2:
		return g.value() + g.pick(" == ", " != ", " > ") + g.term()
	case 3:
		return g.value()
	case 4:
		return g.term() + " = " + g.value()
	}
	return g.term() + g.pick(" == ", " != ", " < ") + g.term()
}

// Changed is a copy of a JSON value in which one part has become something else, or is missing.
func Changed(value any, r *rand.Rand) any {
	others := []any{nil, true, false, json.Number("0"), json.Number("-7.5"), json.Number("1e3"), "", "UPDATE",
		"registry.example.com/", "*",
		[]any{}, []any{"a", json.Number("1")}, map[string]any{}, map[string]any{"name": "a"}}
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 || r.IntN(8) == 0 {
			break
		}
		keys := slices.Sorted(maps.Keys(v))
		key := keys[r.IntN(len(keys))]
		v = maps.Clone(v)
		if r.IntN(5) == 0 {
			delete(v, key)
		} else {
			v[key] = Changed(v[key], r)
		}
		return v
	case []any:
		if len(v) == 0 || r.IntN(8) == 0 {
			break
		}
		v = slices.Clone(v)
		i := r.IntN(len(v))
		switch r.IntN(6) {
		case 0:
			return slices.Delete(v, i, i+1)
		case 1:
			return append(v, v[i])
		}
		v[i] = Changed(v[i], r)
		return v
	}
	return others[r.IntN(len(others))]
}
