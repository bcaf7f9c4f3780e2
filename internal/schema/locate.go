package schema

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// A locator finds the path of a value. Walks keep no account of where they are: the way is found
// backwards from the value when something is wrong with it.
type locator struct {
	top   document.Node // the whole object
	shape *Shape        // of top
	meta  *Shape        // of every metadata

	places []located // by the number of lists around them
	passed int       // how many items were passed on the way to others
}

// A located is the item of a list that was located last. Failures come in the order of the document, so that the next
// one is not far, and all of them together take no longer than one walk through each list or two.
type located struct {
	list, item document.Node
	index      int
}

// step leads from an object or list to a value in it.
type step struct {
	name  string
	index int
	kind  stepKind
}

type stepKind uint8

const (
	stepMember stepKind = iota // of an object, by the name of a property
	stepKey                    // of a map
	stepItem                   // of a list
)

// steps calls visit for each step from the whole object to the value, and returns the shape found there.
func (l *locator) steps(n document.Node, visit func(step)) *Shape {
	s, _ := l.walk(n, visit)
	return s
}

// walk is steps; lists is how many lists there are around the value.
func (l *locator) walk(n document.Node, visit func(step)) (s *Shape, lists int) {
	if n == l.top || !n.Valid() {
		return l.shape, 0
	}
	parent := n.Parent()
	s, lists = l.walk(parent, visit)
	if parent.Kind() == document.Array {
		visit(step{index: l.position(parent, n, lists), kind: stepItem})
		if s == nil {
			return nil, lists + 1
		}
		return s.list.items, lists + 1
	}
	name := n.Key()
	if s == nil {
		visit(step{name: name})
		return nil, lists
	}
	if p := s.property(n); p != nil {
		visit(step{name: name})
		if p.implied == objectMeta {
			return l.meta, lists
		}
		return p.Shape, lists
	}
	if s.object.others != othersUnknown {
		visit(step{name: name, kind: stepKey})
		return s.object.additional, lists
	}
	visit(step{name: name})
	return nil, lists
}

// position is the position of an item in its list, which has so many lists around it.
func (l *locator) position(list, item document.Node, lists int) int {
	for len(l.places) <= lists {
		l.places = append(l.places, located{})
	}
	p := &l.places[lists]
	if p.list != list {
		*p = located{list: list, item: list.First()}
	}
	for ; p.item.Valid() && p.item != item; p.item = p.item.Next() {
		p.index++
		l.passed++
	}
	if p.item.Valid() {
		return p.index
	}
	*p = located{list: list, item: list.First()} // it stands before the one that was located last
	for ; p.item.Valid() && p.item != item; p.item = p.item.Next() {
		p.index++
		l.passed++
	}
	return p.index
}

// path is the value's place as field errors write it, nil for the whole object.
func (l *locator) path(n document.Node) *field.Path {
	var path *field.Path
	l.steps(n, func(s step) {
		switch s.kind {
		case stepMember:
			path = path.Child(wording.Clip(s.name))
		case stepKey:
			path = path.Key(wording.Clip(s.name))
		case stepItem:
			path = path.Index(s.index)
		}
	})
	return path
}

// origin is the order in which an API server lists unknown fields.
type origin uint8

const (
	inMetadata origin = iota
	inObject
	inEmbeddedMetadata
)

// unknownPath is the value's place as Kubernetes writes unknown fields: keys of maps stand behind dots, other than on
// the way to the metadata of embedded resources. The result has about limit bytes at most.
func (l *locator) unknownPath(n document.Node, o origin, limit int) string {
	var b strings.Builder
	l.steps(n, func(s step) {
		switch {
		case b.Len() > limit:
			return
		case s.kind == stepItem:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case s.kind == stepKey && o == inEmbeddedMetadata:
			b.WriteString("[" + wording.Clip(s.name) + "]")
		case b.Len() > 0:
			b.WriteString("." + wording.Clip(s.name))
		default:
			b.WriteString(wording.Clip(s.name))
		}
	})
	if b.Len() > limit {
		return b.String()[:limit] + "…"
	}
	return b.String()
}

// PathOf is the field path of a value in an object of the schema, as failures name it: keys of maps stand in brackets.
func (s *Schema) PathOf(v document.Node) string {
	l := locator{top: v.Document().Root(), shape: s.root, meta: s.meta}
	if v == l.top {
		return ""
	}
	return l.path(v).String()
}

// HasDataKeys reports whether the keys of an object are names that its users choose: the schema describes it by
// additionalProperties, as it does labels and annotations.
func (s *Schema) HasDataKeys(object document.Node) bool {
	shape := s.shapeOf(object)
	return shape != nil && shape.object.others != othersUnknown
}

// shapeOf returns the shape of a value of the object; nil if the schema does not describe it.
func (s *Schema) shapeOf(v document.Node) *Shape {
	parent := v.Parent()
	if !parent.Valid() {
		return s.root
	}
	outer := s.shapeOf(parent)
	switch {
	case outer == nil:
		return nil
	case parent.Kind() == document.Array:
		return outer.list.items
	case outer.envelope != noEnvelope && v.Key() == "metadata" && s.meta != nil:
		return s.meta
	}
	if p := outer.Property(v.Key()); p != nil {
		return p.Shape
	}
	return outer.object.additional
}
