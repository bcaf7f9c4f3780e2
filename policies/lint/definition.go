package lint

import (
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/source"
)

// definition is a CustomResourceDefinition, or an OpenAPI document.
type definition struct {
	from    *manifest.Object
	name    string
	isCRD   bool
	schemas []*node
}

// node is a schema within a definition.
type node struct {
	at document.Node
	// path is its position, name the member that it describes; empty for the schema of an object or
	// an item.
	path, name string
	// parent is the schema that it is in; nil for the schema of a whole object.
	parent *node
	part   part
	// isRequired reports whether the member is.
	isRequired, isCRD bool
	members           []*node
	item, value       *node
}

// definitionsIn returns the definitions in files. Files that cannot be read have been found by others.
func definitionsIn(files []source.File) (all []*definition) {
	for _, f := range files {
		if f.Role != source.Objects {
			continue
		}
		objects, _ := manifest.Read(f.Name, f.Data)
		for _, o := range objects {
			if d := definitionOf(o); d != nil {
				all = append(all, d)
			}
		}
	}
	return all
}

// definitionOf returns the definition that an object is; nil for others.
func definitionOf(o *manifest.Object) *definition {
	root := o.Document().Root()
	group, _ := o.GroupVersion()
	switch {
	case o.OpenAPI:
		d := &definition{from: o, name: o.File}
		for _, path := range [][]string{{"components", "schemas"}, {"definitions"}} {
			schemas := root
			for _, name := range path {
				schemas, _ = schemas.Get(name)
			}
			for m := schemas.First(); m.Valid(); m = m.Next() {
				d.schemas = append(d.schemas, schemaAt(m, "", nil, false))
			}
		}
		return d
	case group == "apiextensions.k8s.io" && o.Kind == "CustomResourceDefinition":
		d := &definition{from: o, name: o.Name, isCRD: true}
		for v := in(root, "spec", "versions").First(); v.Valid(); v = v.Next() {
			if s := in(v, "schema", "openAPIV3Schema"); s.Valid() {
				d.schemas = append(d.schemas, schemaAt(s, "", nil, true))
			}
		}
		return d
	case group == "admission-gateway.io" && o.Kind == "APIResource":
		d := &definition{from: o, name: o.Name}
		if s := in(root, "spec", "schema", "openAPIV3Schema"); s.Valid() {
			d.schemas = append(d.schemas, schemaAt(s, "", nil, false))
		}
		return d
	}
	return nil
}

// in returns the member of an object at a path; an invalid node if there is none.
func in(n document.Node, path ...string) document.Node {
	for _, name := range path {
		next, found := n.Get(name)
		if !found {
			return document.Node{}
		}
		n = next
	}
	return n
}

// textOf returns a text; empty for other values.
func textOf(n document.Node) string {
	if n.Valid() && n.Kind() == document.String {
		return n.Str()
	}
	return ""
}

// part says what of its parent a schema describes.
type part uint8

const (
	member part = iota
	items
	values
)

// schemaAt reads a schema and the schemas in it.
func schemaAt(at document.Node, name string, parent *node, isCRD bool) *node {
	s := &node{at: at, path: at.Path(), name: name, parent: parent, isCRD: isCRD}
	required := map[string]bool{}
	for r := in(at, "required").First(); r.Valid(); r = r.Next() {
		required[textOf(r)] = true
	}
	for p := in(at, "properties").First(); p.Valid(); p = p.Next() {
		m := schemaAt(p, p.Key(), s, isCRD)
		m.isRequired = required[p.Key()]
		s.members = append(s.members, m)
	}
	if n := in(at, "items"); n.Valid() && n.Kind() == document.Object {
		s.item = schemaAt(n, name, s, isCRD)
		s.item.part = items
	}
	if n := in(at, "additionalProperties"); n.Valid() && n.Kind() == document.Object {
		s.value = schemaAt(n, name, s, isCRD)
		s.value.part = values
	}
	return s
}

// member returns the schema of a member; nil if there is none.
func (s *node) member(name string) *node {
	for _, m := range s.members {
		if m.name == name {
			return m
		}
	}
	return nil
}

// typeOf returns the type that a schema names.
func (s *node) typeOf() string { return textOf(in(s.at, "type")) }

// is reports whether a keyword of a schema is true.
func (s *node) is(keyword string) bool {
	n := in(s.at, keyword)
	return n.Valid() && n.Kind() == document.Bool && n.Bool()
}

func (s *node) has(keyword string) bool { return in(s.at, keyword).Valid() }
