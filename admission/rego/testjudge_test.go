package rego

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	opa "github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/admission-gateway/gateway/admission/rego/builtin"
)

// judgedTests are the results of OPA's own runner of tests, with our words, and the modules as it has
// compiled them.
func judgedTests(ctx context.Context, limit time.Duration, o Options, by Observer,
	modules []Module) ([]TestResult, map[string]*opa.Module, error) {
	builtin.Guard()
	p := &Program{options: o, data: o.Data.orEmpty()}
	all, _, errs := p.parse(modules)
	if len(errs) > 0 {
		return nil, nil, errs
	}
	failed := map[spot]*opa.Expr{}
	t := newTracer(p.observe(all, by))
	t.failed = func(rule *opa.Rule, at *opa.Expr) { failed[spotOf(rule.Location)] = at }
	data, err := opa.JSON(p.data)
	if err != nil {
		return nil, nil, err
	}
	store := inmem.NewFromObject(data.(map[string]any))
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer store.Abort(ctx, txn)
	c := p.newCompiler(true)
	found, err := tester.NewRunner().SetCompiler(c).SetModules(all).SetStore(store).SetParallel(1).SetTimeout(limit).
		RaiseBuiltinErrors(!o.Lenient && !o.Foreign).SetCoverageQueryTracer(t).RunTests(ctx, txn)
	if err != nil {
		return nil, nil, p.sources.errorsOf(err)
	}
	var ended []*tester.Result // before one is looked at: the runner goes on with the next meanwhile
	for one := range found {
		ended = append(ended, one)
	}
	var results []TestResult
	for _, one := range ended {
		result := TestResult{Package: strings.TrimPrefix(one.Package, "data."), Name: one.Name}
		if one.Skip {
			result.Skipped = skippedByName
		}
		result.File, result.Line, result.Column = p.sources.place(one.Location)
		var runtime *topdown.Error
		switch {
		case errors.As(one.Error, &runtime):
			result.Problems = append(result.Problems, p.testError(one.Error))
		case one.Error != nil && strings.HasPrefix(one.Error.Error(), "[{"):
			result.Problems = append(result.Problems, severalErrors)
		case one.Error != nil:
			result.Problems = append(result.Problems, one.Error.Error())
		case one.Fail:
			r := &testRun{program: p, failed: failed}
			result.Problems = append(result.Problems, r.whyFailed(&opa.Rule{Location: one.Location}))
			for path, sub := range one.SubResults.Iter {
				if sub.Fail && len(sub.SubResults) == 0 {
					result.Problems = append(result.Problems,
						fmt.Sprintf("the case '%s' is not true", strings.Join(path, "/")))
				}
			}
		}
		if len(result.Problems) > 0 {
			for line := range strings.Lines(string(one.Output)) {
				result.Problems = append(result.Problems, "prints: "+strings.TrimRight(line, "\n"))
			}
		}
		results = append(results, result)
	}
	t.end()
	slices.SortStableFunc(results, func(a, b TestResult) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Name, b.Name))
	})
	return results, c.Modules, nil
}

// severalErrors stands for the text that OPA's runner makes of more than one error. It has addresses in it.
const severalErrors = "several errors"

