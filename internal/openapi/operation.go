package openapi

import (
	"cmp"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/schema/graph"
)

// Operation says what the document asks of requests of one verb.
type Operation struct {
	Verb resource.Verb
	// At says where requests for a resource of Kubernetes' form go; nil for all others.
	At         *contract.Target
	Parameters []contract.Parameter
	// Values is the schema of the parameters' values, as [contract.Operation] has it; nil without parameters.
	Values *Schema
	// Bodies are the media types of bodies; none if the document does not say. MayBeEmpty reports whether the request
	// needs no body.
	Bodies     []Body
	MayBeEmpty bool
	// Underscored are the headers with a '_' in their names.
	Underscored []string
	// Security has the sets of credentials. A request needs one of them.
	Security []contract.Credentials
	// Answers are the answers that are declared; none if they are not checked against the document.
	Answers []Response

	node document.Node
}

// operations finds the operations of the document for an ordinary resource.
func (d *Document) operations(r *Resource) {
	for _, of := range [...]struct {
		path *pathItem
		has  func(resource.Verb) bool
	}{{r.collection, resource.Verb.OfCollection}, {r.object, resource.Verb.OfObject}} {
		for verb := range resource.Verbs {
			method := strings.ToLower(verb.Method())
			if !of.has(verb) || verb.Documented() != verb || !of.path.has(method) {
				continue
			}
			r.said = append(r.said, saidOf(d, verb, of.path, of.path.operation(method), r.WatchesAnswers()))
		}
	}
}

// saidOf returns the document's description of an operation.
func saidOf(d *Document, verb resource.Verb, p *pathItem, operation document.Node, watchesAnswers bool) Operation {
	o := Operation{Verb: verb, node: operation, MayBeEmpty: d.needsNoBody(operation)}
	declared := d.declared(p, operation)
	d.parameters(&o, p, operation, d.shared(p, operation, declared))
	o.Security = d.security(operation)
	o.Underscored = d.underscored(operation, declared)
	if watchesAnswers {
		o.Answers = answersOf(d, operation)
	}
	return o
}

// bodies finds the bodies of the operations, once it is known how objects look.
func (d *Document) bodies(r *Resource, as translation) {
	for i := range r.said {
		if o := &r.said[i]; o.At == nil {
			o.Bodies = bodiesOf(d, o.Verb, o.node, as)
		}
	}
	r.said = slices.DeleteFunc(r.said, func(o Operation) bool {
		return len(o.Parameters)+len(o.Security)+len(o.Bodies)+len(o.Answers)+len(o.Underscored) == 0 &&
			!o.Verb.HasBody()
	})
}

// Operations returns the descriptions of requests.
func (r *Resource) Operations() []Operation { return r.said }

