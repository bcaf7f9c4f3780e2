package schema

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
)

// Unknown collects the fields that a schema does not know. The zero value is ready for use.
type Unknown struct {
	found []unknownField
	more  int
}

type unknownField struct {
	origin origin
	path   string
}

// origin is the order in which an API server lists unknown fields.
type origin uint8

const (
	inMetadata origin = iota
	inObject
	inEmbeddedMetadata
)

// Bounds of what Unknown keeps. What a request can make us print is bounded by them, whatever its body holds.
const (
	maxUnknown     = 100
	maxUnknownPath = 1024 // bytes
)

// Any tells whether a field was unknown.
func (u *Unknown) Any() bool { return len(u.found) > 0 }

// Messages are one sentence for each unknown field as Kubernetes writes them, for warnings; at most 100, and one that
// says how many more there are.
func (u *Unknown) Messages() []string {
	slices.SortStableFunc(u.found, func(a, b unknownField) int {
		if a.origin != b.origin {
			return int(a.origin) - int(b.origin)
		}
		return strings.Compare(a.path, b.path)
	})
	messages := make([]string, 0, len(u.found)+1)
	for _, f := range u.found {
		messages = append(messages, `unknown field "`+f.path+`"`)
	}
	if u.more > 0 {
		messages = append(messages, "and "+strconv.Itoa(u.more)+" more unknown fields")
	}
	return messages
}

// Error is what a request with fieldValidation=Strict is refused with.
func (u *Unknown) Error() string {
	return "strict decoding error: " + strings.Join(u.Messages(), ", ")
}

// Prune removes from the object what its schema does not know, as a Kubernetes API server does between reading an
// object and admitting it: unknown fields, those of metadata included, and nulls that stand for nothing. Unknown fields
// are added to unknown, which may be nil.
//
// The error is the first thing that keeps the object from being read at all, and is answered with 400: a field whose
// name differs from a known one in case alone, or metadata, kind or apiVersion of a wrong type. The object may have
// been pruned in part then.
func (s *Schema) Prune(d *document.Document, unknown *Unknown) *field.Error {
	p := pruner{d: d, unknown: unknown, locator: locator{top: d.Root(), shape: s.root, meta: s.meta}, origin: inObject}
	if p.top.Kind() == document.Object {
		p.object(s.root, p.top, s.root.preserves)
	}
	return p.err
}

// pruner is one walk of Prune.
type pruner struct {
	locator
	d       *document.Document
	unknown *Unknown
	origin  origin
	decodes bool // within metadata: what has a wrong type is an error
	err     *field.Error
}

// value prunes an object or a list. keep is the state of x-kubernetes-preserve-unknown-fields, which items inherit
// from their list and members do not.
func (p *pruner) value(s *Shape, v document.Node, keep bool) {
	switch v.Kind() {
	case document.Object:
		p.object(s, v, keep)
	case document.Array:
		p.list(s, v, keep)
	}
}

func (p *pruner) list(s *Shape, v document.Node, keep bool) {
	var items *Shape
	if s != nil {
		items = s.items
	}
	if keep && items == nil {
		return
	}
	for n := v.First(); n.Valid() && p.err == nil; n = n.Next() {
		if p.decodes && !p.readable(items, n) {
			return
		}
		p.value(items, n, keep || items != nil && items.preserves)
	}
}

func (p *pruner) object(s *Shape, v document.Node, keep bool) {
	if s == nil {
		p.clear(v)
		return
	}
	if s.opaque && !s.implied {
		return
	}
	var next document.Node
	for m := v.First(); m.Valid() && p.err == nil; m = next {
		next = m.Next() // before m is removed
		var child *Shape
		if property := s.property(m); property != nil {
			if property.implied != ordinary {
				p.implied(property, m, v)
				continue
			}
			child = property.Shape
		} else if known, found := s.variant(m.Key()); found {
			key := clip(m.Key())
			p.err = field.Invalid(p.path(v).Child(key), key, "must be spelled '"+known+"'")
			return
		} else if s.extends {
			child = s.additional
		} else if keep {
			continue
		} else {
			p.remove(m)
			continue
		}
		p.member(child, m)
	}
}

// clear removes all members of an object of which nothing is known.
func (p *pruner) clear(v document.Node) {
	var next document.Node
	for m := v.First(); m.Valid(); m = next {
		next = m.Next()
		p.remove(m)
	}
}

// member prunes a member that has its place in the schema.
func (p *pruner) member(s *Shape, m document.Node) {
	kind := m.Kind()
	if kind == document.Null {
		switch {
		case s == nil || s.nullable || s.def != nil:
		case s.zeroesNull:
			p.d.Replace(m, []byte(`""`))
		default:
			p.d.Remove(m)
		}
		return
	}
	if p.decodes && !p.readable(s, m) {
		return
	}
	switch kind {
	case document.Object:
		p.object(s, m, s != nil && s.preserves)
	case document.Array:
		p.list(s, m, s != nil && s.preserves)
	}
}

// implied prunes kind, apiVersion or metadata of a resource.
func (p *pruner) implied(property *Property, m, resource document.Node) {
	kind := m.Kind()
	if property.implied == typeMeta {
		if kind == document.Null && property.Shape != nil && !property.Shape.nullable && property.Shape.def == nil {
			p.d.Remove(m)
		} else if kind != document.String {
			p.err = typeFailure(p.path(m), m, "string")
		}
		return
	}
	if kind == document.Null {
		p.d.Remove(m)
		return
	}
	outer, decodes := p.origin, p.decodes
	p.origin, p.decodes = inEmbeddedMetadata, true
	if resource == p.top {
		p.origin = inMetadata
	}
	if p.readable(p.meta, m) {
		p.object(p.meta, m, p.meta.preserves)
	}
	p.origin, p.decodes = outer, decodes
}

// readable tells whether a value within metadata can be read into the field that it is for.
func (p *pruner) readable(s *Shape, v document.Node) bool {
	if s == nil {
		return true
	}
	kind := v.Kind()
	switch s.accepts[kind] {
	case match:
		if kind != document.String || s.text == nil || s.text.format == nil || s.text.format.matches(v.Str()) {
			return true
		}
		p.err = formatFailure(p.path(v), v, s.text.format.name)
		return false
	case integral:
		if numberOf(v).integral() {
			return true
		}
	}
	p.err = typeFailure(p.path(v), v, s.typeName)
	return false
}

func (p *pruner) remove(m document.Node) {
	if u := p.unknown; u != nil {
		if len(u.found) < maxUnknown {
			u.found = append(u.found, unknownField{p.origin, p.unknownPath(m, p.origin, maxUnknownPath)})
		} else {
			u.more++
		}
	}
	p.d.Remove(m)
}
