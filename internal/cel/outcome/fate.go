package outcome

import (
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/admission-gateway/gateway/internal/cel/plan"
)

// A Fate is what the types of an expression prove of its value, whatever the object.
type Fate uint8

const (
	// AnyFate is the fate of nearly all expressions: they may succeed or fail.
	AnyFate Fate = iota
	// AlwaysErrs is the fate of an expression whose evaluation ends with an error.
	AlwaysErrs
	AlwaysTrue
	AlwaysFalse
)

// not returns the fate of the negation.
func (f Fate) not() Fate {
	switch f {
	case AlwaysTrue:
		return AlwaysFalse
	case AlwaysFalse:
		return AlwaysTrue
	}
	return f
}

// Types is what a type checker says of an expression. The zero value says nothing: constants alone decide.
type Types struct {
	// Wrong is what it says of each part of the expression, by the part's ID.
	Wrong map[int64]string
	// IsClosed reports whether the objects at a path have no members but the ones of their schema. An empty name in a
	// path is an item of a list, or a value of a map. It is nil if the type of the variable object is not known.
	IsClosed func(path []string) bool
	// Failing are the variables of the policy that always fail.
	Failing map[string]bool
}

// Fate returns what is proved of an expression. Of one that always fails it returns the ID of the first part that does,
// and why.
func (t *Types) Fate(e ast.Expr) (fate Fate, at int64, why string) {
	j := judge{Types: t}
	fate = j.of(e)
	return fate, j.at, j.why
}

// A judge finds what is proved of an expression.
type judge struct {
	*Types
	at  int64 // the first part that always fails
	why string
}

// errs says why an expression always fails.
func (j *judge) errs(e ast.Expr, why string) Fate {
	if j.why == "" {
		j.at, j.why = e.ID(), why
	}
	return AlwaysErrs
}

// of returns the fate of an expression.
func (j *judge) of(e ast.Expr) Fate {
	switch e.Kind() {
	case ast.LiteralKind:
		switch e.AsLiteral() {
		case types.True:
			return AlwaysTrue
		case types.False:
			return AlwaysFalse
		}
	case ast.SelectKind:
		return j.field(e)
	case ast.CallKind:
		return j.call(e)
	case ast.ListKind:
		return j.anyOf(e.AsList().Elements())
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			if of := entry.AsMapEntry(); j.anyOf([]ast.Expr{of.Key(), of.Value()}) == AlwaysErrs {
				return AlwaysErrs
			}
		}
	case ast.StructKind:
		for _, f := range e.AsStruct().Fields() {
			if j.of(f.AsStructField().Value()) == AlwaysErrs {
				return AlwaysErrs
			}
		}
	case ast.ComprehensionKind:
		if j.of(e.AsComprehension().IterRange()) == AlwaysErrs {
			return AlwaysErrs
		}
	}
	return AnyFate
}

// anyOf returns the fate of what needs the values of all parts.
func (j *judge) anyOf(parts []ast.Expr) Fate {
	for _, p := range parts {
		if j.of(p) == AlwaysErrs {
			return AlwaysErrs
		}
	}
	return AnyFate
}

// field returns the fate of a field that is read, or asked for by has().
func (j *judge) field(e ast.Expr) Fate {
	s := e.AsSelect()
	if s.Operand().Kind() == ast.IdentKind && s.Operand().AsIdent() == plan.NameVariables {
		if j.Failing[s.FieldName()] {
			return j.errs(e, "the variable '"+s.FieldName()+"' has no value")
		}
		return AnyFate
	}
	if j.of(s.Operand()) == AlwaysErrs {
		return AlwaysErrs
	}
	said := j.Wrong[e.ID()]
	if !strings.HasPrefix(said, "undefined field ") || j.IsClosed == nil {
		return AnyFate
	}
	if path, isObject := objectPath(s.Operand()); !isObject || !j.IsClosed(path) {
		return AnyFate
	}
	if s.IsTestOnly() {
		return AlwaysFalse
	}
	return j.errs(e, said)
}

// objectPath returns the path of a part of the object; false for all others. An item of a list has an empty name.
func objectPath(e ast.Expr) (path []string, isObject bool) {
	for {
		switch e.Kind() {
		case ast.IdentKind:
			slices.Reverse(path)
			return path, e.AsIdent() == plan.NameObject
		case ast.SelectKind:
			path = append(path, e.AsSelect().FieldName())
			e = e.AsSelect().Operand()
		case ast.CallKind:
			if e.AsCall().FunctionName() != operators.Index {
				return nil, false
			}
			path = append(path, "")
			e = e.AsCall().Args()[0]
		default:
			return nil, false
		}
	}
}

