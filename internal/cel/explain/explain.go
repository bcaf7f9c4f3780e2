package explain

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// demandsOf takes a condition apart.
func demandsOf(c *cel.Checked, known *knowledge) *clause {
	d := deriver{reader: reader{ast: c.AST, variables: known}, checked: c}
	return d.clause(c.AST.Expr(), true)
}

// demands is what must hold for the condition to be true; nil if that cannot be found out.
func (x *Explanation) demands() *clause {
	if x.source != nil {
		x.once.Do(func() {
			if c := x.source.Check(); c != nil {
				x.whenTrue = demandsOf(c, nil)
			}
		})
	}
	return x.whenTrue
}

// OfRules explains the rules of a schema, in their places; nil for a rule that did not compile.
func OfRules(checked []*cel.Checked) []*Explanation {
	all := make([]*Explanation, len(checked))
	for i, c := range checked {
		if c != nil {
			all[i] = &Explanation{program: c.Program, field: fieldOf(c.AST, nil), whenTrue: demandsOf(c, nil)}
		}
	}
	return all
}

// Field is the path of the field that the expression constrains, relative to self or object, such
// as 'spec.replicas'; empty if the expression does not show it. It is meant to be called when the
// expression is compiled.
func (x *Explanation) Field() string { return pathText(x.field) }

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

// Worded reports whether the violation has words.
func (c *Violation) Worded() bool {
	return c.Error.Detail != "" || c.Error.Type != field.ErrorTypeInvalid
}

// MaxItems is how many failing items, and how many failing parts, of one
// condition are named.
const MaxItems = 10

// Explain finds out why the condition, which was evaluated and does not hold, does not: which parts
// of a conjunction are false, which items fail. There is always one Violation at least. The parts
// are evaluated within what is left of the shared budget, at most [ExpressionLimit] units of it;
// when that is used up, the Violation names the condition as a whole.
func (x *Explanation) Explain(f *cel.Frame, v *cel.Vars) []Violation {
	run := explainer{frame: f, vars: v}
	if run.run(x) == nil && len(run.found) > 0 {
		return run.found
	}
	return []Violation{{
		Error:  field.Error{Type: field.ErrorTypeInvalid, Field: x.Field(), BadValue: field.OmitValueType{}},
		Source: strings.TrimSpace(x.program.Source()),
	}}
}

// An explainer is one run of Explain.
type explainer struct {
	frame *cel.Frame
	vars  *cel.Vars
	items []visited         // by the level of their loops, from 1
	over  []operandLocation // what these loops go through
	when  []statement
	found []Violation
	// each is the demand on every item whose items are looked at, if any.
	each *Violation
	path []step // of p, for parts that name no field
}

// run is Explain within an evaluation, from which whatever is wrong leads out.
func (x *explainer) run(of *Explanation) error {
	return of.program.Around(x.frame, x.vars, func() {
		x.path = of.field
		if c := of.demands(); c != nil {
			x.explain(c)
		}
	})
}

// truth evaluates a part. What has no value is neither true nor false.
func (x *explainer) truth(p *cel.Program) (is, known bool) {
	if p == nil {
		return false, false
	}
	is, err := p.EvalBool(x.frame, x.vars)
	if err != nil {
		var failure *cel.Error
		if errors.As(err, &failure) && failure.Cause != value.Failed {
			panic(value.Stop(failure.Cause))
		}
		return false, false
	}
	return is, true
}

// full reports whether enough was found.
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
			if is, known := x.truth(part.program); known && is != part.want {
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
		switch is, known := x.truth(c.program); {
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

// unexplained is for a clause without a part that is known to be false.
func (x *explainer) unexplained(c *clause) {
	x.add(x.failure(&clause{kind: clauseAtom, atom: &atom{subject: c.about()}}), c.source)
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
