package cel

import (
	"context"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	celcommon "github.com/google/cel-go/common"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"github.com/google/cel-go/parser"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// A Tracer receives the expressions that are evaluated in a Frame.
type Tracer interface {
	// Traced is called after an evaluation.
	Traced(*Trace)
}

// A Trace is the result of an expression, and of its parts. It shares no memory with the frame.
type Trace struct {
	Expression string
	// Variable is the name of the variable that the expression computes; empty if it computes none.
	Variable string
	// Value is the value as JSON, cut at [MaxTracedBytes], or empty.
	Value string
	// IsCondition says that the value is a condition's, and shows in the result of the policy.
	IsCondition bool
	// Err is why there is no value.
	Err error
	// Reads says on what the value depends.
	Reads Reads
	// Parts are the parts that were evaluated, as they stand in the expression, outer ones first.
	Parts []TracedPart
	// IsDoubtful says that the second evaluation, which finds the values of the parts, differed
	// from the first, so the parts are left out.
	IsDoubtful bool
}

// A TracedPart is a part of an expression with its value.
type TracedPart struct {
	// Source is the part, as text.
	Source string
	// Line and Column are its place in the expression, from 1: at its operator, if it has one.
	Line, Column int
	// Depth is how many parts are around it.
	Depth int
	Value string
	// InLoop says that the part was evaluated in a loop: the value is the one of the last round.
	InLoop bool
	Reads  Reads
}

// Reads says which objects a value depends on.
type Reads struct {
	// Object is the request's own object, Old the stored one, Others are parameters, namespaces and
	// collections.
	Object, Old, Others bool
}

func (r Reads) and(o Reads) Reads {
	return Reads{r.Object || o.Object, r.Old || o.Old, r.Others || o.Others}
}

const (
	// MaxTracedBytes is how long a value of a trace may be.
	MaxTracedBytes = 512
	// maxTracedParts is how many parts of an expression are traced.
	maxTracedParts = 64
)

// Trace makes the Frame report evaluations to a tracer, up to Release. It costs a second evaluation
// of each expression, in a frame and with a budget of its own.
func (f *Frame) Trace(t Tracer) { f.own.tracer = t }

// Tracer returns the tracer of evaluations, or nil.
func (f *Frame) Tracer() Tracer { return f.own.tracer }

// tracing is the environment of second evaluations. It checks nothing, because compilation did, so
// that programs need not keep what checks need.
var tracing = sync.OnceValues(func() (*env, error) {
	e, err := newEnv(nil)
	if err != nil {
		return nil, err
	}
	return e.extend(common.ResolverEnvOption(value.MadeTypes{}), library.JSONPatch())
})

// traced reports a finished evaluation to the tracer.
func (f *Frame) traced(p *Program, v *Vars, variable string, failure error) {
	if p.source == "" { // a part of an expression that is explained
		return
	}
	t := &Trace{Expression: strings.Clone(p.source), Variable: variable, Err: failure}
	t.evaluate(f, p, v)
	f.own.tracer.Traced(t)
}

// tracedBool is traced for conditions: their value is known.
func (f *Frame) tracedBool(p *Program, v *Vars, result bool, failure error) {
	if p.source == "" {
		return
	}
	t := &Trace{Expression: strings.Clone(p.source), IsCondition: true, Err: failure}
	again, known := t.evaluate(f, p, v).(types.Bool)
	if failure == nil && (!known || bool(again) != result) || failure != nil && known {
		t.Parts, t.IsDoubtful = nil, true
	}
	if failure == nil {
		t.Value = "false"
		if result {
			t.Value = "true"
		}
	} else {
		t.Value = ""
	}
	f.own.tracer.Traced(t)
}

// evaluate evaluates the expression once more, and notes the values of its parts.
func (t *Trace) evaluate(f *Frame, p *Program, v *Vars) (out ref.Val) {
	e, err := tracing()
	if err != nil {
		return nil
	}
	parsed, issues := e.Parse(p.source)
	if issues != nil && issues.Err() != nil {
		return nil
	}
	ast := parsed.NativeRep()
	w := &watch{values: map[int64]ref.Val{}}
	planned, err := planWatched(e, ast, w)
	if err != nil {
		return nil
	}
	again := &Program{source: p.source, plan: planned.plan, optionalOld: p.optionalOld, limited: p.limited,
		size: planned.size}

	own := NewFrame(context.Background())
	defer own.Release()
	own.SetDeadline(f.Deadline())
	defer v.named.lend(own)()
	finder := &partFinder{trace: t, ast: ast, frame: own, watch: w, variables: v.named.list,
		byID: map[int64]celast.Expr{}}
	celast.PreOrderVisit(ast.Expr(), celast.NewExprVisitor(func(x celast.Expr) { finder.byID[x.ID()] = x }))
	t.Reads = finder.reads(ast.Expr(), nil)
	var failure error
	func() {
		own.enter(again, &again.size, v)
		defer own.finish(&failure)
		out = again.plan.Exec(own.exec)
		if t.Err == nil {
			t.Value = finder.text(out)
		}
		finder.walk(ast.Expr(), 0, scope{})
	}()
	if failure != nil { // of the first or the second evaluation
		return nil
	}
	return out
}

// planWatched plans an expression that was only parsed, so that its parts are watched.
func planWatched(e *env, ast *celast.AST, w *watch) (p *Program, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, &CompileError{Detail: "the expression cannot be planned"}
		}
	}()
	m := plan.NewMeter(ast)
	planned, err := e.interpreter.NewInterpretable(ast,
		interpreter.CustomDecoratorV2(plan.PlanAlternative),
		interpreter.CustomDecoratorV2(m.Decorate),
		interpreter.CustomDecoratorV2(w.decorate),
	)
	if err != nil {
		return nil, err
	}
	return &Program{plan: planned, size: plan.FrameSize{Sizes: m.Sizes}}, nil
}

