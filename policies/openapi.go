package policies

import (
	"encoding/json"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/openapi"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
)

// openAPI takes an OpenAPI document: its paths become resources, and its schemas theirs.
func (l *loader) openAPI(o *manifest.Object) {
	d, err := openapi.Parse(o.JSON)
	if err != nil {
		l.at(o, Error, "openapi", "%s", err.Error())
		return
	}
	defer d.Release()
	resources, passing, found := d.Resources()
	for _, f := range found {
		severity := Warning
		if f.Error {
			severity = Error
		}
		l.at(o, severity, f.Path, "%s", f.Message)
	}
	for _, p := range passing {
		if _, err := resource.NewRegistry(nil, p); err != nil {
			l.at(o, Warning, "paths", "%s; its requests are refused where a resource's path matches them", err.Error())
			continue
		}
		l.passing = append(l.passing, p)
	}
	c := schemaCompiler{loader: l, from: o, compiled: map[compiledKey]*schema.Schema{}}
	for _, r := range resources {
		l.openAPIResource(o, r, &c)
	}
	l.planned(o, c.programs)
}

// openAPIResource takes a resource of a document: an APIResource in which the extension says what differs from what the
// document's paths and schemas say themselves.
func (l *loader) openAPIResource(o *manifest.Object, r *openapi.Resource, c *schemaCompiler) {
	a := &APIResource{}
	if !l.derived(o, r, a) {
		return
	}
	native := len(r.Paths) == 0
	res := a.Spec.resource()
	res.Paths, res.Namespaced, res.Subresources = r.Paths, r.Namespaced, r.Subresources
	if native {
		res.Scale, res.Emulated = r.Scale, res.Emulated&^resource.ScaleSubresource
	}
	options := schema.Options{
		Resource: res.Envelope == resource.Kubernetes, Namespaced: res.Namespaced, Scale: a.Spec.Scale, AnyName: native, MayRepeat: native,
	}
	compiled := compiledResource{
		schema: c.compile(r.Update, options),
		varies: true, create: c.compile(r.Create, options), read: c.compile(r.Read, options),
	}
	l.resources = append(l.resources, loadedResource{Resource: res, compiledResource: compiled, from: o, path: r.Path()})
}

// derived makes the APIResource of a resource. What is wrong with it is reported where the extension says it.
func (l *loader) derived(o *manifest.Object, r *openapi.Resource, into *APIResource) bool {
	spec, err := json.Marshal(derivedSpec(r))
	if err != nil {
		l.at(o, Error, r.Path(), "must be a resource: %v", err)
		return false
	}
	d, err := document.Parse(spec, document.Limits{})
	if err != nil {
		l.at(o, Error, r.Path(), "must be a resource: %v", err)
		return false
	}
	defer d.Release()
	for _, s := range r.Settings {
		if s.Kind() != document.Object {
			l.at(o, Error, openapi.Place(s), "must be an object with members of an APIResource's `spec`")
			return false
		}
		for _, name := range []string{"paths", "schema"} {
			if m, found := s.Get(name); found {
				l.at(o, Error, openapi.Place(m), "may not be set: the document itself says it")
				return false
			}
		}
		d.MergePatch(s)
	}
	if m, found := d.Root().Get("ignore"); found {
		d.Remove(m)
	}
	text := append([]byte(`{"apiVersion":"`+ownGroup+`/v1alpha1","kind":"APIResource","metadata":{"name":"derived"},"spec":`), d.AppendTo(nil)...)
	objects, _ := manifest.Read(o.File, append(text, '}'))
	if len(objects) != 1 {
		l.at(o, Error, r.Path(), "must be a resource that can be described")
		return false
	}
	checked := &loader{}
	ok := checked.own(objects[0], into)
	for _, f := range checked.list {
		l.at(o, f.Severity, saidAt(r, strings.TrimPrefix(f.Field, "spec.")), "%s", f.Message)
	}
	return ok
}

// derivedSpec is what follows from the document of an APIResource's spec. The paths stand for those of the resource, which
// may have more variables.
func derivedSpec(r *openapi.Resource) map[string]any {
	collection := "/collection"
	if r.Namespaced {
		collection += "/{namespace}"
	}
	spec := map[string]any{
		"group": r.Group, "version": r.Version, "names": map[string]any{"plural": r.Plural, "kind": r.Kind},
		"paths":    map[string]any{"collection": collection, "item": collection + "/{name}"},
		"envelope": r.Envelope.String(), "statusSubresource": "Disabled",
	}
	switch {
	case r.Envelope == resource.Bare:
		spec["fields"] = map[string]any{"name": r.NameField, "items": r.ItemsField}
	case r.Status || len(r.Paths) > 0:
		spec["statusSubresource"] = "Emulated"
	}
	return spec
}

// saidAt is where the extension says the member of an APIResource's spec; where it does not, the resource.
func saidAt(r *openapi.Resource, path string) string {
	for i := len(r.Settings) - 1; i >= 0; i-- {
		at, rest := r.Settings[i], path
		for rest != "" {
			var name string
			name, rest, _ = strings.Cut(rest, ".")
			next, found := at.Get(name)
			if !found {
				break
			}
			at = next
		}
		if at != r.Settings[i] {
			return openapi.Place(at)
		}
	}
	return r.Path()
}

// schemaCompiler compiles the schemas of one document, each once.
type schemaCompiler struct {
	*loader
	from     *manifest.Object
	compiled map[compiledKey]*schema.Schema
	programs []*cel.Program // of all of them
}

type compiledKey struct {
	schema              *openapi.Schema
	resource, namespace bool
	scale               *apiextensionsv1.CustomResourceSubresourceScale
}

// compile compiles a schema; nil is none, and what was refused.
func (c *schemaCompiler) compile(s *openapi.Schema, o schema.Options) *schema.Schema {
	if s == nil {
		return nil
	}
	key := compiledKey{s, o.Resource, o.Namespaced, o.Scale}
	if compiled, done := c.compiled[key]; done {
		return compiled
	}
	compiled, warnings, errs := compileOpenAPI(s, o)
	if wrong := defaultsIn(errs); len(wrong) > 0 {
		// A default that is not right by its own schema is not applied; the schema holds all the same.
		for _, err := range errs {
			if at, _, ofDefault := strings.Cut(err.Field, ".default"); ofDefault && wrong[at] {
				c.at(c.from, Warning, s.Where(err.Field), "the default is not applied: %s", bodyOf(err))
			}
		}
		s = s.Without(wrong)
		compiled, warnings, errs = compileOpenAPI(s, o)
	}
	for _, err := range warnings {
		c.at(c.from, Warning, s.Where(err.Field), "%s", bodyOf(err))
	}
	for _, err := range errs {
		c.at(c.from, Error, s.Where(err.Field), "%s", bodyOf(err))
	}
	c.compiled[key] = compiled
	if compiled != nil {
		c.programs = append(c.programs, compiled.Programs()...)
	}
	return compiled
}

func compileOpenAPI(s *openapi.Schema, o schema.Options) (*schema.Schema, field.ErrorList, field.ErrorList) {
	o.Extensions = s.Extensions
	return schema.Compile(s.Props, o)
}

// defaultsIn are the places of the schemas whose defaults are wrong.
func defaultsIn(errs field.ErrorList) map[string]bool {
	wrong := map[string]bool{}
	for _, err := range errs {
		if at, rest, found := strings.Cut(err.Field, ".default"); found && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			wrong[at] = true
		}
	}
	return wrong
}
