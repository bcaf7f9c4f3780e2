package openapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
)

// DefaultsKey is the member of [Extension] that says whether the defaults of schemas are filled in. It may stand at an
// operation too.
const DefaultsKey = "defaults"

// The values of DefaultsKey.
const (
	defaultsFilled = "Fill"
	defaultsLeft   = "Off"
)

// leavesDefaults reports whether the defaults of an operation's schemas are left to the API: as the operation says it,
// else its path, else the document.
func (d *Document) leavesDefaults(operation document.Node) bool {
	if !operation.Valid() {
		return d.leavesDefaultsOf(d.root)
	}
	return d.leavesDefaultsOf(operation, operation.Parent(), d.root)
}

// leavesDefaultsOf returns what the first of some objects says that says anything.
func (d *Document) leavesDefaultsOf(all ...document.Node) bool {
	for _, n := range all {
		extension, _ := n.Get(Extension)
		if said, found := extension.Get(DefaultsKey); found {
			return said.Is(defaultsLeft)
		}
	}
	return false
}

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
			if text := cel.SayUnasked(r.Reads(rule.Rule)); text != "" {
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
		if said, found := extension.Get(DefaultsKey); found && !said.Is(defaultsFilled) && !said.Is(defaultsLeft) {
			d.report.refuse(said, "must be '%s' or '%s'", defaultsFilled, defaultsLeft)
		}
		return extension
	}
	check(d.root)
	for _, p := range d.paths() {
		check(p.item)
		for _, method := range methods {
			extension := check(p.operation(method))
			members(extension, func(m document.Node) {
				if m.Key() != DefaultsKey {
					d.report.refuse(m, "must be '%s', which is all that an operation may say: set it at the path", DefaultsKey)
				}
			})
		}
	}
}
