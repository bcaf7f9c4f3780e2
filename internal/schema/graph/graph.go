// Package graph compiles the schemas of a document of JSON, which are of JSON Schema 2020-12
// or of OpenAPI's dialects of it, to a graph that values are checked against: each schema once,
// references as pointers, without maps, reflection or allocation while values are right.
//
// Keywords that have the wrong form, and whatever else is not enforced, are a [Finding] with its
// place in the document.
//
// # Dialects
//
// All dialects have the keywords of JSON Schema 2020-12. The dialects of OpenAPI add `nullable`,
// `discriminator`, `readOnly` and `writeOnly`, and read exclusiveMinimum and exclusiveMaximum as
// booleans too. In OpenAPI 3.0 nothing counts beside `$ref`.
//
// # Numbers
//
// Numbers are compared and divided by their exact values, however they are spelled, and never
// rounded.
//
// # Bounds
//
// A schema may refer to itself, and the depth of values bounds how often that is followed. One that
// refers to itself for the same value says nothing more there. The work of a walk is bounded: a
// value that takes more is refused.
package graph

import (
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/keyword"
)

// choice is OpenAPI's discriminator: a member that names which of several schemas holds.
type choice struct {
	property document.Name
	values   []string  // of the member, as messages list them
	schemas  [][]*node // by the index of the value
	isOne    bool      // exactly one of several schemas with the same value must match
	// all are the alternatives, for what is no object or lacks the member; nil for a schema that
	// others extend.
	all *group
}

func (c *choice) each(visit func(*node)) {
	for _, schemas := range c.schemas {
		for _, s := range schemas {
			visit(s)
		}
	}
	if c.all != nil {
		for _, s := range c.all.branches {
			visit(s)
		}
	}
}

func (c *choice) add(value string, s *node) {
	i := slices.Index(c.values, value)
	if i < 0 {
		i = len(c.values)
		c.values, c.schemas = append(c.values, value), append(c.schemas, nil)
	}
	if !slices.Contains(c.schemas[i], s) {
		c.schemas[i] = append(c.schemas[i], s)
	}
}

// Dialect is how the schemas of a document are read.
type Dialect uint8

const (
	Draft2020 Dialect = iota // JSON Schema 2020-12, in which a format is an annotation
	OpenAPI31
	OpenAPI30
)

// Use says where the values come from that a schema checks: it decides which required members may be
// missing.
type Use uint8

const (
	// Requests are sent by clients: what is readOnly may be missing.
	Requests Use = iota
	// Patched values result from patches of what the API shows: what is writeOnly may be missing
	// too.
	Patched
	// Answers come from the API: what is writeOnly may be missing, and must be.
	Answers
	// Partial values have what they change: anything may be missing.
	Partial
)

// Finding is something about a schema that its author should know.
type Finding struct {
	// At is the value of the document that it concerns.
	At document.Node
	// Message is a sentence without a final full stop.
	Message string
	// Error reports that the schema lets pass what its author meant to forbid.
	Error bool
	// Gap reports that the schema is valid, but this part is not enforced.
	Gap bool
	// Unmet reports that no value can meet the schema, which its author may mean.
	Unmet bool
}

// Schema is a compiled schema. It is immutable, and keeps nothing of the document.
type Schema struct {
	root   *node
	except *document.Names // see Except
	files  *document.Names // see WithFiles
}

// Except returns the schema without its rules for the values of the named members of the root.
func (s *Schema) Except(names ...string) *Schema {
	if len(names) == 0 {
		return s
	}
	except := document.NewNames(names)
	return &Schema{root: s.root, except: &except, files: s.files}
}

// WithFiles returns the schema without its rules for the strings in the named members of the root, and in their items:
// they are file names, and the schema describes the contents of the files.
func (s *Schema) WithFiles(names ...string) *Schema {
	if len(names) == 0 {
		return s
	}
	files := document.NewNames(names)
	return &Schema{root: s.root, except: s.except, files: &files}
}

// Member is a value of an object of objects: the place that it is in, and its name there.
type Member struct {
	Place, Name string
	Schema      *Schema
}

// Compose makes the schema of an object of objects: each member of the inner ones has its own schema.
func Compose(members []Member) *Schema {
	root := &node{accepts: anyKind, object: newObject(), isFramed: true}
	places := map[string]*node{}
	for _, m := range members {
		at := places[m.Place]
		if at == nil {
			at = &node{accepts: anyKind, object: newObject(), isFramed: true}
			places[m.Place] = at
			root.object.properties = append(root.object.properties,
				property{name: document.NewName(m.Place), schema: at})
		}
		at.object.properties = append(at.object.properties,
			property{name: document.NewName(m.Name), schema: m.Schema.root})
	}
	root.object.link()
	for _, at := range places {
		at.object.link()
	}
	return &Schema{root: root}
}

// All is the schema of values that all the schemas take.
func All(schemas ...*Schema) *Schema {
	if len(schemas) == 1 {
		return schemas[0]
	}
	root := &node{accepts: anyKind, isFramed: true, logic: &logicRules{}}
	for _, s := range schemas {
		root.logic.all = append(root.logic.all, s.root)
	}
	return &Schema{root: root}
}