// lend lets another frame read the variables. giveBack drops the values that it computed.
func (n *named) lend(to *Frame) (giveBack func()) {
	if n.list == nil {
		return func() {}
	}
	owner, known := n.frame, slices.Clone(n.values)
	n.frame = to
	return func() {
		n.frame = owner
		copy(n.values, known)
	}
}

// A watch notes the values of the parts of an expression, by id.
type watch struct{ values map[int64]ref.Val }

func (w *watch) decorate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch i := i.(type) {
	case interpreter.InterpretableConst:
		return i, nil
	case *watchedAttribute:
		return &watchedAttribute{i.InterpretableAttribute, w}, nil
	case interpreter.InterpretableAttribute:
		return &watchedAttribute{i, w}, nil
	case *watched:
		return i, nil
	}
	return &watched{i, w}, nil
}

// watched is a step of a plan that is watched.
type watched struct {
	interpreter.InterpretableV2
	watch *watch
}

// Exec implements interpreter.InterpretableV2.
func (s *watched) Exec(e *interpreter.ExecutionFrame) ref.Val {
	v := s.InterpretableV2.Exec(e)
	s.watch.values[s.ID()] = v
	return v
}

// Eval implements interpreter.Interpretable.
func (s *watched) Eval(vars interpreter.Activation) ref.Val {
	return s.Exec(interpreter.AsFrame(vars))
}

// watchedAttribute is a watched step to which cel-go may add members.
type watchedAttribute struct {
	interpreter.InterpretableAttribute
	watch *watch
}

// Exec implements interpreter.InterpretableV2.
func (s *watchedAttribute) Exec(e *interpreter.ExecutionFrame) ref.Val {
	v := s.InterpretableAttribute.Exec(e)
	s.watch.values[s.ID()] = v
	return v
}

// Eval implements interpreter.Interpretable.
func (s *watchedAttribute) Eval(vars interpreter.Activation) ref.Val {
	return s.Exec(interpreter.AsFrame(vars))
}

// A scope has what the variables of loops around a part depend on.
type scope map[string]Reads

// partFinder makes parts of the values that were noted.
type partFinder struct {
	trace     *Trace
	ast       *celast.AST
	frame     *Frame
	watch     *watch
	variables *Variables
	byID      map[int64]celast.Expr
	loops     int
}

// walk adds an expression and what it consists of.
func (f *partFinder) walk(e celast.Expr, depth int, s scope) {
	if e == nil {
		return
	}
	switch e.Kind() {
	case celast.LiteralKind, celast.UnspecifiedExprKind:
		return
	case celast.IdentKind:
		if _, isLocal := s[e.AsIdent()]; isLocal {
			f.add(e, depth, s)
		}
		return
	}
	if f.add(e, depth, s) {
		depth++
	}
	switch e.Kind() {
	case celast.SelectKind:
		if !isChain(e) {
			f.walk(e.AsSelect().Operand(), depth, s)
		}
	case celast.CallKind:
		for _, x := range plan.Operands(e.AsCall()) {
			f.walk(x, depth, s)
		}
	case celast.ListKind:
		for _, x := range e.AsList().Elements() {
			f.walk(x, depth, s)
		}
	case celast.MapKind:
		for _, x := range e.AsMap().Entries() {
			f.walk(x.AsMapEntry().Key(), depth, s)
			f.walk(x.AsMapEntry().Value(), depth, s)
		}
	case celast.StructKind:
		for _, x := range e.AsStruct().Fields() {
			f.walk(x.AsStructField().Value(), depth, s)
		}
	case celast.ComprehensionKind:
		f.loop(e, depth, s)
	}
}

// loop walks through the parts that a macro was written with.
func (f *partFinder) loop(e celast.Expr, depth int, s scope) {
	c := e.AsComprehension()
	f.walk(c.IterRange(), depth, s)
	inner := scope{}
	for name, reads := range s {
		inner[name] = reads
	}
	over := f.reads(c.IterRange(), s)
	inner[c.IterVar()] = over
	if c.HasIterVar2() {
		inner[c.IterVar2()] = over
	}
	macro, ok := f.ast.SourceInfo().GetMacroCall(e.ID())
	if !ok || macro.Kind() != celast.CallKind {
		return
	}
	f.loops++
	for _, arg := range macro.AsCall().Args() {
		f.walk(f.byID[arg.ID()], depth, inner)
	}
	f.loops--
}

