package rego

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// The prefixes of the names of tests.
const (
	testPrefix    = "test_"
	skippedPrefix = "todo_test_"
	skippedByName = "its name begins with 'todo_'"
)

// HasTests reports whether a module has rules that are tests. It also does if the module mentions tests and cannot be
// parsed: its tests must not pass unseen.
func HasTests(m Module) bool {
	if !bytes.Contains(m.Source, []byte(testPrefix)) {
		return false
	}
	parsed, _ := either(&m)
	return parsed == nil || slices.ContainsFunc(parsed.Rules, func(r *ast.Rule) bool {
		_, ref := testOf(r)
		return ref != nil
	})
}

// WithVersion returns a module with the version of the language that it is written in, as far as its text decides that.
func WithVersion(m Module) Module {
	_, m.Version = either(&m)
	return m
}

// either parses a module of either version of the language, first as one since OPA 1.0; nil: it is of neither.
func either(m *Module) (*ast.Module, ast.RegoVersion) {
	for _, v0 := range []bool{false, true} {
		p := &Program{options: Options{V0: v0}}
		if parsed, err := p.parseOne(m.File, m); err == nil && parsed != nil {
			return parsed, p.version()
		}
	}
	return nil, m.Version
}

// testOf returns the name of a test and the reference to it within its package. The reference is nil if
// the rule is no test.
//
// The name need not be the end of the reference: in test_size[note], the rest is the name of a case.
func testOf(rule *ast.Rule) (string, ast.Ref) {
	ref := rule.Head.Ref().GroundPrefix()
	for i, term := range ref {
		var name string
		switch v := term.Value.(type) {
		case ast.Var:
			name = string(v)
		case ast.String:
			name = string(v)
		}
		if strings.HasPrefix(name, testPrefix) || strings.HasPrefix(name, skippedPrefix) {
			return name, ref[:i+1]
		}
	}
	return "", nil
}

// withTestStages adds to a compiler what OPA's runner of tests adds to it: tests of one name are
// numbered, and tests with cases say which ones they reach. Names are the modules in their order.
func withTestStages(c *ast.Compiler, names []string) *ast.Compiler {
	count := map[string]int{}
	number := func(rule *ast.Rule) { numberTest(rule, count) }
	return c.
		WithStageAfterID(ast.StageRewriteRuleHeadRefs, testStage("NumberTests", names, number)).
		WithStageAfterID(ast.StageRewriteLocalVars, testStage("TellCases", names, tellCases))
}

// testStage is a stage that changes each test that is not skipped.
func testStage(name string, modules []string, change func(*ast.Rule)) ast.CompilerStageDefinition {
	stage := func(c *ast.Compiler) *ast.Error {
		for _, module := range modules {
			for _, rule := range c.Modules[module].Rules {
				if name, ref := testOf(rule); ref != nil && !strings.HasPrefix(name, skippedPrefix) {
					change(rule)
				}
			}
		}
		return nil
	}
	return ast.CompilerStageDefinition{Name: name, MetricName: name, Stage: stage}
}

// numberTest gives a test another name if its name is taken: the second test_a becomes test_a#01.
func numberTest(rule *ast.Rule, count map[string]int) {
	name, ref := testOf(rule)
	key := rule.Module.Package.Path.Extend(ref).String()
	if n := count[key]; n > 0 {
		renamed := slices.Clone(rule.Head.Ref())
		name = fmt.Sprintf("%s#%02d", name, n)
		if len(ref) == 1 {
			renamed[0] = ast.VarTerm(name)
		} else {
			renamed[len(ref)-1] = ast.StringTerm(name)
		}
		rule.Head.SetRef(renamed)
	}
	count[key]++
}

