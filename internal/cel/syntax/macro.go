package syntax

import (
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/parser"
)

// expand returns what a macro makes of a call; nil if there is none. It declines if the macro finds a mistake.
func (t *tree) expand(id int64, function string, target ast.Expr, args []ast.Expr) ast.Expr {
	macro, isMacro := t.macros[call{function, len(args), target != nil}]
	if !isMacro {
		if macro, isMacro = t.macros[call{function, -1, target != nil}]; !isMacro {
			return nil
		}
	}
	e, err := macro.Expander()(&expansion{t, id}, target, args)
	if err != nil {
		t.decline()
		return nil
	}
	if e == nil {
		return nil
	}
	t.note(e.ID(), function, target, args)
	t.info.ClearOffsetRange(id)
	if id == t.nextID-1 {
		t.nextID--
	}
	return e
}

// note notes the call that a macro stood for. Calls of macros in it stand there by their numbers.
func (t *tree) note(id int64, function string, target ast.Expr, args []ast.Expr) {
	noted := make([]ast.Expr, len(args))
	for i, a := range args {
		noted[i] = t.noted(a)
	}
	if target == nil {
		t.info.SetMacroCall(id, t.NewCall(0, function, noted...))
		return
	}
	t.info.SetMacroCall(id, t.NewMemberCall(0, function, t.noted(target), noted...))
}

func (t *tree) noted(e ast.Expr) ast.Expr {
	if _, isMacro := t.info.GetMacroCall(e.ID()); isMacro {
		return t.NewUnspecifiedExpr(e.ID())
	}
	all := func(es []ast.Expr) []ast.Expr {
		noted := make([]ast.Expr, len(es))
		for i, e := range es {
			noted[i] = t.noted(e)
		}
		return noted
	}
	switch e.Kind() {
	case ast.CallKind:
		c := e.AsCall()
		args := all(c.Args())
		if !c.IsMemberFunction() {
			return t.NewCall(e.ID(), c.FunctionName(), args...)
		}
		return t.NewMemberCall(e.ID(), c.FunctionName(), t.noted(c.Target()), args...)
	case ast.ListKind:
		return t.NewList(e.ID(), all(e.AsList().Elements()), e.AsList().OptionalIndices())
	}
	return e
}

// An expansion is the call of a macro. Nodes that the macro makes have the place of the call.
type expansion struct {
	*tree
	of int64
}

var _ parser.ExprHelper = (*expansion)(nil)

func (x *expansion) id() int64 {
	place, _ := x.info.GetOffsetRange(x.of)
	return x.tree.id(ast.OffsetRange{Start: place.Start, Stop: place.Start})
}

// Copy implements parser.ExprHelper.
func (x *expansion) Copy(e ast.Expr) ast.Expr {
	place, _ := x.info.GetOffsetRange(e.ID())
	id := x.tree.id(place)
	all := func(es []ast.Expr) []ast.Expr {
		copies := make([]ast.Expr, len(es))
		for i, e := range es {
			copies[i] = x.Copy(e)
		}
		return copies
	}
	f := x.ExprFactory
	switch e.Kind() {
	case ast.LiteralKind:
		return f.NewLiteral(id, e.AsLiteral())
	case ast.IdentKind:
		return f.NewIdent(id, e.AsIdent())
	case ast.SelectKind:
		s := e.AsSelect()
		operand := x.Copy(s.Operand())
		if s.IsTestOnly() {
			return f.NewPresenceTest(id, operand, s.FieldName())
		}
		return f.NewSelect(id, operand, s.FieldName())
	case ast.CallKind:
		c := e.AsCall()
		args := all(c.Args())
		if !c.IsMemberFunction() {
			return f.NewCall(id, c.FunctionName(), args...)
		}
		return f.NewMemberCall(id, c.FunctionName(), x.Copy(c.Target()), args...)
	case ast.ListKind:
		return f.NewList(id, all(e.AsList().Elements()), e.AsList().OptionalIndices())
	case ast.MapKind:
		entries := make([]ast.EntryExpr, e.AsMap().Size())
		for i, entry := range e.AsMap().Entries() {
			of, at := entry.AsMapEntry(), x.id()
			key := x.Copy(of.Key())
			entries[i] = f.NewMapEntry(at, key, x.Copy(of.Value()), of.IsOptional())
		}
		return f.NewMap(id, entries)
	case ast.StructKind:
		s := e.AsStruct()
		fields := make([]ast.EntryExpr, len(s.Fields()))
		for i, field := range s.Fields() {
			of, at := field.AsStructField(), x.id()
			fields[i] = f.NewStructField(at, of.Name(), x.Copy(of.Value()), of.IsOptional())
		}
		return f.NewStruct(id, s.TypeName(), fields)
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		over, begin, condition, step := x.Copy(c.IterRange()), x.Copy(c.AccuInit()), x.Copy(c.LoopCondition()), x.Copy(c.LoopStep())
		return f.NewComprehensionTwoVar(id, over, c.IterVar(), c.IterVar2(), c.AccuVar(), begin, condition, step, x.Copy(c.Result()))
	}
	return f.NewUnspecifiedExpr(id)
}

