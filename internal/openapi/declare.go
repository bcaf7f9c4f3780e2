package openapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// Bounds of a graph of models that is made a tree.
const (
	maxNodes   = 4_000
	maxRepeats = 2 // how often a schema may contain itself
)

// A branch is a model in a tree of models.
type branch struct {
	*schema.Model
	around *branch
	// at is its path within the schema, field the value's within the object, as expressions write it.
	at, field string
	// isFirst reports whether the model is in the tree for the first time, isCut whether the tree ends here.
	isFirst, isCut bool

	properties    []*branch
	others, items *branch
}

// unroll makes a tree of the graph of models. If it would be too large, what is deepest is left out.
func unroll(root *schema.Model) []*branch {
	all, seen := []*branch{{Model: root}}, map[*schema.Model]bool{}
	for i := 0; i < len(all); i++ {
		b := all[i]
		b.isFirst, seen[b.Model] = !seen[b.Model], true
		repeats := 0
		for up := b.around; up != nil; up = up.around {
			if up.isSame(b) {
				repeats++
			}
		}
		if b.isCut = repeats >= maxRepeats || len(all) > maxNodes && b.around != nil; b.isCut {
			continue
		}
		add := func(m *schema.Model, step, name string) *branch {
			if m == nil {
				return nil
			}
			all = append(all, &branch{Model: m, around: b, at: strings.TrimPrefix(b.at+"."+step, "."),
				field: b.field + name})
			return all[len(all)-1]
		}
		for _, p := range b.Properties {
			b.properties = append(b.properties, add(p.Model, "properties["+p.Name+"]", "."+p.Name))
		}
		b.others, b.items = add(others(b.Model), "additionalProperties", cel.Item), add(b.Items, "items", cel.Item)
	}
	return all
}

// isSame reports whether two models are of the same schemas. The model of a whole value has no default, and is another
// one.
func (b *branch) isSame(other *branch) bool {
	return b.Model == other.Model || len(b.Parts) > 0 && slices.Equal(b.Parts, other.Parts)
}

// left returns the paths of the fields whose defaults are left to the API, as [cel.NewUnfilled] takes them. A field
// that must be there is not among them.
func (s *Schema) left() (fields []string) {
	if !slices.ContainsFunc(s.model.Reachable(), func(m *schema.Model) bool { return m.IsLeft }) {
		return nil
	}
	for _, b := range unroll(s.model) {
		for i, p := range b.properties {
			if p.IsLeft && !slices.Contains(b.Required, b.Properties[i].Name) {
				fields = append(fields, p.field)
			}
		}
	}
	slices.Sort(fields)
	return fields
}

// UnaskedReads finds the rules of the schema that read a field whose default is left to the API without asking for it.
func (s *Schema) UnaskedReads() (found []Finding) {
	if s.Unfilled == nil || !s.isNative {
		return nil
	}
	for _, b := range unroll(s.model) {
		for i, rule := range s.rules(b.Model, newReport()) {
			r := s.Unfilled.Reader(map[string]string{"self": b.field, "oldSelf": b.field})
			if text := cel.SayUnasked(r.Reads(cel.Parse(rule.Rule))); text != "" {
				place := strings.TrimPrefix(fmt.Sprintf("%s.x-kubernetes-validations[%d].rule", b.at, i), ".")
				found = append(found, Finding{Path: s.Where(place), Message: text})
			}
		}
	}
	return found
}

// rules returns the rules about a value.
func (s *Schema) rules(m *schema.Model, say *report) (all apiextensionsv1.ValidationRules) {
	for _, p := range m.Parts {
		if n, found := p.Get("x-kubernetes-validations"); found {
			var rules apiextensionsv1.ValidationRules
			decode(n, &rules, say)
			all = append(all, rules...)
		}
	}
	return all
}

// decode reads a member into a Kubernetes type.
func decode(n document.Node, into any, say *report) {
	if err := json.Unmarshal(n.AppendRaw(nil), into); err != nil {
		say.refuse(n, "must be what Kubernetes has here: %s", err.Error())
	}
}

// declarer writes the schema of a document as Kubernetes writes schemas: as far as Kubernetes' checks of its keywords,
// and expressions, need it, and a schema that Kubernetes publishes as a whole.
type declarer struct {
	*Schema
	say      *report
	keywords schema.ExtensionReader
}

