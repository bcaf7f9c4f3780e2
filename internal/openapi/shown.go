package openapi

import (
	"maps"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// shown is how the answer to a GET of an object shows it.
type shown struct {
	// answer is the member of the answer that has the object in the shape of the bodies; "" is the answer itself.
	answer string
	// schema is the schema of the object in the answer; invalid if none is declared.
	schema document.Node
	// why says why the shape is not known to be the bodies'; "" if it is.
	why string
}

// shownOf finds out how the answer to the GET of a resource's objects shows them: by a comparison of its schema with
// the one of the bodies of PUT, else of PATCH, else of POST.
func (d *Document) shownOf(r *Resource) shown {
	create, update, read := d.schemasOf(r)
	s := shown{schema: read}
	if r.Envelope != resource.Bare || r.object == nil || len(r.Paths) == 0 || len(r.changes()) == 0 {
		return s
	}
	quiet := *d
	quiet.report, quiet.mild = newReport(), newReport()
	c := comparison{&quiet}
	patch := d.requestSchema(r.object.operation("patch"))
	at := slices.IndexFunc([]document.Node{update, patch, create},
		func(n document.Node) bool { return n.Valid() && len(c.members(n, 0)) > 0 })
	if at < 0 {
		return s // nothing is said of what an object is
	}
	body := []document.Node{update, patch, create}[at]
	switch {
	case !r.object.has("get"):
		s.why = "there is no GET"
	case !read.Valid():
		s.why = "GET declares no schema of its answer"
	case c.matches(body, read):
	default:
		var found []string
		for name, member := range c.members(read, 0) {
			if c.matches(body, member) {
				found = append(found, name)
			}
		}
		if len(found) == 1 {
			s.answer = found[0]
			s.schema = c.members(read, 0)[s.answer]
		} else {
			s.why = "the schema of the answer to GET lacks members of the body, and " +
				map[bool]string{true: "none of its own has all of them",
					false: "several of its own have all of them"}[len(found) == 0]
		}
	}
	return s
}

// changes are the methods that change objects.
func (r *Resource) changes() (methods []string) {
	for _, method := range []string{"put", "patch", "delete"} {
		if r.object.has(method) {
			methods = append(methods, strings.ToUpper(method))
		}
	}
	return methods
}

// comparison compares schemas by the members that they name.
type comparison struct{ doc *Document }

// maxAlternatives bounds how deep alternatives within alternatives are looked at.
const maxAlternatives = 4

// members returns the members that a schema, or an alternative of it, names.
func (c comparison) members(n document.Node, depth int) map[string]document.Node {
	found := map[string]document.Node{}
	all := c.doc.conjunctionOf(n)
	all.each("properties", func(properties document.Node) {
		members(properties, func(m document.Node) { found[strings.Clone(m.Key())] = m })
	})
	for _, key := range []string{"oneOf", "anyOf"} {
		all.each(key, func(alternatives document.Node) {
			members(alternatives, func(one document.Node) {
				if depth < maxAlternatives {
					maps.Copy(found, c.members(one, depth+1))
				}
			})
		})
	}
	return found
}

// matches reports whether an answer shows all that a body may have, but for what is writeOnly.
func (c comparison) matches(body, answer document.Node) bool {
	if c.doc.follow(body) == c.doc.follow(answer) {
		return true
	}
	if isList(c.doc, body) || isList(c.doc, answer) {
		return isList(c.doc, body) && isList(c.doc, answer)
	}
	shows, common := c.members(answer, 0), 0
	for name, m := range c.members(body, 0) {
		property := c.doc.conjunctionOf(m)
		if property.says("writeOnly") {
			continue
		}
		if _, isShown := shows[name]; !isShown {
			return false
		}
		common++
	}
	return common > 0
}

// saysShown reports whether the author of the extension says how answers show objects.
func (r *Resource) saysShown() bool {
	return slices.ContainsFunc(r.Settings, func(at document.Node) bool {
		_, says := at.Get("storedObject")
		fields, _ := at.Get("fields")
		_, saysAnswer := fields.Get("answer")
		_, saysObject := fields.Get("object")
		return says || saysAnswer || saysObject
	})
}