// NewLiteral implements parser.ExprHelper.
func (x *expansion) NewLiteral(v ref.Val) ast.Expr { return x.ExprFactory.NewLiteral(x.id(), v) }

// NewList implements parser.ExprHelper.
func (x *expansion) NewList(items ...ast.Expr) ast.Expr {
	return x.ExprFactory.NewList(x.id(), items, []int32{})
}

// NewMap implements parser.ExprHelper.
func (x *expansion) NewMap(entries ...ast.EntryExpr) ast.Expr {
	return x.ExprFactory.NewMap(x.id(), entries)
}

// NewMapEntry implements parser.ExprHelper.
func (x *expansion) NewMapEntry(key, value ast.Expr, isOptional bool) ast.EntryExpr {
	return x.ExprFactory.NewMapEntry(x.id(), key, value, isOptional)
}

// NewStruct implements parser.ExprHelper.
func (x *expansion) NewStruct(name string, fields ...ast.EntryExpr) ast.Expr {
	return x.ExprFactory.NewStruct(x.id(), name, fields)
}

// NewStructField implements parser.ExprHelper.
func (x *expansion) NewStructField(field string, value ast.Expr, isOptional bool) ast.EntryExpr {
	return x.ExprFactory.NewStructField(x.id(), field, value, isOptional)
}

// NewComprehension implements parser.ExprHelper.
func (x *expansion) NewComprehension(over ast.Expr, item, result string, begin, condition, step, end ast.Expr) ast.Expr {
	return x.ExprFactory.NewComprehension(x.id(), over, item, result, begin, condition, step, end)
}

// NewComprehensionTwoVar implements parser.ExprHelper.
func (x *expansion) NewComprehensionTwoVar(over ast.Expr, key, item, result string, begin, condition, step, end ast.Expr) ast.Expr {
	return x.ExprFactory.NewComprehensionTwoVar(x.id(), over, key, item, result, begin, condition, step, end)
}

// NewIdent implements parser.ExprHelper.
func (x *expansion) NewIdent(name string) ast.Expr { return x.ExprFactory.NewIdent(x.id(), name) }

// NewAccuIdent implements parser.ExprHelper.
func (x *expansion) NewAccuIdent() ast.Expr { return x.ExprFactory.NewAccuIdent(x.id()) }

// NewCall implements parser.ExprHelper.
func (x *expansion) NewCall(function string, args ...ast.Expr) ast.Expr {
	return x.ExprFactory.NewCall(x.id(), function, args...)
}

// NewMemberCall implements parser.ExprHelper.
func (x *expansion) NewMemberCall(function string, target ast.Expr, args ...ast.Expr) ast.Expr {
	return x.ExprFactory.NewMemberCall(x.id(), function, target, args...)
}

// NewPresenceTest implements parser.ExprHelper.
func (x *expansion) NewPresenceTest(operand ast.Expr, field string) ast.Expr {
	return x.ExprFactory.NewPresenceTest(x.id(), operand, field)
}

// NewSelect implements parser.ExprHelper.
func (x *expansion) NewSelect(operand ast.Expr, field string) ast.Expr {
	return x.ExprFactory.NewSelect(x.id(), operand, field)
}

// OffsetLocation implements parser.ExprHelper.
func (x *expansion) OffsetLocation(id int64) common.Location { return x.info.GetStartLocation(id) }

// NewError implements parser.ExprHelper.
func (x *expansion) NewError(id int64, message string) *common.Error {
	return common.NewError(id, message, x.OffsetLocation(id))
}
