package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/pattern"
	"github.com/admission-gateway/gateway/internal/schema/list"
)

// maxProperties is the largest number that a note can hold.
const maxProperties = document.MaxNote - 3 // kind, apiVersion and metadata are added

// compiler turns one structural schema into shapes.
type compiler struct {
	stripFormat func(*spec.Schema) error
	patterns    map[string]*pattern.Pattern // by their text: schemas repeat them
	mayRepeat   bool                        // of the Options
	hasEnvelope bool                        // there are objects that have metadata of Kubernetes'
	isDocument  bool                        // the schema is of an OpenAPI document: its types mean what they say
	// defaultsNull is of the Options.
	defaultsNull bool
}

func newCompiler() *compiler {
	return &compiler{
		stripFormat: apiservervalidation.StripUnsupportedFormatsPostProcessorForVersion(
			environment.DefaultCompatibilityVersion()),
		patterns: map[string]*pattern.Pattern{},
	}
}

// shape compiles a schema. implied is set for objects that have kind, apiVersion and metadata at
// any rate. The structural schema stands at the same place. It is nil below allOf, anyOf, oneOf and
// not, which have neither default nor list type nor rule.
func (c *compiler) shape(p *apiextensions.JSONSchemaProps, st *structuralschema.Structural,
	implied bool) (*Shape, error) {
	s := &Shape{}
	if p.Nullable {
		s.null = nullIsValue
	}
	if implied {
		s.envelope = resourceEnvelope
	}
	for _, name := range p.Required {
		if n := document.NewName(name); !slices.Contains(s.object.required, n) {
			s.object.required = append(s.object.required, n)
		}
	}
	if err := c.values(s, p); err != nil {
		return nil, err
	}
	if st != nil {
		s.merging, s.preserves = mergingOf(st), st.XPreserveUnknownFields
		if err := c.keywords(s, st); err != nil {
			return nil, err
		}
		var err error
		if s.def, err = defaultOf(st); err != nil {
			return nil, err
		}
		if c.defaultsNull && s.def != nil && string(s.def) != "null" {
			s.null = nullIsDefaulted
		}
	}
	if err := c.members(s, p, st); err != nil {
		return nil, err
	}
	if s.list.kind != nil {
		s.list.kind.Defaults = s.list.items.keyDefaults(s.list.kind.Keys)
	}
	if err := c.logic(s, p); err != nil {
		return nil, err
	}
	s.summarise()
	return s, nil
}

// keywords compiles the keywords of Kubernetes' own about a value.
func (c *compiler) keywords(s *Shape, st *structuralschema.Structural) (err error) {
	s.merging.atomic = st.XMapType != nil && *st.XMapType == "atomic"
	if st.XEmbeddedResource {
		s.envelope = embeddedEnvelope
	}
	c.hasEnvelope = c.hasEnvelope || s.envelope != noEnvelope
	switch {
	case st.XListType != nil && *st.XListType == "set":
		s.list.kind = &list.Type{MayRepeat: c.mayRepeat}
	case st.XListType != nil && *st.XListType == "map":
		s.list.kind = &list.Type{MayRepeat: c.mayRepeat}
		for _, key := range st.XListMapKeys {
			s.list.kind.Keys = append(s.list.kind.Keys, document.NewName(key))
		}
	}
	s.rules, err = newRules(st, s.envelope != noEnvelope)
	return err
}

// members compiles properties, additionalProperties and items.
func (c *compiler) members(s *Shape, p *apiextensions.JSONSchemaProps, st *structuralschema.Structural) error {
	if len(p.Properties) > maxProperties {
		return fmt.Errorf("must have at most %d properties", maxProperties)
	}
	for name, sub := range p.Properties {
		var subStructural *structuralschema.Structural
		if st != nil {
			subSt := st.Properties[name]
			subStructural = &subSt
		}
		shape, err := c.shape(&sub, subStructural, false)
		if err != nil {
			return err
		}
		s.object.properties = append(s.object.properties, Property{Name: name, Shape: shape})
	}
	s.link()
	if p.AdditionalProperties != nil {
		s.object.others = othersAllowed
		if !p.AdditionalProperties.Allows {
			s.object.others = othersRefused
		}
		if sub := p.AdditionalProperties.Schema; sub != nil {
			var subStructural *structuralschema.Structural
			if st != nil && st.AdditionalProperties != nil {
				subStructural = st.AdditionalProperties.Structural
			}
			var err error
			if s.object.additional, err = c.shape(sub, subStructural, false); err != nil {
				return err
			}
		}
	}
	if p.Items != nil && p.Items.Schema != nil {
		var subStructural *structuralschema.Structural
		if st != nil {
			subStructural = st.Items
		}
		var err error
		if s.list.items, err = c.shape(p.Items.Schema, subStructural, false); err != nil {
			return err
		}
	}
	return nil
}

