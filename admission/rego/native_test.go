package rego

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/admission-gateway/gateway/admission/rego/regotest"
)

// byOPA is a query without its plan.
func byOPA(q *Query) *Query {
	by := *q
	by.native = nil
	return &by
}

// likeOPA compares the result of a query's plan with the result of OPA's evaluator: the solutions
// in their order, or the error.
func likeOPA(t *testing.T, q *Query, in *Input) {
	t.Helper()
	ours, ourErr := solutions(q, in)
	theirs, theirErr := solutions(byOPA(q), in)
	if oneConflicts(ourErr, theirErr) {
		return
	}
	if textOfError(ourErr) != textOfError(theirErr) {
		t.Errorf("the error is %v, want %v", ourErr, theirErr)
	} else if ourErr == nil && !slices.Equal(ours, theirs) {
		t.Errorf("got  %s\nwant %s", ours, theirs)
	}
}

// oneConflicts reports whether both evaluations failed, at least one of them by two values of a
// rule. OPA goes on with the first value before it looks for a second one, and may come across an
// error there.
func oneConflicts(a, b error) bool {
	if a == nil || b == nil {
		return false
	}
	return strings.Contains(a.Error(), topdown.ConflictErr) || strings.Contains(b.Error(), topdown.ConflictErr)
}

func textOfError(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// byName has the values of a solution by their variables.
func byName(s solution) topdown.QueryResult {
	all := maps.Clone(s.found)
	if all == nil {
		all = topdown.QueryResult{}
	}
	for i, v := range s.vars {
		all[v] = s.values[i]
	}
	return all
}

func solutions(q *Query, in *Input) (all []string, err error) {
	_, err = q.run(context.Background(), in, func(s solution) error {
		r := byName(s)
		var parts []string
		for _, v := range slices.Sorted(maps.Keys(r)) {
			if !v.IsGenerated() && !v.IsWildcard() {
				parts = append(parts, string(v)+"="+r[v].String())
			}
		}
		all = append(all, strings.Join(parts, " "))
		return nil
	})
	return all, err
}

func decoded(t testing.TB, text []byte) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func encoded(t testing.TB, v any) Value {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return parsed(t, text)
}

// TestPlansOfGatekeepersLibrary: each template of Gatekeeper's library has a plan, with parameters
// and without, with the results of OPA's evaluator, for the recorded objects and for ones with
// parts of another type.
func TestPlansOfGatekeepersLibrary(t *testing.T) {
	for _, c := range recordedCases(t) {
		t.Run(c.ID, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, uint64(len(c.ID))))
			kept := inventory(t, c.InventoryFiles)
			in := Input{Inventory: func() (Value, error) { return kept, nil }}
			parameters := parsed(t, c.Input.Parameters)
			if !parameters.Valid() || parameters == Null {
				parameters = Object()
			}
			whole := templateQuery(t, c.PolicyFiles[0])
			bound := whole.With(parameters)
			if is, why := whole.Native(); !is {
				t.Errorf("there is no plan: %s", why)
			}
			review := decoded(t, c.Input.Review)
			for range 25 {
				in.Review, in.Parameters = read(t, []byte(raw(t, review))), Value{}
				likeOPA(t, bound, &in)
				in.Parameters = parameters
				likeOPA(t, whole, &in)
				if review = regotest.Changed(review, r); r.IntN(4) == 0 {
					review = decoded(t, c.Input.Review)
				}
			}
		})
	}
}