// Matrix returns the names of the parameters in paths that begin with a semicolon.
func Matrix(said []Operation) (names []string) {
	for _, o := range said {
		for k := range o.Parameters {
			if p := &o.Parameters[k]; p.Style >= contract.Matrix && !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

// declared are the parameters of an operation: its own, and the path's that it does not declare again.
func (d *Document) declared(p *pathItem, operation document.Node) []document.Node {
	var all []document.Node
	for _, of := range []document.Node{operation, p.item} {
		list, _ := of.Get("parameters")
		members(list, func(n document.Node) {
			parameter := d.follow(n)
			if parameter.Valid() && !slices.ContainsFunc(all, func(other document.Node) bool {
				return text(other, "name") == text(parameter, "name") && text(other, "in") == text(parameter, "in")
			}) {
				all = append(all, parameter)
			}
		})
	}
	return all
}

// underscored returns the headers with a '_' in their names that an operation declares, as parameters or for its
// credentials. None of them is one that means something to proxies if it is read with a '-'.
func (d *Document) underscored(operation document.Node, declared []document.Node) (names []string) {
	add := func(n document.Node) {
		name := text(n, "name")
		switch {
		case text(n, "in") != "header" || !strings.Contains(name, "_"):
		case !message.MayHaveUnderscore([]byte(name)):
			d.report.warn(n, "is refused: many servers take the header '%.80s' for one with '-', which the gateway reads or sets itself", name)
		case !slices.Contains(names, name):
			names = append(names, strings.Clone(name))
		}
	}
	for _, n := range declared {
		add(n)
	}
	list, found := operation.Get("security")
	if !found {
		list, _ = d.root.Get("security")
	}
	members(list, func(requirement document.Node) {
		members(requirement, func(m document.Node) {
			if scheme, err := d.resolve("#/components/securitySchemes/" + escaped(m.Key())); err == nil &&
				text(d.follow(scheme), "type") == "apiKey" {
				add(d.follow(scheme))
			}
		})
	})
	return names
}

// A placedParameter is a parameter whose place is known.
type placedParameter struct {
	contract.Parameter
	node document.Node
}

// parameters finds how parameters of an operation are read, and the schema of their values.
func (d *Document) parameters(o *Operation, p *pathItem, operation document.Node, declared []document.Node) {
	var all []placedParameter
	for _, n := range declared {
		if one := (placedParameter{node: n}); d.place(&one.Parameter, p, n) {
			all = append(all, one)
		}
	}
	o.Parameters, o.Values = valuesOf(d, all, operation)
}

// valuesOf finds how parameters of an operation, or of an answer, are read, and the schema of their values.
func valuesOf(d *Document, list []placedParameter, of document.Node) (parameters []contract.Parameter, values *Schema) {
	type read struct {
		contract.Parameter
		check *graph.Schema
		model *schema.Model
	}
	var all []read
	for _, one := range list {
		r := read{one.Parameter, graph.Anything(), schema.Anything}
		value, ok := d.valueOf(&r.Parameter, one.node)
		if !ok {
			continue
		}
		if value.Valid() {
			r.check, r.model = d.schemas().Compile(value), d.modelOf(value, translation{of: ofTexts})
		}
		if d.readAs(&r.Parameter, one.node, r.model) {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b read) int { return cmp.Compare(a.In, b.In) })
	root := &schema.Model{Types: []string{"object"}, IsOpen: true}
	var checked []graph.Member
	var place *schema.Model
	for i, r := range all {
		if i == 0 || r.In != all[i-1].In {
			place = &schema.Model{Types: []string{"object"}, IsOpen: true}
			root.Properties = append(root.Properties, schema.ModelProperty{Name: r.In.String(), Model: place})
		}
		place.Properties = append(place.Properties, schema.ModelProperty{Name: r.Name, Model: r.model})
		checked = append(checked, graph.Member{Place: r.In.String(), Name: r.Name, Schema: r.check})
		parameters = append(parameters, r.Parameter)
	}
	if len(parameters) == 0 {
		return nil, nil
	}
	values = &Schema{doc: d, node: of, as: translation{of: ofTexts}, model: schema.Anything,
		check: graph.Compose(checked)}
	if !values.isValue() {
		values.model = root
		values.summarise()
	}
	return parameters, values
}

// ignoredHeaders are headers that the specification takes from parameters: bodies and credentials describe them.
var ignoredHeaders = []string{"accept", "content-type", "authorization"}

// place finds the location of a parameter; ok is false if it is not enforced.
func (d *Document) place(to *contract.Parameter, p *pathItem, n document.Node) (ok bool) {
	to.Name = strings.Clone(text(n, "name"))
	if text(n, "in") == "querystring" {
		d.report.gap(n, "is not enforced: the gateway does not read the whole query as one value")
		return false
	}
	if to.In, ok = contract.PlaceNamed(text(n, "in")); !ok || to.Name == "" {
		d.report.warn(n, "is not enforced: a parameter must have a name, and 'in' with 'path', 'query', 'header' or 'cookie'")
		return false
	}
	to.IsRequired, to.MayBeEmpty = truth(n, "required"), truth(n, "allowEmptyValue") && to.In == contract.InQuery
	switch to.In {
	case contract.InPath:
		at := slices.IndexFunc(p.segments, func(s string) bool { return strings.Contains(s, "{"+to.Name+"}") })
		if at < 0 {
			d.report.warn(n, "is not enforced: the path has no '{%.80s}'", to.Name)
			return false
		}
		to.Segment = len(p.segments) - 1 - at
		if !isVariable(p.segments[at]) {
			to.Literals, _ = resource.CutVariables(p.segments[at])
			before, _, _ := strings.Cut(p.segments[at], "{"+to.Name+"}")
			to.Variable = strings.Count(before, "{")
		}
	case contract.InHeader:
		return !slices.Contains(ignoredHeaders, strings.ToLower(to.Name))
	}
	return true
}

// valueOf finds the schema of a parameter's value; it is invalid if any text is valid. ok is false if it is not
// enforced.
func (d *Document) valueOf(to *contract.Parameter, n document.Node) (value document.Node, ok bool) {
	if value, ok = n.Get("schema"); ok {
		return value, true
	}
	content, ok := n.Get("content")
	if !ok {
		return document.Node{}, true
	}
	media := jsonMedia(content)
	if value, ok = d.follow(media).Get("schema"); !ok {
		d.report.gap(content, "is not enforced: the gateway reads parameters with a schema, or in JSON")
		return document.Node{}, false
	}
	to.Shape = contract.JSON
	return value, true
}

// readAs finds how the text of a parameter becomes a value of its schema; ok is false if it is not enforced.
func (d *Document) readAs(to *contract.Parameter, n document.Node, m *schema.Model) (ok bool) {
	if to.Shape == contract.JSON {
		return true
	}
	switch {
	case m.Is("object"):
		return objectAs(d, to, n, m)
	case slices.Contains(m.Types, "object"):
		d.report.gap(n, "is not enforced: a parameter that may be an object or not can be read in two ways")
		return false
	case m.Is("array"):
		to.Shape = contract.List
		if m = m.Items; slices.Contains(m.Types, "object") || slices.Contains(m.Types, "array") {
			d.report.gap(n, "is not enforced: the gateway reads no lists and objects within lists")
			return false
		}
		if !d.separated(to, n) {
			return false
		}
	case slices.Contains(m.Types, "array"):
		d.report.gap(n, "is not enforced: a parameter that may be a list or not can be read in two ways")
		return false
	case !d.styled(to, n):
		return false
	}
	if m.IsAmbiguous {
		d.report.gap(n, "is not enforced: its alternatives name no types by which the text could be read")
		return false
	}
	to.Types = textTypes(m.Types)
	return true
}

// textTypes are the types that a text may stand for, by the names that a schema gives; no names are text.
func textTypes(names []string) (types []contract.Type) {
	for _, t := range [...]struct {
		name string
		as   contract.Type
	}{{"integer", contract.Integer}, {"number", contract.Number}, {"boolean", contract.Boolean},
		{"string", contract.String}} {
		if slices.Contains(names, t.name) || len(names) == 0 && t.as == contract.String {
			types = append(types, t.as)
		}
	}
	return types
}

// styled finds how a scalar is written.
func (d *Document) styled(to *contract.Parameter, n document.Node) bool {
	switch style := text(n, "style"); {
	case to.In == contract.InPath && style == "label":
		to.Style = contract.Label
	case to.In == contract.InPath && style == "matrix":
		to.Style = contract.Matrix
	case style == "deepObject", style == "label", style == "matrix", style == "cookie":
		d.report.gap(n, "is not enforced: the gateway does not read parameters of the style '%s' here", style)
		return false
	}
	return true
}

// separated finds what stands between the items of a list.
func (d *Document) separated(to *contract.Parameter, n document.Node) bool {
	style := cmp.Or(text(n, "style"), map[contract.Place]string{
		contract.InPath: "simple", contract.InQuery: "form", contract.InHeader: "simple", contract.InCookie: "form",
		contract.InBody: "form",
	}[to.In])
	exploded, said := n.Get("explode")
	explode := style == "form"
	if said {
		explode = exploded.Bool()
	}
	inQuery := to.In == contract.InQuery || to.In == contract.InBody
	switch {
	case style == "simple" && !inQuery, style == "form" && !explode:
		to.Separator = ","
	case to.In == contract.InPath && style == "label":
		to.Style, to.Separator = contract.Label, ","
		if explode {
			to.Separator = "."
		}
	case to.In == contract.InPath && style == "matrix" && explode:
		to.Style = contract.MatrixEach
	case to.In == contract.InPath && style == "matrix":
		to.Style, to.Separator = contract.Matrix, ","
	case style == "form" && inQuery:
	case style == "spaceDelimited" && inQuery:
		if !explode {
			to.Separator = " "
		}
	case style == "pipeDelimited" && inQuery:
		if !explode {
			to.Separator = "|"
		}
	default:
		d.report.gap(n, "is not enforced: the gateway does not read lists of the style '%.40s' here", style)
		return false
	}
	return true
}
