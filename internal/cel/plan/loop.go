package plan

import (
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// A macro is a loop such as all or map, taken apart.
type macro struct {
	over  expr
	array *chain // what it is over, if that is a path
	pairs bool
	first int // the places of its variables among all local ones
	other int

	filter test // nil: every round counts
	result expr // of a round
}

// loop compiles a comprehension: macros become these. The environment's macros are known by their
// form.
func (c *nativeCompiler) loop(e celast.Expr) code {
	x := e.AsComprehension()
	accu := x.AccuVar()
	step := x.LoopStep()
	switch {
	case isLit(x.LoopCondition(), types.False) && isEmptyList(x.IterRange()):
		return c.bind(x)
	case !isAccumulator(x.Result(), accu) && !isCall(x.Result(), operators.Equals, 2):
	case isLit(x.AccuInit(), types.True) && isCall(step, operators.LogicalAnd, 2):
		return c.quantifier(x, step.AsCall().Args()[1], IsFalse)
	case isLit(x.AccuInit(), types.False) && isCall(step, operators.LogicalOr, 2):
		return c.quantifier(x, step.AsCall().Args()[1], IsTrue)
	case isLit(x.AccuInit(), types.IntZero) && isCall(step, operators.Conditional, 3):
		return c.existsOne(x, step.AsCall().Args()[0])
	case isLit(x.LoopCondition(), types.True):
		var filter celast.Expr
		if isCall(step, operators.Conditional, 3) && isAccumulator(step.AsCall().Args()[2], accu) {
			filter, step = step.AsCall().Args()[0], step.AsCall().Args()[1]
		}
		switch {
		case isEmptyList(x.AccuInit()) && isCall(step, operators.Add, 2) &&
			isAccumulator(step.AsCall().Args()[0], accu):
			if made := step.AsCall().Args()[1]; made.Kind() == celast.ListKind && made.AsList().Size() == 1 &&
				len(made.AsList().OptionalIndices()) == 0 {
				return c.transform(x, filter, made.AsList().Elements()[0])
			}
		case x.AccuInit().Kind() == celast.MapKind && x.AccuInit().AsMap().Size() == 0 &&
			step.Kind() == celast.CallKind && step.AsCall().FunctionName() == mapInsert:
			return c.transformMap(x, filter, step)
		}
	}
	return c.refuse("it has a loop that is no known macro")
}

// declare adds a local variable and returns its place.
func (c *nativeCompiler) declare(l nativeLocal) int {
	l.index = c.depth
	c.depth++
	c.locals = max(c.locals, c.depth)
	c.scope = append(c.scope, l)
	return l.index
}

// leave takes out the variables declared last.
func (c *nativeCompiler) leave(n int) {
	c.depth -= n
	c.scope = c.scope[:len(c.scope)-n]
}

// begin compiles what a loop is over and declares its variables, which body may use.
func (c *nativeCompiler) begin(x celast.ComprehensionExpr, body func(*macro)) *macro {
	over := c.compile(x.IterRange())
	l := &macro{over: over.eval, pairs: x.HasIterVar2()}
	if !l.pairs {
		l.array = over.plain(value.KindList)
		if l.array == nil {
			l.array = over.plain(value.KindUnorderedList)
		}
		if c := over.plain(value.KindObject); l.array == nil && c != nil && c.typ.Members == nil &&
			c.typ.Additional != nil {
			l.array = c
		}
	}
	var items *value.Type
	if over.chain != nil && over.chain.typ != nil && !over.chain.optional {
		items = over.chain.typ.Items
	}
	n := 1
	if l.pairs {
		n = 2
		l.first = c.declare(nativeLocal{name: x.IterVar()})
		l.other = c.declare(nativeLocal{name: x.IterVar2(), typ: items})
	} else {
		l.first = c.declare(nativeLocal{name: x.IterVar(), typ: items})
	}
	body(l)
	c.leave(n)
	return l
}

// localVariable compiles the reading of a local variable.
func (c *nativeCompiler) localVariable(l *nativeLocal) code {
	if l.init == nil {
		return (&chain{local: l.index, units: 1, root: l.typ, typ: l.typ}).code()
	}
	init, i := l.init, l.index
	return code{eval: func(f *Machine) Val {
		v := f.locals[f.run.localsBase+i]
		if v.Kind == ValUnset {
			v = init(f)
			f.locals[f.run.localsBase+i] = v
		}
		return v
	}}
}

// bind compiles cel.bind: a variable whose value is computed when it is read first.
func (c *nativeCompiler) bind(x celast.ComprehensionExpr) code {
	init := c.compile(x.AccuInit()).scalar()
	i := c.declare(nativeLocal{name: x.AccuVar(), init: init})
	result := c.compile(x.Result())
	c.leave(1)
	return code{eval: func(f *Machine) Val {
		f.locals[f.run.localsBase+i] = Val{}
		return result.eval(f)
	}}
}

// quantifier compiles all and exists; decisive is the truth of a round that ends the loop.
func (c *nativeCompiler) quantifier(x celast.ComprehensionExpr, predicate celast.Expr, decisive verdict) code {
	l := c.begin(x, func(l *macro) { l.filter = c.compile(predicate).truth() })
	otherwise := IsTrue
	if decisive == IsTrue {
		otherwise = IsFalse
	}
	general := func(f *Machine) verdict {
		var cur cursor
		if v := cur.over(f, l, l.over(f)); v.Kind == ValErr {
			return f.fail(v.Ref())
		}
		var err ref.Val
		for cur.next(f) {
			f.Arena.Charge(quantifierUnits - otherUnits)
			switch l.filter(f) {
			case decisive:
				return decisive
			case isErr:
				if err == nil {
					err = f.Err
				}
			}
		}
		if err != nil {
			return f.fail(err)
		}
		return otherwise
	}
	if l.array == nil {
		return conditionCode(general)
	}
	return conditionCode(func(f *Machine) verdict {
		n, ok := l.array.node(f)
		switch {
		case ok && n.Kind() == document.Array && (l.array.typ == nil || l.array.typ.Kind != value.KindObject):
			return l.quantify(f, n, decisive, otherwise)
		case ok && n.Kind() == document.Object && (l.array.typ == nil || l.array.typ.Kind == value.KindObject):
			return l.quantifyKeys(f, n, decisive, otherwise)
		}
		return general(f)
	})
}

// quantifyKeys is the loop of all and exists over the names of an object's members, if all of them
// are seen as they are.
func (l *macro) quantifyKeys(f *Machine, n document.Node, decisive, otherwise verdict) verdict {
	f.locals[f.run.localsBase+l.first] = stringVal("")
	var err ref.Val
	for n = n.First(); n.Valid(); n = n.Next() {
		name := n.Key()
		f.Arena.Charge(quantifierUnits + int64(len(name))/value.BytesPerUnit)
		f.locals[f.run.localsBase+l.first] = stringVal(name)
		switch l.filter(f) {
		case decisive:
			return decisive
		case isErr:
			if err == nil {
				err = f.Err
			}
		}
	}
	if err != nil {
		return f.fail(err)
	}
	return otherwise
}

// quantify is the loop of all and exists over an array of a document.
func (l *macro) quantify(f *Machine, n document.Node, decisive, otherwise verdict) verdict {
	var items *value.Type
	if t := l.array.typ; t != nil {
		items = t.Items
	}
	f.locals[f.run.localsBase+l.first] = nodeVal(n, items)
	var err ref.Val
	for n = n.First(); n.Valid(); n = n.Next() {
		f.Arena.Charge(quantifierUnits)
		f.locals[f.run.localsBase+l.first].index = n.Index()
		switch l.filter(f) {
		case decisive:
			return decisive
		case isErr:
			if err == nil {
				err = f.Err
			}
		}
	}
	if err != nil {
		return f.fail(err)
	}
	return otherwise
}

// existsOne compiles exists_one.
func (c *nativeCompiler) existsOne(x celast.ComprehensionExpr, predicate celast.Expr) code {
	l := c.begin(x, func(l *macro) { l.filter = c.compile(predicate).truth() })
	return conditionCode(func(f *Machine) verdict {
		var cur cursor
		if v := cur.over(f, l, l.over(f)); v.Kind == ValErr {
			return f.fail(v.Ref())
		}
		var err ref.Val
		found := 0
		for cur.next(f) {
			switch l.filter(f) {
			case IsTrue:
				found++
			case isErr:
				err = f.Err // the last one, as in cel-go
			}
		}
		if err != nil {
			return f.fail(err)
		}
		return truthOf(found == 1)
	})
}

// transform compiles map, filter and transformList.
func (c *nativeCompiler) transform(x celast.ComprehensionExpr, filter, result celast.Expr) code {
	l := c.begin(x, func(l *macro) {
		if filter != nil {
			l.filter = c.compile(filter).truth()
		}
		l.result = c.compile(result).scalar()
	})
	return code{eval: func(f *Machine) Val {
		var cur cursor
		if v := cur.over(f, l, l.over(f)); v.Kind == ValErr {
			return v
		}
		var err Val
		mark := len(f.stack)
		for cur.next(f) {
			if l.filter != nil {
				switch l.filter(f) {
				case isErr:
					err = ErrVal(f.Err) // the last one, as in cel-go
					continue
				case IsFalse:
					continue
				}
			}
			if err.Kind == ValErr {
				continue
			}
			f.Arena.Charge(listUnits)
			v := l.result(f)
			if v.Kind == ValErr {
				err = v
				if l.filter == nil {
					break
				}
				continue
			}
			f.push(v)
		}
		if err.Kind == ValErr {
			f.stack = f.stack[:mark]
			return err
		}
		return f.newBuilt(mark)
	}}
}

// transformMap compiles transformMap and transformMapEntry.
func (c *nativeCompiler) transformMap(x celast.ComprehensionExpr, filter, insert celast.Expr) code {
	var call *invocation
	var parts []expr
	l := c.begin(x, func(l *macro) {
		if filter != nil {
			l.filter = c.compile(filter).truth()
		}
		args := c.values(insert.AsCall().Args()[1:])
		call = c.invocation(insert, args)
		for _, a := range args {
			parts = append(parts, a.scalar())
		}
	})
	return code{eval: func(f *Machine) Val {
		f.use()
		var cur cursor
		if v := cur.over(f, l, l.over(f)); v.Kind == ValErr {
			return v
		}
		var made ref.Val = types.NewMutableMap(types.DefaultTypeAdapter, map[ref.Val]ref.Val{})
		args := make([]ref.Val, len(parts)+1)
	rounds:
		for cur.next(f) {
			if l.filter != nil {
				switch l.filter(f) {
				case isErr:
					made = f.Err // the last one, as in cel-go
					continue
				case IsFalse:
					continue
				}
			}
			if types.IsUnknownOrError(made) {
				continue
			}
			args[0] = made
			for i, part := range parts {
				v := part(f)
				if v.Kind == ValErr {
					made = v.Ref()
					continue rounds
				}
				args[i+1] = f.Ref(v)
			}
			f.Arena.Charge(call.fixed.units)
			f.count(EntryBytes)
			if len(args) == 2 {
				made = call.binary(args[0], args[1], true)
			} else {
				made = call.apply(args)
			}
		}
		if m, ok := made.(traits.MutableMapper); ok {
			return refVal(m.ToImmutableMap())
		}
		return f.Of(made)
	}}
}
