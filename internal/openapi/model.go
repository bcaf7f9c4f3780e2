package openapi

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/schema/graph"
)

// modeler makes the models of a document's schemas for a purpose.
type modeler struct {
	doc  *Document
	as   translation
	made map[string]*schema.Model // by the schemas that hold together
	// joint is how many of them are of several schemas that do not refer to each other.
	joint int
	queue []unfilled
}

// unfilled is a model to be filled.
type unfilled struct {
	model *schema.Model
	of    conjunction
	nodes []document.Node // the schemas that are said of the value
	whole wholeness
}

// wholeness says whether a model is of a whole value: it has no default then.
type wholeness uint8

const (
	noWhole wholeness = iota
	wholeValue
	wholeObject // with the envelope of Kubernetes
)

// maxJoint bounds the models of several schemas: in theory any set of schemas may hold for a value.
const maxJoint = 4_000

// modeler returns the one for a purpose.
func (d *Document) modeler(as translation) *modeler {
	as.envelope, as.overNull = false, false // which concern the whole value, and how a null counts
	b := d.modelers[as]
	if b == nil {
		if d.modelers == nil {
			d.modelers = map[translation]*modeler{}
		}
		b = &modeler{doc: d, as: as, made: map[string]*schema.Model{}}
		d.modelers[as] = b
	}
	return b
}

// modelOf returns the model of a whole value.
func (d *Document) modelOf(n document.Node, as translation) *schema.Model {
	whole := wholeValue
	if as.envelope {
		whole = wholeObject
	}
	b := d.modeler(as)
	root := &schema.Model{}
	b.queue = append(b.queue, unfilled{root, d.conjunctionOf(n), []document.Node{n}, whole})
	b.finish()
	return root
}

// valueModelOf returns the model of a whole value without what is in it.
func (d *Document) valueModelOf(n document.Node, as translation) *schema.Model {
	m, c := &schema.Model{IsOpen: true}, d.conjunctionOf(n)
	d.modeler(as).value(m, &c)
	return m
}

// finish fills the models that were begun.
func (b *modeler) finish() {
	for i := 0; i < len(b.queue); i++ { // which grows
		next := b.queue[i]
		b.fill(&next)
	}
	made := b.queue
	b.queue = nil
	for i := range made {
		if m := made[i].model; m.IsEndless() {
			b.doc.report.warn(m.Default, "the default is not applied: with the defaults of what is in it, it contains itself")
			b.drop(m)
		}
	}
}

// drop takes back the default of a model.
func (b *modeler) drop(m *schema.Model) {
	delete(b.doc.filled, m.Default.Index())
	m.Default = document.Node{}
}

// member returns the model of a value within another one.
func (b *modeler) member(c conjunction, nodes []document.Node) *schema.Model {
	if len(nodes) > 1 && b.joint >= maxJoint {
		c, nodes = b.doc.conjunctionOf(nodes[0]), nodes[:1]
	}
	key := make([]byte, 0, 4*len(c.parts))
	for _, p := range c.parts {
		key = binary.LittleEndian.AppendUint32(key, p.Index())
	}
	if m := b.made[string(key)]; m != nil {
		return m
	}
	if len(nodes) > 1 {
		b.joint++
	}
	m := &schema.Model{}
	b.made[string(key)] = m
	b.queue = append(b.queue, unfilled{m, c, nodes, noWhole})
	return m
}

// intOrString are the types of Kubernetes' kind of number or name.
var intOrString = []string{"integer", "string"}

// fill fills a model.
func (b *modeler) fill(u *unfilled) {
	m, c := u.model, &u.of
	isNullable := b.value(m, c)
	if !b.as.kubernetes {
		m.Check = b.checkOf(u.nodes)
	}
	switch {
	case m.Is("string"):
		b.text(m, c)
	case m.Is("array"):
		b.list(m, c)
	case m.Is("object"):
		b.object(m, c, u.whole)
	default:
		m.IsOpen = m.Is("null") || len(m.Types) != 1 && !slices.Equal(m.Types, intOrString)
	}
	if u.whole == noWhole && !c.isNever() {
		b.setDefault(m, c, isNullable)
	}
}

