package explain

import (
	"slices"
	"strings"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// union recognises demands on how many of several fields are set:
//
//	(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) == 1
//	[has(self.a), has(self.b)].filter(x, x).size() <= 1
//	[has(self.a), has(self.b)].exists_one(x, x)
//	has(self.a) == has(self.b), has(self.a) != has(self.b)
func (d *deriver) union(e celast.Expr, want bool) (*clause, bool) {
	op, n := operators.Equals, int64(1)
	var fields []operandLocation
	ok := false
	switch e.Kind() {
	case celast.CallKind:
		call := e.AsCall()
		op = call.FunctionName()
		if _, isComparison := mirrored[op]; !isComparison {
			return nil, false
		}
		args := call.Args()
		a, first := d.tested(args[0])
		b, second := d.tested(args[1])
		if first && second {
			return d.together(a, b, (op == operators.Equals) == want), op == operators.Equals ||
				op == operators.NotEquals
		}
		count, bound := args[0], args[1]
		if count.Kind() == celast.LiteralKind {
			count, bound, op = bound, count, mirrored[op]
		}
		limit, isInt := types.Int(0), false
		if bound.Kind() == celast.LiteralKind {
			limit, isInt = bound.AsLiteral().(types.Int)
		}
		if !isInt {
			return nil, false
		}
		n = int64(limit)
		if fields, ok = d.summands(count, nil); !ok {
			fields, ok = d.filteredFields(count)
		}
	case celast.ComprehensionKind:
		l, isLoop := loopOf(e)
		if !isLoop || l.body.Kind() != celast.IdentKind || l.body.AsIdent() != l.name {
			return nil, false
		}
		switch l.kind {
		case loopExists:
			op = operators.GreaterEquals
		case loopExistsOne:
		default:
			return nil, false
		}
		fields, ok = d.listed(l.over)
	}
	if !ok || len(fields) < 2 {
		return nil, false
	}
	if !want {
		op = opposite[op]
	}
	return numberOf(fields, op, n)
}

// numberOf demands that so many of the fields are set.
func numberOf(fields []operandLocation, op string, n int64) (*clause, bool) {
	names := make([]string, len(fields))
	for i, f := range fields {
		if names[i] = f.text(); names[i] == "" || f.base != fields[0].base || f.level != fields[0].level {
			return nil, false
		}
	}
	op, n = normalSize(op, n)
	a := atom{kind: atomSentence, subject: commonPlace(fields)}
	switch {
	case op == operators.Equals && n == 1:
		a.must, a.is = "must have exactly one of "+enumerate(names, "and"), "exactly one of "+enumerate(names, "and")+
			" is set"
	case op == operators.LessEquals && n == 1:
		a.must, a.is = "must have at most one of "+enumerate(names, "and"), "at most one of "+enumerate(names, "and")+
			" is set"
	case op == operators.GreaterEquals && n == 1:
		a.kind = atomAnyPresence
		a.must, a.is = "must have at least one of "+enumerate(names, "and"), enumerate(names, "or")+" is set"
	default:
		return nil, false
	}
	return &clause{kind: clauseAtom, atom: &a}, true
}

// together demands that two fields are both set or both unset, or that exactly one of them is set.
func (d *deriver) together(a, b operandLocation, same bool) *clause {
	if !same {
		if c, ok := numberOf([]operandLocation{a, b}, operators.Equals, 1); ok {
			return c
		}
	}
	names := []string{a.text(), b.text()}
	about := commonPlace([]operandLocation{a, b})
	if !same || slices.Contains(names, "") || a.base != b.base || a.level != b.level {
		return &clause{kind: clauseAtom, atom: &atom{subject: about}}
	}
	return &clause{kind: clauseAtom, atom: &atom{kind: atomSentence, subject: about,
		must: "must have both of " + strings.Join(names, " and ") + " or neither",
		is:   "both of " + strings.Join(names, " and ") + " are set or neither is"}}
}

// summands are the fields in (has(a) ? 1 : 0) + (has(b) ? 1 : 0).
func (d *deriver) summands(e celast.Expr, to []operandLocation) ([]operandLocation, bool) {
	if e.Kind() != celast.CallKind {
		return nil, false
	}
	call := e.AsCall()
	args := call.Args()
	switch call.FunctionName() {
	case operators.Add:
		to, ok := d.summands(args[0], to)
		if !ok {
			return nil, false
		}
		return d.summands(args[1], to)
	case operators.Conditional:
		p, ok := d.tested(args[0])
		return append(to, p), ok && isLiteral(args[1], types.Int(1)) && isLiteral(args[2], types.Int(0))
	}
	return nil, false
}

// filteredFields are the fields in [has(a), has(b)].filter(x, x).size().
func (d *deriver) filteredFields(e celast.Expr) ([]operandLocation, bool) {
	sized, ok := sizeOf(e)
	if !ok {
		return nil, false
	}
	l, ok := loopOf(sized)
	if !ok || l.kind != loopFilter {
		return nil, false
	}
	if l.body.Kind() != celast.IdentKind || l.body.AsIdent() != l.name {
		if l.body.Kind() != celast.CallKind || l.body.AsCall().FunctionName() != operators.Equals ||
			!isLiteral(l.body.AsCall().Args()[1], types.True) {
			return nil, false
		}
	}
	return d.listed(l.over)
}

// listed are the fields in [has(a), has(b)].
func (d *deriver) listed(e celast.Expr) ([]operandLocation, bool) {
	if e.Kind() != celast.ListKind {
		return nil, false
	}
	var fields []operandLocation
	for _, x := range e.AsList().Elements() {
		p, ok := d.tested(x)
		if !ok {
			return nil, false
		}
		fields = append(fields, p)
	}
	return fields, true
}
