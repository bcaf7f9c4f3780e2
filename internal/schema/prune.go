package schema

import (
	"slices"
	"strconv"
	"strings"
	"sync"

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
// The error, a *field.Error, is the first reason why the object cannot be read at all, which is answered with 400: a
// field name that differs from a known one in case alone, or metadata, kind or apiVersion of a wrong type. The object
// may have been pruned in part then.
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
	p := pruners.Get().(*pruner)
	defer p.release()
	w := &p.checker
	w.begin(s, d.Root(), document.Node{})
	w.probing, w.trusting, w.items.Filled = 1, true, true
	p.pruning = pruning{d: d, unknown: unknown, keepNulls: keepNulls, keepUnknown: s.check != nil, locator: w.locator,
		origin: inObject, rules: s.metadata}
	switch p.top.Kind() {
	case document.Object:
		p.top.Mark(p.object(s.root, p.top))
	case document.Array:
		p.top.Mark(p.list(s.root, p.top))
	}
	if p.err == nil {
		return nil
	}
	return p.err
}

// pruner is one walk of Prune. It implements document.Visitor.
type pruner struct {
	pruning
	checker validator // says what is right with a value
}

var pruners = sync.Pool{New: func() any { return &pruner{} }}

// pruning is what a pruner forgets with the object.
type pruning struct {
	locator
	d       *document.Document
	unknown *Unknown
	origin  origin
	decodes bool // within metadata: what has a wrong type is an error
	err     *field.Error

	keepNulls   bool // also the nulls that stand for nothing
	keepUnknown bool // outside of metadata: the check of a document says what is wrong with it

	rules *meta.Rules // of the root's metadata
}

// release gives the walk back.
func (p *pruner) release() {
	p.pruning = pruning{}
	p.checker.forget()
	pruners.Put(p)
}

// fine are the marks of what nothing is to be said about.
const fine = document.Sound | document.Complete

// value prunes what is in the value at the cursor, and marks the value with what holds for it.
// Metadata is checked as a whole, see implied.
func (p *pruner) value(s *Shape, c *document.Cursor) (marks document.Marks) {
	v, kind := c.Node(), c.Kind() // an edit may move what the cursor is at
	switch {
	case p.decodes:
		return p.decoded(s, c, kind)
	case kind == document.Object:
		marks = p.object(s, v)
	case kind == document.Array:
		marks = p.list(s, v)
	case s == nil || s.form.Glance.Takes(c) || s.checks == checkNothing && kind != document.Null:
		marks = fine
	default:
		marks = p.scalar(s, c, kind)
	}
	v.Mark(marks)
	return marks
}

// decoded is value within metadata.
func (p *pruner) decoded(s *Shape, c *document.Cursor, kind document.Kind) (marks document.Marks) {
	switch {
	case !p.readable(s, c.Node()):
		return 0
	case kind == document.Object:
		return p.object(s, c.Node())
	case kind == document.Array:
		return p.list(s, c.Node())
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

func (p *pruner) list(s *Shape, v document.Node) (marks document.Marks) {
	if s != nil && s.list.items != nil {
		return p.walk(s, v)
	}
	if !p.keeps(s) {
		for c := v.Children(); c.Valid(); c.Next() {
			p.value(nil, &c)
		}
	}
	if s != nil && !p.decodes && !p.right(s, v) {
		return fine &^ document.Sound
	}
	return fine
}

func (p *pruner) object(s *Shape, v document.Node) (marks document.Marks) {
	switch {
	case s == nil:
		if !p.keeps(s) {
			p.clear(v)
		}
		return fine
	case len(s.object.properties) > 0, s.object.others != othersUnknown:
		return p.walk(s, v)
	case !p.keeps(s):
		p.clear(v)
	}
	if !p.decodes && !p.right(s, v) {
		return fine &^ document.Sound
	}
	return fine
}

// walk prunes an object or list by the form of its shape.
func (p *pruner) walk(s *Shape, v document.Node) (marks document.Marks) {
	passed := fine
	if p.decodes {
		passed = 0
	}
	return document.Traverse(v, &s.form, passed, p)
}

// End implements document.Visitor.
func (p *pruner) End(of *document.Form, container document.Node) bool {
	return p.right(of.Of.(*Shape), container)
}

// right reports whether an object or list is right in which all is right.
func (p *pruner) right(s *Shape, v document.Node) bool {
	if s.flat && v.Kind() == document.Array {
		return p.checker.flat(s, v)
	}
	return p.checker.right(s, v)
}

// Value implements document.Visitor: it prunes a member or item of which its form does not say that it is right.
func (p *pruner) Value(of *document.Form, container, v document.Node,
	place int) (marks document.Marks, there uint64, ok bool) {
	s, c := of.Of.(*Shape), v.Cursor()
	child := s.object.additional
	switch {
	case container.Kind() == document.Array:
		marks = p.value(s.list.items, &c)
		return marks, 0, p.err == nil
	case len(s.object.properties) == 0:
	case place < 0:
		marks = p.other(s, container, &c)
		return marks, 0, p.err == nil
	default:
		property := &s.object.properties[place]
		if there = property.Bit(); property.implied != ordinary {
			isThere, marks := p.implied(property, &c, container)
			if !isThere {
				there = 0
			}
			return marks, there, p.err == nil
		}
		child = property.Shape
	}
	if c.Kind() == document.Null && p.null(child, v) {
		return fine, 0, true
	}
	marks = p.value(child, &c)
	return marks, there, p.err == nil
}

// other prunes a member that is no property.
func (p *pruner) other(s *Shape, object document.Node, c *document.Cursor) (marks document.Marks) {
	if known, found := s.variant(c.Key()); found {
		key := wording.Clip(c.Key())
		p.err = field.Invalid(p.path(object).Child(key), key, "must be spelled '"+known+"'")
		return 0
	}
	child := s.object.additional
	switch {
	case s.object.others != othersUnknown:
		if c.Kind() == document.Null && p.null(child, c.Node()) {
			return fine
		}
		return p.value(child, c)
	case !p.keeps(s):
		p.remove(c.Node())
	}
	return fine
}

// keeps reports whether what the shape does not know stays.
func (p *pruner) keeps(s *Shape) bool {
	return p.keepUnknown && !p.decodes || s != nil && s.keeps
}

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

// implied prunes kind, apiVersion or metadata of a resource, and reports whether it is there still and what holds for
// it.
func (p *pruner) implied(property *Property, c *document.Cursor,
	resource document.Node) (there bool, marks document.Marks) {
	m, kind := c.Node(), c.Kind()
	if property.implied == typeMeta {
		if kind == document.Null && property.Shape != nil && property.Shape.null != nullIsValue &&
			property.Shape.def == nil {
			p.d.Remove(m)
			return false, fine
		}
		if kind != document.String {
			p.err = wording.Type(p.path(m), m, "string")
			return false, 0
		}
		return true, p.value(property.Shape, c)
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
		p.object(p.meta, m)
	}
	p.origin, p.decodes = outer, decodes
	if p.err != nil {
		return true, 0
	}
	if (property.Shape == nil || p.checker.right(property.Shape, m)) &&
		(resource != p.top || p.rules == nil || p.rules.Quick(p.meta.object.notes, m)) {
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
		if kind != document.String || s.text == nil || s.text.Format == nil || s.text.Format.Matches(v.Str()) {
			return true
		}
		p.err = wording.Format(p.path(v), v, s.text.Format.Name)
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