// value says in a model which types and values there may be, and reports whether the document names null as one.
func (b *modeler) value(m *schema.Model, c *conjunction) (isNullable bool) {
	found := b.doc.choiceOf(c, b.as.kubernetes)
	m.Parts = c.parts
	if b.as.kubernetes {
		m.Alternatives = found.lists
	} else {
		b.ownedWithin(found.lists)
	}
	if c.isNever() {
		m.Nullable = true
		return false
	}
	types, nullable := c.types()
	types, nullable = intersect(types, found.types), nullable || found.mayBeNull
	for _, v := range c.values(&found) {
		if v.Kind() != document.Null && fits(v, types) {
			m.Enum = append(m.Enum, v)
		}
	}
	types = b.infer(m, c, types, found.lists)
	if c.isIntOrString() || len(types) == len(intOrString) && slices.Contains(types, "integer") &&
		slices.Contains(types, "string") {
		types = intOrString
	}
	m.Types, m.Nullable = types, nullable || len(types) == 0
	m.IsAmbiguous = b.as.of == ofTexts && len(types) == 0 && (len(found.lists) > 0 || len(m.Enum) > 0 || c.saysMore())
	return nullable
}

// checkOf returns the check of schemas that hold together.
func (b *modeler) checkOf(nodes []document.Node) *graph.Schema {
	all := make([]*graph.Schema, len(nodes))
	for i, n := range nodes {
		all[i] = b.doc.schemas().Compile(n)
	}
	return graph.All(all...)
}

// values are in all enumerations and constants.
func (c *conjunction) values(found *choice) []document.Node {
	values, isListed := found.values, found.isListed
	for _, p := range c.parts {
		for _, key := range []string{"enum", "const"} {
			m, has := p.Get(key)
			if !has {
				continue
			}
			own := []document.Node{m}
			if key == "enum" {
				own = nil
				members(m, func(v document.Node) { own = append(own, v) })
			}
			if !isListed {
				values, isListed = own, true
				continue
			}
			values = slices.DeleteFunc(slices.Clone(values), func(v document.Node) bool {
				return !slices.ContainsFunc(own, func(o document.Node) bool { return document.EqualNodes(o, v) })
			})
		}
	}
	return values
}

// fits reports whether a value has one of the types; none is any.
func fits(v document.Node, types []string) bool {
	if len(types) == 0 {
		return true
	}
	if _, isWhole := v.Int64(); v.Kind() == document.Number && isWhole && slices.Contains(types, "integer") {
		return true
	}
	return slices.Contains(types, v.Kind().String())
}

// isIntOrString reports whether the value is Kubernetes' kind of number or name.
func (c *conjunction) isIntOrString() bool {
	format, found := c.get("format")
	return c.says("x-kubernetes-int-or-string") || found && format.Is("int-or-string")
}

// keywordTypes are the keywords that only constrain objects, or lists. An author who writes them
// without a type means one: there are defaults, rules and fields for it. Values of other types are valid all the same.
var keywordTypes = map[string]string{
	"properties": "object", "additionalProperties": "object", "required": "object", "minProperties": "object",
	"maxProperties":     "object",
	"patternProperties": "object", "propertyNames": "object", "unevaluatedProperties": "object",
	"discriminator": "object",
	"items":         "array", "prefixItems": "array", "minItems": "array", "maxItems": "array", "uniqueItems": "array",
	"contains": "array",
}

// inferred returns the type that the keywords of a schema are for; "" if they do not tell.
func (c *conjunction) inferred() string {
	for _, p := range c.parts {
		for k := p.First(); k.Valid(); k = k.Next() {
			if name := keywordTypes[k.Key()]; name != "" {
				return name
			}
		}
	}
	return ""
}

