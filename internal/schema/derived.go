package schema

import (
	"cmp"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// A Derived is a default that is computed from the object (DEF-2).
type Derived struct {
	// Field is the property that has it, Name its name for look-ups.
	Field *Property
	Name  document.Name
	*cel.Default

	way   []hop // from the whole object to the object that the field is in
	order int   // in the file
	path  *field.Path
}

// Derived are the schema's computed defaults in the order in which they are to be set: one that reads a field stands
// behind the default of that field, and else they stand in the order of the file. The slice must not be changed.
func (s *Schema) Derived() []Derived { return s.derived }

// Objects visits the objects of a document that the field may be in, until visit returns false. Members may be added to
// the object that is visited.
func (d *Derived) Objects(root document.Node, visit func(document.Node) bool) {
	follow(root, d.way, visit)
}

func follow(v document.Node, way []hop, visit func(document.Node) bool) bool {
	if len(way) == 0 {
		return v.Kind() != document.Object || visit(v)
	}
	next, rest := way[0], way[1:]
	switch {
	case next.kind == hopProperty:
		m, found := v.Lookup(next.name)
		return !found || follow(m, rest, visit)
	case next.kind == hopItems && v.Kind() != document.Array, next.kind == hopAdditional && v.Kind() != document.Object:
		return true
	}
	for m := v.First(); m.Valid(); m = m.Next() {
		if next.kind == hopAdditional && next.of.property(m) != nil {
			continue
		}
		if !follow(m, rest, visit) {
			return false
		}
	}
	return true
}

// Path is the path of a member of an object of a document, for messages.
func (s *Schema) Path(object document.Node, name string) *field.Path {
	l := locator{top: object.Document().Root(), shape: s.root, meta: s.meta}
	return l.path(object).Child(name)
}

// deriver compiles and orders the computed defaults of a schema.
type deriver struct {
	structural *structuralschema.Structural
	resource   bool
	compiler   *cel.DefaultCompiler
	scopes     map[string]*cel.DefaultScope // by the way to their objects
	list       []Derived
	errs       field.ErrorList
}

func newDeriver(st *structuralschema.Structural, resource bool) *deriver {
	return &deriver{structural: st, resource: resource, scopes: map[string]*cel.DefaultScope{}}
}

// add compiles the default of a property of the objects at a place.
func (c *deriver) add(p *Property, e *Extensions, at object) {
	path := e.path.Child(DerivedDefaultKey)
	scope, err := c.scope(at)
	if err != nil {
		c.errs = append(c.errs, field.Invalid(path, wording.Omitted, err.Error()))
		return
	}
	st := at.structural.Properties[p.Name]
	compiled, err := scope.Value(e.Default.Expression, &st)
	if err != nil {
		c.errs = append(c.errs, field.Invalid(path.Child("expression"), e.Default.Expression, err.Error()))
		return
	}
	if e.Default.When != "" {
		if err := scope.Condition(compiled, e.Default.When); err != nil {
			c.errs = append(c.errs, field.Invalid(path.Child("when"), e.Default.When, err.Error()))
			return
		}
	}
	c.list = append(c.list, Derived{Field: p, Name: document.NewName(p.Name), Default: compiled, way: at.steps,
		order: e.Default.order, path: path})
}

func (c *deriver) scope(at object) (*cel.DefaultScope, error) {
	if c.compiler == nil {
		made, err := cel.NewDefaultCompiler(c.structural, c.resource)
		if err != nil {
			return nil, err
		}
		c.compiler = made
	}
	key := wayText(at.steps)
	if s := c.scopes[key]; s != nil {
		return s, nil
	}
	s, err := c.compiler.Scope(at.structural, at.resource)
	if err == nil {
		c.scopes[key] = s
	}
	return s, err
}

// wayText writes a way as messages do: spec.ports[].protocol; values of maps stand behind an asterisk.
func wayText(way []hop) string {
	var b strings.Builder
	for _, s := range way {
		switch {
		case s.kind == hopItems:
			b.WriteString("[]")
		case s.kind == hopAdditional:
			b.WriteString(".*")
		case b.Len() > 0:
			b.WriteString("." + s.name.String())
		default:
			b.WriteString(s.name.String())
		}
	}
	return b.String()
}

// field is the way to the field itself.
func (d *Derived) field() []hop {
	return append(slices.Clip(d.way), hop{name: d.Name})
}

// finish puts the defaults in order. Defaults that would each have to come before the other are an error.
func (c *deriver) finish() []Derived {
	slices.SortStableFunc(c.list, func(a, b Derived) int { return cmp.Compare(a.order, b.order) })
	needs := make([][]int, len(c.list))
	for i := range c.list {
		for j := range c.list {
			if c.list[i].needs(&c.list[j]) {
				needs[i] = append(needs[i], j)
			}
		}
	}
	ordered := make([]Derived, 0, len(c.list))
	done := make([]bool, len(c.list))
	ready := func(i int) bool {
		return !done[i] && !slices.ContainsFunc(needs[i], func(j int) bool { return !done[j] })
	}
	for len(ordered) < len(c.list) {
		next := 0
		for next < len(c.list) && !ready(next) {
			next++
		}
		if next == len(c.list) {
			c.circular(needs, done)
			return nil
		}
		done[next] = true
		ordered = append(ordered, c.list[next])
	}
	return ordered
}

// circular reports one circle among the defaults that are not done. Each of them needs another one
// of them.
func (c *deriver) circular(needs [][]int, done []bool) {
	at := slices.Index(done, false)
	var seen []int
	for !slices.Contains(seen, at) {
		seen = append(seen, at)
		at = needs[at][slices.IndexFunc(needs[at], func(j int) bool { return !done[j] })]
	}
	circle := seen[slices.Index(seen, at):]
	name := func(i int) string { return "`" + wayText(c.list[i].field()) + "`" }
	message := "must not read its own field " + name(at)
	if len(circle) > 1 {
		message = "must not depend on itself: " + name(at)
		for i := range circle {
			message += " reads " + name(circle[(i+1)%len(circle)])
			if i+1 < len(circle) {
				message += ", which"
			}
		}
	}
	c.errs = append(c.errs, field.Invalid(c.list[at].path, wording.Omitted, message))
}

// needs reports whether another default has to be set before this one: the default of an object
// around the field, or of a field that is read.
func (d *Derived) needs(other *Derived) bool {
	theirs := other.field()
	if d != other && len(theirs) <= len(d.way) && meets(asRead(d.way[:len(theirs)]), theirs) {
		return true
	}
	for _, r := range d.Reads {
		path := r.Path
		if r.Root == value.Self {
			path = append(asRead(d.way), r.Path...)
		}
		if n := min(len(path), len(theirs)); (n == len(theirs) || r.Deep) && meets(path[:n], theirs[:n]) {
			return true
		}
	}
	return false
}

// asRead is a way as expressions write it.
func asRead(way []hop) []cel.ReadStep {
	steps := make([]cel.ReadStep, len(way))
	for i, s := range way {
		steps[i] = cel.ReadStep{Name: s.name.String(), Any: s.kind != hopProperty}
	}
	return steps
}

// meets reports whether a path that is read may lead to the same value as another path of that
// length.
func meets(path []cel.ReadStep, way []hop) bool {
	for i, s := range way {
		if s.kind == hopProperty && !path[i].Any && path[i].Name != s.name.String() {
			return false
		}
	}
	return true
}
