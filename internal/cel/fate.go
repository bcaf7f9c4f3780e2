package cel

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"

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

// openTypes are the types of objects that may have members which their schema does not name.
type openTypes map[*apiservercel.DeclType]bool

// add adds the types within a type.
func (o openTypes) add(t *apiservercel.DeclType, s *spec.Schema) {
	switch {
	case t == nil || s == nil:
	case t.IsList() && s.Items != nil:
		o.add(t.ElemType, s.Items.Schema)
	case t.IsMap() && s.AdditionalProperties != nil:
		o.add(t.ElemType, s.AdditionalProperties.Schema)
	case t.IsObject() && t.Fields != nil:
		if (&openapi.Schema{Schema: s}).IsXPreserveUnknownFields() || s.AdditionalProperties != nil {
			o[t] = true
		}
		for name, field := range t.Fields {
			if property := propertyOf(s, name, field); property != nil {
				o.add(field.Type, property)
			}
		}
	}
}

// isClosed reports whether the objects at a path have no members but the ones of their schema. An empty name in a path is an
// item of a list, or a value of a map.
func (t *fieldTypes) isClosed(path []string) bool {
	at := t.decl
	for _, name := range path {
		switch {
		case at == nil:
			return false
		case name == "":
			at = at.ElemType
		default:
			field, found := at.Fields[name]
			if !found {
				return false
			}
			at = field.Type
		}
	}
	return at != nil && at.IsObject() && at.Fields != nil && !t.open[at]
}

// Lacks reports whether the objects surely have no field at a path, such as '.spec.size' and '.lines[*].count'.
func (t *ObjectType) Lacks(path string) bool {
	of := t.types()
	at := of.decl
	for _, step := range strings.Split(strings.ReplaceAll(path, Item, "."+Item), ".")[1:] {
		switch {
		case at == nil:
			return false
		case at.IsList() && step == Item, at.IsMap():
			at = at.ElemType
		case at.IsObject() && at.Fields != nil && step != Item:
			name, ok := apiservercel.Escape(step)
			if !ok {
				name = step
			}
			field, found := at.Fields[name]
			if !found {
				return !of.open[at]
			}
			at = field.Type
		default:
			return false
		}
	}
	return false
}

// Fate returns what is proved of an expression. An AlwaysErrs has the error, with its place in the expression.
func (c *TypeChecker) Fate(p *Parsed) (Fate, error) {
	v := c.verdict(p)
	if v.isJudged {
		return v.fate, v.why
	}
	v.isJudged = true
	if tree, _ := p.tree(); tree == nil {
		return AnyFate, nil
	}
	j := judge{wrong: map[int64]string{}, object: c.env.object, failing: c.failing}
	if _, issues := c.check(p); issues != nil {
		for _, e := range issues.Errors() {
			j.wrong[e.ExprID] = e.Message
		}
	}
	v.fate, v.why = j.judge(p)
	return v.fate, v.why
}

// constantFate returns what is proved of an expression without any type: by the constants in it alone.
func (p *Parsed) constantFate() (Fate, error) {
	if !mayHaveFaults.MatchString(p.text) {
		return AnyFate, nil
	}
	if tree, _ := p.tree(); tree == nil {
		return AnyFate, nil
	}
	return (&judge{}).judge(p)
}

// mayHaveFaults matches expressions that divide by a constant, or have an index in a constant.
var mayHaveFaults = regexp.MustCompile(`[/%]\s*0|[\]}]\s*\[`)

// A judge finds what is proved of an expression.
type judge struct {
	wrong   map[int64]string // what the type checker says, by expression
	object  *fieldTypes      // of the variable object; nil if they are not known
	failing map[string]bool  // the variables of the policy that always fail

	at  int64 // the first expression that always fails
	why string
}

func (j *judge) judge(p *Parsed) (Fate, error) {
	tree, _ := p.tree()
	fate := j.of(tree.NativeRep().Expr())
	if fate != AlwaysErrs {
		return fate, nil
	}
	errs := common.NewErrors(tree.Source())
	errs.ReportErrorAtID(j.at, tree.NativeRep().SourceInfo().GetStartLocation(j.at), "%s", j.why)
	return fate, &CompileError{p.text, errs.ToDisplayString()}
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
		if j.failing[s.FieldName()] {
			return j.errs(e, "the variable '"+s.FieldName()+"' has no value")
		}
		return AnyFate
	}
	if j.of(s.Operand()) == AlwaysErrs {
		return AlwaysErrs
	}
	said := j.wrong[e.ID()]
	if !strings.HasPrefix(said, "undefined field ") || j.object == nil {
		return AnyFate
	}
	if path, isObject := pathOf(s.Operand()); !isObject || !j.object.isClosed(path) {
		return AnyFate
	}
	if s.IsTestOnly() {
		return AlwaysFalse
	}
	return j.errs(e, said)
}

// pathOf returns the path of a part of the object; false for all others. An item of a list has an empty name.
func pathOf(e ast.Expr) (path []string, isObject bool) {
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
	if said := j.wrong[e.ID()]; hasNoOverload(said) {
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

// classes are sets of types of which the value of a field may have any, whatever its schema says: a number in JSON is an
// integer or a double, and a time is a text.
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

// hasNoOverload reports whether the type checker finds a call wrong that has no value for the objects of a schema either.
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

// FailsAlways begins what is said of an expression that fails for every object.
const FailsAlways = "fails for every object"

// Prefixed returns the text of an error of a [TypeChecker], with a prefix before what is wrong.
func Prefixed(err error, prefix string) string {
	var e *CompileError
	if !errors.As(err, &e) {
		return prefix + err.Error()
	}
	return errorPlace.ReplaceAllString(e.Detail, "${1}"+strings.ReplaceAll(prefix, "$", "$$"))
}

// errorPlace matches the place at the beginning of an error.
var errorPlace = regexp.MustCompile(`(ERROR: <input>:\d+:\d+: )`)
