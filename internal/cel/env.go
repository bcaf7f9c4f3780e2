package cel

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	celgo "github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	celfunctions "github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/quantity"
)

// base is Kubernetes' base environment for expressions in configuration files: the libraries of all its versions. It is
// built when the first expression is compiled.
var base = sync.OnceValue(func() *celgo.Env {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv()
})

// functions are the implementations of the base environment's functions. All programs share them; cel-go itself would
// build the table anew for each program.
var functions = sync.OnceValues(func() (interpreter.Dispatcher, error) {
	d := interpreter.NewDispatcher()
	for _, fn := range base().Functions() {
		bindings, err := fn.Bindings()
		if err != nil {
			return nil, err
		}
		if err := d.Add(bounded(bindings)...); err != nil {
			return nil, err
		}
	}
	return d, nil
})

// bounded makes functions that read quantities refuse quantities that would take unbounded time,
// which clients may send, and functions that make much of little refuse to make too much.
func bounded(bindings []*celfunctions.Overload) []*celfunctions.Overload {
	for i, b := range bindings {
		bindings[i] = plan.Enlarged(b)
		if b.Operator != "string_to_quantity" && b.Operator != "is_quantity_string" {
			continue
		}
		read := *b
		read.Unary = func(v ref.Val) ref.Val {
			if s, ok := v.(types.String); ok && !quantity.Bounded(string(s)) {
				return types.NewErr("what is read as a quantity must be %s", quantity.Bounds)
			}
			return b.Unary(v)
		}
		bindings[i] = &read
	}
	return bindings
}

// An env is an environment with variables, in which expressions are compiled.
type env struct {
	*celgo.Env
	plan.Language
	interpreter interpreter.Interpreter
	typing      *typing
	stateless   bool // the variable state would be declared if there were a state

	// the type of the variable 'variables', whose fields are those of the policy that is compiled
	variables *apiservercel.DeclType
	common    *Common // has expressions that were parsed; nil: each is parsed when it is compiled
	alone     *env    // the same without common, once it was asked for
}

// newEnv adds variables and their types to the base environment. It does what EnvSet.Extend does for stored
// expressions, once instead of twice.
func newEnv(declTypes []*apiservercel.DeclType, variables ...celgo.EnvOption) (*env, error) {
	options := append([]celgo.EnvOption{celgo.EnableMacroCallTracking()}, variables...) // messages repeat expressions
	if len(declTypes) > 0 {
		provider := apiservercel.NewDeclTypeProvider(declTypes...)
		provider.SetRecognizeKeywordAsFieldName(true)
		typeOptions, err := provider.EnvOptions(base().CELTypeProvider())
		if err != nil {
			return nil, err
		}
		options = append(options, typeOptions...)
	}
	extended, err := base().Extend(options...)
	if err != nil {
		return nil, err
	}
	dispatcher, err := functions()
	if err != nil {
		return nil, err
	}
	return assemble(extended, dispatcher)
}

// assemble gives an environment what checks and plans expressions in it.
func assemble(extended *celgo.Env, dispatcher interpreter.Dispatcher) (*env, error) {
	typing, err := typingOf(extended)
	if err != nil {
		return nil, err
	}
	values := plan.Adapter{Adapter: extended.CELTypeAdapter()}
	attributes := interpreter.NewAttributeFactory(extended.Container, values, extended.CELTypeProvider())
	return &env{
		Env: extended,
		Language: plan.Language{Types: extended.CELTypeProvider(), Adapter: values, Functions: dispatcher,
			Container: extended.Container},
		interpreter: interpreter.NewInterpreter(dispatcher, extended.Container, extended.CELTypeProvider(), values,
			attributes),
		typing: typing,
	}, nil
}

// A CompileError says why an expression cannot be compiled.
type CompileError struct {
	Expression string
	// Detail is worded as in Kubernetes: 'compilation failed: ERROR: …'.
	Detail string
}

func (e *CompileError) Error() string { return e.Detail }

// Compile parses and checks an expression as the environment does, but a panic of cel-go, such as
// over [?object.a], becomes an issue.
func (e *env) Compile(expression string) (ast *celgo.Ast, issues *celgo.Issues) {
	defer func() {
		if r := recover(); r != nil {
			ast, issues = nil, panicked(r)
		}
	}()
	parsed, issues := e.parse(expression)
	if issues != nil {
		return nil, issues
	}
	return e.typing.check(parsed)
}

// parse parses an expression, unless it was parsed lately.
func (e *env) parse(expression string) (*celgo.Ast, *celgo.Issues) {
	if e.common == nil {
		return parse(expression)
	}
	return e.common.Parse(expression).tree()
}

// panicked makes an issue of a panic of cel-go.
func panicked(r any) *celgo.Issues {
	return celgo.ErrorAsIssues(fmt.Errorf("internal error: %v", r))
}