// infer returns the type that is meant if none is named: by the keywords, else the one that all alternatives or values
// have.
func (b *modeler) infer(m *schema.Model, c *conjunction, types []string, alternatives []document.Node) []string {
	if len(types) > 0 {
		return types
	}
	name := c.inferred()
	m.IsInferred = name != ""
	switch {
	case m.IsInferred:
	case len(alternatives) > 0 && b.as.of == ofTexts:
		name = b.doc.typeOfAlternatives(alternatives)
	case (len(alternatives) == 0 || !b.as.kubernetes) && len(m.Enum) > 0:
		name = m.Enum[0].Kind().String()
		if !all(m.Enum, func(v document.Node) bool { return v.Kind() == m.Enum[0].Kind() }) {
			name = ""
		}
	}
	if name == "" {
		return nil
	}
	return []string{name}
}

// typeOfAlternatives returns 'object' or 'array' if all alternatives have that type, else "".
func (d *Document) typeOfAlternatives(lists []document.Node) (common string) {
	for _, list := range lists {
		for n := list.First(); n.Valid(); n = n.Next() {
			c := d.conjunctionOf(n)
			types, _ := c.types()
			name := c.inferred()
			if len(types) == 1 {
				name = types[0]
			}
			if common == "" {
				common = name
			}
			if !isNull(n) && (len(types) > 1 || name != common || name != "object" && name != "array") {
				return ""
			}
		}
	}
	return common
}

// formats are the formats of strings that are checked, as Kubernetes understands them. What it
// understands otherwise than JSON Schema does is not among them: its durations are '1h30m', not
// 'PT1H30M'.
var formats = []string{
	"date", "date-time", "email", "hostname", "ipv4", "ipv6", "uri", "uuid", "mac", "cidr", "password",
	"uuid3", "uuid4", "uuid5", "isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "bsonobjectid",
	"datetime",
}

// text describes a string.
func (b *modeler) text(m *schema.Model, c *conjunction) {
	c.each("format", func(n document.Node) {
		if name := n.Str(); m.Format == "" &&
			(slices.Contains(formats, name) || b.as.kubernetes && name == "duration") {
			m.Format = strings.Clone(name)
		}
	})
}

// list describes a list.
func (b *modeler) list(m *schema.Model, c *conjunction) {
	var items []document.Node
	if _, isTuple := c.get("prefixItems"); !isTuple { // what follows the first items cannot be told from them
		c.each("items", func(n document.Node) {
			if n.Kind() != document.Array {
				items = append(items, n)
			}
		})
	}
	if len(items) == 0 {
		m.Items = schema.Anything
		return
	}
	m.Items = b.member(b.doc.conjunctionOf(items...), items)
}

// object describes an object. Unlike in Kubernetes' schemas, members that are not named may be anything unless the
// schema says otherwise.
func (b *modeler) object(m *schema.Model, c *conjunction, whole wholeness) {
	schemas := map[string][]document.Node{}
	var names []string
	c.each("properties", func(properties document.Node) {
		members(properties, func(p document.Node) {
			name := p.Key()
			if schemas[name] == nil {
				name = strings.Clone(name)
				names = append(names, name)
			}
			schemas[name] = append(schemas[name], p)
		})
	})
	var left []string
	for _, name := range names {
		of := b.doc.conjunctionOf(schemas[name]...)
		p := schema.ModelProperty{Name: name}
		if !b.as.kubernetes {
			p.IsHidden = of.says("writeOnly")
			if first, _ := of.get("readOnly"); first.Bool() && !b.as.of.isAnswer() {
				p.IsOwned = true
			}
		}
		if b.isLeftToAPI(&of) || b.as.kubernetes && of.isZeroWhenMissing() {
			left = append(left, name)
		}
		implied := ""
		if whole == wholeObject {
			implied = impliedTypes[name]
		}
		switch {
		case implied != "":
			p.Model = &schema.Model{Types: []string{implied}, IsImplied: true, Parts: of.parts}
		case b.as.of == ofResponses && p.IsHidden:
			p.Model = schema.Anything // it is the property that is wrong
		default:
			p.Model = b.member(of, schemas[name])
		}
		m.Properties = append(m.Properties, p)
	}
	m.Required = slices.DeleteFunc(c.required(), func(name string) bool { return slices.Contains(left, name) })
	b.others(m, c)
}

