package graph

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/pattern"
	"github.com/admission-gateway/gateway/internal/schema/keyword"
)

// Compiler compiles schemas of one document.
type Compiler struct {
	root    document.Node
	dialect Dialect
	report  func(Finding)

	schemas   map[key]*node
	queue     []queued
	patterns  map[string]*pattern.Pattern
	extends   map[string][]string // by component, the ones that it extends by allOf
	top       *resource
	resources map[uint32]*resource // by their nodes; nil if the document has no identifiers
}

// key identifies a schema of the document. isBase is set for one that another extends by allOf:
// which of the schemas that extend it holds is known there.
type key struct {
	node   uint32
	isBase bool
}

type queued struct {
	node   document.Node
	schema *node
	isBase bool
}

func (c *Compiler) refuse(at document.Node, format string, args ...any) {
	c.report(Finding{At: at, Message: fmt.Sprintf(format, args...), Error: true})
}

func (c *Compiler) warn(at document.Node, format string, args ...any) {
	c.report(Finding{At: at, Message: fmt.Sprintf(format, args...)})
}

func (c *Compiler) gap(at document.Node, format string, args ...any) {
	c.report(Finding{At: at, Message: fmt.Sprintf(format, args...), Gap: true})
}

func (c *Compiler) isOpenAPI() bool { return c.dialect != Draft2020 }

// schema returns the schema of a node, which is filled later.
func (c *Compiler) schema(n document.Node, isBase bool) *node {
	for range maxRefs {
		to := c.alias(n)
		if !to.Valid() {
			break
		}
		n = to
	}
	isBase = isBase && c.isOpenAPI() && isExtensible(n)
	k := key{n.Index(), isBase}
	if s := c.schemas[k]; s != nil {
		return s
	}
	s := &node{accepts: anyKind}
	c.schemas[k] = s
	c.queue = append(c.queue, queued{n, s, isBase})
	return s
}

// maxRefs is how many references may lead from one to the next without a schema between them.
const maxRefs = 32

// alias returns what a schema refers to that says nothing else; invalid if it does not.
func (c *Compiler) alias(n document.Node) document.Node {
	ref, found := n.Get("$ref")
	if !found || ref.Kind() != document.String || c.resources != nil {
		return document.Node{}
	}
	if c.dialect != OpenAPI30 {
		for m := n.First(); m.Valid(); m = m.Next() {
			if key := m.Key(); key != "$ref" && (!IsAnnotation(key) || key == "readOnly" || key == "writeOnly") {
				return document.Node{}
			}
		}
	}
	to, err := c.resolve(ref.Str(), n)
	if err != nil {
		return document.Node{}
	}
	c.ignoredSiblings(n)
	return to
}

// ignoredSiblings says that version 3.0 has nothing count beside a $ref.
func (c *Compiler) ignoredSiblings(n document.Node) {
	if c.dialect != OpenAPI30 {
		return
	}
	for m := n.First(); m.Valid(); m = m.Next() {
		if key := m.Key(); key != "$ref" && !IsAnnotation(key) {
			c.warn(m, "does not count beside '$ref' in OpenAPI 3.0: put both into an 'allOf'")
		}
	}
}

// IsAnnotation reports whether a keyword says nothing of what values are right.
func IsAnnotation(key string) bool {
	switch key {
	case "title", "description", "example", "examples", "deprecated", "externalDocs", "xml", "summary",
		"$comment", "$schema", "$id", "$anchor", "$dynamicAnchor", "$vocabulary", "$defs", "definitions",
		"contentMediaType", "contentEncoding", "contentSchema", "default", "readOnly", "writeOnly":
		return true
	}
	return strings.HasPrefix(key, "x-")
}

func (s *node) logical() *logicRules {
	if s.logic == nil {
		s.logic = &logicRules{}
	}
	return s.logic
}

// filler compiles the keywords of one schema.
type filler struct {
	*Compiler
	at     document.Node
	s      *node
	isBase bool

	named       map[string]int     // the properties, by name
	chosen      map[uint32]*choice // by its list of alternatives; nil if it has none of them
	hasContains bool
	isOpen      bool // an expression for the names of members is not enforced
}

func (f *filler) object() *objectRules {
	if f.s.object == nil {
		f.s.object = newObject()
	}
	return f.s.object
}

func (f *filler) list() *listRules {
	if f.s.list == nil {
		f.s.list = &listRules{size: keyword.AnySize, minimum: 1, maximum: -1}
	}
	return f.s.list
}

func (f *filler) text() *keyword.Text {
	if f.s.text == nil {
		f.s.text = &keyword.Text{Least: -1, Most: -1}
	}
	return f.s.text
}

func (f *filler) number() *keyword.Number {
	if f.s.number == nil {
		f.s.number = &keyword.Number{IsExact: true}
	}
	return f.s.number
}

// sub returns the schema of a subschema.
func (f *filler) sub(n document.Node) *node { return f.schema(n, false) }

// isSchema reports whether a value is a schema, and says so if it is not.
func (f *filler) isSchema(m document.Node) bool {
	if m.Kind() == document.Object || m.Kind() == document.Bool {
		return true
	}
	if m.Kind() == document.Null {
		f.warn(m, saysNothing)
	} else {
		f.refuse(m, "must be a schema: an object, or 'true' or 'false'")
	}
	return false
}

// truth reads a boolean. isOpen is set if one of the wrong type leaves something open.
func (f *filler) truth(m document.Node, isOpen bool) bool {
	if m.Kind() != document.Bool {
		f.report(Finding{At: m, Message: "must be 'true' or 'false'", Error: isOpen})
	}
	return m.Bool()
}

