package cel

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/admission-gateway/gateway/internal/document"
)

// fieldOf derives the path of the field that an expression is about: what all the paths that it reads from self or object
// have in common, those that its variables are about included. Paths that are only asked for by has() count when there are
// no others, and paths that the body of a loop reads besides its items when there are none of these either.
func fieldOf(ast *celast.AST, variables *Variables) []step {
	c := fieldCollector{ast: ast, variables: variables}
	c.collect(ast.Expr())
	for _, paths := range [][][]step{c.read, c.tested, c.inBodies} {
		if len(paths) > 0 {
			return commonPrefix(paths)
		}
	}
	return nil
}

// step is a member or an item of a path.
type step struct {
	name  string
	index int // of an item
	item  bool
}

type fieldCollector struct {
	ast       *celast.AST
	variables *Variables
	locals    []string
	bodies    int // of loops around the expression

	read, tested, inBodies [][]step
}

func (c *fieldCollector) collect(e celast.Expr) {
	if path, ok := c.path(e); ok {
		switch {
		case len(path) == 0:
		case c.bodies > 0:
			c.inBodies = append(c.inBodies, path)
		case e.Kind() == celast.SelectKind && e.AsSelect().IsTestOnly():
			c.tested = append(c.tested, path)
		default:
			c.read = append(c.read, path)
		}
		return
	}
	switch e.Kind() {
	case celast.SelectKind:
		c.collect(e.AsSelect().Operand())
	case celast.CallKind:
		for _, x := range operands(e.AsCall()) {
			c.collect(x)
		}
	case celast.ListKind:
		for _, x := range e.AsList().Elements() {
			c.collect(x)
		}
	case celast.MapKind:
		for _, x := range e.AsMap().Entries() {
			c.collect(x.AsMapEntry().Key())
			c.collect(x.AsMapEntry().Value())
		}
	case celast.ComprehensionKind:
		x := e.AsComprehension()
		c.collect(x.IterRange())
		c.collect(x.AccuInit())
		n := len(c.locals)
		c.locals = append(c.locals, x.IterVar(), x.IterVar2(), x.AccuVar())
		c.bodies++
		c.collect(x.LoopCondition())
		c.collect(x.LoopStep())
		c.bodies--
		c.collect(x.Result())
		c.locals = c.locals[:n]
	}
}

// path is the path that an expression reads, if it is a chain of members and literal indexes from self or object.
func (c *fieldCollector) path(e celast.Expr) ([]step, bool) {
	switch e.Kind() {
	case celast.IdentKind:
		name := e.AsIdent()
		if name != nameSelf && name != nameObject {
			return nil, false
		}
		for _, l := range c.locals {
			if l == name {
				return nil, false
			}
		}
		return []step{}, true
	case celast.SelectKind:
		s := e.AsSelect()
		if path, ok := c.variable(s); ok {
			return path, true
		}
		path, ok := c.path(s.Operand())
		if !ok {
			return nil, false
		}
		name := s.FieldName()
		// Only a member of an object with a schema is named by its escaped name.
		if c.ast.GetType(s.Operand().ID()).Kind() == types.StructKind {
			if plain, ok := apiservercel.Unescape(name); ok {
				name = plain
			}
		}
		return append(path, step{name: name}), true
	case celast.CallKind:
		call := e.AsCall()
		switch call.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
		case "orValue", "value", "hasValue":
			return c.path(call.Target())
		default:
			return nil, false
		}
		path, ok := c.path(call.Args()[0])
		if !ok || call.Args()[1].Kind() != celast.LiteralKind {
			return nil, false
		}
		switch at := call.Args()[1].AsLiteral().(type) {
		case types.String:
			return append(path, step{name: string(at)}), true
		case types.Int:
			return append(path, step{index: int(at), item: true}), true
		}
	}
	return nil, false
}

// variable is the path that a variable of the policy is about.
func (c *fieldCollector) variable(s celast.SelectExpr) ([]step, bool) {
	if c.variables == nil || s.Operand().Kind() != celast.IdentKind || s.Operand().AsIdent() != nameVariables {
		return nil, false
	}
	i, ok := c.variables.index[s.FieldName()]
	if !ok {
		return nil, false
	}
	return slices.Clip(c.variables.programs[i].field), true
}

func commonPrefix(paths [][]step) []step {
	if len(paths) == 0 {
		return nil
	}
	prefix := paths[0]
	for _, path := range paths[1:] {
		n := 0
		for n < len(prefix) && n < len(path) && prefix[n] == path[n] {
			n++
		}
		prefix = prefix[:n]
	}
	return prefix
}

func joinPath(path []step) string {
	var b []byte
	for _, s := range path {
		if s.item {
			b = document.AppendPathIndex(b, s.index)
			continue
		}
		b = document.AppendPathKey(b, s.name)
	}
	return string(b)
}
