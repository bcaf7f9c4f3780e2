package rego

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// userMember is the member of a review that has the user.
const userMember = "userInfo"

// objects are the members of a review whose members are the client's words.
var objects = []string{"object", "oldObject", "options", namespaceObjectName}

// ReadsUser returns the first place in each module that reads the user of the request. It errs on the side of more: the name
// of the member counts wherever it stands, but in an object of the request or in data.
func (p *Program) ReadsUser() Errors {
	var all Errors
	for _, name := range p.sources.names() {
		m, ok := p.compiled().Modules[name]
		if !ok {
			continue
		}
		place := userIn(m)
		if place == nil {
			continue
		}
		e := Error{File: name}
		e.locate(p.sources, place)
		all = append(all, e)
	}
	return all
}

// userIn returns the first place in a module that reads the user; nil if there is none.
func userIn(m *ast.Module) (place *ast.Location) {
	for _, rule := range m.Rules {
		var visitor *ast.GenericVisitor
		visitor = ast.NewGenericVisitor(func(x any) bool {
			switch x := x.(type) {
			case ast.Ref:
				if x.HasPrefix(ast.DefaultRootRef) || inObject(x) {
					for _, t := range x[1:] {
						if _, isName := t.Value.(ast.String); !isName {
							visitor.Walk(t)
						}
					}
					return true
				}
			case *ast.Term:
				if x.Equal(userTerm) && place == nil {
					if place = x.Location; place == nil {
						place = rule.Location
					}
				}
			}
			return place != nil
		})
		visitor.Walk(rule)
		if place != nil {
			return place
		}
	}
	return nil
}

var userTerm = ast.StringTerm(userMember)

// inObject reports whether a reference leads into an object of the request, or into parameters.
func inObject(r ast.Ref) bool {
	if !r.HasPrefix(ast.InputRootRef) {
		return false
	}
	names := stepsOf(r)
	return len(names) > 0 && names[0] == "parameters" || len(names) > 1 && slices.Contains(objects, names[1])
}