// isChain reports whether an expression is members of a variable.
func isChain(e celast.Expr) bool {
	for e.Kind() == celast.SelectKind {
		e = e.AsSelect().Operand()
	}
	return e.Kind() == celast.IdentKind
}

// add adds a part, if there is a value and it says something.
func (f *partFinder) add(e celast.Expr, depth int, s scope) bool {
	v, known := f.watch.values[e.ID()]
	if !known || len(f.trace.Parts) == maxTracedParts || e.Kind() == celast.CallKind && isHelper(e.AsCall()) {
		return false
	}
	source, err := parser.Unparse(e, f.ast.SourceInfo())
	if err != nil {
		return false
	}
	at := f.place(e)
	f.trace.Parts = append(f.trace.Parts, TracedPart{
		Source: cut(source), Line: at.Line(), Column: at.Column() + 1, Depth: depth,
		Value: f.text(v), InLoop: f.loops > 0, Reads: f.reads(e, s),
	})
	return true
}

// place returns the place of a part: its operator, or else its beginning.
func (f *partFinder) place(e celast.Expr) celcommon.Location {
	info := f.ast.SourceInfo()
	at := info.GetStartLocation(e.ID())
	if e.Kind() == celast.CallKind {
		if _, isOperator := operators.FindReverse(e.AsCall().FunctionName()); isOperator {
			return at
		}
	}
	celast.PreOrderVisit(e, celast.NewExprVisitor(func(x celast.Expr) {
		l := info.GetStartLocation(x.ID())
		if l.Line() > 0 && (l.Line() < at.Line() || l.Line() == at.Line() && l.Column() < at.Column()) {
			at = l
		}
	}))
	return at
}

// isHelper reports whether a call is one that only macros make.
func isHelper(c celast.CallExpr) bool { return c.FunctionName() == operators.NotStrictlyFalse }

// text is a value as JSON, or its replacement.
func (f *partFinder) text(v ref.Val) string {
	switch v := v.(type) {
	case nil:
		return ""
	case *types.Err:
		return cut("error: " + v.String())
	case *types.Unknown:
		return "unknown"
	case *types.Optional:
		if !v.HasValue() {
			return "none"
		}
	}
	json, problem := f.frame.Arena.AppendJSON(nil, v)
	if problem != "" {
		return "a value of the type " + v.Type().TypeName()
	}
	return cut(string(json))
}

// cut shortens a text to what a trace holds of it.
func cut(s string) string {
	if len(s) <= MaxTracedBytes {
		return strings.Clone(s)
	}
	end := MaxTracedBytes
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// reads finds what the value of an expression depends on.
func (f *partFinder) reads(e celast.Expr, s scope) (r Reads) {
	named := 0 // how often the variables are read by their names
	celast.PreOrderVisit(e, celast.NewExprVisitor(func(x celast.Expr) {
		switch x.Kind() {
		case celast.IdentKind:
			if r = r.and(f.readsOf(x.AsIdent(), s)); x.AsIdent() == plan.NameVariables {
				named--
			}
		case celast.SelectKind:
			operand := x.AsSelect().Operand()
			if operand.Kind() == celast.IdentKind && operand.AsIdent() == plan.NameVariables && f.variables != nil {
				if i, found := f.variables.index[x.AsSelect().FieldName()]; found {
					named++
					r = r.and(f.variables.readsOf(i))
				}
			}
		}
	}))
	if named < 0 && f.variables != nil { // all of them at once
		for i := range f.variables.programs {
			r = r.and(f.variables.readsOf(i))
		}
	}
	return r
}

// readsOf says what a variable shows.
func (f *partFinder) readsOf(name string, s scope) Reads {
	if local, isLocal := s[name]; isLocal {
		return local
	}
	switch name {
	case plan.NameObject, plan.NameSelf:
		return Reads{Object: true}
	case plan.NameOldObject, plan.NameOldSelf:
		return Reads{Old: true}
	case plan.NameParams, plan.NameNamespaceObject, plan.NameState:
		return Reads{Others: true}
	}
	return Reads{}
}

// readsOf says what a variable of a policy depends on.
func (l *Variables) readsOf(i int) (r Reads) {
	seen := make([]bool, len(l.programs))
	var visit func(int)
	visit = func(i int) {
		if seen[i] {
			return
		}
		seen[i] = true
		p := l.programs[i]
		r = r.and(Reads{p.Uses(value.Object), p.Uses(value.OldObject), p.uses&foreign != 0})
		if p.uses&plan.UsesVariables != 0 {
			for other := range i { // which it may read
				visit(other)
			}
		}
	}
	visit(i)
	return r
}