// TestPlans: the results of a plan in the cases in which it could depart from OPA's evaluator.
func TestPlans(t *testing.T) {
	cases := []struct{ name, module, want string }{
		{"a rule with two values", `p := x if some x in [1, 2]`, "!policy.rego:2:1: eval_conflict_error: rule data.t.p produced conflicting values"},
		{"a function with two values", "f(x) := y if some y in x\np := f([1, 2])", "!policy.rego:2:1: eval_conflict_error: function data.t.f produced conflicting values for the same inputs"},
		{"a function whose value is known", "f(x) := y if y = x[_]\np if { y := 2; f([1, 2], y) }", "true"},
		{"an object with two values for a key", `p[x] := y if { x := "a"; some y in [1, 2] }`,
			"!policy.rego:2:1: eval_conflict_error: object keys must be unique"},
		{"an error of a function", `p if to_number("a") > 1`,
			`!policy.rego:2:6: eval_builtin_error: to_number: parsing "a": invalid syntax`},
		{"an operand of a wrong type", `p if { x := input.review.list[_]; startswith(x, "a") }`, "!policy.rego:2:35: eval_type_error: startswith: operand 1 must be string but got number"},
		{"a rule that the index leaves out", "p if { to_number(\"a\") > 1; input.review.n == 2 }\np if true", "true"},
		{"what comes behind the first value", "p if true\np if to_number(\"a\") > 1", "true"},
		{"an element of a set that fails for others", `s contains x if { some x in ["1", "a"]; to_number(x) > 0 }
p if s["1"]`, "true"},
		{"else", "p := 1 if input.review.n == 3\nelse := 2 if input.review.n == 1", "2"},
		{"a default", "default p := 7\np := 1 if input.review.n == 3", "7"},
		{"no value", "p := 1 if input.review.n == 3", "!data.t.p: the rule has no value for the request"},
		{"every", `p if every i, x in input.review.list { x > i }`, "true"},
		{"walk", `p := {path | walk(input.review.tree, [path, 3])}`, `{["a", "b"]}`},
		{"a message before the condition",
			"p contains m if { m := sprintf(\"%v\", [x]); x > 1; x = input.review.list[_] }", `{"2", "3"}`},
		{"nested comprehensions", `p := [y | some x in input.review.list; y := {z: x | some z in [x, x * 2]}]`,
			`[{1: 1, 2: 1}, {2: 2, 4: 2}, {3: 3, 6: 3}]`},
		{"destructuring", `p := [a, b] if [a, {"k": b}] = [1, {"k": input.review.n}]`, "[1, 1]"},
		{"with, and what the rule read before and reads after it", `q := input.review.n
p := [a, b, c, input.review.n] if { a := input.review.n; b := q with input.review.n as 7; c := q }`, "[1, 7, 1, 1]"},
		{"with for each value", `q := input.review.n * 2
p := [x | some n in input.review.list; x := q with input.review.n as n]`, "[2, 4, 6]"},
		{"with for many values, and what follows each", `q contains x if some x in input.review.list
p := {[x, y] | q[x] with input.review.list as [7, 8]; q[y]}`, "{[7, 1], [7, 2], [7, 3], [8, 1], [8, 2], [8, 3]}"},
		{"with within with", `q := input.review.n + input.review.m
r := x if x := q with input.review.m as 10
p := x if x := r with input.review.n as 5`, "15"},
		{"not and with", `q if input.review.n == 2
p := 1 if not q with input.review.n as 2
else := 2 if not q with input.review.n as 3`, "2"},
		{"with a whole input", `q := input.a
p := x if x := q with input as {"a": input.review.n}`, "1"},
		{"with data", `q := data.fixed.map["1"]
p := [q, r] if r := q with data.fixed.map as {"1": input.review.n}`, `["x", 1]`},
		{"with data, beside what is there", `q := data.fixed.map.y
p := [q, r] if r := q with data.fixed.map["1"] as input.review.n`, `["z", "z"]`},
		{"a function within with", `f(x) := x + input.review.n
p := [f(1), r, f(1)] if r := f(1) with input.review.n as 5`, "[2, 6, 2]"},
		{"with a path through a number", `q := input.review.n.deep
p := x if x := q with input.review.n.deep as 4`, "4"},
		{"data by a number", `p := data.fixed.list[i] if i = 1`, `"b"`},
		{"data of a member", `p := {k: v | v := data.fixed.map[k]}`, `{"1": "x", "y": "z"}`},
	}
	in := Input{Review: read(t, []byte(`{"n":1,"list":[1,2,3],"tree":{"a":{"b":3},"c":1}}`))}
	data := parsed(t, []byte(`{"fixed":{"list":["a","b"],"map":{"1":"x","y":"z"}}}`))
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, err := Compile(Options{Data: data},
				Module{File: "policy.rego", Source: []byte("package t\n" + c.module)})
			if err != nil {
				t.Fatal(err)
			}
			q, err := p.Query("data.t.p")
			if err != nil {
				t.Fatal(err)
			}
			if is, why := q.Native(); !is {
				t.Fatalf("there is no plan: %s", why)
			}
			for _, q := range []*Query{q, byOPA(q)} {
				got := ""
				if v, err := q.Value(context.Background(), &in); err != nil {
					got = "!" + strings.TrimPrefix(err.Error(), "data.t.p: policy")
					got = strings.Replace(got, "!.rego", "!policy.rego", 1)
				} else {
					got = v.term.String()
				}
				if got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
			}
		})
	}
}

