package graph

import (
	"slices"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/pattern"
)

// NewCompiler makes a Compiler of the schemas in a document that is not edited while it is used.
func NewCompiler(root document.Node, dialect Dialect, report func(Finding)) *Compiler {
	c := &Compiler{root: root, dialect: dialect, report: report, schemas: map[key]*node{},
		patterns: map[string]*pattern.Pattern{}}
	c.identify()
	return c
}

// Compile compiles a schema of the document with all that it refers to.
func (c *Compiler) Compile(n document.Node) *Schema {
	root := c.schema(n, false)
	var made []queued
	for len(c.queue) > 0 {
		next := c.queue[len(c.queue)-1]
		c.queue = c.queue[:len(c.queue)-1]
		c.fill(next)
		made = append(made, next)
	}
	c.finish(made)
	return &Schema{root: root}
}

// fill compiles the keywords of a schema.
func (c *Compiler) fill(q queued) {
	n, s := q.node, q.schema
	if c.resources != nil {
		s.resource = c.resourceOf(n)
	}
	switch {
	case n.Kind() == document.Bool:
		s.isPlain, s.isNever = n.Bool(), !n.Bool()
		return
	case n.Kind() == document.Null:
		c.warn(n, saysNothing)
		s.isPlain = true
		return
	case n.Kind() != document.Object:
		c.refuse(n, "must be a schema: an object, or 'true' or 'false'")
		s.isPlain = true
		return
	}
	if ref, found := n.Get("$ref"); found && c.dialect == OpenAPI30 {
		c.ignoredSiblings(n)
		c.refer(s, ref, q.isBase)
		return
	}
	f := filler{Compiler: c, at: n, s: s, isBase: q.isBase}
	for m := n.First(); m.Valid(); m = m.Next() {
		f.keyword(m.Key(), m)
	}
	f.complete()
}

// refer makes what a reference points to part of a schema.
func (c *Compiler) refer(s *node, ref document.Node, isBase bool) {
	if ref.Kind() != document.String {
		c.refuse(ref, "must be a string")
		return
	}
	to, err := c.resolve(ref.Str(), ref.Parent())
	if err != nil {
		c.refuse(ref, "%s", err.Error())
		return
	}
	l := s.logical()
	l.all = append(l.all, c.schema(to, isBase))
}

// saysNothing is the finding of a null in the place of a keyword's value. In YAML it is a key without a value, which
// generators write.
const saysNothing = "is null and says nothing: leave it out"

// keyword compiles one keyword.
func (f *filler) keyword(name string, m document.Node) {
	if m.Kind() == document.Null && name != "const" && !IsAnnotation(name) {
		f.warn(m, saysNothing)
		return
	}
	switch name {
	case "$ref":
		f.refer(f.s, m, f.isBase)
	case "$dynamicRef":
		f.dynamicRef(m)
	case "type":
		f.types(m)
	case "enum", "const":
		f.enumeration(m, name == "const")
	case "nullable":
		if f.isOpenAPI() {
			f.s.isNullable = f.truth(m, false)
		}
	case "readOnly":
		f.s.isReadOnly = f.truth(m, true)
	case "writeOnly":
		f.s.isWriteOnly = f.truth(m, true)
	case "allOf", "anyOf", "oneOf":
		f.combine(name, m)
	case "not":
		if n := f.s.logical(); f.isSchema(m) {
			n.not = append(n.not, f.sub(m))
		}
	case "if", "then", "else":
		f.conditional(name, m)
	case "discriminator":
		if f.isOpenAPI() && !f.isBase {
			f.discriminator(m)
		}
	case "minLength", "maxLength", "pattern", "format":
		f.textKeyword(name, m)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		f.numberKeyword(name, m)
	case "properties", "patternProperties", "additionalProperties", "propertyNames", "unevaluatedProperties",
		"required", "minProperties",
		"maxProperties", "dependentRequired", "dependentSchemas":
		f.objectKeyword(name, m)
	case "items", "prefixItems", "contains", "minContains", "maxContains", "minItems", "maxItems", "uniqueItems",
		"unevaluatedItems":
		f.listKeyword(name, m)
	default:
		if !IsAnnotation(name) {
			f.warn(m, "the keyword '%.80s' is not enforced", name)
		}
	}
}

