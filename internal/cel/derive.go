package cel

import (
	"errors"
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// meaning is what is known of an expression besides how it is run.
type meaning struct {
	operand operand // what an expression stands for, of a variable

	// what must hold for a condition to be true, and what must for it to be false
	holds, fails *clause
	// programs are those of parts of the condition
	programs []*Program
}

// condition compiles an expression that must be true, so that [Program.Explain] can say why it is not.
func (e *env) condition(expression string, variables *Variables) (*Program, error) {
	ast, err := e.check(expression, celgo.BoolType)
	if err != nil {
		return nil, err
	}
	p, err := e.plan(expression, ast, variables)
	if err != nil {
		return nil, err
	}
	d := deriver{reader: reader{ast: ast, variables: variables}, env: e}
	p.meaning = &meaning{holds: d.clause(ast.Expr(), true)}
	p.meaning.programs = d.programs
	return p, nil
}

// deriveVariable finds out what a variable of a policy stands for.
func (e *env) deriveVariable(p *Program, ast *celast.AST, variables *Variables) {
	d := deriver{reader: reader{ast: ast, variables: variables}, env: e}
	p.meaning = &meaning{operand: d.operand(ast.Expr())}
	if ast.GetType(ast.Expr().ID()).Kind() == types.BoolKind {
		p.meaning.holds, p.meaning.fails = d.clause(ast.Expr(), true), d.clause(ast.Expr(), false)
		p.meaning.programs = d.programs
	}
}

// setOptionalOld makes oldSelf an optional value, in the parts of the expression too.
func (p *Program) setOptionalOld(optional bool) {
	p.optionalOld = optional
	if p.meaning != nil {
		for _, part := range p.meaning.programs {
			part.optionalOld = optional
		}
	}
}

// A Violation is one reason why a condition does not hold.
type Violation struct {
	// Error says which field is wrong and how, in the words of the API
	// conventions. The field is relative to self or object, "" for itself; a detail
	// of "" means that the reason cannot be put in words, and Source is the part
	// of the condition that does not hold. It shows values of self or object, and
	// of nothing else (ERR-7).
	Error field.Error
	// Source is CEL.
	Source string
	// Items are the items that fail, of a demand on every item.
	Items field.ErrorList
	// More counts failing items that are not among Items.
	More int
}

// Worded tells whether the violation has words.
func (c *Violation) Worded() bool {
	return c.Error.Detail != "" || c.Error.Type != field.ErrorTypeInvalid
}

// MaxItems is how many failing items, and how many failing parts, of one
// condition are named.
const MaxItems = 10

// Explain finds out why the condition p, which was evaluated and does not hold,
// does not: which parts of a conjunction are false, which items fail. There is
// always one Violation at least. The parts are evaluated within what is left of the
// shared budget, at most [ExpressionLimit] units of it; when that is used up,
// the Violation is about the condition as a whole.
func (p *Program) Explain(f *Frame, v *Vars) []Violation {
	x := explainer{frame: f, vars: v, loops: len(v.loops)}
	if p.meaning != nil && p.meaning.holds != nil && x.run(p) == nil && len(x.found) > 0 {
		return x.found
	}
	return []Violation{{
		Error:  field.Error{Type: field.ErrorTypeInvalid, Field: p.Field(), BadValue: field.OmitValueType{}},
		Source: strings.TrimSpace(p.source),
	}}
}

// An explainer is one run of Explain.
type explainer struct {
	frame *Frame
	vars  *Vars
	loops int
	items []visited // by the level of their loops, from 1
	over  []place   // what these loops go through
	when  []statement
	found []Violation
	// each is the demand on every item whose items are looked at, if any.
	each *Violation
	path []step // of p, for parts that do not tell what they are about
}

// run is Explain within an evaluation, from which whatever is wrong leads out.
func (x *explainer) run(p *Program) (err error) {
	f, v := x.frame, x.vars
	budget := f.budget
	f.budget = min(budget, ExpressionLimit)
	used := f.budget
	kept := f.retained
	around := &Program{source: p.source} // whose evaluation consists of those of p's parts
	f.begin(around, v)
	defer func() {
		v.loops = v.loops[:x.loops]
		f.budget = budget - (used - f.budget)
	}()
	defer f.finish(around, &err)
	defer func() {
		if v.named.list == nil {
			f.retained = kept // no variable keeps what was made here
		}
	}()
	x.path = p.field
	x.explain(p.meaning.holds)
	return nil
}

// holds evaluates a part. What has no value is neither true nor false.
func (x *explainer) holds(p *Program) (is, known bool) {
	if p == nil {
		return false, false
	}
	is, err := p.EvalBool(x.frame, x.vars)
	if err != nil {
		var failure *Error
		if errors.As(err, &failure) && failure.Cause != Failed {
			panic(stop(failure.Cause))
		}
		return false, false
	}
	return is, true
}

// full tells whether enough was found.
func (x *explainer) full() bool {
	if x.each != nil {
		return len(x.each.Items) >= MaxItems
	}
	return len(x.found) >= MaxItems
}

// explain says why a clause that does not hold does not.
func (x *explainer) explain(c *clause) {
	switch c.kind {
	case clauseAll:
		found := false
		for _, part := range c.parts {
			if is, known := x.holds(part.program); known && is != part.want {
				found = true
				if !x.full() {
					x.explain(part)
				}
			}
		}
		if !found {
			x.unexplained(c)
		}
	case clauseUnless:
		x.under(c.when, c.parts[0])
	case clauseChoice:
		switch is, known := x.holds(c.program); {
		case !known:
			x.unexplained(c)
		case is:
			x.under(c.when, c.parts[0])
		default:
			x.under(c.otherwise, c.parts[1])
		}
	case clauseEach:
		x.explainItems(c)
	default:
		x.add(x.failure(c), c.source)
	}
}

func (x *explainer) under(when []statement, c *clause) {
	n := len(x.when)
	x.when = append(x.when, when...)
	x.explain(c)
	x.when = x.when[:n]
}

// unexplained is a clause of which no part is known to be false.
func (x *explainer) unexplained(c *clause) {
	x.add(x.failure(&clause{kind: clauseAtom, atom: atom{subject: c.about()}}), c.source)
}

// add notes a failure: a cause of its own, or of an item.
func (x *explainer) add(err *field.Error, source string) {
	switch {
	case x.each == nil:
		x.found = append(x.found, Violation{Error: *err, Source: source})
	case x.full():
		x.each.More++
	case !slices.ContainsFunc(x.each.Items, func(other *field.Error) bool { return other.Error() == err.Error() }):
		x.each.Items = append(x.each.Items, err)
	}
}
