package rego

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// userMember is the member of a review that has the user.
const userMember = "userInfo"

// objects are the members of a review whose members are the client's words.
var objects = []string{"object", "oldObject", "options", namespaceObjectName}

// RequestReads are the first places in each module that read the user of the request, and the kind of its objects.
type RequestReads struct{ User, Kind Errors }

// RequestReads returns what the modules read of the request. It errs on the side of more about the user: the name of
// the member counts wherever it stands, but in an object of the request or in data. The kind counts in references
// alone.
func (p *Program) RequestReads() (r RequestReads) {
	for _, name := range p.sources.names() {
		m, ok := p.compiled().Modules[name]
		if !ok {
			continue
		}
		r.User = p.noted(r.User, name, placeIn(m, userMentioned))
		r.Kind = p.noted(r.Kind, name, placeIn(m, kindRead))
	}
	return r
}

func (p *Program) noted(all Errors, name string, place *ast.Location) Errors {
	if place == nil {
		return all
	}
	e := Error{File: name}
	e.locate(p.sources, place)
	return append(all, e)
}

// placeIn returns the first place in a module at which something is found; nil if there is none. What stands in data
// and in objects of the request, but as a key that is computed, is passed over.
func placeIn(m *ast.Module, isFound func(x any) *ast.Location) (place *ast.Location) {
	for _, rule := range m.Rules {
		var visitor *ast.GenericVisitor
		visitor = ast.NewGenericVisitor(func(x any) bool {
			if x, isRef := x.(ast.Ref); isRef && (x.HasPrefix(ast.DefaultRootRef) || inObject(x)) {
				for _, t := range x[1:] {
					if _, isName := t.Value.(ast.String); !isName {
						visitor.Walk(t)
					}
				}
				return true
			}
			if at := isFound(x); at != nil && place == nil {
				if place = at; place.Row == 0 {
					place = rule.Location
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

func userMentioned(x any) *ast.Location {
	if t, ok := x.(*ast.Term); ok && t.Equal(userTerm) {
		return located(t.Location)
	}
	return nil
}

func kindRead(x any) *ast.Location {
	r, ok := x.(ast.Ref)
	if !ok || !r.HasPrefix(ast.InputRootRef) {
		return nil
	}
	names := stepsOf(r)
	if len(names) > 1 && (names[0] == "review" || names[0] == "request") && slices.Contains(kindMembers, names[1]) {
		return located(r[0].Location)
	}
	return nil
}

// located returns a location; one without a row if there is none.
func located(l *ast.Location) *ast.Location {
	if l == nil {
		return &ast.Location{}
	}
	return l
}

// kindMembers are the members of a review that have the kind of its objects.
var kindMembers = []string{"kind", "requestKind"}

var userTerm = ast.StringTerm(userMember)

// inObject reports whether a reference leads into an object of the request, or into parameters.
func inObject(r ast.Ref) bool {
	if !r.HasPrefix(ast.InputRootRef) {
		return false
	}
	names := stepsOf(r)
	return len(names) > 0 && names[0] == "parameters" || len(names) > 1 && slices.Contains(objects, names[1])
}
