package openapi

import (
	"cmp"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Resource is a resource that the paths of a document describe. What the document does not say itself is derived.
type Resource struct {
	Group, Version, Plural, Kind string
	// Envelope is how the objects look.
	Envelope resource.Envelope
	// Paths are the path templates; empty for Kubernetes' own.
	Paths      []string
	Namespaced bool
	// NameField is the member that repeats the name in the path, ItemsField the member of a list's
	// answer with the items; empty if there is none, and if the answer is the list itself.
	NameField, ItemsField string
	// NameMayChange says that a change may give another value to the NameField: no author says that it is the name, and
	// it is not readOnly.
	NameMayChange bool
	// Answer is the member of the answer to a GET that has the object; empty if it is the answer itself. Unshown says
	// why the answer is not known to have it in the shape of the bodies, Changes which methods that concerns; empty if
	// it is known.
	Answer, Unshown string
	Changes         []string
	// Status, Scale and Subresources are the subresources, of Kubernetes' resources alone.
	Status, Scale bool
	Subresources  []string
	// Create, Update and Result are the schemas of objects that are created, that replace others, and
	// that result from patches, which is Update or else Create. No schema of an answer is among them.
	// Read is the schema of objects that are read, if it fills anything in. Each may be nil.
	Create, Update, Result, Read *Schema
	// ReadDefaults says whether it does.
	ReadDefaults resource.ReadDefaults
	// Settings are the members of the extension x-admission-gateway-resource, of the whole document and of the
	// resource's own paths, the latter last. Their values are in the document.
	Settings []document.Node

	at                 document.Node
	collection, object *pathItem
	said               []Operation
}

// static returns the plain segments of the path.
func (r *Resource) static() (plain []string) {
	if len(r.Paths) == 0 {
		return nil
	}
	for _, s := range cmp.Or(r.object, r.collection).segments {
		if !isVariable(s) {
			plain = append(plain, s)
		}
	}
	return plain
}

// Path is the place of the resource's description in the document.
func (r *Resource) Path() string { return Place(r.at) }

// Routes returns the Paths with the document's own names of variables.
func (r *Resource) Routes() (routes []string) {
	if len(r.Paths) == 0 {
		return nil
	}
	at := cmp.Or(r.object, r.collection)
	segments, hasItems := at.segments, r.object != nil && !r.IsSingleton()
	if hasItems {
		segments = segments[:len(segments)-1]
	}
	for _, base := range at.bases {
		collection := base + "/" + strings.Join(segments, "/")
		if r.collection != nil || r.IsSingleton() {
			routes = append(routes, collection+cmp.Or(r.collection, r.object).slash())
		}
		if hasItems {
			routes = append(routes, collection+"/"+r.object.segments[len(segments)]+r.object.slash())
		}
	}
	return routes
}

// IsSingleton reports whether there is one object, which has the only path.
func (r *Resource) IsSingleton() bool {
	return r.collection == nil && r.object != nil && !isVariable(r.object.segments[len(r.object.segments)-1])
}

// PatchTypes returns the media types of the objects' PATCH besides the usual ones, in lower case.
func (r *Resource) PatchTypes() []string {
	if r.object == nil {
		return nil
	}
	return r.object.patchTypes
}

// Methods returns the methods that the document has for the collection and for objects. PATCH is one of them too if the
// gateway makes a PUT of it.
func (r *Resource) Methods(emulatesPatch bool) (m resource.Methods) {
	if len(r.Paths) == 0 {
		return m
	}
	m.Collection, m.Item = r.collection.methods(), r.object.methods()
	if emulatesPatch && r.object.has("put") {
		m.Item |= resource.NewMethodSet("PATCH")
	}
	return m
}

// PatchForms returns the places of the forms that the PATCH of the objects takes.
func (r *Resource) PatchForms() (places []string) {
	for _, o := range r.Operations() {
		if o.Verb != resource.VerbPatch {
			continue
		}
		for _, b := range o.Bodies {
			if b.Form != nil {
				places = append(places, b.Place)
			}
		}
	}
	return places
}

// HasPatchAlone reports whether objects have PATCH and no PUT.
func (r *Resource) HasPatchAlone() bool {
	return r.object != nil && len(r.Paths) > 0 && r.object.has("patch") && !r.object.has("put")
}

// Extension is the keyword by which a document, or a path of it, says about its resources what cannot be derived.
const Extension = "x-admission-gateway-resource"

// ignored reports whether the author leaves a resource out.
func ignored(settings []document.Node) bool {
	ignored := false
	for _, s := range settings {
		if m, found := s.Get("ignore"); found {
			ignored = m.Bool()
		}
	}
	return ignored
}

// setting returns a setting of the author for a resource: a string at a path of members of the extension.
func (r *Resource) setting(path ...string) string {
	said := ""
	for _, at := range r.Settings {
		for _, key := range path {
			at, _ = at.Get(key)
		}
		if at.Kind() == document.String {
			said = strings.Clone(at.Str())
		}
	}
	return said
}

// settings are the extensions of the document and of the paths.
func (d *Document) settings(paths ...*pathItem) []document.Node {
	var all []document.Node
	if s, found := d.root.Get(Extension); found {
		all = append(all, s)
	}
	for _, p := range paths {
		if p == nil {
			continue
		}
		if s, found := p.item.Get(Extension); found {
			all = append(all, s)
		}
	}
	return all
}