// tellCases makes a test with cases, such as
//
//	test_size[tc.note] if {
//		some tc in cases
//		size(tc.object) == tc.want
//	}
//
// call internal.test_case with the name of each case that it reaches, as early as the name is known.
// A case that fails has no member in the value of the rule, so that nothing else would name it. The
// compiler has written `name = tc.note` at the end of the body; that is moved up. What the author has
// written stays where it is. It follows injectTestCaseFunc of OPA's package tester.
func tellCases(rule *ast.Rule) {
	_, ref := testOf(rule)
	name := rule.Head.Ref()[len(ref):]
	if len(name) == 0 || callsTestCase(rule.Body) {
		return
	}
	for _, term := range name {
		for i := len(rule.Body) - 1; i >= 0; {
			expr := rule.Body[i]
			to := i
			if expr.Generated && (expr.IsEquality() || expr.IsAssignment()) && expr.Operand(0).Equal(term) {
				to = earliest(rule.Body[:i], expr.Operand(1))
			}
			if to == i {
				i--
				continue
			}
			rule.Body = slices.Insert(slices.Delete(rule.Body, i, i+1), to, expr)
		}
	}
	known := 0
	for _, term := range name {
		known = max(known, slices.IndexFunc(rule.Body, func(e *ast.Expr) bool { return mentions(e, term.Value) })+1)
	}
	call := ast.NewExpr([]*ast.Term{
		ast.NewTerm(ast.Interned.Refs.InternalTestCase.Copy()), // later stages write into it
		ast.NewTerm(ast.NewArray(name...)),
	})
	rule.Body = slices.Insert(rule.Body, known, call)
}

// callsTestCase reports whether a test names its cases itself.
func callsTestCase(body ast.Body) bool {
	calls := false
	ast.WalkExprs(body, func(e *ast.Expr) bool {
		calls = calls || e.IsCall() && e.Operator().Equal(ast.Interned.Refs.InternalTestCase)
		return calls
	})
	return calls
}

// earliest returns where in a body a term can be used first: behind the first expression with the last
// one of its local variables.
func earliest(body ast.Body, term *ast.Term) int {
	at, local := 0, false
	ast.WalkVars(term, func(v ast.Var) bool {
		if strings.HasPrefix(string(v), ast.LocalVarPrefix) {
			local = true
			at = max(at, slices.IndexFunc(body, func(e *ast.Expr) bool { return mentions(e, v) }))
		}
		return false
	})
	if !local {
		return 0
	}
	return min(at+1, len(body))
}

// mentions reports whether an expression has a variable in it.
func mentions(e *ast.Expr, variable ast.Value) bool {
	found := false
	ast.WalkVars(e, func(v ast.Var) bool {
		found = found || v.Equal(variable)
		return found
	})
	return found
}

// caseName returns the names of a case and of the cases around it, the outermost first.
func caseName(name *ast.Array) []string {
	texts := make([]string, 0, name.Len())
	name.Foreach(func(t *ast.Term) { texts = append(texts, stepName(t)) })
	return texts
}

// stepName is the key of a member in JSON: a text as it is, another value as JSON.
func stepName(t *ast.Term) string {
	value, err := ast.JSON(t.Value)
	if text, ok := value.(string); ok && err == nil {
		return text
	}
	var text bytes.Buffer
	if err != nil || json.NewEncoder(&text).Encode(value) != nil {
		return "INVALID" // as with OPA
	}
	return strings.TrimSpace(text.String())
}

// A testCase is how a case of a test went, and the cases within it.
type testCase struct {
	failed bool
	cases  map[string]*testCase
}

// caseOf reads how cases went from the value of a test.
func caseOf(value any) *testCase {
	switch v := value.(type) {
	case nil:
		return &testCase{}
	case bool:
		return &testCase{failed: !v}
	case map[string]any:
		c := &testCase{}
		for name, value := range v {
			c.add(name, caseOf(value))
		}
		return c
	}
	return &testCase{failed: true}
}

func (c *testCase) add(name string, one *testCase) {
	if c.cases == nil {
		c.cases = map[string]*testCase{}
	}
	c.cases[name] = one
	c.failed = c.failed || one.failed
}

// try says that the test has reached a case, which has failed unless the value has it.
func (c *testCase) try(name []string) {
	if len(name) == 0 {
		c.failed = true
		return
	}
	one := c.cases[name[0]]
	if one == nil {
		one = &testCase{failed: true}
	}
	if len(name) > 1 {
		one.try(name[1:])
	}
	c.add(name[0], one)
}

// failures yields the names of the failed cases that have no cases themselves, in order.
func (c *testCase) failures(yield func([]string) bool) { c.walk(nil, yield) }

func (c *testCase) walk(within []string, yield func([]string) bool) bool {
	for _, name := range slices.Sorted(maps.Keys(c.cases)) {
		one, path := c.cases[name], append(slices.Clone(within), name)
		if one.failed && len(one.cases) == 0 && !yield(path) || !one.walk(path, yield) {
			return false
		}
	}
	return true
}
