package rego

import (
	"maps"
	"math"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// maxParts is how many parts a value may have that a rule writes with its variables.
const maxParts = 1 << 20

// tooHeavy returns the rules that write a value of too many parts: OPA puts the values of variables
// into it, without a step, each as often as it is named. With x := [y, y], y := [z, z], and so on,
// forty lines fill any memory.
func (p *Program) tooHeavy(c *ast.Compiler) (errs Errors) {
	w := &weigher{compiler: c, functions: map[string]growth{}}
	for _, name := range p.sources.names() {
		m := c.Modules[name]
		if m == nil {
			continue
		}
		ast.WalkRules(m, func(r *ast.Rule) bool {
			if w.weigh(r, 1) > maxParts {
				e := Error{Message: "a rule must not write a value of more than 1048576 parts"}
				e.locate(p.sources, r.Location)
				errs = append(errs, e)
			}
			return true
		})
	}
	return errs
}

// A weigher weighs the values that rules write, in parts.
type weigher struct {
	compiler  *ast.Compiler
	functions map[string]growth
}

// A growth says how many parts the value of a function has: its own, and how often it has the parts
// of its arguments.
type growth struct{ own, times int64 }

// function returns the growth of a function; none for one of OPA's own, whose values are charged as
// they are made.
func (w *weigher) function(of ast.Ref) growth {
	key := of.String()
	if g, ok := w.functions[key]; ok {
		return g
	}
	var g growth
	w.functions[key] = g
	for _, r := range w.compiler.GetRulesExact(of) {
		own := w.weigh(r, 0)
		g.own, g.times = max(g.own, own), max(g.times, w.weigh(r, 1)-own)
	}
	w.functions[key] = g
	return g
}

// weigh returns the weight of the heaviest value that a rule writes, if each of its arguments has
// the weight.
func (w *weigher) weigh(r *ast.Rule, argument int64) int64 {
	s := &scale{
		weigher: w, equals: map[ast.Var]ast.Var{}, written: map[ast.Var][]*ast.Term{}, calls: map[ast.Var][]*ast.Expr{},
		weights: map[ast.Var]int64{},
	}
	ast.WalkExprs(r, func(e *ast.Expr) bool {
		if e.IsEquality() {
			s.equate(e.Operand(0), e.Operand(1))
		}
		return false
	})
	for _, arg := range r.Head.Args {
		if v, ok := arg.Value.(ast.Var); ok {
			s.weights[s.first(v)] = argument
		}
	}
	ast.WalkExprs(r, func(e *ast.Expr) bool {
		switch {
		case e.IsEquality():
			s.note(e.Operand(0), e.Operand(1))
			s.note(e.Operand(1), e.Operand(0))
		case e.IsCall() && len(e.Operands()) > 0:
			operands := e.Operands()
			if v, ok := operands[len(operands)-1].Value.(ast.Var); ok {
				s.calls[s.first(v)] = append(s.calls[s.first(v)], e)
			}
		}
		return false
	})
	heaviest := int64(0)
	for _, t := range []*ast.Term{r.Head.Key, r.Head.Value} {
		if t != nil {
			heaviest = max(heaviest, s.term(t))
		}
	}
	for _, v := range slices.Concat(slices.Sorted(maps.Keys(s.written)), slices.Sorted(maps.Keys(s.calls))) {
		heaviest = max(heaviest, s.variable(v))
	}
	return heaviest
}

// A scale weighs the values of the variables of a rule. Variables that are equal have one weight, and
// the first of them stands for all.
type scale struct {
	*weigher
	equals  map[ast.Var]ast.Var // leads from a variable to another one of the same value
	written map[ast.Var][]*ast.Term
	calls   map[ast.Var][]*ast.Expr
	weights map[ast.Var]int64
}

// equate notes that two variables are equal. OPA's compiler gives the value of each call a variable
// of its own, which the rule's variable is equal to.
func (s *scale) equate(a, b *ast.Term) {
	one, ok := a.Value.(ast.Var)
	if other, both := b.Value.(ast.Var); ok && both && s.first(one) != s.first(other) {
		s.equals[s.first(one)] = s.first(other)
	}
}

// first returns the variable that stands for all that are equal to v.
func (s *scale) first(v ast.Var) ast.Var {
	for {
		next, ok := s.equals[v]
		if !ok {
			return v
		}
		v = next
	}
}

func (s *scale) note(to, value *ast.Term) {
	v, ok := to.Value.(ast.Var)
	if !ok {
		return
	}
	switch value.Value.(type) {
	case *ast.Array, ast.Object, ast.Set:
		s.written[s.first(v)] = append(s.written[s.first(v)], value)
	}
}

func (s *scale) variable(v ast.Var) int64 {
	v = s.first(v)
	if w, ok := s.weights[v]; ok {
		return w
	}
	s.weights[v] = 1 // while it is weighed
	weight := int64(1)
	for _, t := range s.written[v] {
		weight = max(weight, s.term(t))
	}
	for _, e := range s.calls[v] {
		weight = max(weight, s.call(e))
	}
	s.weights[v] = weight
	return weight
}

// call is the weight of the value of a call.
func (s *scale) call(e *ast.Expr) int64 {
	g := s.function(e.Operator())
	operands, most := e.Operands(), int64(0)
	for _, t := range operands[:len(operands)-1] {
		most = max(most, s.term(t))
	}
	return min(g.own+min(g.times, maxParts+1)*most, math.MaxInt32)
}

func (s *scale) term(t *ast.Term) int64 {
	sum := int64(1)
	put := func(part *ast.Term) { sum = min(sum+s.term(part), math.MaxInt32) }
	switch v := t.Value.(type) {
	case ast.Var:
		return s.variable(v)
	case *ast.Array:
		v.Foreach(put)
	case ast.Set:
		v.Foreach(put)
	case ast.Object:
		v.Foreach(func(k, value *ast.Term) {
			put(k)
			put(value)
		})
	}
	return sum
}
