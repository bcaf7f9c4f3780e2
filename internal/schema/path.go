package schema

import "github.com/admission-gateway/gateway/internal/document"

// PathOf is the field path of a value in an object of the schema, as failures name it: keys of maps stand in brackets.
func (s *Schema) PathOf(v document.Node) string {
	l := locator{top: v.Document().Root(), shape: s.root, meta: s.meta}
	if v == l.top {
		return ""
	}
	return l.path(v).String()
}
