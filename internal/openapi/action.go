package openapi

import (
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// OperationExtension is the keyword by which an operation of a document, which neither reads nor writes an object, gets
// a name: its body is validated and sent on then. The value is the name, or an object with the members of an operation
// of an APIResource, and `resource`, the plural name of the resource that it belongs to.
const OperationExtension = "x-admission-gateway-operation"

// An Action is an operation that has the extension.
type Action struct {
	Of     *Resource
	Method string
	// Paths are the path templates, and Routes the same with the document's own names of variables.
	Paths, Routes []string
	// Setting is the extension, in the document.
	Setting document.Node
	// Schema is the schema of the body; nil if there is none.
	Schema *Schema
	// Said has what the document says of requests. It has no verb.
	Said Operation
}

// Name returns the name that the extension gives.
func (a *Action) Name() string {
	if a.Setting.Kind() == document.String {
		return strings.Clone(a.Setting.Str())
	}
	return a.Member("name")
}

// Member returns a text of the extension; "" if it has none of that name.
func (a *Action) Member(name string) string {
	return strings.Clone(text(a.Setting, name))
}

// Actions returns the operations that have the extension, once Resources has found the resources.
func (d *Document) Actions() []*Action { return d.actions }

// findActions finds the operations that have the extension.
func findActions(d *Document, resources []*Resource, paths []*pathItem) {
	for _, p := range paths {
		for _, method := range p.named() {
			setting, found := p.operation(method).Get(OperationExtension)
			if !found {
				continue
			}
			if isVerbless(method) {
				d.report.refuse(setting, "must be at a method that policies have a verb for, which %s is not",
					strings.ToUpper(method))
				continue
			}
			of := owner(resources, p, strings.Clone(text(setting, "resource")))
			if of == nil {
				d.report.refuse(setting, "must be below the path of a resource, or name the `resource` that it belongs to")
				continue
			}
			d.actions = append(d.actions, actionOf(d, of, p, method, setting))
		}
	}
}

// owner returns the resource of the plural name; without a name the one with the longest path above, and else the one
// that has the path itself.
func owner(resources []*Resource, p *pathItem, plural string) (of *Resource) {
	longest := 0
	for _, r := range resources {
		if plural != "" && r.Plural == plural {
			return r
		}
		for _, above := range []*pathItem{r.collection, r.object} {
			switch {
			case plural != "" || above == nil || !isAbove(above, p):
			case above == p && of == nil:
				of = r
			case above != p && len(above.segments) > longest:
				of, longest = r, len(above.segments)
			}
		}
	}
	return of
}

func isAbove(above, p *pathItem) bool {
	n := len(above.segments)
	return n <= len(p.segments) && above.shape() == shapeOf(p.segments[:n])
}

func actionOf(d *Document, of *Resource, p *pathItem, method string, setting document.Node) *Action {
	a := &Action{Of: of, Method: strings.ToUpper(method), Setting: setting}
	template, namespaced := "", false
	for i, s := range p.segments {
		switch {
		case !isVariable(s):
		case of.object != nil && i == len(of.object.segments)-1 && isAbove(of.object, p):
			s = "{name}"
		case !namespaced && of.Namespaced:
			s, namespaced = "{namespace}", true
		default:
			s = "{parent-" + variable(s) + "}"
		}
		template += "/" + s
	}
	for _, base := range p.bases {
		a.Paths, a.Routes = append(a.Paths, base+template), append(a.Routes, base+p.path)
	}
	operation := p.operation(method)
	if n := d.requestSchema(operation); n.Valid() {
		a.Schema = d.schemaOf(n, translation{filling: d.fillingOf(operation)})
	}
	a.Said = saidOf(d, resource.VerbCreate, p, operation, of.WatchesAnswers())
	a.Said.Bodies = bodiesOf(d, resource.VerbCreate, operation, translation{})
	return a
}
