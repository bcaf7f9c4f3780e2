package policies

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/rollout"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/policies/reuse"
)

// APIResource describes a resource of a plain JSON API. Its definition, crds/apiresources.yaml, says what the
// fields mean and may hold.
type APIResource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              APIResourceSpec `json:"spec"`
}

// APIResourceSpec says what the resource is.
type APIResourceSpec struct {
	RouteScope `json:",inline"`

	Group             string                                        `json:"group"`
	Version           string                                        `json:"version"`
	Names             apiextensionsv1.CustomResourceDefinitionNames `json:"names"`
	Paths             APIResourcePaths                              `json:"paths"`
	OtherPaths        string                                        `json:"otherPaths"`
	TrailingSlash     string                                        `json:"trailingSlash"`
	EncodedSlash      string                                        `json:"encodedSlash"`
	Envelope          string                                        `json:"envelope"`
	Fields            *APIResourceFields                            `json:"fields"`
	Schema            *apiextensionsv1.CustomResourceValidation     `json:"schema"`
	Defaults          string                                        `json:"defaults"`
	ReadDefaults      string                                        `json:"readDefaults"`
	StoredObject      string                                        `json:"storedObject"`
	UnknownObject     string                                        `json:"unknownObject"`
	StatusSubresource string                                        `json:"statusSubresource"`
	// Scale is the scale subresource; nil if there is none.
	Scale               *apiextensionsv1.CustomResourceSubresourceScale `json:"scale"`
	Concurrency         string                                          `json:"concurrency"`
	Preconditions       string                                          `json:"preconditions"`
	DataMaps            []string                                        `json:"dataMaps"`
	UnconditionalUpdate string                                          `json:"unconditionalUpdate"`
	CreateOnUpdate      string                                          `json:"createOnUpdate"`
	YAMLBodies          string                                          `json:"yamlBodies"`
	FieldValidation     string                                          `json:"fieldValidation"`
	QueryOptions        string                                          `json:"queryOptions"`
	EmptyBodies         string                                          `json:"emptyBodies"`
	Items               string                                          `json:"items"`
	Operations          []APIResourceOperation                          `json:"operations"`
	Backend             APIResourceBackend                              `json:"backend"`
	Errors              string                                          `json:"errors"`
	ErrorFormat         string                                          `json:"errorFormat"`
	ErrorTemplate       string                                          `json:"errorTemplate"`
	// Rollout is nil if the description is enforced for all requests.
	Rollout *rollout.ResourceSpec `json:"rollout"`
}

// APIResourcePaths are path templates.
type APIResourcePaths struct {
	Collection string `json:"collection"`
	Item       string `json:"item"`
}