// TestWithoutPlan: what has no plan is evaluated by OPA, and a query says why.
func TestWithoutPlan(t *testing.T) {
	p, err := Compile(Options{},
		Module{File: "policy.rego", Source: []byte("package t\np if count([]) == 1\nq if p with count as 1")})
	if err != nil {
		t.Fatal(err)
	}
	q, err := p.Query("data.t.q")
	if err != nil {
		t.Fatal(err)
	}
	if is, why := q.Native(); is || why != "there is no step for with count" {
		t.Errorf("native: %v, %q", is, why)
	}
	if v, err := q.Value(context.Background(), &Input{}); err != nil || v.term.String() != "true" {
		t.Errorf("got %v, %v", v, err)
	}
}

// TestPlanEnds: a plan ends with its budget, and with its request.
func TestPlanEnds(t *testing.T) {
	p, err := Compile(Options{Budget: 1 << 20}, Module{File: "policy.rego", Source: []byte("package t\n" +
		"n := numbers.range(1, 500)\np := count([1 | n[_]; n[_]; n[_]])")})
	if err != nil {
		t.Fatal(err)
	}
	q, err := p.Query("data.t.p")
	if err != nil {
		t.Fatal(err)
	}
	if is, why := q.Native(); !is {
		t.Fatal(why)
	}
	if _, err := q.Value(context.Background(), &Input{}); !errors.Is(err, errBudget) {
		t.Errorf("the budget: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := q.Value(ctx, &Input{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the request: %v", err)
	}
}

// TestPlanAfterPanic: a panic in an evaluation is an error, and the plan evaluates the next request.
func TestPlanAfterPanic(t *testing.T) {
	p, err := Compile(Options{}, Module{File: "policy.rego", Source: []byte("package t\np := data.inventory.a")})
	if err != nil {
		t.Fatal(err)
	}
	q, err := p.Query("data.t.p")
	if err != nil {
		t.Fatal(err)
	}
	if is, why := q.Native(); !is {
		t.Fatal(why)
	}
	_, err = q.Value(context.Background(), &Input{Inventory: func() (Value, error) { panic("no") }})
	if want := "data.t.p: the evaluation failed with an internal error"; textOfError(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
	known := parsed(t, []byte(`{"a":1}`))
	in := Input{Inventory: func() (Value, error) { return known, nil }}
	if v, err := q.Value(context.Background(), &in); err != nil || v.term.String() != "1" {
		t.Errorf("got %v, %v", v, err)
	}
}

// TestPlanOfManyRequests: requests share a plan, and none sees another one's values.
func TestPlanOfManyRequests(t *testing.T) {
	p, err := Compile(Options{}, Module{File: "policy.rego", Source: []byte(`package t
p := [x | some i; f(input.review.list[i], x); s[x]]
f(n) := n * 2
s contains y if { some z in input.review.list; y := z * 2 }
`)})
	if err != nil {
		t.Fatal(err)
	}
	q, err := p.Query("data.t.p")
	if err != nil {
		t.Fatal(err)
	}
	if is, why := q.Native(); !is {
		t.Fatal(why)
	}
	var all sync.WaitGroup
	for request := range 8 {
		all.Go(func() {
			in := Input{Review: read(t, fmt.Appendf(nil, `{"list":[%d,%d]}`, request, request+100))}
			want := fmt.Sprintf("[%d, %d]", 2*request, 2*request+200)
			for range 100 {
				v, err := q.Value(context.Background(), &in)
				if err != nil || v.term.String() != want {
					t.Errorf("got %v, %v, want %s", v, err, want)
				}
			}
		})
	}
	all.Wait()
}