// link completes an object whose properties are set: the names that every resource has, the index, and the bits of
// members that must be there or are filled in.
func (s *Shape) link() {
	slices.SortFunc(s.object.properties, func(a, b Property) int { return strings.Compare(a.Name, b.Name) })
	if s.envelope != noEnvelope {
		for _, name := range []string{"apiVersion", "kind", "metadata"} {
			at, found := slices.BinarySearchFunc(s.object.properties, name, func(p Property, name string) int {
				return strings.Compare(p.Name, name)
			})
			if !found {
				s.object.properties = slices.Insert(s.object.properties, at, Property{Name: name})
			}
			s.object.properties[at].implied = roleOf(name)
		}
	}
	s.index()
	s.assignBits()
}

func (c *compiler) logic(s *Shape, p *apiextensions.JSONSchemaProps) error {
	l := &logicRules{}
	for _, group := range []struct {
		from []apiextensions.JSONSchemaProps
		to   *[]*Shape
	}{{p.AllOf, &l.allOf}, {p.AnyOf, &l.anyOf}, {p.OneOf, &l.oneOf}} {
		for i := range group.from {
			branch, err := c.shape(&group.from[i], nil, false)
			if err != nil {
				return err
			}
			*group.to = append(*group.to, branch)
		}
	}
	if p.Not != nil {
		var err error
		if l.not, err = c.shape(p.Not, nil, false); err != nil {
			return err
		}
	}
	if p.XIntOrString {
		// Int-or-string schemas spell out for other readers what their type says already.
		if intOrString(p.AnyOf) {
			l.anyOf = nil
		}
		if len(p.AllOf) > 0 && intOrString(p.AllOf[0].AnyOf) {
			l.allOf[0].logic.anyOf = nil
			if l.allOf[0].logic.empty() {
				l.allOf[0].logic = nil
			}
			if l.allOf[0].summarise(); l.allOf[0].checks == checkNothing {
				l.allOf = l.allOf[1:]
			}
		}
	}
	if !l.empty() {
		s.logic = l
	}
	return nil
}

func (l *logicRules) empty() bool {
	return len(l.allOf) == 0 && len(l.anyOf) == 0 && len(l.oneOf) == 0 && l.not == nil
}

func intOrString(anyOf []apiextensions.JSONSchemaProps) bool {
	return len(anyOf) == 2 && only(&anyOf[0], "integer") && only(&anyOf[1], "string")
}

// only reports whether the schema says the type and nothing else that matters.
func only(p *apiextensions.JSONSchemaProps, typeName string) bool {
	raw, err := json.Marshal(p)
	if err != nil {
		return false
	}
	want, err := json.Marshal(&apiextensions.JSONSchemaProps{Type: typeName})
	return err == nil && bytes.Equal(raw, want)
}

// summarise sets what the walks need to know about everything below.
func (s *Shape) summarise() {
	s.flat = s.logic == nil && s.enum == nil && s.envelope != embeddedEnvelope && s.object.others != othersRefused
	s.checks = checkNothing
	if !s.flat || s.text != nil || s.number != nil || s.object.size != nil || s.list.size != nil ||
		s.list.kind != nil || len(s.object.required) > 0 {
		s.checks = checkAll
	}
	s.hasListTypes = s.list.kind != nil
	s.hasDefaults, s.rulesIn = len(s.object.defaults) > 0, noRules
	if s.rules != nil {
		s.rulesIn = someRules
		if s.rules.compiled.UsesOldSelf {
			s.rulesIn = rulesOnOld
		}
	}
	for i := range s.object.properties {
		s.include(s.object.properties[i].Shape)
	}
	s.include(s.object.additional)
	s.include(s.list.items)
	if s.checks == checkNothing && s.accepts != anyKind {
		s.checks = checkType
	}
	// A null item or map value becomes the default of its shape.
	s.hasDefaults = s.hasDefaults || s.object.additional.Default() != nil || s.list.items.Default() != nil
}

func (s *Shape) include(child *Shape) {
	if child == nil {
		return
	}
	if child.checks != checkNothing {
		s.checks = checkAll
	}
	s.hasDefaults = s.hasDefaults || child.hasDefaults
	s.hasListTypes = s.hasListTypes || child.hasListTypes
	s.rulesIn = max(s.rulesIn, child.rulesIn)
}

// deep reports whether what is deeper in a value decides whether the value itself is right.
func (s *Shape) deep() bool {
	return s.logic != nil || s.enum != nil || s.envelope == embeddedEnvelope || s.list.kind != nil &&
		s.list.kind.Keys == nil
}

// defaultOf is the default of a value with the defaults inside it filled in, as the walk over a request would do.
func defaultOf(st *structuralschema.Structural) ([]byte, error) {
	if st.Default.Object == nil {
		return nil, nil
	}
	value := runtime.DeepCopyJSONValue(st.Default.Object)
	structuraldefaulting.Default(value, st)
	return encode(value)
}

// keyDefaults are the defaults that a shape of items has for their keys.
func (s *Shape) keyDefaults(keys []document.Name) []document.Node {
	defaults := make([]document.Node, len(keys))
	for i, key := range keys {
		if s == nil {
			continue
		}
		if p := s.Property(key.String()); p != nil {
			defaults[i] = constant(p.Shape.Default())
		}
	}
	return defaults
}

// encode writes a decoded JSON value with sorted keys and without HTML escapes.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
