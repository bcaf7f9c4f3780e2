package plan_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/test/cases"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/admission-gateway/gateway/admission/rego/plan"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// A query is one that both evaluate: a plan, and OPA's evaluator.
type query struct {
	compiler *ast.Compiler
	body     ast.Body
	plan     *plan.Plan // nil if there is none
	reason   error      // why there is none
	data     map[string]any
	lenient  bool
}

func compiled(version ast.RegoVersion, data map[string]any, text string, modules ...string) (*query, error) {
	options := ast.ParserOptions{RegoVersion: version}
	parsed := map[string]*ast.Module{}
	for i, m := range modules {
		name := fmt.Sprintf("m%d.rego", i)
		module, err := ast.ParseModuleWithOpts(name, m, options)
		if err != nil {
			return nil, err
		}
		parsed[name] = module
	}
	c := ast.NewCompiler().WithDefaultRegoVersion(version)
	if c.Compile(parsed); c.Failed() {
		return nil, c.Errors
	}
	body, err := ast.ParseBodyWithOpts(text, options)
	if err != nil {
		return nil, err
	}
	if body, err = c.QueryCompiler().Compile(body); err != nil {
		return nil, err
	}
	q := &query{compiler: c, body: body, data: data}
	q.plan, q.reason = plan.New(body, c)
	return q, nil
}

// documents are what modules read. The input is shown as parts that are made when something needs them, as far as
// isLazy.
type documents struct {
	store  storage.Store
	txn    storage.Transaction
	input  *ast.Term
	isLazy bool
	err    error
}

func (d *documents) HasInput() bool     { return d.input != nil }
func (d *documents) Whole() *ast.Term   { return d.input }
func (d *documents) Outline() *ast.Term { return plan.Outline(d.value(d.input)) }
func (d *documents) Err() error         { return d.err }

func (d *documents) Member(name string) plan.Value {
	if d.input == nil {
		return plan.Value{}
	}
	if o, ok := d.input.Value.(ast.Object); ok {
		return d.value(o.Get(ast.StringTerm(name)))
	}
	return plan.Value{}
}

func (d *documents) Data(path storage.Path) (ast.Value, error) {
	v, err := d.store.Read(context.Background(), d.txn, path)
	if err != nil {
		return nil, err
	}
	return v.(ast.Value), nil
}

func (d *documents) value(t *ast.Term) plan.Value {
	if t == nil || !d.isLazy {
		return plan.Made(t)
	}
	switch t.Value.(type) {
	case ast.Object, *ast.Array:
		return plan.Unmade(&part{d, t})
	}
	return plan.Made(t)
}

// A part is a plan.LazyValue. It is another one each time that it is read.
type part struct {
	in   *documents
	term *ast.Term
}

func (p *part) Kind() plan.Kind {
	if _, isList := p.term.Value.(*ast.Array); isList {
		return plan.List
	}
	return plan.Object
}

func (p *part) Len() int {
	if l, isList := p.term.Value.(*ast.Array); isList {
		return l.Len()
	}
	return p.term.Value.(ast.Object).Len()
}

func (p *part) Key(i int) *ast.Term {
	if p.Kind() == plan.List {
		return ast.InternedTerm(i)
	}
	return p.term.Value.(ast.Object).Keys()[i]
}

func (p *part) At(i int) plan.Value { return p.Get(p.Key(i)) }

func (p *part) Get(key *ast.Term) plan.Value {
	if l, isList := p.term.Value.(*ast.Array); isList {
		return p.in.value(l.Get(key))
	}
	return p.in.value(p.term.Value.(ast.Object).Get(key))
}

func (p *part) Whole() *ast.Term { return p.term }
func (p *part) ID() int          { return p.term.Hash() }

// limit ends an evaluation that did much.
type limit struct {
	left      int
	cancelled bool
	spent     int64
}

func (l *limit) Cancel() { l.cancelled = true }

func (l *limit) Cancelled() bool {
	l.left--
	l.spent += 10
	return l.cancelled || l.left < 0
}

func (l *limit) Spent() int64 { return l.spent }

