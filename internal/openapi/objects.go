package openapi

import (
	"cmp"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// objectAs finds how a parameter that is an object is read; ok is false if it is not enforced.
func objectAs(d *Document, to *contract.Parameter, n document.Node, props *apiextensionsv1.JSONSchemaProps, e *schema.Extensions) (ok bool) {
	to.Shape = contract.Object
	if !keyed(d, to, n) {
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(props.Properties)) {
		member := props.Properties[name]
		if ok = addMember(d, to, name, &member, e.Properties[name]); !ok {
			d.report.gap(n, "is not enforced: the gateway reads no lists and objects within '%.80s'", name)
			return false
		}
	}
	switch additional := props.AdditionalProperties; {
	case additional != nil && additional.Schema != nil:
		others := contract.Parameter{In: to.In}
		if of := e.Additional; !readMember(d, &others, to, additional.Schema, of) {
			d.report.gap(n, "is not enforced: the gateway reads no lists and objects within it")
			return false
		}
		to.Others = &others
	case e.Beyond.Rest != nil:
		others := contract.Parameter{In: to.In}
		if rest := e.Beyond.Rest; !readMember(d, &others, to, rest.Schema, rest.Extensions) {
			d.report.gap(n, "is not enforced: the gateway reads no lists and objects within it")
			return false
		}
		to.Others = &others
	case props.XPreserveUnknownFields != nil && *props.XPreserveUnknownFields && len(props.Properties) == 0:
		to.Others = &contract.Parameter{In: to.In, Types: []contract.Type{contract.String}}
	}
	return true
}

// keyed finds where the names of the members are written.
func keyed(d *Document, to *contract.Parameter, n document.Node) bool {
	inQuery := to.In == contract.InQuery || to.In == contract.InBody
	style := cmp.Or(text(n, "style"), "form")
	if text(n, "style") == "" && (to.In == contract.InPath || to.In == contract.InHeader) {
		style = "simple"
	}
	explode := style == "form"
	if said, found := n.Get("explode"); found {
		explode = said.Bool()
	}
	switch {
	case style == "deepObject" && inQuery:
		to.Keys = contract.KeysDeep
	case to.In == contract.InPath && style == "label" && explode:
		to.Style, to.Keys, to.Separator = contract.Label, contract.KeysAssigned, "."
	case to.In == contract.InPath && style == "label":
		to.Style, to.Keys, to.Separator = contract.Label, contract.KeysAmong, ","
	case to.In == contract.InPath && style == "matrix" && explode:
		to.Style, to.Keys, to.Separator = contract.MatrixMembers, contract.KeysAssigned, ";"
	case to.In == contract.InPath && style == "matrix":
		to.Style, to.Keys, to.Separator = contract.Matrix, contract.KeysAmong, ","
	case style == "form" && explode && inQuery:
		to.Keys = contract.KeysSpread
	case style == "form" && !explode, style == "simple" && !inQuery && !explode:
		to.Keys, to.Separator = contract.KeysAmong, ","
	case style == "simple" && !inQuery:
		to.Keys, to.Separator = contract.KeysAssigned, ","
	case style == "spaceDelimited" && inQuery && !explode:
		to.Keys, to.Separator = contract.KeysAmong, " "
	case style == "pipeDelimited" && inQuery && !explode:
		to.Keys, to.Separator = contract.KeysAmong, "|"
	default:
		d.report.gap(n, "is not enforced: the gateway does not read objects of the style '%.40s' here", style)
		return false
	}
	return true
}

// addMember finds how a member is read.
func addMember(d *Document, to *contract.Parameter, name string, props *apiextensionsv1.JSONSchemaProps, e *schema.Extensions) bool {
	m := contract.Parameter{In: to.In, Name: name}
	if !readMember(d, &m, to, props, e) {
		return false
	}
	to.Members = append(to.Members, m)
	return true
}

// readMember finds how the value of a member is read: it is a scalar, or a list of such if each has a text of its own.
func readMember(d *Document, m, of *contract.Parameter, props *apiextensionsv1.JSONSchemaProps, e *schema.Extensions) bool {
	if e == nil {
		e = &schema.Extensions{}
	}
	names := typesIn(props, e)
	if slices.Equal(names, []string{"array"}) && of.Keys >= contract.KeysSpread && props.Items != nil && props.Items.Schema != nil {
		m.Shape = contract.List
		if props, e = props.Items.Schema, e.Items; e == nil {
			e = &schema.Extensions{}
		}
		names = typesIn(props, e)
	}
	if slices.Contains(names, "array") || slices.Contains(names, "object") || len(names) == 0 && hasAlternatives(e) {
		return false
	}
	m.Types = textTypes(names)
	return true
}
