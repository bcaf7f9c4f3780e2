package schema

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/merge"
	"github.com/admission-gateway/gateway/internal/merge/kubernetes"
)

// merging says how values are merged, as far as the rest of a shape does not.
type merging struct {
	scalar merge.Scalar
	any    bool // the schema names no type
	atomic bool // x-kubernetes-map-type: atomic
}

// mergingOf returns how values of a structural schema are merged.
func mergingOf(st *structuralschema.Structural) merging {
	named := ""
	if v := st.ValueValidation; v != nil {
		named = v.Format
	}
	if st.Type == "" {
		return mergingBy(nil, named)
	}
	return mergingBy([]string{st.Type}, named)
}

// mergingBy reads types as Kubernetes does when it publishes a schema: a string with a format may be any scalar.
func mergingBy(types []string, format string) merging {
	if len(types) != 1 {
		return merging{scalar: merge.Any, any: true}
	}
	switch types[0] {
	case "integer", "number":
		return merging{scalar: merge.Numeric}
	case "boolean":
		return merging{scalar: merge.Boolean}
	case "string":
		if format != "" && format != "byte" {
			return merging{scalar: merge.Any}
		}
		return merging{scalar: merge.Text}
	case "null":
		return merging{scalar: merge.Any, any: true}
	}
	return merging{}
}

// MergeType is the type by which objects of the schema are merged, as Kubernetes
// has it from the schema that it publishes: lists by x-kubernetes-list-type and
// -list-map-keys. A strategic merge patch merges the lists that have one of
// these. It is made anew for each call.
func (s *Schema) MergeType() *merge.Type {
	return merger{}.typeOf(s.root, false)
}

// ItemMergeType is the type of the items of a list.
func (s *Schema) ItemMergeType() *merge.Type { return merger{}.typeOf(s.root.list.items, false) }

// HasMergeKeys reports whether the schema identifies the items of any list.
func (s *Schema) HasMergeKeys() bool { return s.root.hasListTypes }

// A merger makes the types of shapes, one of each: the shapes of a document may lead back to themselves.
type merger map[merged]*merge.Type

// merged is a shape with whether unknown fields of objects are kept, which all that is within inherits.
type merged struct {
	shape    *Shape
	preserve bool
}

// typeOf is the type of the shape's values.
func (m merger) typeOf(s *Shape, preserve bool) *merge.Type {
	if s == nil {
		return merge.Deduced()
	}
	preserve = preserve || s.preserves
	if made := m[merged{s, preserve}]; made != nil {
		return made
	}
	t := &merge.Type{Scalar: s.merging.scalar, Nullable: s.accepts[document.Null] == match}
	m[merged{s, preserve}] = t
	if s.merging.any || s.accepts[document.Array] == match && s.merging.scalar == merge.None {
		t.List = m.list(s, preserve)
	}
	if s.merging.any || s.accepts[document.Object] == match {
		t.Object = m.object(s, preserve)
	}
	return t
}

func (m merger) list(s *Shape, preserve bool) *merge.List {
	l := &merge.List{Items: merge.Opaque()}
	if s.list.items != nil {
		l.Items = m.typeOf(s.list.items, preserve)
	}
	if s.list.kind == nil {
		return l
	}
	l.Relation, l.Merged = merge.Associative, true
	for _, name := range s.list.kind.Keys {
		key := merge.Key{Name: name}
		if p := s.list.items.Property(name.String()); p != nil {
			key.Default = constant(p.Shape.Default())
		}
		l.Keys = append(l.Keys, key)
	}
	l.MergeKeys = l.Keys
	return l
}

// constant is a default as a value that lives as long as the schema.
func constant(raw []byte) document.Node {
	if raw == nil {
		return document.Node{}
	}
	d, err := document.Parse(raw, document.Limits{})
	if err != nil {
		return document.Node{}
	}
	return d.Root()
}

func (m merger) object(s *Shape, preserve bool) *merge.Object {
	o := &merge.Object{Atomic: s.merging.atomic, Replaced: s.merging.atomic}
	fields := make([]merge.Field, 0, len(s.object.properties))
	declared := 0
	for i := range s.object.properties {
		p := &s.object.properties[i]
		var t *merge.Type
		switch p.implied {
		case typeMeta:
			t = &merge.Type{Scalar: merge.Text}
		case objectMeta:
			t = kubernetes.ObjectMeta()
		default:
			t = m.typeOf(p.Shape, preserve)
		}
		declared++
		fields = append(fields, merge.Field{Name: p.Name, Type: t})
	}
	o.SetFields(fields)
	switch {
	case s.object.additional != nil:
		o.Rest = m.typeOf(s.object.additional, preserve)
	case s.object.others == othersRefused:
	case s.object.others == othersAllowed, preserve, declared == 0:
		o.Rest = merge.Deduced()
	}
	return o
}
