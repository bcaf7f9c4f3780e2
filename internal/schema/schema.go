// Package schema compiles structural schemas to the form that requests are checked against:
// compiled once, immutable, walked without maps, reflection or allocation.
//
// [CompileCRD] and [Compile] take Kubernetes' own types through Kubernetes' own checks, so that
// what a real API server refuses is refused here with the same words. The result answers three
// questions about a document, each in one walk: which of its members the schema does not know
// ([Schema.Prune]), which members it fills in (package defaults), and what is wrong with it
// ([Schema.Validate]).
//
// k8s.io/apiextensions-apiserver is the judge of all three: tests and fuzz targets compare the
// walks with it. Messages are worded as the API conventions ask, and fields are named by the value
// they are about.
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
//   - A failure names its field; there it names none:
//     formats of numbers, anyOf, oneOf, not, and rules about the whole object.
//     The summary that a failed allOf adds to the failures of its branches is
//     left out, and so is the anyOf that int-or-string schemas spell out.
//   - Keys of maps are written as labels[example.com/x], not labels.example.com/x.
//   - A string that is too long is also checked against its pattern.
//   - A field name that differs from a known one in case alone is refused.
//   - The static estimate of what CEL rules cost is a warning.
//
// One oddity is kept: a list passes for a string that has a format.
package schema

import (
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/graph"
	"github.com/admission-gateway/gateway/internal/schema/keyword"
	"github.com/admission-gateway/gateway/internal/schema/list"
	"github.com/admission-gateway/gateway/internal/schema/meta"
)

// A Schema says how the objects of one version of a resource look. It is
// immutable and safe for concurrent use.
type Schema struct {
	root     *Shape
	notes    *document.Noter // the author of the notes of its walks, see marks.go
	resource bool            // kind, apiVersion and metadata are implied
	scale    *scale
	meta     *Shape        // of every metadata; nil if no object has one
	metadata *meta.Rules   // nil: the root's metadata is not checked
	derived  []Derived     // in the order in which they are set
	check    *graph.Schema // says which values are valid; nil if the shapes do
	use      graph.Use     // what the values are, to check
	// spelling is set if Prune can find only misspelled names.
	spelling *document.Spelling
}

// Root is the shape of the whole object.
func (s *Schema) Root() *Shape { return s.root }

// IsList reports whether the value must be a list.
func (s *Schema) IsList() bool { return s != nil && s.root.typeName == "array" }

// Accepts reports whether the type of the schema lets a value be of the kind. Without a schema it may be of any.
func (s *Schema) Accepts(kind document.Kind) bool {
	return s == nil || s.root.accepts[kind] != mismatch
}

// A Shape says how one value looks. A nil *Shape does not describe its value.
type Shape struct {
	accepts   [document.Array + 1]verdict // by kind
	typeCount uint8                       // what a right type counts for; see validator.value
	null      nullMeaning
	checks    checks
	rulesIn   ruleReach
	envelope  envelope

	hasListTypes bool // it or something in it is a list of type set or map

	hasDefaults bool // something in it may be set to a default
	preserves   bool // x-kubernetes-preserve-unknown-fields
	keeps       bool // the same, or it is an item of a list that keeps what it does not know
	flat        bool // of an object or list, only size, list type and required say more than its type

	text   *keyword.Text
	number *keyword.Number
	enum   *keyword.Enum
	logic  *logicRules

	object objectRules
	list   listRules

	form document.Form // by which Prune goes through a value

	rules    *celRules
	def      []byte        // the default of this value, complete, as JSON, or nil
	typeName string        // what messages call its type: 'integer', 'integer or string'; "" if it may have any
	extra    *extra        // the gateway's own keywords, about it and what is in it; nil if there are none
	check    *graph.Schema // says which values are valid; nil if the shape does
	merging  merging
}

// objectRules say how an object looks.
type objectRules struct {
	properties []Property // sorted by name
	demanded   uint64     // the bits of the required members; never if one of them has none
	defaulted  uint64     // the bits of the members that have a default; never if one of them has none
	size       *keyword.Size
	additional *Shape // of members that are no property; may be nil if they are allowed
	others     otherMembers
	names      document.Names
	notes      *document.Noter // the author of the numbers of properties on members, or nil

	defaults []memberDefault   // of the properties that have one, sorted by name
	fillings []Filling         // see Fillings
	required []document.Name   // of members that must be there, in the schema's order
	variants *document.FoldSet // of the properties' names; nil if there are none
}

// listRules say how a list looks.
type listRules struct {
	items *Shape
	size  *keyword.Size
	kind  *list.Type // nil if its items are identified by their positions alone
}

// logicRules combine other shapes of the same value.
type logicRules struct {
	allOf, anyOf, oneOf []*Shape
	not                 *Shape
}

// checks says how much of a value has to be checked.
type checks uint8

const (
	checkNothing checks = iota // whatever the value is, it is right
	checkType                  // the type alone
	checkAll
)

// ruleReach says which CEL rules a value or its contents have.
type ruleReach uint8

const (
	noRules ruleReach = iota
	someRules
	rulesOnOld // some of them read oldSelf
)

// nullMeaning says what a null means.
type nullMeaning uint8

const (
	nullIsMissing   nullMeaning = iota
	nullIsValue                 // nullable
	nullIsEmpty                 // an empty string, as in metadata
	nullIsDefaulted             // the default takes its place, and the client gets a warning
)

// envelope says whether an object has kind, apiVersion and metadata, even if its schema does not
// describe them.
type envelope uint8

const (
	noEnvelope       envelope = iota
	resourceEnvelope          // the root of a resource; its envelope is checked elsewhere
	embeddedEnvelope          // x-kubernetes-embedded-resource: it is checked with the object
)

// otherMembers says what the members of an object are that are no property.
type otherMembers uint8

const (
	othersUnknown otherMembers = iota
	othersAllowed              // additionalProperties is set, maybe to a shape
	othersRefused              // additionalProperties: false
)

// A Property is a member of an object that its schema names.
type Property struct {
	Shape *Shape // nil if only the name is known
	Name  string

	bit     uint8 // in the mask of the members that a walk has seen; 0 of members that have none
	implied role  // kind, apiVersion and metadata of an embedded resource
}

// role distinguishes the members that every Kubernetes object has.
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

// verdict says how a shape's type takes a kind of value.
type verdict uint8

const (
	mismatch verdict = iota
	match
	integral // a number without fraction
)

// Properties are the named members, sorted by name. The slice must not be
// changed.
func (s *Shape) Properties() []Property { return s.object.properties }

// Default is the JSON that replaces a missing value, in which all defaults inside it are already
// filled in; nil when there is none. It must not be changed.
func (s *Shape) Default() []byte {
	if s == nil {
		return nil
	}
	return s.def
}

// Additional is the shape of members that are no property, or nil.
func (s *Shape) Additional() *Shape { return s.object.additional }

// Items is the shape of a list's items, or nil.
func (s *Shape) Items() *Shape { return s.list.items }

// Nullable reports whether null is a value of its own. If it is not, a null means a missing value.
func (s *Shape) Nullable() bool { return s != nil && s.null == nullIsValue }

// NamesAllMembers reports whether the value is an object, and its members are named: a backend that stores others
// stores what the schema does not know.
func (s *Shape) NamesAllMembers() bool {
	return s != nil && len(s.object.properties) > 0 && s.object.additional == nil && !s.preserves
}

// HasDefaults reports whether anything within the value may be filled in.
func (s *Shape) HasDefaults() bool { return s != nil && s.hasDefaults }
