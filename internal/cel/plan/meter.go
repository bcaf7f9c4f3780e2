package plan

import (
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
)

// A Meter finds, in a checked expression, the work that the lazy values do not see, and plans counting steps around it:
//
//   - a call whose arguments are all literals, such as lists.range(1000), which counts what it does;
//   - the step of a loop over a list or map that is not of a document (a literal, a variable's value, lists.range(9),
//     the
//     result of map), which counts what a round costs at least;
//   - a list or map that the expression writes out, which counts what Kubernetes counts for making one;
//   - the arguments of a function whose work is more than what was counted when its arguments were read: because they
//     were
//     computed, because they were read once and are used in every round of an inner loop, or because the work grows
//     faster
//     than their size (patterns, sets, sorting).
//
// Everything else runs as cel-go plans it. Most rules need no such step.
type Meter struct {
	ast   *celast.AST
	scope []local
	depth int // loops around the expression

	rounds map[int64]int64        // units of a round, by id of the loop's step
	fixed  map[int64]dues         // of what is known when the expression is compiled, by id
	args   map[int64]*argument    // by id of the argument
	calls  map[int64]*countedCall // by id of the call
	makes  map[int64]made         // calls that make strings or lists, by id
	Sizes  int                    // arguments whose size must be remembered during an evaluation
}

// local is a variable of a comprehension.
type local struct {
	name  string
	depth int  // of the loop that declares it
	lazy  bool // its containers are of a document
}

// origin says how the value of an expression comes about, as far as it is known.
type origin struct {
	// lazy: a container is a document's, and counts what is done with it.
	lazy bool
	// counted: reading the value counts in proportion to its size, every time.
	counted bool
}

func NewMeter(ast *celast.AST) *Meter {
	m := &Meter{ast: ast, rounds: make(map[int64]int64), fixed: make(map[int64]dues), args: make(map[int64]*argument),
		calls: make(map[int64]*countedCall), makes: make(map[int64]made)}
	m.walk(ast.Expr())
	return m
}

// Decorate plans the counting steps. cel-go calls it for every node of a plan.
func (m *Meter) Decorate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	id := i.ID()
	attribute, isAttribute := i.(interpreter.InterpretableAttribute)
	_, isConst := i.(interpreter.InterpretableConst)
	if due, ok := m.fixed[id]; ok && !isConst && !isAttribute {
		i = &countUnits{i, due}
	}
	if units := m.rounds[id]; units > 0 {
		i = &countUnits{i, dues{units: units}}
	}
	if how, ok := m.makes[id]; ok && !isAttribute {
		i = &countMade{i, how}
	}
	if a, ok := m.args[id]; ok {
		if isAttribute {
			// cel-go may go on to select a member of it.
			return &countAttribute{attribute, a}, nil
		}
		i = &countArgument{i, a}
	}
	return i, nil
}

func (m *Meter) walk(e celast.Expr) {
	switch e.Kind() {
	case celast.SelectKind:
		m.walk(e.AsSelect().Operand())
	case celast.ListKind:
		if _, ok := ConstantSize(e); !ok {
			m.fixed[e.ID()] = dues{listUnits, e.AsList().Size() * RefBytes}
		}
		for _, x := range e.AsList().Elements() {
			m.walk(x)
		}
	case celast.MapKind:
		if _, ok := ConstantSize(e); !ok {
			m.fixed[e.ID()] = dues{mapUnits, e.AsMap().Size() * EntryBytes}
		}
		for _, x := range e.AsMap().Entries() {
			m.walk(x.AsMapEntry().Key())
			m.walk(x.AsMapEntry().Value())
		}
	case celast.StructKind:
		m.fixed[e.ID()] = dues{structUnits, len(e.AsStruct().Fields()) * EntryBytes}
		for _, x := range e.AsStruct().Fields() {
			m.walk(x.AsStructField().Value())
		}
	case celast.CallKind:
		for _, x := range Operands(e.AsCall()) {
			m.walk(x)
		}
		m.call(e)
	case celast.ComprehensionKind:
		m.comprehension(e.AsComprehension())
	}
}

func (m *Meter) comprehension(c celast.ComprehensionExpr) {
	m.walk(c.IterRange())
	m.walk(c.AccuInit())
	over := m.origin(c.IterRange())
	if !over.lazy {
		m.rounds[c.LoopStep().ID()] = unitsOfRound(c)
	}
	outer := len(m.scope)
	m.scope = append(m.scope, local{c.AccuVar(), m.depth, false})
	inner := len(m.scope)
	m.depth++
	m.scope = append(m.scope, local{c.IterVar(), m.depth, over.lazy})
	if c.HasIterVar2() {
		m.scope = append(m.scope, local{c.IterVar2(), m.depth, over.lazy})
	}
	m.walk(c.LoopCondition())
	m.walk(c.LoopStep())
	m.depth--
	m.scope = m.scope[:inner]
	m.walk(c.Result())
	m.scope = m.scope[:outer]
}

// What a round of a loop costs in Kubernetes besides the work of its body: reading the result so far and asking whether
// to go on.
const (
	quantifierUnits = 3
	otherUnits      = 1
)

func unitsOfRound(c celast.ComprehensionExpr) int64 {
	if isCall(c.LoopCondition(), operators.NotStrictlyFalse, 1) {
		return quantifierUnits
	}
	return otherUnits
}

// find is the local variable with the name, nil for a variable of the environment.
func (m *Meter) find(name string) *local {
	for i := len(m.scope) - 1; i >= 0; i-- {
		if m.scope[i].name == name {
			return &m.scope[i]
		}
	}
	return nil
}

