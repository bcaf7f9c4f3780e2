package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/admission-gateway/gateway/internal/cel"
)

// UnfilledReads returns the first place in each module that reads a field of the request's object although the field
// may be missing. A module that asks for the field by `not` may read it.
func (p *Program) UnfilledReads(fields *cel.Unfilled) (all Errors) {
	for _, name := range p.sources.names() {
		m, ok := p.compiled().Modules[name]
		if !ok {
			continue
		}
		r := &unfilledReader{fields: fields, named: map[string]string{}, asked: map[string]bool{},
			read: map[string]*ast.Location{}}
		r.name(m)
		for _, rule := range m.Rules {
			r.walk(rule)
		}
		for _, path := range r.order {
			if r.asked[path] {
				continue
			}
			e := Error{File: name, Message: "reads `" + path + "`, whose default is left to the API: where the field is left out it is undefined, " +
				"and the rule has no result, so that a `deny` denies nothing; read it by object.get(), or ask for it by `not`"}
			e.locate(p.sources, r.read[path])
			all = append(all, e)
		}
	}
	return all
}

// unfilledReader looks at the references of a module.
type unfilledReader struct {
	fields *cel.Unfilled
	named  map[string]string // variables and rules that are a part of an object, with their paths
	asked  map[string]bool
	read   map[string]*ast.Location
	order  []string
}

// name finds the variables and the rules that are a part of an object, some by way of others.
func (r *unfilledReader) name(m *ast.Module) {
	for grown := true; grown; {
		known := len(r.named)
		for _, rule := range m.Rules {
			ast.WalkExprs(rule, func(e *ast.Expr) bool {
				if e.IsEquality() && !e.Negated {
					r.nameBy(e.Operand(0), e.Operand(1))
					r.nameBy(e.Operand(1), e.Operand(0))
				}
				return false
			})
			if rule.Head.Key != nil || rule.Head.Value == nil || len(rule.Head.Args) > 0 {
				continue
			}
			if path, found := r.path(rule.Head.Value); found {
				r.named[rule.Ref().String()] = path
			}
		}
		grown = len(r.named) > known
	}
}

// nameBy notes a variable that is a part of an object.
func (r *unfilledReader) nameBy(variable, of *ast.Term) {
	v, isVar := variable.Value.(ast.Var)
	if _, isRef := of.Value.(ast.Ref); !isVar || !isRef {
		return
	}
	if path, found := r.path(of); found {
		r.named[v.String()] = path
	}
}

// path returns which part of an object a term is, such as 'object.spec'; false if it is none.
func (r *unfilledReader) path(t *ast.Term) (path string, found bool) {
	switch v := t.Value.(type) {
	case ast.Var:
		path, found = r.named[v.String()]
	case ast.Ref:
		paths := r.paths(v)
		if found = len(paths) > 0; found {
			path = paths[len(paths)-1]
		}
	}
	return path, found
}

// paths returns the path of the object that a reference leads into, and the path after each step within it.
func (r *unfilledReader) paths(ref ast.Ref) (all []string) {
	path, rest := "", ref[len(ref):]
	switch names := stepsOf(ref); {
	case ref.HasPrefix(ast.InputRootRef):
		if len(names) < 2 || names[0] != "review" && names[0] != "request" || !slices.Contains(objects[:2], names[1]) {
			return nil
		}
		path, rest = names[1], ref[3:]
	case ref.HasPrefix(ast.DefaultRootRef):
		for n := len(ref); n > 1 && path == ""; n-- {
			path, rest = r.named[ref[:n].String()], ref[n:]
		}
	default:
		path, rest = r.named[ref[0].Value.String()], ref[1:]
	}
	if path == "" {
		return nil
	}
	all = append(all, path)
	for _, step := range rest {
		name, isName := step.Value.(ast.String)
		if path += cel.Item; isName {
			path = strings.TrimSuffix(path, cel.Item) + "." + string(name)
		}
		all = append(all, path)
	}
	return all
}

// unfilled returns the path of the first unfilled field on the way of a reference; "" for none.
func (r *unfilledReader) unfilled(ref ast.Ref) string {
	for _, path := range r.paths(ref) {
		if end := strings.IndexAny(path, ".["); end > 0 && r.fields.Has(path[end:]) {
			return path
		}
	}
	return ""
}

// walk notes what a rule reads and asks for. What stands behind `not` is undefined without making the rule so.
func (r *unfilledReader) walk(rule *ast.Rule) {
	visitor := ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.Rule:
			if x != rule {
				return true // the module has it among its rules
			}
		case *ast.Expr:
			if !x.Negated {
				return false
			}
			if t, isTerm := x.Terms.(*ast.Term); isTerm {
				if ref, isRef := t.Value.(ast.Ref); isRef {
					r.asked[r.unfilled(ref)] = true
				}
			}
			return true
		case ast.Ref:
			if path := r.unfilled(x); path != "" && r.read[path] == nil {
				place := placeOf(x)
				if place == nil {
					place = rule.Location
				}
				r.read[path] = place
				r.order = append(r.order, path)
			}
		}
		return false
	})
	visitor.Walk(rule)
}
