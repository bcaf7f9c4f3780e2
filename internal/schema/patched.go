package schema

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// ValidatePatched checks the result of a patch as [Schema.Validate] does, and blames the patch only for what it
// changed. A failure does not count that the stored object has too, by the same keyword in the same place, if
//
//   - the value there is the same, or is missing in both, or
//   - its keyword judges an object as a whole, such as oneOf, or a number of members or items that is no more wrong
//     than it was.
//     What the patch changed of it has failures of its own.
//
// A failure that the stored object does not have counts, even if the patch changed something else: what it changed made
// the value wrong.
//
// patch is the schema of the patch itself; nil if it has none. A member that it describes may be set, even if
// the schema of the object knows no such member. With keepsNulls it may also be null, even if the schema of the object
// does not let it be: the patch is one in which null is a value.
func (s *Schema) ValidatePatched(f *cel.Frame, obj, stored document.Node, patch *Schema, keepsNulls bool) Result {
	return s.validate(f, obj, stored, &patched{patch: patch, keepsNulls: keepsNulls})
}

// forgive drops the failures that a patch is not to blame for.
func (w *validator) forgive(s *Schema, p *patched, obj, stored document.Node) {
	if len(w.failures.list) == 0 || w.failures.more > 0 {
		return
	}
	before := s.validator(stored, document.Node{})
	defer before.release()
	if s.check != nil {
		before.check(s, stored, stored)
	} else {
		before.value(s.root, stored, document.Node{})
	}
	before.extended(s.root, stored, document.Node{})
	p.obj, p.stored, p.before, p.twins = obj, stored, before.failures.list, map[uint32]document.Node{}
	w.failures.drop(mark{}, func(x failure) bool { return x.class == ofResource || !p.isOld(x) })
}

// patched compares what is wrong with the result of a patch with what was wrong before.
type patched struct {
	patch       *Schema // nil if the patch has none
	keepsNulls  bool
	obj, stored document.Node
	before      []failure
	// twins are the stored values of values of the result, by their nodes, and compared is how many items were compared
	// to find them.
	twins    map[uint32]document.Node
	compared int
}

// isOld reports whether a failure is not the patch's.
func (p *patched) isOld(x failure) bool {
	v := p.obj.Document().Node(x.at)
	if (wording.IsClosed(x.err) || p.keepsNulls && v.Kind() == document.Null) && p.patch.Describes(p.obj, v) {
		return true
	}
	o := p.twin(v)
	return o.Valid() && slices.ContainsFunc(p.before,
		func(b failure) bool { return b.at == o.Index() && isSame(x.err, b.err) }) &&
		(x.err.Type == field.ErrorTypeRequired || document.EqualNodes(v, o) || isOfWhole(x.err, v, o))
}

// isSame reports whether two failures are of the same keyword. Where items stand in lists does not count.
func isSame(a, b *field.Error) bool {
	return a.Type == b.Type && a.Detail == b.Detail &&
		(a.Field == b.Field || positions.ReplaceAllString(a.Field, "[]") == positions.ReplaceAllString(b.Field, "[]"))
}

var positions = regexp.MustCompile(`\[[0-9]+\]`)

// isOfWhole reports whether a failure is one of an object as a whole, or of the length of a list, and it is no more
// wrong than it was. What is wrong within it has failures of its own.
func isOfWhole(err *field.Error, v, o document.Node) bool {
	isFew, isMany := wording.CountOf(err)
	switch {
	case v.Kind() != o.Kind() || wording.IsClosed(err):
		return false
	case isFew:
		return v.Len() >= o.Len()
	case isMany:
		return v.Len() <= o.Len()
	}
	return v.Kind() == document.Object && err.Type == field.ErrorTypeInvalid
}

// maxCompared bounds how many items are compared to find the ones that only changed their places.
const maxCompared = 4096

// twin is the stored value of a value: the one at the same place. Items of lists are found wherever they are.
func (p *patched) twin(v document.Node) document.Node {
	if v == p.obj || !v.Valid() {
		return p.stored
	}
	if known, found := p.twins[v.Index()]; found {
		return known
	}
	parent := v.Parent()
	around, found := p.twin(parent), document.Node{}
	switch {
	case !around.Valid() || around.Kind() != parent.Kind():
	case parent.Kind() == document.Object:
		found, _ = around.Get(v.Key())
	default:
		found = p.item(parent, around, v)
	}
	p.twins[v.Index()] = found
	return found
}

// item is the stored item of an item: at the same position, unless another one is equal.
func (p *patched) item(list, stored, v document.Node) document.Node {
	position := 0
	for n := list.First(); n.Valid() && n != v; n = n.Next() {
		position++
	}
	same, _ := stored.At(position)
	if same.Valid() && document.EqualNodes(v, same) {
		return same
	}
	for n := stored.First(); n.Valid() && p.compared < maxCompared; n = n.Next() {
		if p.compared++; document.EqualNodes(v, n) {
			return n
		}
	}
	return same
}

// Describes reports whether the schema has a member of the object, or of one within it, as a property.
func (s *Schema) Describes(obj, v document.Node) bool {
	if s == nil || v == obj {
		return false
	}
	return s.root.within(obj, v) != nil
}

// within returns the shape of a value within another one, by properties and items alone; nil if there is none.
func (s *Shape) within(outer, v document.Node) *Shape {
	if v == outer || s == nil {
		return s
	}
	around := v.Parent()
	shape := s.within(outer, around)
	switch {
	case shape == nil:
	case around.Kind() == document.Array:
		return shape.list.items
	default:
		if p := shape.property(v); p != nil {
			return p.Shape
		}
	}
	return nil
}
