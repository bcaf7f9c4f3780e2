package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Dangling returns what modules read and what is never there: members of the input that no request
// has, and document data that neither a module nor a data file has. A rule with such a reference may
// never find anything.
func (p *Program) Dangling() Errors {
	var all Errors
	note := func(r ast.Ref, why string) {
		e := Error{Message: "'" + r.String() + "' has no value: " + why}
		e.locate(p.sources, placeOf(r))
		if e.File != "" && !slices.Contains(all, e) {
			all = append(all, e)
		}
	}
	input, data := p.replaced()
	for _, name := range p.sources.names() {
		m, ok := p.compiled().Modules[name]
		if !ok {
			continue
		}
		for _, rule := range m.Rules {
			ast.WalkRefs(rule, func(r ast.Ref) bool {
				switch {
				case r.HasPrefix(ast.InputRootRef) && !input:
					if n, why := p.options.absent(r); why != "" {
						note(r[:n], why)
					}
				case r.HasPrefix(ast.DefaultRootRef) && !data:
					if n := p.undefined(r); n > 0 {
						note(r[:n], "no module and no data file defines it")
					}
				}
				return false
			})
		}
	}
	return all
}

// replaced reports whether modules evaluate some rules with an input and with data of their own.
func (p *Program) replaced() (input, data bool) {
	for _, m := range p.compiled().Modules {
		ast.WalkWiths(m, func(w *ast.With) bool {
			if target, ok := w.Target.Value.(ast.Ref); ok {
				input = input || target.HasPrefix(ast.InputRootRef)
				data = data || target.HasPrefix(ast.DefaultRootRef)
			}
			return false
		})
	}
	return input, data
}

// placeOf is the position of a reference in its module.
func placeOf(r ast.Ref) *ast.Location {
	for _, t := range r {
		if t.Location != nil && t.Location.File != "" {
			return t.Location
		}
	}
	return nil
}

// stepsOf are the names that a reference begins with.
func stepsOf(r ast.Ref) (names []string) {
	for _, t := range r[1:] {
		name, ok := t.Value.(ast.String)
		if !ok {
			break
		}
		names = append(names, string(name))
	}
	return names
}

// The members of the input, and of its members whose form is known.
var (
	templateMembers = []string{"review", "parameters"}
	policyMembers   = append([]string{"review", "parameters", "http", "request"}, envoyMembers...)
)

// absent returns how many steps of a reference to the input lead to a member that it never has, and
// why not; an empty text: it may have them all.
func (o *Options) absent(r ast.Ref) (steps int, why string) {
	names, members, whole := stepsOf(r), policyMembers, "the input of a RegoPolicy"
	if o.Template {
		members, whole = templateMembers, "the input of a template"
	}
	has := func(whole string, members []string) string { return whole + " has " + strings.Join(members, ", ") }
	switch {
	case len(names) == 0:
		return 0, ""
	case !slices.Contains(members, names[0]):
		return 2, has(whole, members) + "; the object is in input.review.object"
	case len(names) == 1:
		return 0, ""
	}
	switch names[0] {
	case "review":
		members = reviewMembers[:]
		if o.Template {
			members = append([]string{namespaceObjectName}, members...)
		}
	case "request":
		members = append([]string{"http"}, reviewMembers[:]...)
	case "attributes":
		members = []string{"request"}
	case "http":
		members = []string{"method", "host", "path", "route", "pathParameters", "query", "headers"}
	default:
		return 0, ""
	}
	if slices.Contains(members, names[1]) {
		return 0, ""
	}
	return 3, has("input."+names[0], members)
}

// namespaceObjectName is the member of a template's review that has the namespace.
const namespaceObjectName = "namespaceObject"

// undefined returns how many steps of a reference to data lead to what nothing defines; 0 if they may
// all lead somewhere. What a data file leaves out of an object may be there another day.
func (p *Program) undefined(r ast.Ref) int {
	names := stepsOf(r)
	if len(names) == 0 || names[0] == stateName || names[0] == inventoryName {
		return 0
	}
	if o, ok := p.data.(ast.Object); ok && o.Get(ast.StringTerm(names[0])) != nil {
		return 0
	}
	node := p.compiled().RuleTree.Child(ast.DefaultRootDocument.Value)
	for i, name := range names {
		if node != nil && len(node.Values) > 0 {
			return 0
		}
		if node != nil {
			node = node.Child(ast.String(name))
		}
		if node == nil {
			return i + 2
		}
	}
	return 0
}
