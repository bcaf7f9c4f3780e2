package plan

import (
	celast "github.com/google/cel-go/common/ast"
	celfunctions "github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// invocation is a call of a function as cel-go would do it. Native code calls it for arguments that it does not know
// itself, so that values and errors are the library's own.
type invocation struct {
	function string
	overload string
	def      *celfunctions.Overload // nil: the receiver knows the function
	args     []code
	counted  *countedCall
	fixed    dues
	makes    made
}

// invocation plans a call. It does what cel-go's planCall does.
func (c *nativeCompiler) invocation(e celast.Expr, args []code) *invocation {
	call := &invocation{function: e.AsCall().FunctionName(), args: args, counted: c.meter.calls[e.ID()],
		fixed: c.meter.fixed[e.ID()], makes: c.meter.makes[e.ID()]}
	if r, ok := c.ast.ReferenceMap()[e.ID()]; ok && len(r.OverloadIDs) == 1 {
		call.overload = r.OverloadIDs[0]
		call.def, _ = c.env.Functions.FindOverload(call.overload)
	}
	if call.def == nil {
		call.def, _ = c.env.Functions.FindOverload(call.function)
	}
	call.fixed.units++
	if call.def == nil && len(args) == 0 {
		c.refuse("it calls '" + call.function + "'")
	}
	return call
}

// call compiles a call.
func (c *nativeCompiler) call(e celast.Expr) code {
	call := e.AsCall()
	name := call.FunctionName()
	args := Operands(call)
	switch name {
	case operators.Index, operators.OptIndex, operators.OptSelect:
		return c.indexed(call)
	case "or", "orValue":
		switch c.overloadOf(e) {
		case "", "optional_or_optional", "optional_orValue_value":
			return c.alternative(args, name == "orValue")
		}
	}
	parts := c.values(args)
	inv := c.invocation(e, parts)
	switch name {
	case operators.LogicalAnd:
		return conditionCode(and(parts[0].truth(), parts[1].truth()))
	case operators.LogicalOr:
		return conditionCode(or(parts[0].truth(), parts[1].truth()))
	case operators.LogicalNot:
		return conditionCode(not(parts[0], inv.one))
	case operators.Conditional:
		return conditional(parts[0], parts[1].attribute(), parts[2].attribute())
	case operators.Equals, operators.NotEquals:
		return conditionCode(equals(parts[0], parts[1], name == operators.Equals, inv.counted))
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return conditionCode(ordering(name, parts[0], parts[1], inv.counted, inv.two))
	case operators.In:
		return c.membership(args, inv)
	case "hasValue":
		return hasValue(inv)
	case "value":
		return unwrapped(inv)
	}
	if folded, ok := c.fold(inv); ok {
		return folded
	}
	if k, ok := c.known(inv); ok {
		return k
	}
	return code{eval: inv.eval()}
}

func (c *nativeCompiler) overloadOf(e celast.Expr) string {
	if r, ok := c.ast.ReferenceMap()[e.ID()]; ok && len(r.OverloadIDs) == 1 {
		return r.OverloadIDs[0]
	}
	return ""
}

// fold computes a conversion of a literal when the expression is compiled, as cel-go's optimisation does.
func (c *nativeCompiler) fold(call *invocation) (code, bool) {
	if len(call.args) != 1 || call.args[0].lit == nil || !overloads.IsTypeConversionFunction(call.function) {
		return code{}, false
	}
	result := call.unary(call.args[0].lit.literal())
	if types.IsUnknownOrError(result) {
		return code{}, false
	}
	return c.literal(result), true
}

// eval is the call without anything that native code knows about it.
func (call *invocation) eval() expr {
	parts := make([]expr, len(call.args))
	for i, a := range call.args {
		parts[i] = a.scalar()
	}
	strict := call.def == nil || !call.def.NonStrict
	switch {
	case len(parts) == 0:
		return func(f *Machine) Val {
			f.Arena.Charge(call.fixed.units)
			return call.made(f, call.def.Function())
		}
	case len(parts) == 1 && !call.variadic():
		arg := parts[0]
		return func(f *Machine) Val { return call.one(f, arg(f)) }
	case len(parts) == 2 && !call.variadic():
		a, b := parts[0], parts[1]
		return func(f *Machine) Val {
			v := a(f)
			return call.two(f, v, b(f))
		}
	}
	return func(f *Machine) Val {
		mark := len(f.stack)
		for _, part := range parts {
			v := part(f)
			if strict && v.Kind == ValErr {
				f.stack = f.stack[:mark]
				return v
			}
			f.push(v)
		}
		v := call.all(f, f.stack[mark:])
		f.stack = f.stack[:mark]
		return v
	}
}

// made is the result of a call.
func (call *invocation) made(f *Machine, v ref.Val) Val {
	call.makes.count(f, v)
	return f.Of(v)
}

// variadic reports whether the function takes its arguments as a list whatever their number.
func (call *invocation) variadic() bool {
	switch {
	case call.def == nil || call.def.Function == nil:
		return false
	case len(call.args) == 1:
		return call.def.Unary == nil
	case len(call.args) == 2:
		return call.def.Binary == nil
	}
	return true
}

// one calls a function of one argument.
func (call *invocation) one(f *Machine, v Val) Val {
	call.counted.one(f, v)
	f.Arena.Charge(call.fixed.units)
	f.use()
	return call.made(f, call.unary(f.Ref(v)))
}

func (call *invocation) unary(v ref.Val) ref.Val {
	def := call.def
	bad := types.IsUnknownOrError(v)
	if bad && (def == nil || !def.NonStrict) {
		return v
	}
	if def != nil && def.Unary == nil && def.Function != nil {
		return call.apply([]ref.Val{v})
	}
	if def != nil && def.Unary != nil && (def.OperandTrait == 0 || bad || v.Type().HasTrait(def.OperandTrait)) {
		return def.Unary(v)
	}
	if v.Type().HasTrait(traits.ReceiverType) {
		return v.(traits.Receiver).Receive(call.function, call.overload, []ref.Val{})
	}
	return types.NewErr("no such overload: %s", call.function)
}

// two calls a function of two arguments.
func (call *invocation) two(f *Machine, v, w Val) Val {
	strict := call.def == nil || !call.def.NonStrict
	if strict && v.Kind == ValErr {
		return v
	}
	if strict && w.Kind == ValErr {
		return w
	}
	call.counted.two(f, v, w)
	f.Arena.Charge(call.fixed.units)
	f.use()
	return call.made(f, call.binary(f.Ref(v), f.Ref(w), strict))
}

func (call *invocation) binary(v, w ref.Val, strict bool) ref.Val {
	def := call.def
	if def != nil && def.Binary == nil && def.Function != nil {
		return call.apply([]ref.Val{v, w})
	}
	if def != nil && def.Binary != nil && (def.OperandTrait == 0 || !strict && types.IsUnknownOrError(v) ||
		v.Type().HasTrait(def.OperandTrait)) {
		return def.Binary(v, w)
	}
	if v.Type().HasTrait(traits.ReceiverType) {
		return v.(traits.Receiver).Receive(call.function, call.overload, []ref.Val{w})
	}
	return types.NewErr("no such overload: %s", call.function)
}

// all calls a function of any number of arguments.
func (call *invocation) all(f *Machine, vals []Val) Val {
	call.counted.all(f, vals)
	f.Arena.Charge(call.fixed.units)
	f.use()
	args := make([]ref.Val, len(vals))
	for i, v := range vals {
		args[i] = f.Ref(v)
	}
	return call.made(f, call.apply(args))
}

func (call *invocation) apply(args []ref.Val) ref.Val {
	def := call.def
	if def != nil && def.Function != nil && (def.OperandTrait == 0 || args[0].Type().HasTrait(def.OperandTrait)) {
		return def.Function(args...)
	}
	if args[0].Type().HasTrait(traits.ReceiverType) {
		return args[0].(traits.Receiver).Receive(call.function, call.overload, args[1:])
	}
	return types.NewErr("no such overload: %s", call.function)
}
