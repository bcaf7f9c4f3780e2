package schema

import (
	"encoding/json"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// extra holds the gateway's own keywords about a value. Few shapes have one; walks for the keywords
// visit only shapes that have one in them.
type extra struct {
	immutable bool
	unions    []*union

	keeps        []keeping // properties that are immutable, or have immutable values in them
	hasImmutable bool      // the value or one in it
	hasUnions    bool
}

// keeping is a property with its name for look-ups.
type keeping struct {
	*Property
	key document.Name
}

func hasImmutable(s *Shape) bool { return s != nil && s.extra != nil && s.extra.hasImmutable }

func hasUnions(s *Shape) bool { return s != nil && s.extra != nil && s.extra.hasUnions }

// extend adds the extensions to the shapes.
func (c *compiler) extend(s *Schema, st *structuralschema.Structural, e *Extensions) field.ErrorList {
	if e == nil {
		return nil
	}
	x := &extender{compiler: c, deriver: newDeriver(st, s.resource)}
	x.shape(s.root, e, object{st, s.resource, nil})
	s.derived = x.deriver.finish()
	return append(x.errs, x.deriver.errs...)
}

// extender is the walk of extend.
type extender struct {
	compiler *compiler
	deriver  *deriver
	errs     field.ErrorList
}

func (x *extender) forbid(path *field.Path, message string) {
	x.errs = append(x.errs, field.Forbidden(path, message))
}

// shape adds e to a shape and to those in it. at is the object that the value is, or that is around
// it.
func (x *extender) shape(s *Shape, e *Extensions, at object) {
	more := &extra{immutable: e.Immutable, hasImmutable: e.Immutable}
	if len(at.steps) == 0 {
		x.root(e)
	}
	if len(e.Types) > 0 && s.check == nil {
		s.accepts = [document.Array + 1]verdict{}
		s.accept(e.Types, "")
	}
	for _, name := range sorted(e.Properties) {
		if p := s.Property(name); p != nil {
			x.property(s, p, e.Properties[name], at)
		}
	}
	if e.Additional != nil && s.object.additional != nil {
		x.element(s.object.additional, e.Additional, at.additional(s))
	}
	if e.Items != nil && s.list.items != nil {
		if e.Items.Immutable && (s.list.kind == nil || s.list.kind.Keys == nil) {
			x.forbid(e.Items.path.Child(keywordImmutable), "may not be set on the items of a list unless its 'x-kubernetes-list-type' is 'map', which tells them apart")
		}
		x.element(s.list.items, e.Items, at.items())
	}
	for i := range e.Unions {
		if u := x.union(s, &e.Unions[i]); u != nil {
			more.unions, more.hasUnions = append(more.unions, u), true
		}
	}
	for i := range s.object.properties {
		p := &s.object.properties[i]
		if hasImmutable(p.Shape) {
			more.keeps, more.hasImmutable = append(more.keeps, keeping{p, document.NewName(p.Name)}), true
		}
		more.hasUnions = more.hasUnions || hasUnions(p.Shape)
	}
	more.hasImmutable = more.hasImmutable || hasImmutable(s.object.additional) || hasImmutable(s.list.items)
	more.hasUnions = more.hasUnions || hasUnions(s.object.additional) || hasUnions(s.list.items)
	if more.hasImmutable || more.hasUnions {
		s.extra = more
	}
	s.summarise()
}

func sorted(properties map[string]*Extensions) []string {
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (x *extender) root(e *Extensions) {
	if e.Immutable {
		x.forbid(e.path.Child(keywordImmutable), "may not be set on the whole object")
	}
	if e.Default != nil {
		x.misplaced(e)
	}
}

func (x *extender) misplaced(e *Extensions) {
	x.forbid(e.path.Child(DerivedDefaultKey), "may only be set on a property of an object")
}

// property adds to one of the shape's properties.
func (x *extender) property(s *Shape, p *Property, e *Extensions, at object) {
	if p.implied != ordinary {
		x.impliedBy(e, p.Name)
		return
	}
	if e.Default != nil {
		if p.Shape.def != nil {
			x.forbid(e.path.Child(DerivedDefaultKey), "may not be set beside 'default', which comes first")
		} else {
			x.deriver.add(p, e, at)
		}
	}
	x.shape(p.Shape, e, at.property(p))
}

// impliedBy refuses keywords on kind, apiVersion and metadata, which are the same for all resources, and within them.
func (x *extender) impliedBy(e *Extensions, name string) {
	if e == nil {
		return
	}
	if e.Default != nil || e.Immutable || len(e.Unions) > 0 {
		x.forbid(e.path, "may not have keywords of the gateway's own: `"+name+"` is the same in all resources")
	}
	for _, in := range sorted(e.Properties) {
		x.impliedBy(e.Properties[in], name)
	}
	x.impliedBy(e.Items, name)
	x.impliedBy(e.Additional, name)
}

// element adds to the shape of items or of the values of a map.
func (x *extender) element(s *Shape, e *Extensions, at object) {
	if e.Default != nil {
		x.misplaced(e)
	}
	x.shape(s, e, at)
}

// union compiles a union of the shape's members; it returns nil after an error.
func (x *extender) union(s *Shape, from *Union) *union {
	u, ok := &union{}, true
	refuse := func(path *field.Path, message string) {
		x.errs, ok = append(x.errs, field.Invalid(path, wording.Omitted, message)), false
	}
	var values []string
	if from.Discriminator != "" {
		p := s.Property(from.Discriminator)
		path := from.path.Child("discriminator")
		switch {
		case p == nil || p.Shape == nil:
			refuse(path, "must be a property of the object")
		case p.Shape.typeName != "string":
			refuse(path, "must be of type string")
		default:
			u.discriminator, u.discriminated = document.NewName(p.Name), true
			_ = json.Unmarshal(p.Shape.def, &u.fallback) // what is no string does not count
			if p.Shape.enum != nil {
				values = p.Shape.enum.Strings
			}
		}
	}
	for i, m := range from.Members {
		p := s.Property(m.Field)
		switch {
		case m.Field == "":
			ok = false // which was found when it was read
			continue
		case p == nil || p.Shape == nil:
			refuse(m.path, "must be a property of the object, not '"+m.Field+"'")
			continue
		case m.Field == from.Discriminator:
			refuse(m.path, "must not be the discriminator")
		case slices.ContainsFunc(from.Members[:i], func(o UnionMember) bool { return o.Field == m.Field }):
			refuse(m.path, "must not be '"+m.Field+"' twice")
		case u.discriminated && slices.ContainsFunc(from.Members[:i],
			func(o UnionMember) bool { return o.Value == m.Value }):
			refuse(m.path, "must not have the value '"+m.Value+"', which another member has")
		case u.discriminated && values != nil && !slices.Contains(values, m.Value):
			refuse(m.path, "must have one of the values of `"+from.Discriminator+"`, not '"+m.Value+"'")
		case slices.Contains(s.object.required, document.NewName(p.Name)):
			refuse(m.path, "must not be '"+m.Field+"', which is required: at most one member of a union is set")
		case p.Shape.def != nil:
			refuse(m.path, "must not be '"+m.Field+"', which has a default: at most one member of a union is set")
		}
		u.members = append(u.members, unionMember{name: document.NewName(p.Name), shape: p.Shape, value: m.Value,
			optional: m.Optional})
		u.names = append(u.names, m.Field)
	}
	if !ok {
		return nil
	}
	return u
}

// object is a place of objects in a schema: what expressions about their members see of them, and the way there.
type object struct {
	structural *structuralschema.Structural
	resource   bool // kind, apiVersion and metadata are implied
	steps      []hop
}

// hop is a step from an object or list to values in it.
type hop struct {
	name document.Name // of a property
	of   *Shape        // whose properties are not meant
	kind hopKind
}

type hopKind uint8

const (
	hopProperty hopKind = iota
	hopAdditional
	hopItems
)

func (o object) to(st *structuralschema.Structural, step hop) object {
	if st == nil {
		st = &structuralschema.Structural{}
	}
	return object{st, st.XEmbeddedResource, append(slices.Clip(o.steps), step)}
}

func (o object) property(p *Property) object {
	st := o.structural.Properties[p.Name]
	return o.to(&st, hop{name: document.NewName(p.Name)})
}

func (o object) additional(of *Shape) object {
	var st *structuralschema.Structural
	if a := o.structural.AdditionalProperties; a != nil {
		st = a.Structural
	}
	return o.to(st, hop{kind: hopAdditional, of: of})
}

func (o object) items() object { return o.to(o.structural.Items, hop{kind: hopItems}) }
