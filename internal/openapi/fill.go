package openapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Members of [Extension] that may stand at an operation too.
const (
	// DefaultsKey says whether the defaults of schemas are filled in.
	DefaultsKey = "defaults"
	// ReadDefaultsKey says whether they are filled in in answers too.
	ReadDefaultsKey = "readDefaults"
	// NullsKey says whether a default takes the place of null.
	NullsKey = "nulls"
)

// The values of DefaultsKey and NullsKey.
const (
	defaultsFilled = "Fill"
	defaultsLeft   = "Off"
	nullsKept      = "Keep"
	nullsDefaulted = "Default"
)

// filling says what becomes of the defaults of an operation's schemas.
type filling struct {
	// unfilled is set if they are left to the API.
	unfilled bool
	// overNull is set if they take the place of null.
	overNull bool
}

// fillingOf returns what an operation says of its defaults, else its path, else the document.
func (d *Document) fillingOf(operation document.Node) filling {
	return filling{d.saidOf(operation, DefaultsKey).Is(defaultsLeft), d.saidOf(operation, NullsKey).Is(nullsDefaulted)}
}

// saidOf returns what the extension says at an operation, else at its path, else at the document.
func (d *Document) saidOf(operation document.Node, key string) document.Node {
	places := []document.Node{d.root}
	if operation.Valid() {
		places = []document.Node{operation, operation.Parent(), d.root}
	}
	for _, n := range places {
		extension, _ := n.Get(Extension)
		if said, found := extension.Get(key); found {
			return said
		}
	}
	return document.Node{}
}

// readDefaultsOf returns what an operation says of the defaults in answers, else its path, else the document.
func (d *Document) readDefaultsOf(operation document.Node) resource.ReadDefaults {
	return resource.ReadDefaultsNamed(d.saidOf(operation, ReadDefaultsKey).Str())
}

// fillsReads reports whether defaults are filled in in what is read of a resource.
func fillsReads(r *Resource) bool {
	return r.Unshown == "" && (&resource.Resource{Envelope: r.Envelope, ReadDefaults: r.ReadDefaults}).FillsReads()
}

// FillsReads reports whether defaults are filled in in answers too. It is known once Resources has found the resources.
func (d *Document) FillsReads() bool { return d.fillsReads }

// leftIn returns the paths of the fields whose defaults are left to the API, as [cel.NewUnfilled] takes them. A field that
// must be there is not among them.
func leftIn(left map[string]bool, p *apiextensionsv1.JSONSchemaProps, at, path string) (fields []string) {
	if len(left) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		place, property := propertyOf(at, name), p.Properties[name]
		if left[place] && !slices.Contains(p.Required, name) {
			fields = append(fields, path+"."+name)
		}
		fields = append(fields, leftIn(left, &property, place, path+"."+name)...)
	}
	if p.Items != nil && p.Items.Schema != nil {
		fields = append(fields, leftIn(left, p.Items.Schema, at+".items", path+cel.Item)...)
	}
	if p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil {
		place := strings.TrimPrefix(at+".additionalProperties", ".")
		fields = append(fields, leftIn(left, p.AdditionalProperties.Schema, place, path+cel.Item)...)
	}
	return fields
}

// UnaskedReads finds the rules of the schema that read a field whose default is left to the API without asking for it.
func (s *Schema) UnaskedReads() (found []Finding) {
	if s.Unfilled == nil || s.Props == nil {
		return nil
	}
	var in func(p *apiextensionsv1.JSONSchemaProps, at, path string)
	in = func(p *apiextensionsv1.JSONSchemaProps, at, path string) {
		for i, rule := range p.XValidations {
			r := s.Unfilled.Reader(map[string]string{"self": path, "oldSelf": path})
			place := fmt.Sprintf("%s.x-kubernetes-validations[%d].rule", at, i)
			if text := cel.SayUnasked(r.Reads(cel.Parse(rule.Rule))); text != "" {
				found = append(found, Finding{Path: s.Where(place), Message: text})
			}
		}
		for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
			property := p.Properties[name]
			in(&property, propertyOf(at, name), path+"."+name)
		}
		if p.Items != nil && p.Items.Schema != nil {
			in(p.Items.Schema, at+".items", path+cel.Item)
		}
		if p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil {
			in(p.AdditionalProperties.Schema, strings.TrimPrefix(at+".additionalProperties", "."), path+cel.Item)
		}
	}
	in(s.Props, "", "")
	return found
}

// Filled returns how many defaults of the document's schemas are filled in. It is known once Resources has found the
// resources.
func (d *Document) Filled() int { return len(d.filled) }

// checkDefaults names what may not be said of defaults, and what an operation may not say.
func (d *Document) checkDefaults() {
	check := func(n document.Node) document.Node {
		extension, _ := n.Get(Extension)
		filled, saysDefaults := extension.Get(DefaultsKey)
		if saysDefaults {
			d.checkValue(filled, defaultsFilled, defaultsLeft)
		}
		read, saysRead := extension.Get(ReadDefaultsKey)
		if saysRead {
			d.checkValue(read, defaultsFilled, defaultsLeft)
		}
		if read.Is(defaultsFilled) && filled.Is(defaultsLeft) {
			d.report.warn(read, "has no effect on literal defaults beside `%s: %s`", DefaultsKey, defaultsLeft)
		}
		nulls, saysNulls := extension.Get(NullsKey)
		if saysNulls {
			d.checkValue(nulls, nullsDefaulted, nullsKept)
		}
		if nulls.Is(nullsDefaulted) && filled.Is(defaultsLeft) {
			d.report.warn(nulls, "has no effect beside `%s: %s`: no default takes the place of null", DefaultsKey, defaultsLeft)
		}
		return extension
	}
	check(d.root)
	for _, p := range d.paths() {
		check(p.item)
		for _, method := range p.named() {
			extension := check(p.operation(method))
			members(extension, func(m document.Node) {
				if key := m.Key(); key != DefaultsKey && key != ReadDefaultsKey && key != NullsKey {
					d.report.refuse(m, "must be '%s', '%s' or '%s', which are all that an operation may say: set it at the path", DefaultsKey, ReadDefaultsKey, NullsKey)
				}
			})
		}
	}
}
