package explain

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"

	"github.com/admission-gateway/gateway/internal/cel/plan"
)

// fieldOf derives the path of the field that an expression judges: the common beginning of all
// paths that it reads from self or object, and of the paths that its variables read. Paths
// that are only asked for by has() count if there are no others, and paths that the body of a loop
// reads besides its items if there are none of these either.
func fieldOf(ast *celast.AST, variables *knowledge) []step {
	c := fieldCollector{reader: reader{ast: ast, variables: variables}}
	c.collect(ast.Expr())
	p, _ := c.common()
	if p.chosen != nil {
		return p.chosen.field
	}
	return p.steps
}

// fieldCollector collects the places of an expression that begin at one variable.
type fieldCollector struct {
	reader
	level  int // of the loop whose item counts; 0 is the object itself
	bodies int // of loops around the expression

	read, tested, inBodies []operandLocation
}

func (c *fieldCollector) common() (p operandLocation, ok bool) {
	for _, places := range [][]operandLocation{c.read, c.tested, c.inBodies} {
		if len(places) > 0 {
			return shared(places), true
		}
	}
	return operandLocation{}, false
}

func (c *fieldCollector) collect(e celast.Expr) {
	if p, ok := c.found(e); ok {
		switch {
		case len(p.steps) == 0 && c.level == 0 && p.chosen == nil:
		case c.bodies > 0:
			c.inBodies = append(c.inBodies, p)
		case e.Kind() == celast.SelectKind && e.AsSelect().IsTestOnly():
			c.tested = append(c.tested, p)
		default:
			c.read = append(c.read, p)
		}
		return
	}
	switch e.Kind() {
	case celast.SelectKind:
		c.collect(e.AsSelect().Operand())
	case celast.CallKind:
		for _, x := range plan.Operands(e.AsCall()) {
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
		n := len(c.scope)
		c.scope = append(c.scope, iteration{name: x.IterVar()}, iteration{name: x.IterVar2()},
			iteration{name: x.AccuVar()})
		c.bodies++
		c.collect(x.LoopCondition())
		c.collect(x.LoopStep())
		c.bodies--
		c.collect(x.Result())
		c.scope = c.scope[:n]
	}
}

// found is the place that the expression reads, if it is one, or the place that all belongs to that a variable of the
// policy reads.
func (c *fieldCollector) found(e celast.Expr) (operandLocation, bool) {
	if i, ok := c.composited(e); ok && c.level == 0 {
		x := c.variables.all[i]
		if about := x.operand.around().about; about.chosen != nil {
			return about, true
		}
		return operandLocation{base: baseObject, steps: x.field}, true
	}
	p, ok := c.place(e)
	if e.Kind() == celast.SelectKind && e.AsSelect().IsTestOnly() {
		p, ok = c.reader.tested(e)
	}
	if !ok || p.level != c.level || !p.ofObject() || p.base == baseKey {
		return operandLocation{}, false
	}
	return p, true
}

// about returns the common beginning of the places in the expression: of the places in the
// innermost loop's item, if there are any.
func (r *reader) about(e celast.Expr) (p operandLocation, ok bool) {
	for level := r.level; level >= 0; level-- {
		c := fieldCollector{reader: reader{ast: r.ast, variables: r.variables, scope: slices.Clip(r.scope)},
			level: level}
		c.collect(e)
		if p, ok := c.common(); ok {
			return p, true
		}
	}
	return operandLocation{}, false
}
