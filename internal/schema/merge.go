package schema

import (
	"slices"

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

// mergingOf reads the type as Kubernetes does when it publishes a schema: a string with a format may be any scalar.
func mergingOf(st *structuralschema.Structural) merging {
	m := merging{atomic: st.XMapType != nil && *st.XMapType == "atomic"}
	switch st.Type {
	case "integer", "number":
		m.scalar = merge.Numeric
	case "boolean":
		m.scalar = merge.Boolean
	case "string":
		m.scalar = merge.Text
		if v := st.ValueValidation; v != nil && v.Format != "" && v.Format != "byte" {
			m.scalar = merge.Any
		}
	case "":
		m.scalar, m.any = merge.Any, true
	}
	return m
}

// MergeType is the type by which objects of the schema are merged, as Kubernetes
// has it from the schema that it publishes: lists by x-kubernetes-list-type and
// -list-map-keys. A strategic merge patch merges the lists that have one of
// these. It is made anew for each call.
func (s *Schema) MergeType() *merge.Type {
	return s.root.mergeType(false)
}

// ItemMergeType is the type of the items of a list.
func (s *Schema) ItemMergeType() *merge.Type { return s.root.list.items.mergeType(false) }

// HasMergeKeys reports whether the schema identifies the items of any list.
func (s *Schema) HasMergeKeys() bool { return s.root.hasMergeKeys() }

func (s *Shape) hasMergeKeys() bool {
	return s != nil && (s.list.kind != nil || s.list.items.hasMergeKeys() || s.object.additional.hasMergeKeys() ||
		slices.ContainsFunc(s.object.properties, func(p Property) bool { return p.Shape.hasMergeKeys() }))
}

// mergeType is the type of the shape's values. preserve is set if unknown fields of objects are
// kept, which is inherited by all that is within.
func (s *Shape) mergeType(preserve bool) *merge.Type {
	if s == nil {
		return merge.Deduced()
	}
	preserve = preserve || s.preserves
	t := &merge.Type{Scalar: s.merging.scalar, Nullable: s.accepts[document.Null] == match}
	if s.merging.any || s.accepts[document.Array] == match && s.merging.scalar == merge.None {
		t.List = s.mergeList(preserve)
	}
	if s.merging.any || s.accepts[document.Object] == match {
		t.Object = s.mergeObject(preserve)
	}
	return t
}

func (s *Shape) mergeList(preserve bool) *merge.List {
	l := &merge.List{Items: merge.Opaque()}
	if s.list.items != nil {
		l.Items = s.list.items.mergeType(preserve)
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

func (s *Shape) mergeObject(preserve bool) *merge.Object {
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
			t = p.Shape.mergeType(preserve)
		}
		declared++
		fields = append(fields, merge.Field{Name: p.Name, Type: t})
	}
	o.SetFields(fields)
	switch {
	case s.object.additional != nil:
		o.Rest = s.object.additional.mergeType(preserve)
	case s.object.others == othersRefused:
	case s.object.others == othersAllowed, preserve, declared == 0:
		o.Rest = merge.Deduced()
	}
	return o
}