// call returns the fate of a call.
func (j *judge) call(e ast.Expr) Fate {
	c := e.AsCall()
	args := c.Args()
	switch c.FunctionName() {
	case operators.LogicalNot:
		if f := j.of(args[0]).not(); f != AnyFate {
			return f
		}
	case operators.LogicalAnd:
		return both(j.of(args[0]), j.of(args[1]), AlwaysFalse)
	case operators.LogicalOr:
		return both(j.of(args[0]), j.of(args[1]), AlwaysTrue)
	case operators.Conditional:
		return j.choice(args)
	case operators.OptSelect, operators.OptIndex:
		return j.anyOf(args[:1])
	case "or", "orValue":
		if c.IsMemberFunction() {
			return j.anyOf([]ast.Expr{c.Target()})
		}
	case operators.Divide, operators.Modulo:
		if isZero(args[1]) {
			return j.errs(e, "division by zero")
		}
	case operators.Index:
		if isOutside(args[0], args[1]) {
			return j.errs(e, "the constant has no such index")
		}
	}
	if c.IsMemberFunction() {
		args = append([]ast.Expr{c.Target()}, args...)
	}
	if j.anyOf(args) == AlwaysErrs {
		return AlwaysErrs
	}
	if said := j.Wrong[e.ID()]; hasNoOverload(said) {
		return j.errs(e, said)
	}
	return AnyFate
}

// both returns the fate of a logical operation that one operand decides alone if it has the value.
func both(a, b, decides Fate) Fate {
	switch {
	case a == decides || b == decides:
		return decides
	case a == AnyFate || b == AnyFate:
		return AnyFate
	case a == AlwaysErrs || b == AlwaysErrs:
		return AlwaysErrs
	}
	return decides.not()
}

// choice returns the fate of a conditional expression.
func (j *judge) choice(args []ast.Expr) Fate {
	switch j.of(args[0]) {
	case AlwaysErrs:
		return AlwaysErrs
	case AlwaysTrue:
		return j.of(args[1])
	case AlwaysFalse:
		return j.of(args[2])
	}
	why, at := j.why, j.at
	a, b := j.of(args[1]), j.of(args[2])
	if a == b {
		return a
	}
	j.why, j.at = why, at // one of them does not fail
	return AnyFate
}

// isZero reports whether an expression is the integer 0, with a sign or without.
func isZero(e ast.Expr) bool {
	return e.Kind() == ast.LiteralKind && (e.AsLiteral() == types.IntZero || e.AsLiteral() == types.Uint(0))
}

// isOutside reports whether a constant list has no such index.
func isOutside(list, index ast.Expr) bool {
	if list.Kind() != ast.ListKind || index.Kind() != ast.LiteralKind || len(list.AsList().OptionalIndices()) > 0 {
		return false
	}
	i, isInt := index.AsLiteral().(types.Int)
	return isInt && (i < 0 || int(i) >= list.AsList().Size())
}

// noOverload matches what the type checker says of a call: its function, and the types of its arguments.
var noOverload = regexp.MustCompile(`^found no matching overload for '([^']+)' applied to '(?:(.+)\.)?\((.*)\)'`)

// classes are sets of types of which the value of a field may have any, whatever its schema says: a number in JSON is
// an integer or a double, and a time is a text.
var classes = map[string]string{
	"int": "number", "uint": "number", "double": "number", "bool": "bool", "string": "text", "bytes": "text",
	"timestamp": "text", "google.protobuf.Timestamp": "text", "duration": "text", "google.protobuf.Duration": "text",
}

// classOf returns the class of a type; "" if it is not known.
func classOf(name string) string {
	for _, prefix := range []string{"list", "map"} {
		if strings.HasPrefix(name, prefix+"(") {
			return prefix
		}
	}
	return classes[name]
}

// hasNoOverload reports whether the type checker finds a call wrong that has no value for the objects of a schema
// either.
func hasNoOverload(said string) bool {
	m := noOverload.FindStringSubmatch(said)
	if m == nil {
		return false
	}
	args := typesIn(m[3])
	a, b := classOf(args[0]), ""
	if len(args) == 2 {
		b = classOf(args[1])
	}
	switch m[1] {
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
		operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo:
		return a != "" && b != "" && a != b
	case operators.LogicalNot:
		return a != "" && a != "bool"
	case "startsWith", "endsWith", "contains", "matches":
		receiver := classOf(m[2])
		return receiver != "" && (receiver != "text" || a != "" && a != "text")
	}
	return false
}

// typesIn cuts a list of types, which may have types in them.
func typesIn(list string) (all []string) {
	depth, begin := 0, 0
	for i, letter := range list {
		switch {
		case letter == '(':
			depth++
		case letter == ')':
			depth--
		case letter == ',' && depth == 0:
			all, begin = append(all, list[begin:i]), i+len(", ")
		}
	}
	return append(all, list[begin:])
}