// compareTests compares our results with the results of OPA's runner, and what both note of the rules that are
// no tests. It returns how many tests there are.
func compareTests(t testing.TB, limit time.Duration, o Options, modules []Module) int {
	t.Helper()
	observe := func() (Observer, func() string) {
		noted := map[Rule]*Observation{}
		by := func(r Rule) *Observation {
			if noted[r] == nil {
				noted[r] = &Observation{}
			}
			return noted[r]
		}
		return by, func() string {
			var lines []string
			for r, n := range noted {
				lines = append(lines, fmt.Sprint(r, n.Ran(), n.WasDefined(), n.WasUndefined()))
			}
			slices.Sort(lines)
			return strings.Join(lines, "\n")
		}
	}
	by, ours := observe()
	got, err := testWithin(context.Background(), limit, o, by, modules)
	by, theirs := observe()
	want, _, errWant := judgedTests(context.Background(), limit, o, by, modules)
	if fmt.Sprint(err) != fmt.Sprint(errWant) {
		t.Errorf("the error is\n%v\nand by OPA's runner\n%v", err, errWant)
		return 0
	}
	if len(got) != len(want) {
		t.Errorf("there are %d results, %d by OPA's runner", len(got), len(want))
		return 0
	}
	for i := range got {
		got[i].Took = 0
		if len(modules) > 1 { // OPA's runner numbers them in no order of modules
			got[i].Name, want[i].Name = numbered.ReplaceAllString(got[i].Name, ""),
				numbered.ReplaceAllString(want[i].Name, "")
		}
		if len(got[i].Problems) > 0 && len(want[i].Problems) > 0 && want[i].Problems[0] == severalErrors {
			got[i].Problems[0] = severalErrors
		}
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("got %+v\nby OPA's runner %+v", got[i], want[i])
		}
	}
	if a, b := ours(), theirs(); a != b {
		t.Errorf("noted\n%s\nby OPA's runner\n%s", a, b)
	}
	return len(got)
}

// numbered distinguishes tests of one name.
var numbered = regexp.MustCompile(`#\d+`)

// opaFixtures are the modules in the tests of OPA's own runner: each literal alone, and the files of each
// map of files together.
func opaFixtures(t testing.TB) (all [][]Module) {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/open-policy-agent/opa").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "v1", "tester", "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatal("OPA's tests are not there: ", err)
	}
	module := func(name string, e ast.Expr) (Module, bool) {
		literal, ok := e.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return Module{}, false
		}
		text, err := strconv.Unquote(literal.Value)
		return Module{File: name, Source: []byte(text)}, err == nil &&
			strings.HasPrefix(strings.TrimSpace(text), "package ")
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				var together []Module
				if _, isMap := n.Type.(*ast.MapType); !isMap {
					break
				}
				for _, e := range n.Elts {
					if pair, ok := e.(*ast.KeyValueExpr); ok {
						if m, ok := module(fmt.Sprintf("%d_test.rego", len(together)), pair.Value); ok {
							together = append(together, m)
						}
					}
				}
				if len(together) > 1 {
					all = append(all, together)
				}
			case *ast.BasicLit:
				if m, ok := module("p_test.rego", n); ok {
					all = append(all, []Module{m})
				}
			}
			return true
		})
	}
	return all
}