// refuse is the error about an expression with issues. Kubernetes has no variable state, so its
// library has no advice on how to get one.
func (e *env) refuse(expression string, issues *celgo.Issues) *CompileError {
	detail := "compilation failed: " + issues.String()
	if e.stateless && strings.Contains(detail, "undeclared reference to '"+plan.NameState+"'") {
		detail += "; the policy files must have a StateSource for each member of `state`"
	}
	return &CompileError{expression, detail}
}

// compile checks an expression and plans it. Its type must be one of those given; variables may be nil.
func (e *env) compile(expression string, variables *Variables, returns ...*celgo.Type) (*Program, error) {
	ast, err := e.check(expression, returns...)
	if err != nil {
		return nil, err
	}
	return e.plan(expression, ast, variables)
}

// check checks an expression, whose type must be one of those given.
func (e *env) check(expression string, returns ...*celgo.Type) (*celast.AST, error) {
	ast, issues := e.Compile(expression)
	if issues != nil {
		return nil, e.refuse(expression, issues)
	}
	if err := checkType(ast.OutputType(), returns); err != nil {
		return nil, &CompileError{expression, err.Error()}
	}
	return ast.NativeRep(), nil
}

func checkType(got *celgo.Type, returns []*celgo.Type) error {
	for _, want := range returns {
		if got.IsExactType(want) {
			return nil
		}
	}
	if len(returns) == 1 {
		return fmt.Errorf("must evaluate to %v but got %v", returns[0], got)
	}
	return fmt.Errorf("must evaluate to one of %v but got %v", returns, got)
}

// plan plans an expression natively, or for cel-go if that cannot be done. What cel-go refuses cannot be evaluated, so
// that it plans in any case what it may refuse.
func (e *env) plan(expression string, ast *celast.AST, variables *Variables) (*Program, error) {
	if plan.IsPlannable(ast) {
		m := plan.NewMeter(ast)
		if native, _ := plan.Compile(&e.Language, ast, m, variables.places()); native != nil {
			p := e.program(expression, ast, variables)
			p.runNatively(native)
			return p, nil
		}
	}
	p, m, err := e.interpreted(expression, ast, variables)
	if err != nil {
		return nil, err
	}
	native, reason := plan.Compile(&e.Language, ast, m, variables.places())
	if p.reason = reason; native != nil {
		p.runNatively(native)
	}
	return p, nil
}

// interpreted plans an expression for cel-go.
func (e *env) interpreted(expression string, ast *celast.AST,
	variables *Variables) (p *Program, m *plan.Meter, err error) {
	defer func() {
		if r := recover(); r != nil { // cel-go panics over literals such as {b'a': 1}
			p, m, err = nil, nil, &CompileError{expression, fmt.Sprintf("program instantiation failed: %v", r)}
		}
	}()
	m = plan.NewMeter(ast)
	planned, err := e.interpreter.NewInterpretable(ast,
		interpreter.CustomDecoratorV2(plan.PlanAlternative),
		interpreter.Optimize(),
		interpreter.CompileRegexConstants(plan.MatchesConstant, library.FindRegexOptimization, plan.FindAllConstant),
		interpreter.CustomDecoratorV2(plan.Paths(&e.Language, ast, m).Decorate),
		interpreter.CustomDecoratorV2(m.Decorate),
		interpreter.CustomDecoratorV2(plan.NewOrders(ast).Decorate),
	)
	if err != nil {
		return nil, nil, &CompileError{expression, "program instantiation failed: " + err.Error()}
	}
	p = e.program(expression, ast, variables)
	p.plan, p.size.Sizes = planned, m.Sizes
	return p, m, nil
}

// program is an expression without a plan.
func (e *env) program(expression string, ast *celast.AST, variables *Variables) *Program {
	u := usesIn(ast)
	reads, counts := readsAndCountsOf(ast)
	return &Program{
		source:    expression,
		uses:      u,
		foreign:   foreignIn(u, variables),
		carried:   u&(1<<value.Object) != 0 && slices.ContainsFunc(reads, isCarried),
		size:      plan.FrameSize{Roots: u.Slots()},
		wholes:    wholesOf(reads),
		counts:    counts,
		readsUser: readsUser(ast), readsKind: readsKind(ast), needsNoObject: needsNoObject(ast),
	}
}

// runNatively gives a program its native plan.
func (p *Program) runNatively(native *plan.Native) {
	p.native, p.test, p.plan = native, native.Test, nil
	p.size.Native, p.size.Locals, p.size.Sizes = true, native.Locals, 0
}

func usesIn(ast *celast.AST) plan.Uses {
	var u plan.Uses
	for _, r := range ast.ReferenceMap() {
		u |= plan.UsesOf[r.Name]
	}
	return u
}
