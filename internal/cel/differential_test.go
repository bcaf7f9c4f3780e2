package cel

import (
	"context"
	"testing"

	celgo "github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
)

// evalResult is the result of an evaluation, in a form that can be compared.
type evalResult struct {
	value string // with its type
	err   string
}

func (o evalResult) String() string {
	if o.err != "" {
		return "error: " + o.err
	}
	return o.value
}

// bothWays plans an expression in the two ways that there are. natively is nil if there is no
// native plan.
func bothWays(t testing.TB, e *env, expression string, ast *celast.AST) (natively, lazily *Program, err error) {
	t.Helper()
	p, err := e.plan(expression, ast, nil)
	if err != nil {
		return nil, nil, err
	}
	lazily, _, err = e.interpreted(expression, ast, nil)
	if err != nil {
		return nil, nil, err
	}
	if p.native == nil {
		t.Logf("%s: %s", expression, p.reason)
		return nil, lazily, nil
	}
	return p, lazily, nil
}

// programs compiles an expression of the environment in both ways, by their names.
func programs(t testing.TB, e *env, expression string) map[string]*Program {
	t.Helper()
	ast, issues := e.Compile(expression)
	if issues != nil {
		t.Fatal(issues.Err())
	}
	natively, lazily, err := bothWays(t, e, expression, ast.NativeRep())
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*Program{"natively": natively, "lazily": lazily}
}

// ours evaluates a compiled expression of any type.
func ours(p *Program, set func(*Vars)) evalResult { return oursWith(p, nil, set) }

// oursWith evaluates a compiled expression of a policy with variables.
func oursWith(p *Program, variables *Variables, set func(*Vars)) evalResult {
	o, _ := metered(p, variables, set)
	return o
}

// metered is oursWith, with the units that the evaluation cost.
func metered(p *Program, variables *Variables, set func(*Vars)) (o evalResult, units int64) {
	f := NewFrame(context.Background())
	defer f.Release()
	v := f.Vars()
	set(v)
	if variables != nil {
		f.OpenVariables(v, variables)
		defer f.CloseVariables(v)
	}
	o = evaluatedOn(f, p, v, &units)
	return o, units
}

// evaluatedOn evaluates an expression on a frame, and sets the units that this cost.
func evaluatedOn(f *Frame, p *Program, v *Vars, units *int64) evalResult {
	before := f.Spent()
	out, err := p.evalKept(f, v)
	*units = f.Spent() - before
	if err != nil {
		return evalResult{err: err.(*Error).Detail}
	}
	// Looking into a lazy value costs units too.
	f.SetBudget(1 << 40)
	f.Arena.Allow(1 << 40)
	f.vars = v
	return evalResult{value: celtest.Show(f.Ref(out))}
}

func theirs(prog celgo.Program, vars map[string]any) evalResult {
	out, _, err := prog.Eval(vars)
	if err != nil {
		return evalResult{err: worded(err.Error())}
	}
	return evalResult{value: celtest.Show(out)}
}

func adhocEnv(t testing.TB) *env {
	t.Helper()
	e, err := newAdmissionEnv(nil, nil, true, false)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
