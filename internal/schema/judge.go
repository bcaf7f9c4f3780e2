package schema

import (
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/jsonschema"
)

// A Judge says what is wrong with values by a schema of JSON Schema. If there is one, the structural schema says what
// Kubernetes' keywords and the gateway's own mean, and fills in defaults.
type Judge struct {
	Schema *jsonschema.Schema
	// Use is what the values are.
	Use jsonschema.Use
}

// Judged returns the schema of values of which nothing is asked but what the judge says of them.
func Judged(j *Judge, isList bool) *Schema {
	root := &Shape{accepts: anyKind, null: nullIsValue, preserves: true}
	if isList {
		root.typeName = "array"
	}
	root.summarise()
	s := &Schema{root: root, judge: j}
	s.settle()
	return s
}

// judge adds what the judge finds in a value of the object. An update that replaces the object has to be right as a
// whole: what a patch is not to blame for [Schema.ValidatePatched] drops.
func (w *validator) judge(j *Judge, obj, v document.Node) {
	result := j.Schema.Check(obj, j.Use)
	for _, f := range result.Failures {
		if isWithin(f.At, v) && !w.fails() {
			w.add(f.At, f.Err)
		}
	}
	w.failures.more += result.More
}

// isWithin reports whether a value is another one or in it.
func isWithin(n, outer document.Node) bool {
	for ; n.Valid(); n = n.Parent() {
		if n == outer {
			return true
		}
	}
	return false
}

// listTypes checks what the list types within a value promise.
func (w *validator) listTypes(s *Shape, v document.Node) {
	if s == nil || !s.hasListTypes {
		return
	}
	switch v.Kind() {
	case document.Object:
		for m := v.First(); m.Valid(); m = m.Next() {
			w.listTypes(s.child(m), m)
		}
	case document.Array:
		if s.list.kind != nil {
			w.distinct(s.list.kind, v)
		}
		for n := v.First(); n.Valid(); n = n.Next() {
			w.listTypes(s.list.items, n)
		}
	}
}