// ourFixtures have what OPA's do not.
var ourFixtures = []string{`package p

import data.limits

allow if input.review.user == "a"

size := count(input.review.items) if input.review.items

test_with if allow with input as {"review": {"user": "a"}}

test_with_false if allow with input as {"review": {"user": "b"}}

test_with_data if limits.max == 5 with data.limits as {"max": 5}

test_data if limits.max == 3

test_with_rule if allow with allow as true

test_with_function if count([1]) == 7 with count as 7

test_undefined if size > 3 with input as {"review": {}}

test_null := null

test_set contains "a" if allow

test_list := [true]

test_object := {"a": true, "b": false}

test_function(x) if x == 1

test_else if {
	false
} else := false if {
	print("else", 1)
}
`, `package p

test_raised if to_number("x") == 1

test_raised_twice if {
	some x in ["x", "y"]
	print(x)
	to_number(x) == 1
}

test_raised_in_not if not to_number("x")

test_conflict if f == 1

f := 1

f := 2

test_printed if {
	print("a", {"b": 1})
	print("two\nlines")
	1 == 2
}

todo_test_later if 1 == 2

a.test_b.c if true

a.todo_test_b if true

a.test_b.c if false

test_twice if true

test_twice if false
`, `package p

cases := {
	"one": {"x": 1, "want": 1},
	"two": {"x": 2, "want": 3},
	"<three>": {"x": 3, "want": 3},
}

test_names[name] if {
	some name, c in cases
	c.x == c.want
}

test_notes[c.note] if {
	some c in [{"note": "a", "x": 1}, {"note": {"b": ["<", 1]}, "x": 2}, {"note": 7, "x": 3}]
	print(c.note)
	c.x == 1
}

test_nested[a][b] if {
	some a in ["x", "y"]
	some b in [1, 2]
	a != "x"
}

test_values[name] := value if some name, value in {"t": true, "f": false, "n": null, "s": "s", "o": {"a": true, "b": false}}

test_none[name] if {
	some name in []
}

test_raised[name] if {
	some name in ["1", "x"]
	to_number(name) == 1
}

test_constant["a"] if 1 == 2

test_computed[concat("/", ["a", name])] if {
	some name in ["1", "2"]
	upper(name) != "2"
}

test_later[note] if {
	some c in [{"n": "a"}, {"n": "b"}]
	c.n == "a"
	note := c.n
}
`, `package p

test_own[name] if {
	some name in ["1", "2"]
	internal.test_case([name])
	name == "1"
}

test_own_none[name] if {
	some name in ["1", "2"]
	internal.test_case([])
}
`, `package p

test_unsafe if x == 1
`, `package p

test_endless if {
	some i in numbers.range(1, 100000)
	some j in numbers.range(1, 100000)
	i * j < 0
}

test_after if 1 > 2
`}

// TestTestsAsOPA: tests in Rego have the results that OPA's runner of tests has for them, for its own
// fixtures and for ours.
func TestTestsAsOPA(t *testing.T) {
	data := Object(Member{"limits", Object(Member{"max", parsed(t, []byte("3"))})})
	count := 0
	for _, modules := range opaFixtures(t) {
		if text := string(modules[0].Source); strings.Contains(text, "internal.test_case") ||
			strings.Contains(text, "rand.") {
			continue // OPA's runner panics, as TestCasesOfItsOwn says, or each run has another result
		}
		limit := 5 * time.Second
		if strings.Contains(string(modules[0].Source), "10000") {
			limit = 200 * time.Millisecond
		}
		for _, v0 := range []bool{false, true} {
			count += compareTests(t, limit, Options{Data: data, V0: v0}, modules)
		}
	}
	if count < 100 {
		t.Errorf("OPA has only %d tests", count)
	}
	for _, text := range ourFixtures {
		for _, o := range []Options{{Data: data}, {Data: data, Lenient: true}, {Data: data, Foreign: true}} {
			compareTests(t, 500*time.Millisecond, o, []Module{{File: "p_test.rego", Source: []byte(text)}})
		}
	}
	var all []Module
	for i, text := range ourFixtures[:4] {
		text = strings.Replace(text, "package p", fmt.Sprintf("package p%d", i), 1)
		all = append(all, Module{File: fmt.Sprintf("%d.rego", i), Line: i * 7, Source: []byte(text), Tests: i == 1})
	}
	if n := compareTests(t, time.Second, Options{Data: data}, all); n < 30 {
		t.Errorf("there are only %d tests", n)
	}
}