// ours evaluates the plan. The solutions are in their order.
func (q *query) ours(t testing.TB, input *ast.Term, isLazy bool,
	shared *plan.Shared) (all []string, relaxed int, err error) {
	t.Helper()
	store := inmem.NewFromObjectWithOpts(q.data, inmem.OptReturnASTValuesOnRead(true))
	ctx := context.Background()
	txn := storage.NewTransactionOrDie(ctx, store)
	defer store.Abort(ctx, txn)
	env := plan.Env{
		Context: ctx, Documents: &documents{store: store, txn: txn, input: input, isLazy: isLazy},
		Cancel: &limit{left: 1_000_000}, Shared: shared,
		Capabilities: ast.CapabilitiesForThisVersion(),
	}
	if q.lenient {
		env.Relaxed = &plan.IgnoredErrors{}
	}
	vars := q.plan.Vars()
	err = q.plan.Run(env, func(values []*ast.Term) error {
		var parts []string
		for i, v := range vars {
			if !v.IsGenerated() && !v.IsWildcard() {
				parts = append(parts, string(v)+"="+values[i].String())
			}
		}
		slices.Sort(parts)
		all = append(all, strings.Join(parts, " "))
		return nil
	})
	if q.lenient {
		relaxed = env.Relaxed.Count
		if (env.Relaxed.First != nil) != (relaxed > 0) {
			t.Errorf("%d errors count as undefined, the first is %v", relaxed, env.Relaxed.First)
		}
	}
	return all, relaxed, err
}

// theirs evaluates the query by OPA's evaluator.
func (q *query) theirs(t testing.TB, input *ast.Term) (all []string, relaxed int, err error) {
	t.Helper()
	store := inmem.NewFromObjectWithOpts(q.data, inmem.OptReturnASTValuesOnRead(true))
	ctx := context.Background()
	txn := storage.NewTransactionOrDie(ctx, store)
	defer store.Abort(ctx, txn)
	var errs []topdown.Error
	by := topdown.NewQuery(q.body).WithCompiler(q.compiler).WithStore(store).WithTransaction(txn).WithInput(input).
		WithStrictBuiltinErrors(!q.lenient).WithBuiltinErrorList(&errs)
	err = by.Iter(ctx, func(r topdown.QueryResult) error {
		var parts []string
		for v, value := range r {
			if !v.IsGenerated() && !v.IsWildcard() {
				parts = append(parts, string(v)+"="+value.String())
			}
		}
		slices.Sort(parts)
		all = append(all, strings.Join(parts, " "))
		return nil
	})
	return all, len(errs), err
}