// impliedTypes are the types of the members that objects of Kubernetes have.
var impliedTypes = map[string]string{"metadata": "object", "kind": "string", "apiVersion": "string"}

// isZeroWhenMissing reports whether a missing member of one of Kubernetes' own kinds is read as the
// zero value of its type in Go, even if it is required: what has a default that says so, lists and
// maps.
func (c *conjunction) isZeroWhenMissing() bool {
	if _, found := c.get("default"); found {
		return true
	}
	kind, _ := c.get("type")
	_, isMap := c.get("additionalProperties")
	return kind.Is("array") || kind.Is("object") && isMap
}

// others describes the members that are not named.
func (b *modeler) others(m *schema.Model, c *conjunction) {
	var schemas []document.Node
	isOpen := c.says("x-kubernetes-preserve-unknown-fields")
	take := func(n document.Node) {
		switch {
		case n.Kind() != document.Bool:
			schemas = append(schemas, n)
		case n.Bool():
			isOpen = true
		default:
			m.IsClosed = true
		}
	}
	c.each("additionalProperties", take)
	c.each("unevaluatedProperties", take)
	c.each("patternProperties", func(patterns document.Node) {
		if patterns.Len() == 1 && slices.Contains([]string{"", ".*", "^.*$", ".+", "^.+$"}, patterns.First().Key()) {
			take(patterns.First())
			return
		}
		m.IsClosed, isOpen, schemas = false, true, nil
	})
	isNamed := len(m.Properties) > 0
	if len(schemas) > 0 && !m.IsClosed {
		m.Others = b.member(b.doc.conjunctionOf(schemas...), schemas)
	}
	m.IsOpen = !m.IsClosed && (m.Others == nil || isNamed) &&
		(isOpen || m.Others != nil || !isNamed || !b.as.kubernetes)
}

// isLeftToAPI reports whether a required property may be missing, because it is the API that sets it, or does not show
// it.
func (b *modeler) isLeftToAPI(c *conjunction) bool {
	of := b.as.of
	return c.says("readOnly") && !of.isAnswer() || c.says("writeOnly") && of.lacksHidden()
}

// setDefault takes the default of a value that clients may set.
func (b *modeler) setDefault(m *schema.Model, c *conjunction, isNullable bool) {
	n, found := c.get("default")
	switch {
	case !found, b.as.of.isUndefaulted(), b.isLeftToAPI(c):
		return
	case b.as.unfilled:
		m.IsLeft = true
		return
	case n.Kind() == document.Null && !isNullable:
		return
	case b.as.kubernetes && isZero(n):
		return // Go's zero values, which Kubernetes' own encoding leaves out
	case n.Kind() != document.Null && !fits(n, m.Types):
		b.doc.report.warn(n, "must be of the schema's type; the default is not applied")
		return
	}
	if m.Check != nil {
		if result := m.Check.Check(n, graph.Requests); !result.Valid() {
			b.doc.report.warn(n, "the default is not applied: %s", result.Failures[0].Err.ErrorBody())
			return
		}
	}
	if !b.as.kubernetes { // an API server fills in its own
		b.doc.filled[n.Index()] = true
	}
	m.Default = n
}

func isZero(n document.Node) bool {
	switch n.Kind() {
	case document.Null:
		return true
	case document.Bool:
		return !n.Bool()
	case document.Number:
		i, whole := n.Int64()
		return whole && i == 0
	case document.String:
		return n.Str() == ""
	}
	return n.Len() == 0
}

// ownedWithin says of properties of alternatives that are readOnly what becomes of them.
func (b *modeler) ownedWithin(lists []document.Node) {
	if b.as.of.isAnswer() || b.as.of == ofTexts {
		return
	}
	for _, list := range lists {
		members(list, func(n document.Node) {
			c := b.doc.conjunctionOf(n)
			c.each("properties", func(properties document.Node) {
				members(properties, func(m document.Node) {
					of := b.doc.conjunctionOf(m)
					if at, found := of.get("readOnly"); found && at.Bool() {
						b.doc.report.gap(at, "is not enforced within alternatives")
					}
				})
			})
		})
	}
}
