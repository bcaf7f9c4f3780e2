package resource

import "strings"

// An Operation is one method at a path that neither reads nor writes an object: a search, an import, an
// activation. Its body is admitted and sent on, and its answer passes.
type Operation struct {
	// Subresource is the name by which policies match it behind the resource's own; "" is the resource itself.
	Subresource string
	// Method is the HTTP method, Verb the verb that policies see.
	Method string
	Verb   Verb
}

// setOperation finds the verb of a method on the path of an operation.
func (i *Info) setOperation(m *match, e *endpoint) error {
	i.Subresource = e.resource.Operation.Subresource
	switch {
	case e.takes(m):
		i.Verb = e.resource.Operation.Verb
	case i.Verb == VerbOptions:
	default:
		return errMethod
	}
	return nil
}

// Parameters calls a function for each variable of the route with its text in the path, as it was
// sent, until the function returns false.
func (i *Info) Parameters(yield func(name, raw string) bool) {
	eachVariable(i.Route, i.Path, yield)
}

// eachVariable walks a template and a path that it matches.
func eachVariable(template, path string, yield func(name, raw string) bool) {
	for template != "" && path != "" {
		var wanted, segment string
		wanted, template, _ = strings.Cut(template[1:], "/")
		segment, path, _ = strings.Cut(path[1:], "/")
		if isVariable(wanted) && !yield(wanted[1:len(wanted)-1], segment) {
			return
		}
		if template != "" {
			template = "/" + template
		}
		if path != "" {
			path = "/" + path
		}
	}
}

// Expand writes namespace, name, and what else the path of the request has for variables into another template of
// its resource. Both are percent-encoded already.
func (i *Info) Expand(dst []byte, template, namespace, name string) []byte {
	for template != "" {
		before, rest, found := strings.Cut(template, "{")
		dst = append(dst, before...)
		if !found {
			break
		}
		variable, rest, _ := strings.Cut(rest, "}")
		switch variable {
		case "name":
			dst = append(dst, name...)
		case "namespace":
			dst = append(dst, namespace...)
		default:
			eachVariable(i.Template, i.Path, func(known, raw string) bool {
				if known == variable {
					dst = append(dst, raw...)
				}
				return known != variable
			})
		}
		template = rest
	}
	return dst
}