// compare evaluates a query in both ways, with an input that is made and one that is not.
func (q *query) compare(t *testing.T, input *ast.Term) {
	t.Helper()
	want, _, wantErr := q.theirs(t, input)
	shared := plan.NewShared(nil)
	for name, by := range map[string]func() ([]string, int, error){
		"made":   func() ([]string, int, error) { return q.ours(t, input, false, nil) },
		"lazy":   func() ([]string, int, error) { return q.ours(t, input, true, nil) },
		"shared": func() ([]string, int, error) { return q.ours(t, input, true, shared) },
		"kept":   func() ([]string, int, error) { return q.ours(t, input, false, shared) },
	} {
		got, _, err := by()
		if isConflict(err) && wantErr != nil || isConflict(wantErr) && err != nil {
			// OPA goes on with the first value before it looks for a second one, and may meet another error there
			continue
		}
		if textOf(err) != textOf(wantErr) {
			t.Errorf("%s: the error is %v, want %v", name, err, wantErr)
		} else if err == nil && !slices.EqualFunc(got, want, isSame) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// isSame compares solutions. Equal numbers may be written in several ways, of which OPA keeps the first.
func isSame(a, b string) bool {
	x, isOne := strings.CutPrefix(a, "x=")
	y, isToo := strings.CutPrefix(b, "x=")
	return a == b || isOne && isToo && ast.MustParseTerm(x).Equal(ast.MustParseTerm(y))
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func isConflict(err error) bool {
	return err != nil && strings.Contains(err.Error(), topdown.ConflictErr)
}

// TestConformance compares the plans of OPA's own cases, in both versions of the language, with OPA's evaluator.
func TestConformance(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/open-policy-agent/opa").Output()
	if err != nil {
		t.Fatal(err)
	}
	plans := 0
	for name, version := range map[string]ast.RegoVersion{"v0": ast.RegoV0, "v1": ast.RegoV1} {
		set, err := cases.Load(filepath.Join(strings.TrimSpace(string(dir)), "v1", "test", "cases", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range testutil.Sampled(3, set.Cases) {
			text := strings.Join(c.Modules, "\n") + c.Query
			if slices.ContainsFunc([]string{"http.send", "test.sleep", "net.lookup", "opa.runtime", "time.now", "rand.",
				"uuid.rfc", "io.jwt"}, func(s string) bool {
				return strings.Contains(text, s)
			}) {
				continue
			}
			t.Run(name+"/"+c.Note, func(t *testing.T) {
				data := map[string]any{}
				if c.Data != nil {
					data = *c.Data
				}
				q, err := compiled(version, data, c.Query, c.Modules...)
				if err != nil {
					t.Skip(err)
				}
				if q.plan == nil {
					return
				}
				var input *ast.Term
				switch {
				case c.InputTerm != nil:
					input = ast.MustParseTerm(*c.InputTerm)
				case c.Input != nil:
					input = ast.NewTerm(ast.MustInterfaceToValue(*c.Input))
				}
				plans++
				q.compare(t, input)
			})
		}
	}
	if least := testutil.Amount(3500, 1000); plans < least {
		t.Errorf("%d cases have a plan, want %d", plans, least)
	}
}

// TestResults has the results of a plan in the cases in which it could depart from OPA's evaluator.
func TestResults(t *testing.T) {
	input := ast.MustParseTerm(`{"review": {"n": 1, "list": [1, 2, 3], "tree": {"a": {"b": 3}, "c": 1}, "words": ["a", "b", "a"]}}`)
	data := map[string]any{"fixed": map[string]any{"list": []any{"a", "b"}, "map": map[string]any{"1": "x", "y": "z"}}}
	for _, c := range []struct{ name, module, want string }{
		{"a rule with two values", `p := x if some x in [1, 2]`,
			"error: m0.rego:2: eval_conflict_error: rule data.t.p produced conflicting values"},
		{"a function with two values", "f(x) := y if some y in x\np := f([1, 2])",
			"error: m0.rego:2: eval_conflict_error: function data.t.f produced conflicting values for the same inputs"},
		{"a function whose value is known", "f(x) := y if y = x[_]\np if { y := 2; f([1, 2], y) }", "true"},
		{"a function whose value is another one",
			"f(x) := y if y = x[_]\np if { y := 3; f([1, 2], y) }\ndefault p := 7",
			"7"},
		{"an object with two values for a key", `p[x] := y if { x := "a"; some y in [1, 2] }`,
			"error: m0.rego:2: eval_conflict_error: object keys must be unique"},
		{"an error of a function", `p if to_number("a") > 1`,
			`error: m0.rego:2: eval_builtin_error: to_number: strconv.ParseFloat: parsing "a": invalid syntax`},
		{"an operand of a wrong type", `p if { x := input.review.list[_]; startswith(x, "a") }`,
			"error: m0.rego:2: eval_type_error: startswith: operand 1 must be string but got number"},
		{"a rule that the index leaves out", "p if { to_number(\"a\") > 1; input.review.n == 2 }\np if true", "true"},
		{"what comes behind the first value", "p if true\np if to_number(\"a\") > 1", "true"},
		{"an element of a set that fails for others",
			"s contains x if { some x in [\"1\", \"a\"]; to_number(x) > 0 }\np if s[\"1\"]", "true"},
		{"else", "p := 1 if input.review.n == 3\nelse := 2 if input.review.n == 1", "2"},
		{"a second else", "p := 1 if input.review.n == 3\nelse := 2 if input.review.n == 4\nelse := 3", "3"},
		{"a default", "default p := 7\np := 1 if input.review.n == 3", "7"},
		{"a default of a function", "default f(_) := 7\nf(x) := 1 if x == 2\np := [f(1), f(2)]", "[7, 1]"},
		{"no value", "p := 1 if input.review.n == 3", ""},
		{"every", `p if every i, x in input.review.list { x > i }`, "true"},
		{"not every", `p if every x in input.review.list { x > 1 }`, ""},
		{"every of nothing", `p if every x in [] { x > 1 }`, "true"},
		{"every of what is no list", `p if every x in input.review.n { x > 1 }`, ""},
		{"walk", `p := {path | walk(input.review.tree, [path, 3])}`, `{["a", "b"]}`},
		{"a message before the condition",
			"p contains m if { m := sprintf(\"%v\", [x]); x > 1; x = input.review.list[_] }",
			`{"2", "3"}`},
		{"nested comprehensions", `p := [y | some x in input.review.list; y := {z: x | some z in [x, x * 2]}]`,
			`[{1: 1, 2: 1}, {2: 2, 4: 2}, {3: 3, 6: 3}]`},
		{"an object by two values for a key", `p := {k: i | k := input.review.words[i]}`,
			"error: m0.rego:2: eval_conflict_error: object keys must be unique"},
		{"destructuring", `p := [a, b] if [a, {"k": b}] = [1, {"k": input.review.n}]`, "[1, 1]"},
		{"destructuring of another length", `p := [a, b] if [a, b] = input.review.list`, ""},
		{"destructuring of other keys", `p := a if {"x": a} = input.review.tree`, ""},
		{"destructuring of an object", `p := [a, c] if {"a": {"b": a}, "c": c} = input.review.tree`, "[3, 1]"},
		{"with, and what the rule read before and reads after it", "q := input.review.n\n" +
			"p := [a, b, c, input.review.n] if { a := input.review.n; b := q with input.review.n as 7; c := q }",
			"[1, 7, 1, 1]"},
		{"with for each value",
			"q := input.review.n * 2\np := [x | some n in input.review.list; x := q with input.review.n as n]", "[2, 4, 6]"},
		{"with for many values, and what follows each", "q contains x if some x in input.review.list\n" +
			"p := {[x, y] | q[x] with input.review.list as [7, 8]; q[y]}",
			"{[7, 1], [7, 2], [7, 3], [8, 1], [8, 2], [8, 3]}"},
		{"with within with",
			"q := input.review.n + input.review.m\nr := x if x := q with input.review.m as 10\np := x if x := r with input.review.n as 5",
			"15"},
		{"not and with",
			"q if input.review.n == 2\np := 1 if not q with input.review.n as 2\nelse := 2 if not q with input.review.n as 3",
			"2"},
		{"with a whole input", "q := input.a\np := x if x := q with input as {\"a\": input.review.n}", "1"},
		{"with data", "q := data.fixed.map[\"1\"]\np := [q, r] if r := q with data.fixed.map as {\"1\": input.review.n}",
			`["x", 1]`},
		{"with data, beside what is there",
			"q := data.fixed.map.y\np := [q, r] if r := q with data.fixed.map[\"1\"] as input.review.n", `["z", "z"]`},
		{"a function within with", "f(x) := x + input.review.n\np := [f(1), r, f(1)] if r := f(1) with input.review.n as 5",
			"[2, 6, 2]"},
		{"with a path through a number", "q := input.review.n.deep\np := x if x := q with input.review.n.deep as 4",
			"4"},
		{"data by a number", `p := data.fixed.list[i] if i = 1`, `"b"`},
		{"data of a member", `p := {k: v | v := data.fixed.map[k]}`, `{"1": "x", "y": "z"}`},
		{"data that is not there", `p := data.fixed.none`, ""},
		{"comparisons of types",
			`p := [null < false, true < 0, 9 < "", "z" < [], [9] < {}, {"a": 1} < set(), [1, 2] < [1, 3], [1] < [1, 0], {"a": 1} < {"a": 2}]`,
			"[true, true, true, true, true, true, true, true, true]"},
		{"members of a set", `p := [x | s := {1, "a", [2]}; some x in [1, 2, "a", [2]]; s[x]]`, `[1, "a", [2]]`},
		{"some with keys", `p := [[k, v] | some k, v in input.review.tree]`, `[["a", {"b": 3}], ["c", 1]]`},
		{"in", `p := ["b" in input.review.words, 7 in input.review.words, 1, 2 in input.review.list, "a", 1 in {"a": 1}]`,
			`[true, false, 1, true, "a", true]`},
		{"a call in a reference", "f(x) := [x, x]\np := f(input.review.n)[1]", "1"},
		{"a negated reference", "p := [x | some x in [1, 9]; not x in input.review.list]", "[9]"},
		{"a value that is false", "q := false\np := [1 | q]", "[]"},
		{"a comparison of undefined", "p := [1 | input.review.none == input.review.none]", "[]"},
		{"a chain of rules", "a := b + 1\nb := c + 1\nc := input.review.n\np := a * b * c", "6"},
		{"a wrong operand of three", `p := substring(input.review.n, 0, 1)`,
			"error: m0.rego:2: eval_type_error: substring: operand 1 must be string but got number"},
		{"a member within with", "q := object.get(input.review, \"n\", 0)\nr := object.get(input, \"a\", 0)\n" +
			"p := [q, a, b, q] if { a := q with input as {\"review\": {\"n\": 9}}; b := r with input as {\"a\": 8} }", "[1, 9, 8, 1]"},
		{"unification of lists both ways", `p := [x, y, z] if { [x, 1, {"a": z}] = [2, y, {"a": input.review.n}] }`,
			"[2, 1, 1]"},
		{"unification of a value and a list", `p := [x | some v in [[1, 2], [1, 3], [2, 4], "a"]; [1, x] = v]`,
			"[2, 3]"},
		{"unification that fails", `p := 1 if { [1, x] = [2, x]; x = 3 }`, ""},
		{"unification of what was found",
			`p := [x | some x in input.review.list; [x, _] = [_, 3]; {"k": x} = {"k": 2}]`, "[2]"},
		{"with many times over", "q := [input.review.n, input.review.m]\np := [a, b, c, d] if { a := q with input.review.m as 1; b := q with input.review.m as 2; " +
			"c := q with input.review.n as 3 with input.review.m as 4; d := q with input.review as {\"n\": 5, \"m\": 6} }", "[[1, 1], [1, 2], [3, 4], [5, 6]]"},
		{"an object by keys of the input", `o[k] := v if some k, v in input.review.tree
p := [o.c, o["a"].b, [k | o[k]]]`, `[1, 3, ["a", "c"]]`},
		{"a negated call and comprehension", `f(x) if x > 2
p := [x | some x in input.review.list; not f(x); not [1 | x == 1] == [1]]`, "[2]"},
		{"print", `p := 1 if { print("a", input.review.none); print(input.review.n) }`, "1"},
		{"a reference into a call", `p := split("a.b", ".")[i] if i := input.review.n`, `"b"`},
		{"sets in sets", `s := {[x, {y}] | some x, y in input.review.list}
p := [x | [x, {2}] = s[_]]`, "[1]"},
		{"an index of many rules", `r(x) := "one" if x == 1
r(x) := "two" if x == 2
r(x) := "text" if x == "a"
r(x) := "list" if x == [1]
r(x) := "other" if { x != 1; x != 2; x != "a"; x != [1] }
p := [r(x) | some x in [1, 2, "a", [1], null, 1.0]]`, `["one", "two", "text", "list", "other", "one"]`},
		{"a set of objects", `p := {x | x := {"n": input.review.list[_] % 2}}`, `{{"n": 0}, {"n": 1}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			q, err := compiled(ast.RegoV1, data, "x = data.t.p", "package t\n"+c.module,
				"package u\na := 1\ndeep.b := 2\nnone := 1 if false")
			if err != nil {
				t.Fatal(err)
			}
			if q.plan == nil {
				t.Fatalf("there is no plan: %v", q.reason)
			}
			q.compare(t, input)
			all, _, err := q.theirs(t, input)
			got := ""
			for _, one := range all {
				got += strings.TrimPrefix(one, "x=")
			}
			if err != nil {
				got, _, _ = strings.Cut("error: "+err.Error(), ":\n") // without the values, which OPA lists
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			q.lenient = true
			want, wantRelaxed, wantErr := q.theirs(t, input)
			if found, relaxed, err := q.ours(t, input, true, nil); !isConflict(wantErr) &&
				(textOf(err) != textOf(wantErr) || !slices.Equal(found, want) || relaxed != wantRelaxed) {
				t.Errorf("leniently: got %s, %d errors, %v, want %s, %d, %v", found, relaxed, err, want, wantRelaxed,
					wantErr)
			}
		})
	}
}

// TestRefusals: a query that has no plan says why.
func TestRefusals(t *testing.T) {
	for module, want := range map[string]string{
		"p if count([]) == 1\nq if p with count as 1": "there is no step for with count",
		"f(x) := x\nq if f(1) with f as 2":            "there is no step for with data.t.f",
		"q := r if r := data.u.a with data.u.a as 7":  "there is no step for with data.u.a",
		"q := data.u": "data.u is all rules of a package",
		`a.b[x].c := y if { some x in ["u", "v"]; y := 1 }
q := a.b.v`: "the rules of data.t.a.b are of several forms",
	} {
		q, err := compiled(ast.RegoV1, nil, "data.t.q", "package t\n"+module, "package u\na := 1")
		if err != nil {
			t.Fatal(err)
		}
		if q.plan != nil || q.reason.Error() != want {
			t.Errorf("%s: %v, want %s", module, q.reason, want)
		}
	}
}

// TestEnds: an evaluation ends when it did enough, when the caller wants no more solutions, and when a document could
// not be made. The plan evaluates the next query then.
func TestEnds(t *testing.T) {
	q, err := compiled(ast.RegoV1, nil, "x = data.t.n[_]",
		"package t\nn := numbers.range(1, 300)\nm := count([1 | n[_]; n[_]; n[_]])")
	if err != nil {
		t.Fatal(err)
	}
	long, err := compiled(ast.RegoV1, nil, "x = data.t.m",
		"package t\nn := numbers.range(1, 300)\nm := count([1 | n[_]; n[_]; n[_]])")
	if err != nil {
		t.Fatal(err)
	}
	store := inmem.New()
	txn := storage.NewTransactionOrDie(context.Background(), store)
	run := func(q *query, l *limit, unmade error, each func() error) error {
		return q.plan.Run(plan.Env{Context: context.Background(),
			Documents: &documents{store: store, txn: txn, err: unmade}, Cancel: l},
			func([]*ast.Term) error { return each() })
	}
	for range 2 {
		n := 0
		if err := run(q, &limit{left: 10_000}, nil, func() error { n++; return nil }); err != nil || n != 300 {
			t.Errorf("%d solutions, %v", n, err)
		}
		enough := errors.New("enough")
		n = 0
		if err := run(q, &limit{left: 10_000}, nil, func() error {
			if n++; n == 7 {
				return enough
			}
			return nil
		}); !errors.Is(err, enough) || n != 7 {
			t.Errorf("%d solutions, %v", n, err)
		}
		if err := run(long, &limit{left: 10_000}, nil,
			func() error { t.Error("a solution"); return nil }); !topdown.IsCancel(err) {
			t.Errorf("the error is %v, want that it is cancelled", err)
		}
		unmade := errors.New("no memory")
		if err := run(q, &limit{left: 10_000}, unmade, func() error { return nil }); !errors.Is(err, unmade) {
			t.Errorf("the error is %v, want %v", err, unmade)
		}
	}
}

// bytes is a plan.Memory.
type bytes struct{ left, asked int }

func (b *bytes) Grow(n int) bool {
	b.asked++
	if b.left -= n; b.left < 0 {
		b.left += n
		return false
	}
	return true
}

// TestShared: the values of rules that read nothing but input.review are kept for other plans whose rules are written
// alike, as far as there is memory. A value that is kept changes no result.
func TestShared(t *testing.T) {
	const alike = "containers contains c if some c in input.review.list\nbig contains c if { some c in containers; c > 1 }\nother contains x if x := data.fixed.list[_]\np := [big, other]"
	input := ast.MustParseTerm(`{"review": {"list": [1, 2, 3]}, "parameters": {"n": 2}}`)
	data := map[string]any{"fixed": map[string]any{"list": []any{"a"}}}
	for _, c := range []struct {
		name, first, second string
		asked               int // by the second
		want                string
	}{
		{"written alike", "package a\n" + alike, "package b\n" + alike, 0, `x=[{2, 3}, {"a"}]`},
		{"written otherwise", "package a\n" + alike, "package b\n" + strings.Replace(alike, "c > 1", "c > 2", 1), 1,
			`x=[{3}, {"a"}]`},
		{"by parameters", "package a\nbig contains c if { some c in input.review.list; c > input.parameters.n }\np := big",
			"package b\nbig contains c if { some c in input.review.list; c > input.parameters.n }\np := big", 0, "x={3}"},
	} {
		memory := &bytes{left: 1 << 20}
		shared := plan.NewShared(memory)
		for i, module := range []string{c.first, c.second} {
			memory.asked = 0
			q, err := compiled(ast.RegoV1, data, "x = data."+string(rune('a'+i))+".p", module)
			if err != nil {
				t.Fatal(err)
			}
			all, _, err := q.ours(t, input, true, shared)
			if i == 1 && (err != nil || strings.Join(all, "") != c.want || memory.asked != c.asked) {
				t.Errorf("%s: got %s, %v; %d values are kept, want %s, %d", c.name, all, err, memory.asked, c.want,
					c.asked)
			}
		}
	}
	none := &bytes{}
	shared := plan.NewShared(nil)
	shared.Begin(none)
	q, err := compiled(ast.RegoV1, data, "x = data.a.p", "package a\n"+alike)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if all, _, err := q.ours(t, input, true, shared); err != nil || strings.Join(all, "") != `x=[{2, 3}, {"a"}]` ||
			none.asked == 0 {
			t.Errorf("without memory: got %s, %v", all, err)
		}
	}
}
