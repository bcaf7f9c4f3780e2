package openapi

import (
	"cmp"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// objectAs finds how a parameter that is an object is read; ok is false if it is not enforced.
func objectAs(d *Document, to *contract.Parameter, n document.Node, m *schema.Model) (ok bool) {
	to.Shape = contract.Object
	if !keyed(d, to, n) {
		return false
	}
	properties := slices.Clone(m.Properties)
	slices.SortFunc(properties, func(a, b schema.ModelProperty) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range properties {
		member := contract.Parameter{In: to.In, Name: p.Name}
		if !readMember(&member, to, p.Model) {
			d.report.gap(n, "is not enforced: the gateway reads no lists and objects within '%.80s'", p.Name)
			return false
		}
		to.Members = append(to.Members, member)
	}
	switch {
	case m.Others != nil:
		others := contract.Parameter{In: to.In}
		if !readMember(&others, to, m.Others) {
			d.report.gap(n, "is not enforced: the gateway reads no lists and objects within it")
			return false
		}
		to.Others = &others
	case m.IsOpen && len(m.Properties) == 0:
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

// readMember finds how the value of a member is read: it is a scalar, or a list of such if each has a text of its own.
func readMember(member, of *contract.Parameter, m *schema.Model) bool {
	if m.Is("array") && of.Keys >= contract.KeysSpread {
		member.Shape, m = contract.List, m.Items
	}
	if slices.Contains(m.Types, "array") || slices.Contains(m.Types, "object") || m.IsAmbiguous {
		return false
	}
	member.Types = textTypes(m.Types)
	return true
}
