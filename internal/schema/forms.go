package schema

import (
	"math"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/compare"
	"github.com/admission-gateway/gateway/internal/schema/keyword"
)

// Most scalars are right by their kind, size or value, and most objects and lists if all in them is. So Prune leaves
// most of its walk to a [document.Traverse] by forms, which are compiled from the keywords, and looks at what they do
// not take.

// glanceOf makes the glance of a shape.
func glanceOf(s *Shape) document.Glance {
	g := document.NoGlance()
	if s.logic != nil || s.enum != nil {
		return g
	}
	for _, kind := range []document.Kind{document.Object, document.Array} {
		if s.holdsAnything(kind) {
			g.Kinds.Add(kind)
		}
	}
	if s.accepts[document.Bool] == match {
		g.Kinds.Add(document.Bool)
	}
	if s.accepts[document.String] == match {
		switch t := s.text; {
		case t == nil:
			g.Kinds.Add(document.String)
		case t.Pattern == nil && t.Format == nil:
			g.Characters(t.Least, t.Most)
		}
	}
	switch verdict := s.accepts[document.Number]; {
	case verdict == mismatch:
	case s.number != nil:
		g.Integers(integers(s.number))
	case verdict == match:
		g.Kinds.Add(document.Number)
	default:
		g.Integers(math.MinInt64, math.MaxInt64)
	}
	return g
}

// holdsAnything reports whether an object or list with the kind is right whatever is in it, and stays as it is.
func (s *Shape) holdsAnything(kind document.Kind) bool {
	if !s.keeps || !s.flat || s.accepts[kind] != match {
		return false
	}
	if kind == document.Array {
		return s.list.items == nil && s.list.size == nil && s.list.kind == nil
	}
	o := &s.object
	return len(o.properties) == 0 && o.others == othersUnknown && o.size == nil && len(o.required) == 0
}

// formOf makes the form of a shape by the forms of what is in it.
func formOf(s *Shape) document.Form {
	f := document.Form{Glance: s.form.Glance, Of: s}
	if s.accepts[document.String] == match && s.logic == nil && (s.enum != nil || s.text != nil) {
		f.Text = s.takesText
	}
	if s.accepts[document.Object] == match {
		o := &s.object
		f.Object.Size, f.Object.Required, f.Object.Filled = o.size.Bounds(), o.demanded, o.defaulted
		switch {
		case len(o.properties) > 0:
			f.Object.Known = o.known()
			f.Enters.Add(document.Object)
		case o.additional != nil:
			f.Object.Values = &o.additional.form
			f.Enters.Add(document.Object)
		}
		if s.flat {
			f.Decides.Add(document.Object)
		}
	}
	if s.accepts[document.Array] == match {
		f.List.Size = s.list.size.Bounds()
		if s.list.items != nil {
			f.List.Items = &s.list.items.form
			f.Enters.Add(document.Array)
		}
		if s.flat && s.list.kind == nil {
			f.Decides.Add(document.Array)
		}
	}
	return f
}

// takesText reports whether the text of a string is right by the keywords of a plain shape.
func (s *Shape) takesText(text string) bool {
	return (s.text == nil || s.text.Takes(text)) && (s.enum == nil || s.enum.HasString(text))
}

// known makes the table of an object's properties. Of the members that every Kubernetes object has, kind and apiVersion
// may be right at a glance if they are strings.
func (o *objectRules) known() *document.Known {
	members := make([]document.KnownMember, len(o.properties))
	for i := range o.properties {
		p, m := &o.properties[i], document.KnownMember{Glance: document.NoGlance()}
		m.Bit = p.bit
		switch {
		case p.implied == typeMeta && p.Shape == nil:
			m.Glance.Kinds.Add(document.String)
		case p.implied == typeMeta:
			m.Glance = p.Shape.form.Glance.Of(document.String)
		case p.implied == ordinary && p.Shape != nil:
			m.Glance, m.Inside = p.Shape.form.Glance, &p.Shape.form
		}
		members[i] = m
	}
	return document.NewKnown(o.names, members, o.notes != nil)
}

// integers returns the least and the greatest integer that is surely right; 1 and 0 if that is not known. They fit a
// float32, whatever they are.
func integers(r *keyword.Number) (least, most int64) {
	if least, most = r.Low, r.High; least == most {
		least, most = math.MinInt64, math.MaxInt64
	}
	if b := r.Minimum; b != nil {
		if math.Abs(b.Value) > compare.MaxSafe {
			return 1, 0
		}
		bound := int64(math.Ceil(b.Value))
		if b.IsExclusive && float64(bound) == b.Value {
			bound++
		}
		least = max(least, bound)
	}
	if b := r.Maximum; b != nil {
		if math.Abs(b.Value) > compare.MaxSafe {
			return 1, 0
		}
		bound := int64(math.Floor(b.Value))
		if b.IsExclusive && float64(bound) == b.Value {
			bound--
		}
		most = min(most, bound)
	}
	if r.MultipleOf != nil {
		return 1, 0
	}
	return least, most
}
