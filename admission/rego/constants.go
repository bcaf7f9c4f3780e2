package rego

import (
	"context"
	"errors"

	"github.com/open-policy-agent/opa/v1/ast"
)

// FailingConstants returns the calls of functions that fail whenever they are evaluated, since their operands are constants:
// a division by zero, or a text that is no number.
func (p *Program) FailingConstants() (all Errors) {
	note := func(at *ast.Location, terms []*ast.Term) bool {
		if !isConstantCall(terms) {
			return false
		}
		if e, fails := p.failingCall(at, terms); fails {
			all = append(all, e)
		}
		return true
	}
	for _, m := range p.modules() {
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
		}).Walk(m)
	}
	all.sort()
	return all
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
