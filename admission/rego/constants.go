package rego

import (
	"context"
	"errors"

	"github.com/open-policy-agent/opa/v1/ast"
)

// FailingConstants returns the calls of functions that fail whenever they are evaluated, since their operands are
// constants: a division by zero, or a text that is no number.
func (p *Program) FailingConstants() (all Errors) {
	var known constants
	note := func(at *ast.Location, terms []*ast.Term) bool {
		isConstant := isConstantCall(terms)
		if !isConstant {
			if terms = withPattern(terms, known); terms == nil {
				return false
			}
		}
		if e, fails := p.failingCall(at, terms); fails {
			all = append(all, e)
		}
		return isConstant
	}
	for _, m := range p.modules() {
		ofModule := constantsIn(m)
		for _, r := range m.Rules {
			known = ofModule.in(r)
			ast.NewGenericVisitor(func(x any) bool {
				switch x := x.(type) {
				case *ast.Expr:
					if terms, is := x.Terms.([]*ast.Term); is {
						return note(x.Location, terms)
					}
				case *ast.Term:
					if call, is := x.Value.(ast.Call); is {
						return note(x.Location, call)
					}
				}
				return false
			}).Walk(r)
		}
	}
	all.sort()
	return all
}

// patternOperands has the functions that fail for an expression which is none, and which operand that is. In the place
// of the others these stand.
var patternOperands = map[string]struct {
	at     int
	others []*ast.Term
}{
	"regex.match":                      {0, []*ast.Term{nil, ast.StringTerm("")}},
	"re_match":                         {0, []*ast.Term{nil, ast.StringTerm("")}},
	"regex.split":                      {0, []*ast.Term{nil, ast.StringTerm("")}},
	"regex.find_n":                     {0, []*ast.Term{nil, ast.StringTerm(""), ast.IntNumberTerm(1)}},
	"regex.find_all_string_submatch_n": {0, []*ast.Term{nil, ast.StringTerm(""), ast.IntNumberTerm(1)}},
	"regex.replace":                    {1, []*ast.Term{ast.StringTerm(""), nil, ast.StringTerm("")}},
	"glob.match":                       {0, []*ast.Term{nil, ast.ArrayTerm(), ast.StringTerm("")}},
}

// withPattern returns a call of a function with a constant expression, and with other operands in place of those that
// depend on objects; nil for other calls.
func withPattern(terms []*ast.Term, known constants) []*ast.Term {
	of, is := patternOperands[terms[0].String()]
	if !is || len(terms) < 1+len(of.others) {
		return nil
	}
	pattern := known.of(terms[1+of.at])
	if pattern == nil {
		return nil
	}
	call := []*ast.Term{terms[0]}
	for i, other := range of.others {
		if i == of.at {
			other = pattern
		}
		call = append(call, other)
	}
	return call
}

// constants are the variables and rules of a module that are nothing but a text.
type constants map[ast.Var]*ast.Term

// constantsIn returns the rules that are nothing but a text.
func constantsIn(m *ast.Module) constants {
	all := constants{}
	for _, r := range m.Rules {
		isFact := len(r.Body) == 1 && r.Body[0].Equal(ast.NewExpr(ast.BooleanTerm(true))) && r.Else == nil &&
			len(r.Head.Args) == 0
		all.note(r.Head.Name, r.Head.Value, isFact)
	}
	return all
}

// in returns the texts that a rule has beside those of its module.
func (t constants) in(r *ast.Rule) constants {
	own := constants{}
	ast.WalkExprs(r, func(e *ast.Expr) bool {
		if some, is := e.Terms.(*ast.SomeDecl); is {
			for _, t := range some.Symbols {
				ast.WalkVars(t, func(v ast.Var) bool {
					own.note(v, nil, false)
					return false
				})
			}
		}
		if e.IsAssignment() {
			if v, is := e.Operand(0).Value.(ast.Var); is {
				own.note(v, e.Operand(1), true)
			}
		}
		return false
	})
	hidden := declared(r)
	for name, text := range t {
		if !hidden.Contains(name) {
			own[name] = text
		}
	}
	return own
}

// note notes what a name is. A name with several definitions is not among the texts.
func (t constants) note(name ast.Var, value *ast.Term, isAlone bool) {
	_, isDefined := t[name]
	t[name] = nil
	if value != nil && isAlone && !isDefined {
		if _, is := value.Value.(ast.String); is {
			t[name] = value
		}
	}
}

// of returns the text that a term is; nil if it is not known.
func (t constants) of(term *ast.Term) *ast.Term {
	if name, is := term.Value.(ast.Var); is {
		return t[name]
	}
	if _, is := term.Value.(ast.String); is {
		return term
	}
	return nil
}

// isConstantCall reports whether terms are a call of a built-in function that depends on nothing but constants.
func isConstantCall(terms []*ast.Term) bool {
	b := ast.BuiltinMap[terms[0].String()]
	if b == nil || b.Nondeterministic || len(terms) < 2 {
		return false
	}
	for _, t := range terms[1:] {
		if call, is := t.Value.(ast.Call); is && isConstantCall(call) {
			continue
		}
		if !ast.IsConstant(t.Value) {
			return false
		}
	}
	return true
}

// failingCall returns why a call of constants fails, or the first one within it that does.
func (p *Program) failingCall(at *ast.Location, terms []*ast.Term) (Error, bool) {
	for _, t := range terms[1:] {
		if call, is := t.Value.(ast.Call); is {
			if e, fails := p.failingCall(t.Location, call); fails {
				return e, true
			}
		}
	}
	q, err := p.prepare("constant", resultVar.String()+" = "+ast.Call(terms).String())
	if err != nil {
		return Error{}, false
	}
	var failed Error
	if _, err = q.Value(context.Background(), &Input{}); !errors.As(err, &failed) {
		return Error{}, false
	}
	e := Error{Message: "always fails, since it depends on no object: " + failed.Message}
	e.locate(p.sources, at)
	return e, true
}