// count reads a number of characters, items or members; -1 if it is none.
func (f *filler) count(m document.Node) int64 {
	n, ok := m.Int64()
	if !ok || n < 0 {
		if !m.IsWhole() || document.CompareNumbers(m, zero) < 0 {
			f.refuse(m, "must be an integer of at least 0")
			return -1
		}
		return maxCount
	}
	return min(n, maxCount)
}

// maxCount is more than a value can have of anything.
const maxCount = 1 << 40

var zero = constant([]byte("0"))

// constant is a value that lives as long as the schemas.
func constant(raw []byte) document.Node {
	d, err := document.Parse(bytes.Clone(raw), document.Limits{Depth: 1 << 16})
	if err != nil {
		panic("graph: a value of a document that is not JSON: " + err.Error())
	}
	return d.Root()
}

// allTypes are the types of JSON Schema, in the order in which messages list them.
var allTypes = []string{"integer", "number", "string", "boolean", "object", "array", "null"}

// typesOf returns the types that a keyword names; nil if it is wrong.
func (f *filler) typesOf(m document.Node, says bool) (names []string) {
	items := []document.Node{m}
	if m.Kind() == document.Array {
		items = items[:0]
		for item := m.First(); item.Valid(); item = item.Next() {
			items = append(items, item)
		}
	}
	for _, item := range items {
		if i := slices.Index(allTypes, item.Str()); i >= 0 {
			names = append(names, allTypes[i])
			continue
		}
		if says {
			f.refuse(item, "must be a type of JSON Schema, such as 'string'")
		}
		return nil
	}
	if len(names) == 0 && says {
		f.refuse(m, "must name at least one type")
	}
	return names
}

// acceptable returns the kinds of values that have one of the types, and how messages name these.
func acceptable(names []string) (accepts kinds, isWhole bool, typeName string) {
	var shown []string
	for _, name := range allTypes {
		if !slices.Contains(names, name) {
			continue
		}
		switch name {
		case "integer":
			accepts |= 1 << document.Number
			isWhole = !slices.Contains(names, "number")
			if !isWhole {
				continue
			}
		case "number":
			accepts |= 1 << document.Number
		case "string":
			accepts |= 1 << document.String
		case "boolean":
			accepts |= 1 << document.Bool
		case "object":
			accepts |= 1 << document.Object
		case "array":
			accepts |= 1 << document.Array
		case "null":
			accepts |= 1 << document.Null
			if len(shown) == 1 {
				continue
			}
		}
		shown = append(shown, name)
	}
	return accepts, isWhole, strings.Join(shown, " or ")
}

// maxMarks is how deep readOnly and writeOnly are looked for in what a schema refers to.
const maxMarks = 16

// resourceOf returns the resource that a value belongs to.
func (c *Compiler) resourceOf(n document.Node) *resource {
	for ; n.Valid(); n = n.Parent() {
		if r := c.resources[n.Index()]; r != nil {
			return r
		}
	}
	return c.top
}

// resolve finds what a reference in a schema points to.
func (c *Compiler) resolve(ref string, from document.Node) (document.Node, error) {
	if c.resources == nil {
		return Resolve(c.root, ref)
	}
	in := c.resourceOf(from)
	uri, err := in.uri.Parse(ref)
	if err != nil {
		return document.Node{}, fmt.Errorf("must be a reference: %s", err.Error())
	}
	fragment := uri.Fragment
	base := *uri
	base.Fragment, base.RawFragment = "", ""
	found := false
	for _, r := range c.resources {
		if r.uri != nil && bare(r.uri) == base.String() {
			in, found = r, true
		}
	}
	switch {
	case !found:
		return Resolve(document.Node{}, ref)
	case fragment == "" || fragment[0] == '/':
		return Resolve(in.root, "#"+uri.EscapedFragment())
	}
	if n, found := in.anchors[fragment]; found {
		return n, nil
	}
	return document.Node{}, fmt.Errorf("must point to something in the document, not '%.200s'", ref)
}

// bare is a URI without fragment.
func bare(u *url.URL) string {
	base := *u
	base.Fragment, base.RawFragment = "", ""
	return base.String()
}

// Resolve finds what a reference points to that is a path within a document.
func Resolve(root document.Node, ref string) (document.Node, error) {
	pointer, isLocal := strings.CutPrefix(ref, "#")
	if !isLocal || !root.Valid() {
		return document.Node{}, fmt.Errorf("must be a reference within the document or to a file of its folder, such as '#/components/schemas/Order' or 'order.yaml#/Order', not '%.200s'", ref)
	}
	at := root
	if pointer == "" {
		return at, nil
	}
	if pointer[0] != '/' {
		return document.Node{}, fmt.Errorf("must be a path within the document, such as '#/components/schemas/Order', not '%.200s'", ref)
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		if strings.IndexByte(token, '%') >= 0 {
			if decoded, err := url.PathUnescape(token); err == nil {
				token = decoded
			}
		}
		if strings.IndexByte(token, '~') >= 0 {
			token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		}
		next, found := at.Get(token)
		if at.Kind() == document.Array {
			next, found = item(at, token)
		}
		if !found {
			return document.Node{}, fmt.Errorf("must point to something in the document, not '%.200s'", ref)
		}
		at = next
	}
	return at, nil
}

// item returns the item of a list that a token of a pointer names.
func item(list document.Node, token string) (document.Node, bool) {
	n := 0
	if token == "" || len(token) > 6 {
		return document.Node{}, false
	}
	for _, c := range []byte(token) {
		if c < '0' || c > '9' {
			return document.Node{}, false
		}
		n = 10*n + int(c-'0')
	}
	return list.At(n)
}
