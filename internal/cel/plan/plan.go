package plan

import (
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/admission-gateway/gateway/internal/cel/value"
)

// An expr computes a value. It is a closure over the parts of the expression, made when the expression is compiled.
type expr func(*Machine) Val

// A test is an expr whose value is true or false.
type test func(*Machine) verdict

// A Condition is the test that an expression is.
type Condition = test

type verdict uint8

const (
	IsFalse verdict = iota
	IsTrue
	isErr // the error is in Frame.err
)

func truthOf(b bool) verdict {
	if b {
		return IsTrue
	}
	return IsFalse
}

// A Native plan runs an expression without cel-go's interpreter. It gives the same values and errors.
type Native struct {
	Eval   expr
	Test   test // nil if the value is no condition
	Locals int  // how many local variables it has
}

// code is a compiled part of an expression.
type code struct {
	eval  expr
	count func(*Machine) (int64, bool) // set if the value can be computed as a number, such as a size
	test  test                         // set if the value is computed as a truth
	chain *chain                       // set if it is a chain
	lit   *Val                         // set if it is a literal
}

// nativeCompiler compiles a checked expression. What it does not know it refuses: then cel-go runs the whole
// expression.
type nativeCompiler struct {
	env       *Language
	ast       *celast.AST
	meter     *Meter
	variables map[string]int // of the policy: their places
	scope     []nativeLocal
	depth     int // local variables that are in use
	locals    int // most of them at once
	refused   string
}

// nativeLocal is a local variable: of a loop, or one whose value is computed when it is read first.
type nativeLocal struct {
	name  string
	index int
	init  expr        // computes the value when it is read first; nil for a variable of a loop
	typ   *value.Type // how its nodes are seen, if that is known
}

// Compile compiles an expression; a reason is given if that cannot be done.
func Compile(e *Language, ast *celast.AST, m *Meter, variables map[string]int) (plan *Native, reason string) {
	c := &nativeCompiler{env: e, ast: ast, meter: m, variables: variables}
	root := c.compile(ast.Expr())
	if c.refused != "" {
		return nil, c.refused
	}
	return &Native{Eval: root.eval, Test: root.test, Locals: c.locals}, ""
}

// refuse notes why the expression cannot run natively. Compiling goes on so that no caller needs to look.
func (c *nativeCompiler) refuse(reason string) code {
	if c.refused == "" {
		c.refused = reason
	}
	return literal(nullVal)
}

func literal(v Val) code {
	return code{eval: func(*Machine) Val { return v }, lit: &v}
}

// conditionCode is a part that is computed as a truth.
func conditionCode(t test) code {
	return code{test: t, eval: func(f *Machine) Val {
		switch t(f) {
		case IsTrue:
			return trueVal
		case IsFalse:
			return falseVal
		}
		return ErrVal(f.Err)
	}}
}

func (c *nativeCompiler) compile(e celast.Expr) code {
	switch e.Kind() {
	case celast.LiteralKind:
		return c.literal(e.AsLiteral())
	case celast.IdentKind:
		return c.ident(e)
	case celast.SelectKind:
		return c.selected(e)
	case celast.CallKind:
		return c.call(e)
	case celast.ListKind:
		return c.list(e)
	case celast.MapKind:
		return c.mapping(e)
	case celast.StructKind:
		return c.structure(e)
	case celast.ComprehensionKind:
		return c.loop(e)
	}
	return c.refuse("it is of a kind that native plans do not know")
}

// values compiles several parts.
func (c *nativeCompiler) values(es []celast.Expr) []code {
	parts := make([]code, len(es))
	for i, e := range es {
		parts[i] = c.compile(e)
	}
	return parts
}

func (c *nativeCompiler) literal(v ref.Val) code {
	switch v := v.(type) {
	case types.Bool:
		return literal(boolVal(bool(v)))
	case types.Int:
		return literal(intVal(int64(v)))
	case types.Uint:
		return literal(uintVal(uint64(v)))
	case types.Double:
		return literal(doubleVal(float64(v)))
	case types.String:
		return literal(stringVal(string(v)))
	case types.Null:
		return literal(nullVal)
	}
	return literal(refVal(v))
}

// scalar is the part's value with scalars read.
func (k code) scalar() expr {
	switch {
	case k.test != nil, k.lit != nil:
		return k.eval
	case k.chain != nil:
		return k.chain.scalar
	}
	eval := k.eval
	return func(f *Machine) Val {
		v := eval(f)
		if v.Kind == valNode {
			return f.Scalar(v)
		}
		return v
	}
}

// truth is the part as a condition. What is neither true nor false is an error.
func (k code) truth() test {
	if k.test != nil {
		return k.test
	}
	eval := k.scalar()
	any := func(f *Machine) verdict { return f.truth(eval(f)) }
	if c := k.plain(value.KindBool); c != nil {
		return isSo(c, any)
	}
	return any
}

// truth is a value as a condition.
func (f *Machine) truth(v Val) verdict {
	switch v.Kind {
	case ValBool:
		return verdict(v.num)
	case ValErr:
		return f.fail(v.Ref())
	}
	return f.fail(types.NoSuchOverloadErr())
}

// fail gives the error as a truth.
func (f *Machine) fail(err ref.Val) verdict {
	f.Err = err
	return isErr
}

// ident compiles a name.
func (c *nativeCompiler) ident(e celast.Expr) code { return c.named(e, e.AsIdent()) }

// named compiles what a name refers to.
func (c *nativeCompiler) named(e celast.Expr, name string) code {
	if r, ok := c.ast.ReferenceMap()[e.ID()]; ok {
		if r.Value != nil {
			return c.literal(r.Value)
		}
		if c.ast.GetType(e.ID()).Kind() == types.TypeKind {
			if t, ok := c.env.Types.FindIdent(r.Name); ok {
				return c.literal(t)
			}
			return c.refuse("it refers to the type '" + r.Name + "'")
		}
		name = r.Name
	}
	if l := c.find(name); l != nil {
		return c.localVariable(l)
	}
	for s, n := range slotNames {
		if n == name {
			t := c.env.Seen[s]
			return (&chain{slot: value.Slot(s), local: -1, units: 1, root: t, typ: t}).code()
		}
	}
	if _, ok := UsesOf[name]; ok {
		return code{eval: func(f *Machine) Val { return f.global(name) }}
	}
	return c.refuse("it refers to '" + name + "'")
}

func (c *nativeCompiler) find(name string) *nativeLocal {
	for i := len(c.scope) - 1; i >= 0; i-- {
		if c.scope[i].name == name {
			return &c.scope[i]
		}
	}
	return nil
}

// global is the value of a variable that is no node.
func (f *Machine) global(name string) Val {
	f.use()
	v, ok := f.others.Global(name)
	if !ok {
		return ErrVal(types.NewErr("no such attribute(s): %s", name))
	}
	return f.Of(v.(ref.Val))
}
