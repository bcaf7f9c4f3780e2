// Package schema holds structural schemas in the form that requests are held
// against: compiled once, immutable, walked without maps, reflection or
// allocation.
//
// [CompileCRD] and [Compile] take Kubernetes' own types through Kubernetes' own
// checks, so that what a real API server refuses is refused here with the same
// words. The result answers three questions about a document, each in one walk:
// which of its members the schema does not know ([Schema.Prune]), which members
// it fills in (package defaults), and what is wrong with it ([Schema.Validate]).
//
// k8s.io/apiextensions-apiserver is the judge of all three; tests and fuzz
// targets hold the walks against it. Messages are worded as the API conventions
// ask, and fields are named by the value they are about.
//
// # Numbers
//
// A number spelled without fraction and exponent that fits an int64 is an
// integer and is compared exactly, also with bounds that are no integers. Any
// other number is a double. A field of type integer takes integers, and doubles
// without a fraction of at most 2^53-1, such as 1.0 and 1e3. Spellings are
// never changed.
//
// # Where we differ from apiextensions-apiserver
//
//   - A number is compared with a minimum, maximum, multipleOf or enum value
//     by its value. There a bound of an integer is cut to an integer first, so
//     that 0 passes 'minimum: 0.5' and 1 is no multiple of 0.5; a bound that
//     the field's type cannot hold refuses every value; and 1.5 equals 1, and 97
//     equals 'a', in enumerations, because Go can convert one to the other.
//   - CEL rules read 1.0 and 1e1 in a field of type integer as integers.
//   - A failure names the field that it is about, where there it names none:
//     formats of numbers, anyOf, oneOf, not, and rules about the whole object.
//     The summary that a failed allOf adds to the failures of its branches is
//     left out, and so is the anyOf that int-or-string schemas spell out.
//   - Keys of maps are written as labels[example.com/x], not labels.example.com/x.
//   - A string that is too long is also held against its pattern.
//   - A field whose name differs from a known one in case alone is refused.
//   - The static estimate of what CEL rules cost is a warning.
//
// One oddity is kept: a list passes for a string that has a format.
package schema

import (
	"github.com/admission-gateway/gateway/internal/document"
)

// A Schema says how the objects of one version of a resource look. It is
// immutable and safe for concurrent use.
type Schema struct {
	root     *Shape
	notes    *document.Noter // who writes the notes of its walks, see marks.go
	resource bool            // kind, apiVersion and metadata are implied
	scale    *scale
	meta     *Shape         // of every metadata
	metadata *metadataRules // nil: the root's metadata is not checked
	derived  []Derived      // in the order in which they are set
}

// Root is the shape of the whole object.
func (s *Schema) Root() *Shape { return s.root }

// A Shape says how one value looks. A nil *Shape knows nothing about its value.
//
// What walks look at for every scalar stands in the first cache line of 64 bytes, what they look at for objects and lists
// in the next two.
type Shape struct {
	accepts    [document.Array + 1]verdict // by kind
	typeCount  uint8                       // what a type that is right counts for; see validator.value
	onlyType   bool                        // there is nothing to check but the type
	hasChecks  bool                        // something may be wrong with the value or in it
	hasRules   bool                        // there are CEL rules about it or in it
	needsOld   bool                        // some of which read oldSelf
	opaque     bool                        // nothing in it is known, so that nothing in it is unknown
	implied    bool                        // has kind, apiVersion and metadata: the root of a resource, or an embedded one
	embedded   bool                        // x-kubernetes-embedded-resource: kind, apiVersion and metadata are checked
	preserves  bool                        // x-kubernetes-preserve-unknown-fields
	extends    bool                        // additionalProperties is set: no member is unknown
	closed     bool                        // additionalProperties: false
	nullable   bool                        // null is a value of its own
	zeroesNull bool                        // a null stands for an empty string, as in metadata
	plain      bool                        // a scalar about which only text, number and enum say more than its type
	flat       bool                        // an object or list about which only size, list and required say more than its type
	deep       bool                        // whether it is right depends on what is deeper in it

	hasDefaults bool // something in it may be filled in

	text   *textRules
	number *numberRules
	enum   *enumRules
	logic  *logicRules

	properties []Property // sorted by name
	demanded   uint64     // the bits of the required members; never where one of them has none
	fillable   uint64     // the bits of the members that have a default; never where one of them has none
	size       *sizeRules
	list       *listRules
	items      *Shape
	additional *Shape // of members that are no property; may be nil when extends
	names      document.Names
	notes      *document.Noter // who writes the numbers of properties on members; nil: nobody
	rules      *celRules

	fillings []filling         // of the properties that have a default, sorted by name
	def      []byte            // the default of this value, complete, as JSON; nil is none
	required []document.Name   // of members that must be there, in the schema's order
	variants *document.FoldSet // of the properties' names; nil without any
	typeName string            // as messages name it: 'integer', 'integer or string'; "" is any
	format   string            // that values other than strings violate; "" when type says it all

	extra *extra // what the gateway's own keywords say of it and what is in it; nil is nothing

	merging merging // how values are put together
}

// A Property is a member of an object that its schema names.
type Property struct {
	Shape *Shape // nil where the name is known and nothing else
	Name  string

	bit     uint8     // in the mask of the members that a walk has seen; 0 of members that have none
	meta    metaField // of metadata
	implied role      // kind, apiVersion and metadata of an embedded resource
}

// role tells the members apart that every Kubernetes object has.
type role uint8

const (
	ordinary role = iota
	typeMeta      // kind, apiVersion
	objectMeta
)

func roleOf(name string) role {
	switch name {
	case "kind", "apiVersion":
		return typeMeta
	case "metadata":
		return objectMeta
	}
	return ordinary
}

// verdict is what a shape's type says about a kind of value.
type verdict uint8

const (
	mismatch verdict = iota
	match
	integral // a number without fraction
)

// Properties are the named members, sorted by name. The slice must not be
// changed.
func (s *Shape) Properties() []Property { return s.properties }

// Default is the JSON that stands for a missing value, in which all defaults
// inside it are already filled in; nil when there is none. It must not be
// changed.
func (s *Shape) Default() []byte {
	if s == nil {
		return nil
	}
	return s.def
}

// Additional is the shape of members that are no property, or nil.
func (s *Shape) Additional() *Shape { return s.additional }

// Items is the shape of a list's items, or nil.
func (s *Shape) Items() *Shape { return s.items }

// Nullable tells whether null is a value of its own. Where it is not, a null
// stands for a missing value.
func (s *Shape) Nullable() bool { return s != nil && s.nullable }

// HasDefaults tells whether anything within the value may be filled in.
func (s *Shape) HasDefaults() bool { return s != nil && s.hasDefaults }