// all returns the paths that there are.
func (p *APIResourcePaths) all() (paths []string) {
	for _, path := range []string{p.Collection, p.Item} {
		if path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// APIResourceFields says where Bare objects keep what Kubernetes' objects keep in metadata, status and items.
type APIResourceFields struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Status is nil if the file does not say whether objects have one.
	Status *string `json:"status"`
	Items  string  `json:"items"`
	Object string  `json:"object"`
	Answer string  `json:"answer"`
}

func (l *loader) apiResource(o *manifest.Object, a *APIResource) {
	l.useScope(o, a.Spec.scope(), inSpec)
	for i := range a.Spec.Operations {
		op := &a.Spec.Operations[i]
		l.described(o, a, a.Spec.operation(op), op.Schema, field.NewPath("spec", "operations").Index(i), nil)
	}
	if len(a.Spec.Paths.all()) > 0 {
		l.described(o, a, a.Spec.resource(), a.Spec.Schema, field.NewPath("spec"), a.Spec.Scale)
	}
	if a.Spec.ReadDefaults == defaultsFilled && a.Spec.Defaults == defaultsLeft {
		l.At(o, Warning, "spec.readDefaults", "has no effect on literal defaults beside `defaults: %s`", defaultsLeft)
	}
	if a.Spec.leavesStatusOpen() {
		l.At(o, Warning, "spec.schema.openAPIV3Schema.properties.status", "clients may write it: set `fields: {status: status}` if only the API itself may, "+
			"or `fields: {status: ''}` if clients may")
	}
}

// described adds a resource, or an operation, that is described at a path of an APIResource.
func (l *loader) described(
	o *manifest.Object, a *APIResource, r *resource.Resource, v *apiextensionsv1.CustomResourceValidation,
	at *field.Path,
	scale *apiextensionsv1.CustomResourceSubresourceScale,
) {
	options := schema.Options{
		Path: at.Child("schema", "openAPIV3Schema"), Resource: r.Envelope == resource.Kubernetes,
		Namespaced: r.Namespaced, Scale: scale,
	}
	described := reuse.OfObject(l.kept, &l.findings, o, "schema", at.String(), func(f *findings) describedSchema {
		return schemaOf(f, o, v, a.Spec.Defaults == defaultsLeft, options)
	})
	if !described.ok {
		return
	}
	compiled := described.compiled
	if compiled != nil {
		l.plans.note(o, compiled.Programs())
		l.failing(o, compiled.Programs())
	}
	loaded := loadedResource{Resource: r, compiled: compiledResource{schema: compiled, unfilled: described.unfilled},
		at: origin{o, at.String()}, rollout: a.Spec.Rollout}
	if v != nil {
		loaded.compiled.props = v.OpenAPIV3Schema
	}
	l.resources = append(l.resources, loaded)
}

// describedSchema is the schema of an APIResource, nil if there is none; false: it cannot be compiled.
type describedSchema struct {
	compiled *schema.Schema
	unfilled *cel.Unfilled // the fields whose defaults are left to the API
	ok       bool
}

// schemaOf compiles the schema of an APIResource. Without a schema objects may be anything, but
// for the metadata of Kubernetes' objects, which is the same for all. leavesDefaults says that literal defaults are
// left to the API.
func schemaOf(f *findings, o *manifest.Object, v *apiextensionsv1.CustomResourceValidation, leavesDefaults bool,
	options schema.Options) describedSchema {
	var left []string
	props := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	switch {
	case v != nil:
		extensions, ok := extensionsOf(f, o, options.Path)
		if !ok {
			return describedSchema{}
		}
		props, options.Extensions = v.OpenAPIV3Schema, extensions[0]
	case !options.Resource:
		return describedSchema{ok: true}
	}
	if leavesDefaults {
		props = props.DeepCopy()
		left = dropDefaults(props, "", nil)
	}
	compiled, warnings, errs := schema.Compile(props, options)
	f.Fields(o, Warning, warnings)
	f.Fields(o, Error, errs)
	return describedSchema{compiled, cel.NewUnfilled(left), len(errs) == 0}
}

// The values of defaults and readDefaults.
const (
	defaultsFilled = "Fill"
	defaultsLeft   = "Off"
)

// dropDefaults takes the defaults out of a schema, and appends the paths of the fields that had one and may be missing,
// as [cel.NewUnfilled] takes them.
func dropDefaults(p *apiextensionsv1.JSONSchemaProps, path string, fields []string) []string {
	p.Default = nil
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		property, at := p.Properties[name], path+"."+name
		if property.Default != nil && !slices.Contains(p.Required, name) {
			fields = append(fields, at)
		}
		fields = dropDefaults(&property, at, fields)
		p.Properties[name] = property
	}
	if p.Items != nil && p.Items.Schema != nil {
		fields = dropDefaults(p.Items.Schema, path+cel.Item, fields)
	}
	if p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil {
		fields = dropDefaults(p.AdditionalProperties.Schema, path+cel.Item, fields)
	}
	return fields
}

// resource is the description by which requests are resolved.
func (s *APIResourceSpec) resource() *resource.Resource {
	r := &resource.Resource{
		Group:      s.Group,
		Version:    s.Version,
		Scope:      s.scope(),
		Names:      resourceNames(s.Names),
		Namespaced: strings.Contains(cmp.Or(s.Paths.Item, s.Paths.Collection), "{namespace}"),
		Singleton:  s.Paths.Item != "" && !strings.Contains(s.Paths.Item, "{name}"),
		Paths:      s.Paths.all(),
		Slashes:    resource.SlashesNamed(s.TrailingSlash, s.EncodedSlash),
		Subresources: resource.Subresources{
			OtherPaths: resource.OtherPathsNamed(s.OtherPaths),
			Status:     s.hasStatus(),
			Scale:      scalingOf(s.Scale),
		},
		Writes: s.writes(),
	}
	if s.Concurrency == resource.BestEffort.String() {
		r.Backend.Concurrency = resource.BestEffort
	}
	r.Backend.Preconditions = resource.PreconditionsNamed(s.Preconditions)
	if s.Envelope != resource.Kubernetes.String() {
		r.Envelope = resource.Bare
	}
	r.HasOwnQuery = s.hasOwnQuery()
	r.ReadDefaults = resource.ReadDefaultsNamed(s.ReadDefaults)
	if s.StoredObject == "Unknown" {
		r.Unshown = resource.UnshownNamed(s.UnknownObject)
	}
	r.Fields = s.fields(r.Envelope)
	settings := s.Backend.settings()
	settings["status"], settings["errors"] = s.StatusSubresource, s.Errors
	settings["errorFormat"], settings["errorTemplate"] = s.ErrorFormat, s.ErrorTemplate
	setBackend(r, settings)
	return r
}

// hasStatus reports whether objects have a status that is a subresource. A plain API's own field of
// that name is an ordinary field unless the file says otherwise.
func (s *APIResourceSpec) hasStatus() bool {
	if s.StatusSubresource == "" && s.Envelope != resource.Kubernetes.String() {
		return s.Fields != nil && s.Fields.Status != nil && *s.Fields.Status != ""
	}
	return s.StatusSubresource != "Disabled"
}

// hasOwnQuery reports whether the parameters of queries are the API's own, as an ordinary API's are unless the file
// says otherwise, or says that the gateway supplies dry runs or selectors.
func (s *APIResourceSpec) hasOwnQuery() bool {
	if s.QueryOptions == "" {
		return s.Envelope != resource.Kubernetes.String() && s.Backend.DryRun != "Emulated" &&
			s.Backend.Selectors != "Emulated"
	}
	return s.QueryOptions == "Backend"
}

