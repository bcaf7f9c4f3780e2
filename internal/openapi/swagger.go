package openapi

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"

	"github.com/admission-gateway/gateway/internal/document"
)

// swaggerKey names the version of a document of version 2, which was called Swagger.
const swaggerKey = "swagger"

// newSwagger takes a document of version 2 by making one of version 3 of it. The result keeps the member 'swagger', by
// which [Place] knows that findings lead to another file.
func newSwagger(parsed *document.Document) (*Document, error) {
	if version := text(parsed.Root(), swaggerKey); version != "2.0" {
		if n, _ := parsed.Root().Get(swaggerKey); string(n.Raw()) != "2.0" {
			return nil, fmt.Errorf("must be of version 2.0 of Swagger, not '%.80s'", version)
		}
	}
	adapted := parsed.Clone()
	defer adapted.Release()
	for _, n := range nullables(adapted.Root(), nil) {
		adapted.Set(n, "x-nullable", []byte("true"))
	}
	converted, err := convertSwagger(adapted.AppendTo(nil))
	if err != nil {
		if faults := faultsIn(parsed.Root(), parsed.Root(), nil); len(faults) > 0 {
			return nil, faults
		}
		return nil, fmt.Errorf("must be a document of Swagger 2.0 that can be converted to OpenAPI 3: %s", err)
	}
	d, err := document.Parse(converted, document.Limits{Bytes: len(converted), Depth: maxSwaggerDepth,
		Nodes: len(converted)})
	if err != nil {
		return nil, fmt.Errorf("must be a document of Swagger 2.0 that can be converted to OpenAPI 3: %w", err)
	}
	made, err := New(d)
	if err == nil {
		made.warnRounded(parsed.Root())
		made.warnTabs(parsed.Root())
	}
	return made, err
}

// nullables appends the schemas that are `nullable`, as OpenAPI 3.0 has it. Swagger has no such keyword, and documents
// use it all the same; the converter knows it as 'x-nullable'.
func nullables(n document.Node, all []document.Node) []document.Node {
	if truth(n, "nullable") && text(n, "type") != "" {
		all = append(all, n)
	}
	members(n, func(m document.Node) {
		if !values[m.Key()] && !strings.HasPrefix(m.Key(), "x-") {
			all = nullables(m, all)
		}
	})
	return all
}

// A Fault is an error at a place of a document, because of which the document cannot be read.
type Fault struct {
	// Path is the place, and Message a sentence without a final full stop.
	Path, Message string
}

// Faults are all of a document.
type Faults []Fault

// Error implements error.
func (f Faults) Error() string {
	texts := make([]string, len(f))
	for i := range f {
		texts[i] = f[i].Path + ": " + f[i].Message
	}
	return strings.Join(texts, "; ")
}

// faultsIn finds what the converter of Swagger fails on: references that lead nowhere, and schemas that are no objects.
func faultsIn(n, root document.Node, all Faults) Faults {
	members(n, func(m document.Node) {
		switch key := m.Key(); {
		case values[key], strings.HasPrefix(key, "x-"):
			return
		case key == "$ref" && m.Kind() == document.String:
			if _, err := (&Document{root: root}).resolve(m.Str()); err != nil {
				all = append(all, Fault{Place(m), err.Error()})
			}
		case (key == "schema" || key == "items") && m.Kind() != document.Object:
			if isNamedByAuthor := n.Key() == "properties" || n.Key() == "definitions"; !isNamedByAuthor {
				all = append(all, Fault{Place(m), "must be one schema, not " + m.Kind().WithArticle()})
			}
		}
		all = faultsIn(m, root, all)
	})
	return all
}

// values are the members that hold values of the API, and no parts of a document.
var values = map[string]bool{"example": true, "examples": true, "default": true, "enum": true}

// maxSwaggerDepth bounds the nesting of a converted document.
const maxSwaggerDepth = 1000

func convertSwagger(text []byte) ([]byte, error) {
	var old openapi2.T
	if err := json.Unmarshal(text, &old); err != nil {
		return nil, err
	}
	for _, p := range old.Parameters {
		adaptList(p)
	}
	for _, path := range old.Paths {
		for _, p := range path.Parameters {
			adaptList(p)
		}
		for _, operation := range path.Operations() {
			for _, p := range operation.Parameters {
				adaptList(p)
			}
			if len(operation.Produces) == 0 {
				operation.Produces = old.Produces
			}
		}
	}
	made, err := openapi2conv.ToV3(&old)
	if err != nil {
		return nil, err
	}
	if made.Extensions == nil {
		made.Extensions = map[string]any{}
	}
	made.Extensions[swaggerKey] = old.Swagger
	return json.Marshal(made)
}

// adaptList gives a list in a query Swagger's default separator: the converter leaves it out, and the default of
// OpenAPI 3 is another one. It makes any text of a list that is separated by tabs, for which OpenAPI 3 has no word.
func adaptList(p *openapi2.Parameter) {
	switch {
	case !p.Type.Is("array"):
	case p.CollectionFormat == "tsv":
		*p = openapi2.Parameter{In: p.In, Name: p.Name, Description: p.Description, Type: &openapi3.Types{"string"},
			Required: p.Required, AllowEmptyValue: p.AllowEmptyValue}
	case p.In == openapi3.ParameterInQuery && p.CollectionFormat == "":
		p.CollectionFormat = "csv"
	}
}

// warnTabs names lists that are separated by tabs, for which OpenAPI 3 has no word.
func (d *Document) warnTabs(n document.Node) {
	members(n, func(m document.Node) {
		if m.Key() == "collectionFormat" && m.Is("tsv") {
			d.report.gap(m, "is not enforced: lists that are separated by tabs are not read")
		}
		d.warnTabs(m)
	})
}

// warnRounded names the numbers that the converter cannot keep.
func (d *Document) warnRounded(n document.Node) {
	members(n, func(m document.Node) {
		if _, is := m.Int64(); m.Kind() == document.Number && !isExact(m, is) {
			d.report.gap(m, "is rounded to a double while the document is converted to OpenAPI 3")
		}
		d.warnRounded(m)
	})
}

// isExact reports whether a number survives being a double.
func isExact(n document.Node, isInteger bool) bool {
	const most = 1 << 53
	if isInteger {
		i, _ := n.Int64()
		return i >= -most && i <= most
	}
	return strings.ContainsAny(string(n.Raw()), ".eE")
}

// swaggerNames are how paths of a converted document begin, and how they begin in the document of version 2.
var swaggerNames = [...]struct{ made, old string }{
	{"components.schemas", "definitions"},
	{"components.parameters", "parameters"},
	{"components.requestBodies", "parameters"},
	{"components.responses", "responses"},
	{"components.securitySchemes", "securityDefinitions"},
}

// inSwagger returns the path in the document of version 2 that a path of the converted one is about. Of a body it is
// the operation.
func inSwagger(path string) string {
	for _, name := range swaggerNames {
		if rest, found := strings.CutPrefix(path, name.made); found {
			return name.old + rest
		}
	}
	operation, _, _ := strings.Cut(path, ".requestBody")
	return operation
}