// Anything is the schema of any value.
func Anything() *Schema { return &Schema{root: anything} }

func newObject() *objectRules { return &objectRules{size: keyword.AnySize} }

// link makes the properties of an object findable.
func (o *objectRules) link() {
	names := make([]string, len(o.properties))
	o.required = 0
	for i, p := range o.properties {
		names[i] = p.name.String()
		if p.isRequired {
			o.required++
		}
	}
	o.names = document.NewNames(names)
	o.walks = len(o.properties) > 0 || len(o.patterns) > 0 || o.additional != nil || o.propertyIs != nil
}

// Failure is something that is wrong with a value.
type Failure struct {
	Err *field.Error
	// At is the value; if a member is missing, the object that lacks it.
	At document.Node
}

// Result holds the failures that a walk found.
type Result struct {
	// Failures are in the order in which they were found.
	Failures []Failure
	// More is how many further failures there are.
	More int
}

// Valid reports whether nothing was found.
func (r *Result) Valid() bool { return len(r.Failures) == 0 }

// MaxFailures is how many failures of a value are kept.
const MaxFailures = 256

// kinds is a set of kinds of values.
type kinds uint8

const anyKind kinds = 1<<document.Null | 1<<document.Bool | 1<<document.Number | 1<<document.String |
	1<<document.Object | 1<<document.Array

func (k kinds) has(kind document.Kind) bool { return k>>kind&1 != 0 }

// node is one schema of the graph.
type node struct {
	accepts kinds
	isWhole bool // numbers must be whole
	isPlain bool // the type is all that it says
	isNever bool // false
	// isNullable lets null be, whatever else is said.
	isNullable bool
	// isLoop is set if the schema may lead to itself for the same value.
	isLoop bool
	// isFramed is set if a schema for this value, or for a value inside, may refer to this schema.
	isFramed bool
	// isDirect is set if fits can say of values that they are right.
	isDirect bool
	// isComplete is set once the schema is compiled with all that it leads to.
	isComplete bool
	// isReadOnly and isWriteOnly are what its conjunction says.
	isReadOnly, isWriteOnly bool

	typeName string
	enum     *keyword.Enum
	text     *keyword.Text
	number   *keyword.Number
	object   *objectRules
	list     *listRules
	logic    *logicRules
	resource *resource
}

// anything takes every value.
var anything = &node{accepts: anyKind, isPlain: true}

// logicRules are the keywords that apply other schemas to the same value.
type logicRules struct {
	all     []*node // $ref among them
	groups  []group // anyOf and oneOf
	not     []*node
	choices []*choice
	dynamic []*dynamic

	condition, then, otherwise *node
}

// group is an anyOf or oneOf.
type group struct {
	branches []*node
	isOne    bool
	// isLenient lets null match several branches of a oneOf: nullable is no alternative.
	isLenient bool
}

// objectRules are the keywords of objects.
type objectRules struct {
	properties  []property
	names       document.Names
	required    int // how many of the properties
	patterns    []patternRule
	additional  *node // nil if nothing is said
	propertyIs  *node // propertyNames
	size        keyword.Size
	dependents  []dependent
	unevaluated *node
	walks       bool // members have to be looked at
}

// property is a member that a schema names.
type property struct {
	name       document.Name
	schema     *node // nil if its name is all that is said
	isRequired bool
}

type patternRule struct {
	matches func(string) bool
	schema  *node
}

// dependent is what holds if a member is there.
type dependent struct {
	name     document.Name
	required []document.Name
	schema   *node // nil for none
}

// listRules are the keywords of lists.
type listRules struct {
	prefix           []*node
	items            *node // of the other items; nil if nothing is said
	contains         *node
	minimum, maximum int // how many items `contains` is true of; -1 if there is no maximum
	size             keyword.Size
	isUnique         bool
	unevaluated      *node
}

// resource is a part of the document that has an identifier, or the whole document.
type resource struct {
	root    document.Node
	uri     *url.URL // nil if it has none
	anchors map[string]document.Node
	moving  []string // which of the anchors are dynamic
	dynamic []dynamicAnchor
}

// dynamicAnchor is a schema that a $dynamicRef may mean.
type dynamicAnchor struct {
	name   string
	schema *node
}

// dynamic is a $dynamicRef: the schema with the anchor in the outermost resource that a walk came
// through.
type dynamic struct {
	name     string
	fallback *node
	all      []*resource // that have the anchor
}

func (d *dynamic) each(visit func(*node)) {
	for _, r := range d.all {
		if s := r.dynamicSchema(d.name); s != nil {
			visit(s)
		}
	}
}

func (r *resource) dynamicSchema(name string) *node {
	if r == nil {
		return nil
	}
	for i := range r.dynamic {
		if r.dynamic[i].name == name {
			return r.dynamic[i].schema
		}
	}
	return nil
}