// TestForeignTests: tests of modules that are of no policy may replace any function of OPA's and of conftest's. One
// that calls what the gateway does not run is skipped with the reason, and does not pass.
func TestForeignTests(t *testing.T) {
	found, err := Test(context.Background(), Options{Foreign: true}, nil, Module{File: "p.rego", Source: []byte(`package p

got(x) := {"status_code": 200}

test_mocked if http.send({"url": "http://127.0.0.1:1"}).status_code == 200 with http.send as got

test_called if http.send({"url": "http://127.0.0.1:1", "method": "GET"}).status_code == 200

test_not_called if not opa.runtime().env

test_parsed if parse_config("yaml", "a: 1").a == 1

test_file if parse_config_file("a.yaml").a == 1 with parse_config_file as {"a": 1}

test_undefined if not to_number("x")
`)})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range found {
		got = append(got, fmt.Sprintf("%s %q %q", r.Name, r.Problems, r.Skipped))
	}
	want := []string{
		`test_mocked [] ""`,
		"test_called [] \"it calls 'http.send': policies have no network, but for http.send to the hosts in `allowedHosts`\"",
		`test_not_called [] "it calls 'opa.runtime': it shows the gateway's environment and configuration to policies"`,
		`test_parsed [] "it calls 'parse_config': it is a function of conftest's, which the gateway does not have"`,
		`test_file [] ""`,
		`test_undefined [] ""`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestHasTests: modules have tests by their rules, whatever the names of their files.
func TestHasTests(t *testing.T) {
	for text, want := range map[string]bool{
		"package p\n\ntest_a if true\n":              true,
		"package p\n\ntest_a { true }\n":             true,
		"package p\n\ntodo_test_a if true\n":         true,
		"package p\n\na.test_b if true\n":            true,
		"package p\n\n# test_a\nmy_test_a if true\n": false,
		"package p\n\nx := data.test_a\n":            false,
		"package p\n\ntest_a if {\n":                 true, // which OPA's runner reports too
		"package p\n\nx if {\n":                      false,
	} {
		if got := HasTests(Module{File: "p.rego", Source: []byte(text)}); got != want {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

// TestCasesOfItsOwn: a test may name cases within a case that has a value. OPA's runner panics then.
func TestCasesOfItsOwn(t *testing.T) {
	got, err := Test(context.Background(), Options{}, nil, Module{File: "p_test.rego", Source: []byte(`package p

test_a[note] if {
	note := "a"
	internal.test_case([note, "foo", "bar"])
}
`)})
	if err != nil || len(got) != 1 ||
		!slices.Equal(got[0].Problems, []string{"the test is not true", "the case 'a/foo/bar' is not true"}) {
		t.Errorf("got %v %v", got, err)
	}
}

// TestTestStagesAsOPA: our stages of the compiler write what the stages of OPA's runner write.
func TestTestStagesAsOPA(t *testing.T) {
	called := 0
	over, cancel := context.WithCancel(context.Background())
	cancel() // OPA's runner compiles the tests, and runs none
	fixtures := opaFixtures(t)
	for _, text := range ourFixtures[:4] {
		fixtures = append(fixtures, []Module{{File: "p_test.rego", Source: []byte(text)}})
	}
	for _, modules := range fixtures {
		_, theirs, err := judgedTests(over, time.Second, Options{}, func(Rule) *Observation { return nil }, modules)
		if err != nil {
			continue
		}
		p := &Program{data: Value{}.orEmpty()}
		all, _, _ := p.parse(modules)
		c := withTestStages(p.newCompiler(true), p.sources.names())
		if c.Compile(all); c.Failed() {
			t.Fatal(c.Errors)
		}
		for name, m := range theirs {
			if got, want := c.Modules[name].String(), m.String(); got != want {
				t.Errorf("%s\nby OPA's runner\n%s", got, want)
			} else if strings.Contains(got, "internal.test_case") {
				called++
			}
		}
	}
	if called < 15 {
		t.Errorf("only %d modules have tests with cases", called)
	}
}

// FuzzTestsAsOPA compares the results of tests with OPA's runner.
func FuzzTestsAsOPA(f *testing.F) {
	for _, text := range ourFixtures {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := opa.ParseModule("p.rego", text); err != nil || unlike(text) {
			return
		}
		compareTests(t, 5*time.Second, Options{}, []Module{{File: "p_test.rego", Source: []byte(text)}})
	})
}

// unlike reports whether a module may have other results each time, takes long, or makes OPA's runner panic.
func unlike(text string) bool {
	return slices.ContainsFunc([]string{"rand", "uuid", "time", "internal.", "http.", "net.", "range"},
		func(part string) bool {
			return strings.Contains(text, part)
		})
}
