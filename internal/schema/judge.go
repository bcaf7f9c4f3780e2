package schema

import (
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/jsonschema"
)

// A Judge says what is wrong with values by a schema of JSON Schema. Where there is one, the structural schema says what
// Kubernetes' keywords and the gateway's own mean, and fills in defaults.
type Judge struct {
	Schema *jsonschema.Schema
	// Use is what the values are.
	Use jsonschema.Use
}

// judge adds what the judge finds in a value of the object. Of an update a failure does not count that the
// old object has too, by a value that stayed as it was.
func (w *validator) judge(j *Judge, obj, old, v document.Node) {
	result := j.Schema.Check(obj, j.Use)
	if result.Valid() {
		return
	}
	var before map[string]document.Node
	if old.Valid() {
		before = map[string]document.Node{}
		was := j.Schema.Check(old, j.Use)
		for _, f := range was.Failures {
			before[f.Err.Error()] = f.At
		}
	}
	for _, f := range result.Failures {
		at, found := before[f.Err.Error()]
		if isOld := found && document.EqualNodes(at, f.At); !isOld && isWithin(f.At, v) && !w.fails() {
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