// declare writes the schema, and reports what is wrong with the keywords of Kubernetes and the gateway.
func (s *Schema) declare(say *report) (*apiextensionsv1.JSONSchemaProps, *schema.Extensions) {
	d := declarer{Schema: s, say: say}
	props, extensions := d.branch(unroll(s.model)[0])
	for _, err := range d.keywords.Errors {
		say.add(Finding{Path: s.Where(err.Field), Message: err.ErrorBody(), Error: true})
	}
	return &props, extensions
}

func (d *declarer) branch(b *branch) (p apiextensionsv1.JSONSchemaProps, e *schema.Extensions) {
	var path *field.Path
	if b.at != "" {
		path = field.NewPath(b.at)
	}
	e = schema.At(path)
	if b.isCut {
		if d.as.kubernetes {
			d.say.gap(b.place(), "%s", b.why())
		}
		return apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: new(true), Nullable: true}, e
	}
	p.Nullable = b.Nullable
	switch {
	case len(b.Types) == 1 && !b.Is("null"):
		p.Type, p.Format = b.Types[0], b.Format
		d.values(&p, b)
	case slices.Equal(b.Types, intOrString):
		p.XIntOrString = true
		d.values(&p, b)
	default:
		if e.Types = b.Types; b.Nullable && len(e.Types) > 0 {
			e.Types = append(slices.Clip(e.Types), "null")
		}
		p.Nullable = b.Nullable || len(b.Types) == 0
	}
	if b.IsOpen {
		p.XPreserveUnknownFields = new(true)
	}
	if b.Default.Valid() && b.around != nil {
		p.Default = &apiextensionsv1.JSON{Raw: b.Default.AppendRaw(nil)}
	}
	for i, in := range b.properties {
		if p.Properties == nil {
			p.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		}
		of, extensions := d.branch(in)
		p.Properties[b.Properties[i].Name] = of
		if !extensions.Empty() {
			e.SetProperty(b.Properties[i].Name, extensions)
		}
	}
	if b.others != nil {
		of, extensions := d.branch(b.others)
		p.AdditionalProperties, e.Additional = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &of},
			unlessEmpty(extensions)
	}
	if b.items != nil {
		of, extensions := d.branch(b.items)
		p.Items, e.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &of}, unlessEmpty(extensions)
	}
	p.Required = b.Required
	d.own(&p, e, b, path)
	return p, e
}

func unlessEmpty(e *schema.Extensions) *schema.Extensions {
	if e.Empty() {
		return nil
	}
	return e
}

// place is where the schema stands that the tree ends at.
func (b *branch) place() (at document.Node) {
	for _, p := range b.around.Parts {
		keyword, name, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(b.at, b.around.at), "."), "[")
		n, found := p.Get(keyword)
		if name != "" {
			n, found = n.Get(strings.TrimSuffix(name, "]"))
		}
		if found && !at.Valid() {
			at = n
		}
	}
	return at
}

// why says why the tree ends.
func (b *branch) why() string {
	for up := b.around; up != nil; up = up.around {
		if up.isSame(b) {
			return "is not enforced deeper than this: the schema stands in itself"
		}
	}
	return "is not enforced here: with everything that it refers to the schema would be too large"
}

// boundKeywords are the keywords that the estimate of what rules cost reads, valueKeywords the others that Kubernetes
// publishes.
var (
	boundKeywords = []string{"maxLength", "maxItems", "maxProperties"}
	valueKeywords = []string{"minLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
		"multipleOf", "minItems",
		"minProperties", "enum", "not", "anyOf", "oneOf"}
)

