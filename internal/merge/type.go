// Package merge puts a patch and a document together as the types of their values say: which lists
// have items that are identified by keys, which are sets, and what is only ever replaced as a
// whole.
//
// [Type.Apply] is the structured merge of apply configurations, by which
// MutatingAdmissionPolicies change objects; sigs.k8s.io/structured-merge-diff is
// its judge. [Type.Patch] is the strategic merge patch of the Kubernetes API;
// k8s.io/apimachinery/pkg/util/strategicpatch is its judge. Both edit the
// document in place: what the patch does not touch stays byte for byte as it
// was.
//
// Types come from schemas ([github.com/admission-gateway/gateway/internal/schema]),
// from the types of Kubernetes' own kinds (package kubernetes below), or are
// [Deduced] from the values.
package merge

import (
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
)

// A Type says how values of a field are merged. Each of its parts that is set
// allows one form of value. It is immutable once it is in use, and may contain
// itself.
type Type struct {
	Scalar Scalar
	List   *List
	Object *Object
	// Nullable says that null is a value like any other. Else it means one that is not set, even if
	// merges keep it.
	Nullable bool
}

// Scalar says which scalars a type allows.
type Scalar uint8

// The scalars. Null is allowed everywhere, and means "not set".
const (
	None    Scalar = iota
	Numeric        // any number
	Text           // a string
	Boolean
	Any // any of these
)

// A List says how lists are merged.
type List struct {
	Items *Type
	// Relation says what a structured merge does.
	Relation Relation
	// Keys identify the items of an [Associative] list; without any it is a set of scalars.
	Keys []Key
	// Merged says that a strategic merge patch merges the list, which it would otherwise replace;
	// by MergeKeys, or without any as a set of scalars.
	Merged    bool
	MergeKeys []Key
}

// Relation says how the items of a list relate to each other.
type Relation uint8

// The relations.
const (
	Atomic      Relation = iota // the list is one value
	Associative                 // each item is a value of its own
)

// A Key is a member that identifies items of a list.
type Key struct {
	Name document.Name
	// Default replaces a missing member; invalid if there is none.
	Default document.Node
}

// An Object says how objects are merged.
type Object struct {
	// Rest is the type of members that are no field; nil if there are none.
	Rest *Type
	// Atomic says that the object is one value for a structured merge.
	Atomic bool
	// Replaced says that a strategic merge patch replaces the object as a whole.
	Replaced bool
	// Grows reports whether a later version of the type may name further
	// members. What is merged into an object must not set them, but the object
	// may have them, and keeps them as they are.
	Grows bool

	fields []Field
	names  document.Names
}

// A Field is a member that a type names.
type Field struct {
	Name string
	Type *Type
}

// SetFields sets the fields, whose names must differ.
func (o *Object) SetFields(fields []Field) {
	o.fields = slices.Clone(fields)
	slices.SortFunc(o.fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	names := make([]string, len(o.fields))
	for i := range o.fields {
		names[i] = o.fields[i].Name
	}
	o.names = document.NewNames(names)
}

// Fields are the fields, sorted by name. The slice must not be changed.
func (o *Object) Fields() []Field { return o.fields }

// Member is the type of the member with the name; nil if it is not allowed.
func (o *Object) Member(name string) *Type {
	if i, ok := slices.BinarySearchFunc(o.fields, name,
		func(f Field, name string) int { return strings.Compare(f.Name, name) }); ok {
		return o.fields[i].Type
	}
	return o.Rest
}

// field is the type of a member that the object names.
func (o *Object) field(m document.Node) (*Type, bool) {
	if i := o.names.Member(m); i >= 0 {
		return o.fields[i].Type, true
	}
	return nil, false
}

// member is the type of any member.
func (o *Object) member(m document.Node) *Type {
	if t, ok := o.field(m); ok {
		return t
	}
	return o.Rest
}

// Allows reports whether values of the kind may be of the type.
func (t *Type) Allows(k document.Kind) bool {
	switch k {
	case document.Object:
		return t.Object != nil
	case document.Array:
		return t.List != nil
	case document.String:
		return t.Scalar == Text || t.Scalar == Any
	case document.Number:
		return t.Scalar == Numeric || t.Scalar == Any
	case document.Bool:
		return t.Scalar == Boolean || t.Scalar == Any
	}
	return k == document.Null
}

// list is how lists of the type are merged, nil if they are not allowed or not known.
func (t *Type) list() *List {
	if t == nil {
		return nil
	}
	return t.List
}

// object is how objects of the type are merged, nil likewise.
func (t *Type) object() *Object {
	if t == nil {
		return nil
	}
	return t.Object
}

// Deduced is the type of values about which nothing is known: objects are merged member by member,
// and lists are single values.
func Deduced() *Type { return deduced }

// Opaque is the type of values that are merged as a whole, whatever they are.
func Opaque() *Type { return opaque }

var (
	opaque  = newOpaque()
	deduced = newDeduced()
)

func newOpaque() *Type {
	t := &Type{Scalar: Any, Nullable: true}
	t.List = &List{Items: t}
	t.Object = &Object{Rest: t, Atomic: true}
	return t
}

func newDeduced() *Type {
	t := &Type{Scalar: Any, List: &List{Items: opaque}, Nullable: true}
	t.Object = &Object{Rest: t}
	return t
}