// leavesStatusOpen reports whether the schema has a field that looks like a status, and the file does not say whose it
// is.
func (s *APIResourceSpec) leavesStatusOpen() bool {
	if s.Envelope == resource.Kubernetes.String() || s.StatusSubresource != "" || s.Fields != nil &&
		s.Fields.Status != nil || s.Schema == nil {
		return false
	}
	_, found := s.Schema.OpenAPIV3Schema.Properties["status"]
	return found
}

// writes says what clients may send.
func (s *APIResourceSpec) writes() resource.Writes {
	w := resource.Writes{
		UnconditionalUpdate: s.UnconditionalUpdate == "Allowed",
		CreateOnUpdate:      s.CreateOnUpdate == "Allowed",
		EmptyBodies:         s.EmptyBodies == "Allowed",
		Items:               resource.ItemsNamed(s.Items),
	}
	if s.YAMLBodies == "Allowed" {
		w.MediaTypes = []string{yamlType}
	}
	for _, v := range []resource.FieldValidation{resource.FieldValidationIgnore, resource.FieldValidationWarn,
		resource.FieldValidationStrict} {
		if s.FieldValidation == v.String() {
			w.FieldValidation = v
		}
	}
	return w
}

// fields says where objects of the envelope keep what. Kubernetes' own form has places for all but the version.
func (s *APIResourceSpec) fields(e resource.Envelope) resource.Fields {
	var said APIResourceFields
	if s.Fields != nil {
		said = *s.Fields
	}
	fields := resource.Fields{Version: fieldPath(said.Version)}
	for _, path := range s.DataMaps {
		fields.DataMaps = append(fields.DataMaps, fieldPath(path))
	}
	if e == resource.Kubernetes {
		return fields
	}
	fields.Name, fields.Items = fieldPath(said.Name), resource.FieldPath{}
	fields.Object, fields.Answer = fieldPath(said.Object), fieldPath(said.Answer)
	if said.Status != nil {
		fields.Status = fieldPath(*said.Status)
	}
	if said.Items != "" {
		fields.Items = fieldPath(said.Items)
	}
	return fields
}

// scalingOf reads the paths of a scale subresource; nil if there is none.
func scalingOf(s *apiextensionsv1.CustomResourceSubresourceScale) *resource.Scaling {
	if s == nil {
		return nil
	}
	path := func(text string) resource.FieldPath { return fieldPath(strings.TrimPrefix(text, ".")) }
	scaling := &resource.Scaling{Replicas: path(s.SpecReplicasPath), StatusReplicas: path(s.StatusReplicasPath)}
	if s.LabelSelectorPath != nil {
		scaling.Selector = path(*s.LabelSelectorPath)
	}
	return scaling
}

// yamlType is the media type that yamlBodies allows.
const yamlType = "application/yaml"

// fieldPath reads "a.b"; "" is no field.
func fieldPath(text string) resource.FieldPath {
	if text == "" {
		return nil
	}
	return strings.Split(text, ".")
}

// APIResourceOperation describes something that an API does besides reading and writing objects.
type APIResourceOperation struct {
	Name        string                                    `json:"name"`
	Path        string                                    `json:"path"`
	Method      string                                    `json:"method"`
	Operation   string                                    `json:"operation"`
	Schema      *apiextensionsv1.CustomResourceValidation `json:"schema"`
	EmptyBodies string                                    `json:"emptyBodies"`
	Items       string                                    `json:"items"`
}

// operation is the description by which requests for an operation are resolved. Its bodies are of no envelope.
func (s *APIResourceSpec) operation(o *APIResourceOperation) *resource.Resource {
	r := &resource.Resource{
		Group: s.Group, Version: s.Version, Scope: s.scope(), Names: resourceNames(s.Names),
		Namespaced:   strings.Contains(o.Path, "{namespace}"),
		Paths:        []string{o.Path},
		Slashes:      resource.SlashesNamed(s.TrailingSlash, s.EncodedSlash),
		Subresources: resource.Subresources{OtherPaths: resource.OtherPathsPass},
		Envelope:     resource.Bare,
		HasOwnQuery:  s.hasOwnQuery(),
		Operation:    &resource.Operation{Subresource: o.Name, Method: o.Method, Verb: resource.VerbCreate},
		Writes:       s.writes(),
	}
	if o.Operation == "UPDATE" {
		r.Operation.Verb = resource.VerbUpdate
	}
	r.Writes.EmptyBodies = o.EmptyBodies == "Allowed" || o.EmptyBodies == "" && o.Schema == nil
	r.Writes.Items = resource.ItemsNamed(o.Items)
	r.Fields.DataMaps = s.fields(resource.Bare).DataMaps
	if s.Backend.DryRun != "Native" {
		r.Backend.Emulated = resource.DryRun
	}
	setErrors(r, s.Errors, s.ErrorFormat, s.ErrorTemplate)
	return r
}