// types reads the type, or the types.
func (f *filler) types(m document.Node) {
	names := f.typesOf(m, true)
	if names == nil {
		return
	}
	f.s.accepts, f.s.isWhole, f.s.typeName = acceptable(names)
}

// combine compiles allOf, anyOf and oneOf.
func (f *filler) combine(name string, m document.Node) {
	if m.Kind() != document.Array || m.Len() == 0 {
		f.refuse(m, "must be a list of at least one schema")
		return
	}
	l := f.s.logical()
	var branches []document.Node
	for item := m.First(); item.Valid(); item = item.Next() {
		if f.isSchema(item) {
			branches = append(branches, item)
		}
	}
	switch {
	case len(branches) == 0:
	case name == "allOf":
		for _, b := range branches {
			l.all = append(l.all, f.schema(b, true))
		}
	case len(branches) == 1:
		l.all = append(l.all, f.sub(branches[0]))
	case f.discriminates(m):
		// the discriminator has the alternatives
	default:
		s := f.union(branches, name == "oneOf")
		if s == nil {
			s = lists(branches, name == "oneOf")
		}
		if s != nil {
			l.all = append(l.all, s)
			return
		}
		l.groups = append(l.groups, f.group(branches, name == "oneOf"))
	}
}

// group compiles alternatives.
func (f *filler) group(branches []document.Node, isOne bool) group {
	g := group{isOne: isOne, isLenient: f.isOpenAPI()}
	for _, b := range branches {
		g.branches = append(g.branches, f.sub(b))
	}
	return g
}

// union makes one schema of alternatives that name a type each and say nothing else; nil if they do
// not.
func (f *filler) union(branches []document.Node, isOne bool) *node {
	var names []string
	for _, b := range branches {
		t, found := b.Get("type")
		if !found {
			return nil
		}
		for m := b.First(); m.Valid(); m = m.Next() {
			if key := m.Key(); key != "type" && (!IsAnnotation(key) || key == "readOnly" || key == "writeOnly") {
				return nil
			}
		}
		of := f.typesOf(t, false)
		for _, name := range of {
			if isOne && (slices.Contains(names, name) || name == "number" && slices.Contains(names, "integer") ||
				name == "integer" && slices.Contains(names, "number")) {
				return nil
			}
		}
		if of == nil {
			return nil
		}
		names = append(names, of...)
	}
	s := &node{isPlain: true, isDirect: true}
	s.accepts, s.isWhole, s.typeName = acceptable(names)
	s.isPlain = !s.isWhole
	return s
}

// conditional compiles if, then and else.
func (f *filler) conditional(name string, m document.Node) {
	if !f.isSchema(m) {
		return
	}
	if _, found := f.at.Get("if"); !found && name != "if" {
		return // it says nothing
	}
	l := f.s.logical()
	switch name {
	case "if":
		l.condition = f.sub(m)
	case "then":
		l.then = f.sub(m)
	case "else":
		l.otherwise = f.sub(m)
	}
}

// complete ends a schema whose keywords were read.
func (f *filler) complete() {
	s := f.s
	if f.isOpenAPI() {
		f.impossible()
		f.unmet(f.at)
	}
	if o := s.object; o != nil {
		f.link(o)
	}
	if l := s.list; l != nil && !f.hasContains {
		l.minimum, l.maximum = 0, -1
	}
}

// finish completes schemas whose keywords are all compiled.
func (c *Compiler) finish(made []queued) {
	loops := findLoops(made)
	for _, q := range made {
		s := q.schema
		s.isComplete = true
		if loops[s] {
			s.isLoop = true
			c.endless(q)
		}
		s.isReadOnly, s.isWriteOnly = s.marks(maxMarks)
		if l := s.logic; l != nil && l.isEmpty() {
			s.logic = nil
		}
		s.isFramed = s.object != nil || s.list != nil || s.logic != nil
		s.isPlain = s.isPlain || !s.isNever && !s.isWriteOnly && !s.isNullable && !s.isWhole && !s.isFramed &&
			s.enum == nil && s.text == nil && s.number == nil
	}
	markDirect(made)
}