func (m *Meter) origin(e celast.Expr) origin {
	switch e.Kind() {
	case celast.LiteralKind:
		return origin{counted: true} // its size is the expression's
	case celast.IdentKind:
		return m.originOf(e.AsIdent())
	case celast.SelectKind:
		if r, ok := m.ast.ReferenceMap()[e.ID()]; ok {
			return m.originOf(r.Name) // a qualified name
		}
		return m.through(e.AsSelect().Operand())
	case celast.CallKind:
		c := e.AsCall()
		switch c.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
			return m.through(c.Args()[0])
		case operators.Conditional:
			return both(m.origin(c.Args()[1]), m.origin(c.Args()[2]))
		case "orValue":
			return both(m.origin(c.Target()), m.origin(c.Args()[0]))
		case "value":
			return m.origin(c.Target())
		}
	case celast.ListKind, celast.MapKind:
		if n, ok := ConstantSize(e); ok && n == 0 {
			return origin{lazy: true, counted: true} // nothing to count
		}
	}
	return origin{}
}

// through is the origin of a member or item.
func (m *Meter) through(operand celast.Expr) origin {
	if operand.Kind() == celast.IdentKind && m.find(operand.AsIdent()) == nil {
		switch operand.AsIdent() {
		case NameVariables, NameRequest, NameHTTP:
			return origin{counted: true}
		case NameState:
			return origin{lazy: true, counted: true}
		}
	}
	lazy := m.origin(operand).lazy
	return origin{lazy: lazy, counted: lazy}
}

func (m *Meter) originOf(name string) origin {
	if l := m.find(name); l != nil {
		// An item is read once a round; an inner loop that uses it reads nothing.
		return origin{lazy: l.lazy, counted: l.lazy && l.depth == m.depth}
	}
	switch name {
	case NameSelf, NameOldSelf, NameObject, NameOldObject, NameParams, NameNamespaceObject:
		return origin{lazy: true, counted: true}
	}
	return origin{}
}

func both(a, b origin) origin {
	return origin{lazy: a.lazy && b.lazy, counted: a.counted && b.counted}
}

// call plans the counting of a call's arguments.
func (m *Meter) call(e celast.Expr) {
	c := e.AsCall()
	how, ok := costs[c.FunctionName()]
	if !ok {
		how = Linear
	}
	args := Operands(c)
	if c.FunctionName() == mapInsert {
		m.fixed[e.ID()] = dues{insertUnits, EntryBytes}
	}
	if how.makes || how != free && m.mayBeText(e) && !m.accumulates(args) {
		m.makes[e.ID()] = made{how.makes, how.pays}
	}
	if how.work == nil || len(args) == 0 || m.accumulates(args) {
		return
	}
	call := &countedCall{how: how, sizes: make([]int64, len(args)), base: m.Sizes}
	var counted []int
	for i, arg := range args {
		if arg.Kind() == celast.LiteralKind {
			call.sizes[i] = how.sizeOf(i, arg.AsLiteral())
			continue
		}
		if n, ok := ConstantSize(arg); ok && how != ranged { // whose argument is a number
			call.sizes[i] = n
			continue
		}
		call.sizes[i] = unknownSize
		if m.small(arg) && how != ranged || !how.always && m.origin(arg).counted {
			call.sizes[i] = 0
			continue
		}
		counted = append(counted, i)
	}
	if how.skip != nil && how.skip(call.sizes) {
		return
	}
	if len(counted) == 0 {
		if units := how.work(call.sizes); units > 0 {
			m.fixed[e.ID()] = dues{units: units}
		}
		return
	}
	for _, i := range counted {
		m.args[args[i].ID()] = &argument{call: call, at: i, last: i == counted[len(counted)-1]}
	}
	m.Sizes += len(args)
	m.calls[e.ID()] = call
}

// ConstantSize is the size of a list or map that is written out in the expression, or of what is converted from a
// literal. cel-go makes it once, when it plans the expression, and steps around it would keep cel-go from seeing that.
func ConstantSize(e celast.Expr) (int64, bool) {
	switch e.Kind() {
	case celast.LiteralKind:
		return 1, true
	case celast.CallKind:
		if c := e.AsCall(); len(Operands(c)) == 1 && overloads.IsTypeConversionFunction(c.FunctionName()) {
			if literal := Operands(c)[0]; literal.Kind() == celast.LiteralKind {
				return size(literal.AsLiteral()), true
			}
			return ConstantSize(Operands(c)[0])
		}
	case celast.ListKind:
		for _, x := range e.AsList().Elements() {
			if _, ok := ConstantSize(x); !ok {
				return 0, false
			}
		}
		return int64(e.AsList().Size()), true
	case celast.MapKind:
		for _, x := range e.AsMap().Entries() {
			if _, ok := ConstantSize(x.AsMapEntry().Key()); !ok {
				return 0, false
			}
			if _, ok := ConstantSize(x.AsMapEntry().Value()); !ok {
				return 0, false
			}
		}
		return int64(e.AsMap().Size()), true
	}
	return 0, false
}

// mayBeText reports whether the value of the expression may be a string.
func (m *Meter) mayBeText(e celast.Expr) bool {
	switch m.ast.GetType(e.ID()).Kind() {
	case types.StringKind, types.BytesKind, types.DynKind:
		return true
	}
	return false
}

// accumulates reports whether the call adds to a macro's result. That is part of the round.
func (m *Meter) accumulates(args []celast.Expr) bool {
	return args[0].Kind() == celast.IdentKind && (args[0].AsIdent() == "@result" || args[0].AsIdent() == "__result__")
}

// small reports whether all values of the expression's type have about the same size.
func (m *Meter) small(e celast.Expr) bool {
	switch m.ast.GetType(e.ID()).Kind() {
	case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.NullTypeKind, types.DurationKind,
		types.TimestampKind, types.TypeKind:
		return true
	}
	return false
}
