package schema

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/compare"
	"github.com/admission-gateway/gateway/internal/schema/meta"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// Unknown collects fields that a schema does not have, and nulls that a default replaces. The zero value is ready for
// use.
type Unknown struct {
	found []unknownField
	more  int
	// nulls are the paths of the nulls; moreNulls counts the ones that are not kept.
	nulls     []string
	moreNulls int
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

// Any reports whether a field was unknown.
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

// Nulls returns a sentence for each null that a default replaced and that the client is warned of: at most 100, and one
// with the number of the others.
func (u *Unknown) Nulls() []string {
	var messages []string
	for _, path := range u.nulls {
		messages = append(messages, `field "`+path+`" is null: its default takes the place of null`)
	}
	if u.moreNulls > 0 {
		messages = append(messages, "and "+strconv.Itoa(u.moreNulls)+" more fields that are null")
	}
	return messages
}

// Error returns the error that refuses a request with fieldValidation=Strict.
func (u *Unknown) Error() string {
	return "strict decoding error: " + strings.Join(u.Messages(), ", ")
}

// Prune removes from the object what its schema does not know, as a Kubernetes API server does
// between reading an object and admitting it: unknown fields, also in metadata, and nulls that
// stand for nothing. Unknown fields are added to unknown, which may be nil.
//
// The error, a *field.Error, is the first reason why the object cannot be read at all, which is answered with 400: a field
// name that differs from a known one in case alone, or metadata, kind or apiVersion of a wrong type. The object may have
// been pruned in part then.
func (s *Schema) Prune(d *document.Document, unknown *Unknown) error {
	return s.prune(d, unknown, false)
}

// PruneUnknown is Prune of an object that policies have changed: nulls stay, as in Kubernetes,
// because they come too late to mean "not set".
func (s *Schema) PruneUnknown(d *document.Document) error { return s.prune(d, nil, true) }

func (s *Schema) prune(d *document.Document, unknown *Unknown, keepNulls bool) error {
	d.TakeNotes(s.notes)
	if s.spelling != nil && s.spelling.IsKept(d) {
		d.Root().Mark(document.Complete)
		return nil
	}
	p := pruner{d: d, unknown: unknown, keepNulls: keepNulls, keepUnknown: s.judge != nil, locator: locator{top: d.Root(), shape: s.root, meta: s.meta}, origin: inObject, rules: s.metadata}
	p.checker = s.validator(p.top, document.Node{})
	p.checker.probing, p.checker.trusting, p.checker.items.filled = 1, true, true
	defer p.checker.release()
	switch c := p.top.Cursor(); c.Kind() {
	case document.Object:
		p.top.Mark(p.object(s.root, c, s.root.preserves))
	case document.Array:
		p.top.Mark(p.list(s.root, c, s.root.preserves))
	}
	if p.err == nil {
		return nil
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

	keepNulls   bool // also the nulls that stand for nothing
	keepUnknown bool // outside of metadata: there is a judge, who says what is wrong with it

	checker *validator  // says what is right with a value
	rules   *meta.Rules // of the root's metadata
}

// fine are the marks of what nothing is to be said about.
const fine = document.Sound | document.Complete

// value prunes what is in the value at the cursor, and marks the value with what holds for it. keep
// is the state of x-kubernetes-preserve-unknown-fields, which items inherit from their list and
// members do not. Metadata is checked as a whole, see implied.
func (p *pruner) value(s *Shape, c *document.Cursor, keep bool) (marks document.Marks) {
	switch kind := c.Kind(); {
	case p.decodes:
		return p.decoded(s, c, kind, keep)
	case kind == document.Object:
		marks = p.object(s, *c, keep)
	case kind == document.Array:
		marks = p.list(s, *c, keep)
	case s == nil || s.glance.Takes(c) || s.checks == checkNothing && kind != document.Null:
		marks = fine
	default:
		marks = p.scalar(s, c, kind)
	}
	c.Mark(marks)
	return marks
}

// decoded is value within metadata.
func (p *pruner) decoded(s *Shape, c *document.Cursor, kind document.Kind, keep bool) (marks document.Marks) {
	switch {
	case !p.readable(s, c.Node()):
		return 0
	case kind == document.Object:
		return p.object(s, *c, keep)
	case kind == document.Array:
		return p.list(s, *c, keep)
	}
	return fine
}

func (p *pruner) scalar(s *Shape, c *document.Cursor, kind document.Kind) (marks document.Marks) {
	if s.logic == nil && p.checker.plain(s, c, kind) || s.logic != nil && p.checker.right(s, c.Node()) {
		marks = document.Sound
	}
	if kind != document.Null || s.def == nil || s.null == nullIsValue {
		marks |= document.Complete
	} else if u := p.unknown; s.null == nullIsDefaulted && u != nil {
		if len(u.nulls) < maxUnknown {
			u.nulls = append(u.nulls, p.unknownPath(c.Node(), p.origin, maxUnknownPath))
		} else {
			u.moreNulls++
		}
	}
	return marks
}

func (p *pruner) list(s *Shape, at document.Cursor, keep bool) (marks document.Marks) {
	v := at.Node() // an edit may move what the cursor is at
	var items *Shape
	if s != nil {
		items = s.list.items
	}
	marks = fine
	if keep = keep || p.keepsUnknown(); !keep || items != nil {
		keep = keep || items != nil && items.preserves
		for c := at.Children(); c.Valid(); c.Next() {
			marks &= p.value(items, &c, keep)
			if p.err != nil {
				return 0
			}
		}
	}
	switch {
	case marks&document.Sound == 0 || s == nil || p.decodes:
		return marks
	case s.flat && p.checker.flat(s, v) || !s.flat && p.checker.right(s, v):
		return marks
	}
	return marks &^ document.Sound
}

func (p *pruner) object(s *Shape, at document.Cursor, keep bool) (marks document.Marks) {
	v := at.Node() // an edit may move what the cursor is at
	var seen uint64
	keep = keep || p.keepsUnknown()
	switch {
	case s == nil:
		if !p.keepsUnknown() {
			p.clear(v)
		}
		return fine
	case len(s.object.properties) > 0:
		seen, marks = p.members(s, at, keep)
	case s.object.isClosed:
		if marks = fine; v.Len() > 0 { // it is refused, whatever is in it
			marks &^= document.Sound
		}
	case s.object.others != othersUnknown:
		marks = p.values(s.object.additional, at)
	case keep:
		marks = fine
	default:
		p.clear(v)
		marks = fine
	}
	if p.decodes {
		return marks
	}
	if seen&s.object.defaulted != s.object.defaulted {
		marks &^= document.Complete
	}
	switch {
	case marks&document.Sound == 0:
	case s.flat && seen&s.object.demanded == s.object.demanded:
		if s.accepts[document.Object] != match || s.object.size != nil && !s.object.size.takes(v) {
			marks &^= document.Sound
		}
	case !p.checker.right(s, v):
		marks &^= document.Sound
	}
	return marks
}

// members prunes an object with some known members. seen are the bits of the members that are there.
func (p *pruner) members(s *Shape, at document.Cursor, keep bool) (seen uint64, marks document.Marks) {
	marks = fine
	numbered, passed := s.object.notes != nil, p.passed()
	for c := at.Children(); ; c.Next() {
		place, there := c.Pass(&s.object.known, numbered, passed)
		seen |= there
		if !c.Valid() {
			return seen, marks
		}
		if place < 0 {
			marks &= p.other(s, at.Node(), &c, keep)
		} else if property := &s.object.properties[place]; property.implied != ordinary {
			there, found := p.implied(property, &c, at.Node())
			if marks &= found; there {
				seen |= property.Bit()
			}
		} else if child := property.Shape; c.Kind() != document.Null || !p.null(child, c.Node()) {
			seen |= property.Bit()
			marks &= p.value(child, &c, child != nil && child.preserves)
		}
		if p.err != nil {
			return 0, 0
		}
	}
}

// passed are the marks of what is passed over because it is right at a glance.
func (p *pruner) passed() document.Marks {
	if p.decodes {
		return 0
	}
	return fine
}

// other prunes a member that is no property.
func (p *pruner) other(s *Shape, object document.Node, c *document.Cursor, keep bool) (marks document.Marks) {
	if known, found := s.variant(c.Key()); found {
		key := wording.Clip(c.Key())
		p.err = field.Invalid(p.path(object).Child(key), key, "must be spelled '"+known+"'")
		return 0
	}
	child := s.object.additional
	switch {
	case s.object.isClosed: // it is refused, whatever is in it
		return fine &^ document.Sound
	case s.object.others != othersUnknown:
		if c.Kind() == document.Null && p.null(child, c.Node()) {
			return fine
		}
		return p.value(child, c, child != nil && child.preserves)
	case !keep:
		p.remove(c.Node())
	}
	return fine
}

// values prunes an object whose members are all of one shape, which may be nil.
func (p *pruner) values(s *Shape, at document.Cursor) (marks document.Marks) {
	marks = fine
	keep, passed := s != nil && s.preserves, p.passed()
	for c := at.Children(); ; c.Next() {
		if s != nil {
			c.PassValues(&s.glance, passed)
		}
		switch {
		case !c.Valid():
			return marks
		case c.Kind() != document.Null || !p.null(s, c.Node()):
			marks &= p.value(s, &c, keep)
		}
		if p.err != nil {
			return 0
		}
	}
}

// keepsUnknown reports whether what the schema does not know stays.
func (p *pruner) keepsUnknown() bool { return p.keepUnknown && !p.decodes }

// clear removes all members of an object without known members.
func (p *pruner) clear(v document.Node) {
	var next document.Node
	for m := v.First(); m.Valid(); m = next {
		next = m.Next()
		p.remove(m)
	}
}

// null takes out a member that is null if null is not a valid value, and reports whether nothing is
// left to be done.
func (p *pruner) null(s *Shape, m document.Node) (done bool) {
	switch {
	case s == nil || s.null == nullIsValue || s.def != nil || p.keepNulls:
		return p.decodes
	case s.null == nullIsEmpty:
		p.d.Replace(m, []byte(`""`))
	default:
		p.d.Remove(m)
	}
	return true
}

// implied prunes kind, apiVersion or metadata of a resource, and reports whether it is there still and what holds for it.
func (p *pruner) implied(property *Property, c *document.Cursor, resource document.Node) (there bool, marks document.Marks) {
	m, kind := c.Node(), c.Kind()
	if property.implied == typeMeta {
		if kind == document.Null && property.Shape != nil && property.Shape.null != nullIsValue && property.Shape.def == nil {
			p.d.Remove(m)
			return false, fine
		}
		if kind != document.String {
			p.err = wording.Type(p.path(m), m, "string")
			return false, 0
		}
		return true, p.value(property.Shape, c, false)
	}
	if kind == document.Null {
		p.d.Remove(m)
		return false, fine
	}
	outer, decodes := p.origin, p.decodes
	p.origin, p.decodes = inEmbeddedMetadata, true
	if resource == p.top {
		p.origin = inMetadata
	}
	if p.readable(p.meta, m) {
		p.object(p.meta, *c, p.meta.preserves)
	}
	p.origin, p.decodes = outer, decodes
	if p.err != nil {
		return true, 0
	}
	if (property.Shape == nil || p.checker.right(property.Shape, m)) && (resource != p.top || p.rules == nil || p.rules.Quick(p.meta.object.notes, m)) {
		marks = document.Sound
	}
	if !property.Shape.Fillable() {
		marks |= document.Complete
	}
	m.Mark(marks)
	return true, marks
}

// readable reports whether a value within metadata can be read into the field that it is for.
func (p *pruner) readable(s *Shape, v document.Node) bool {
	if s == nil {
		return true
	}
	kind := v.Kind()
	switch s.accepts[kind] {
	case match:
		if kind != document.String || s.text == nil || s.text.format == nil || s.text.format.Matches(v.Str()) {
			return true
		}
		p.err = wording.Format(p.path(v), v, s.text.format.Name)
		return false
	case integral:
		if compare.NumberOf(v).Integral() {
			return true
		}
	}
	p.err = wording.Type(p.path(v), v, s.typeName)
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