// values takes the keywords that look at the value itself. What two schemas say that hold together stands in an allOf.
func (d *declarer) values(p *apiextensionsv1.JSONSchemaProps, b *branch) {
	said := map[string]bool{}
	take := func(m document.Node) {
		key := m.Key()
		isAlternative := key == "anyOf" || key == "oneOf"
		switch {
		case key == "format" && (p.Type == "integer" && m.Is("int32") || p.Type == "number" && m.Is("float")):
		case slices.Contains(boundKeywords, key):
		case !d.as.kubernetes, !slices.Contains(valueKeywords, key), isAlternative &&
			!slices.Contains(b.Alternatives, m):
			return
		case (isAlternative || key == "not") && !isStructural(m):
			d.say.gap(m, "the keyword '%s' is not enforced", key)
			return
		}
		to := p
		if said[key] {
			p.AllOf = append(p.AllOf, apiextensionsv1.JSONSchemaProps{})
			to = &p.AllOf[len(p.AllOf)-1]
		}
		said[key] = true
		d.decode(m, to)
	}
	for _, part := range b.Parts {
		members(part, take)
	}
	if !d.as.kubernetes {
		for _, v := range b.Enum {
			p.Enum = append(p.Enum, apiextensionsv1.JSON{Raw: v.AppendRaw(nil)})
		}
	}
}

// decode takes a keyword.
func (d *declarer) decode(m document.Node, to *apiextensionsv1.JSONSchemaProps) {
	if err := json.Unmarshal(append(m.AppendRaw([]byte(`{"`+m.Key()+`":`)), '}'), to); err != nil {
		d.say.refuse(m, "must be what Kubernetes has here: %s", err.Error())
	}
}

// isStructural reports whether alternatives, or what must not be, are written as Kubernetes wants them.
func isStructural(n document.Node) bool {
	if n.Kind() == document.Array {
		return !slices.ContainsFunc(itemsOf(n), func(in document.Node) bool { return !isStructural(in) })
	}
	is := n.Kind() == document.Object
	members(n, func(m document.Node) {
		switch key := m.Key(); key {
		case "required":
		case "properties":
			is = is && all(itemsOf(m), isStructural)
		case "items", "not", "anyOf", "oneOf", "allOf":
			is = is && isStructural(m)
		default:
			is = is && (slices.Contains(boundKeywords, key) || slices.Contains(valueKeywords, key))
		}
	})
	return is
}

// itemsOf returns the items of a list, or the members of an object.
func itemsOf(n document.Node) (list []document.Node) {
	members(n, func(m document.Node) { list = append(list, m) })
	return list
}

// own takes Kubernetes' keywords, and the gateway's. The rules about a value are compiled once, where expressions see
// most of what is in it.
func (d *declarer) own(p *apiextensionsv1.JSONSchemaProps, e *schema.Extensions, b *branch, path *field.Path) {
	for _, part := range b.Parts {
		members(part, func(m document.Node) {
			switch key := m.Key(); {
			case key == "x-kubernetes-list-type", key == "x-kubernetes-list-map-keys", key == "x-kubernetes-map-type",
				key == "x-kubernetes-embedded-resource":
				d.decode(m, p)
			case strings.HasPrefix(key, schema.ExtensionPrefix) && d.as.of != ofResponses:
				d.keywords.Keyword(e, m, path)
			}
		})
	}
	if b.isFirst {
		p.XValidations = d.rules(b.Model, d.say)
	}
	d.checkListType(p, b)
}

// checkListType drops a list type whose keys cannot identify items, because they may be missing. Kubernetes has some,
// and with it keys are required at any rate if it says so.
func (d *declarer) checkListType(p *apiextensionsv1.JSONSchemaProps, b *branch) {
	if p.XListType == nil || *p.XListType != "map" {
		return
	}
	for _, key := range p.XListMapKeys {
		if p.Items != nil && b.items != nil {
			items := p.Items.Schema
			if of, found := items.Properties[key]; found &&
				(of.Default != nil || slices.Contains(items.Required, key)) {
				continue
			}
			if d.as.kubernetes && isRequiredIn(b.items.Model, key) {
				items.Required = append(slices.Clip(items.Required), key)
				continue
			}
		}
		for _, part := range b.Parts {
			if at, found := part.Get("x-kubernetes-list-map-keys"); found && !d.as.kubernetes {
				d.say.warn(at, "is not enforced, because the key '%.80s' is neither required nor has a default", key)
			}
		}
		p.XListType, p.XListMapKeys = nil, nil
		return
	}
}

// isRequiredIn reports whether a document requires a member, even if Kubernetes reads a missing one as zero.
func isRequiredIn(m *schema.Model, name string) bool {
	c := conjunction{parts: m.Parts}
	return slices.Contains(c.required(), name)
}
