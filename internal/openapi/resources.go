package openapi

import (
	"cmp"
	"slices"
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
	// NameField is the member that repeats the name in the path, ItemsField that of a list's answer which holds the items;
	// empty where there is none, and where the answer is the list itself.
	NameField, ItemsField string
	// Status, Scale and Subresources are the subresources, of Kubernetes' resources alone.
	Status, Scale bool
	Subresources  []string
	// Create, Update and Read are the schemas of objects that are created, that replace others or result from patches, and
	// that are read; nil where there is nothing to hold them against, and nothing to fill in on reads.
	Create, Update, Read *Schema
	// Settings are the members of the extension x-admission-gateway-resource, of the whole document and of the
	// resource's own paths, the latter last. Their values are in the document.
	Settings []document.Node

	at                 document.Node
	collection, object *pathItem
	static             []string // the plain segments of the path
}

// Path is where in the document the resource is described.
func (r *Resource) Path() string { return Place(r.at) }

// Extension is the keyword by which a document, or a path of it, says about its resources what cannot be derived.
const Extension = "x-admission-gateway-resource"

// Resources are the resources that the document describes, the paths that are none of theirs, and everything that was
// found on the way.
func (d *Document) Resources() ([]*Resource, []resource.Passing, []Finding) {
	paths := d.paths()
	var all []*Resource
	if d.isKubernetes() {
		all = d.kubernetes(paths)
	}
	all = append(all, d.ordinary(paths)...)
	all = slices.DeleteFunc(all, func(r *Resource) bool { return ignored(r.Settings) })
	for _, r := range all {
		if len(r.Paths) > 0 {
			r.collection.is(collectionPart)
			r.object.is(objectPart)
		}
		d.describe(r)
	}
	d.name(all)
	passing := d.passing(paths)
	return all, passing, d.report.findings()
}

func (p *pathItem) is(part partOf) {
	if p != nil {
		p.part = part
	}
}

// ignored tells whether the author leaves a resource out.
func ignored(settings []document.Node) bool {
	ignored := false
	for _, s := range settings {
		if m, found := s.Get("ignore"); found {
			ignored = m.Bool()
		}
	}
	return ignored
}

// setting is what the author says of a resource: a string at a path of members of the extension.
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

// ordinary finds the resources among paths that are not Kubernetes' own: a path that ends in a variable is that of an
// object, what stands before it that of its collection. Collections without paths of objects can be posted to.
func (d *Document) ordinary(paths []*pathItem) []*Resource {
	byShape := map[string]*pathItem{}
	for _, p := range paths {
		if p.part == noPart && !p.trailing && byShape[p.shape()] == nil {
			byShape[p.shape()] = p
		}
	}
	known := map[string]bool{}
	var all []*Resource
	for _, p := range paths {
		last := len(p.segments) - 1
		if p.part != noPart || byShape[p.shape()] != p || last < 1 || !isVariable(p.segments[last]) || !plainBut(p.segments) {
			continue
		}
		collection := shapeOf(p.segments[:last])
		if isVariable(p.segments[last-1]) && byShape[collection] != nil {
			continue // what stands before the last variable is the path of an object, which is no collection
		}
		known[collection], known[p.shape()] = true, true
		all = append(all, d.resource(byShape[collection], p, p.segments[:last]))
	}
	for _, p := range paths {
		last := len(p.segments) - 1
		if p.part != noPart || byShape[p.shape()] != p || known[p.shape()] || isVariable(p.segments[last]) || !plainBut(p.segments) ||
			!p.has("post") || p.has("put") || p.has("patch") || p.has("delete") {
			continue
		}
		if action := known[shapeOf(p.segments[:last])] && !p.has("get"); action {
			continue
		}
		all = append(all, d.resource(p, nil, p.segments))
	}
	return all
}

// plainBut tells whether each segment is plain or a variable, the first one plain.
func plainBut(segments []string) bool {
	for i, s := range segments {
		if s == "" || isVariable(s) && i == 0 || !isVariable(s) && strings.ContainsAny(s, "{}%") {
			return false
		}
	}
	return true
}

// resource makes the resource of a collection and the path of its objects, either of which may be missing.
func (d *Document) resource(collection, object *pathItem, segments []string) *Resource {
	at := cmp.Or(object, collection)
	r := &Resource{at: at.node, collection: collection, object: object, Settings: d.settings(collection, object)}
	template := ""
	for _, s := range segments {
		switch {
		case !isVariable(s):
			r.static = append(r.static, s)
		case !r.Namespaced:
			r.Namespaced, s = true, "{namespace}"
		default:
			s = "{parent-" + variable(s) + "}"
		}
		template += "/" + s
	}
	for _, base := range at.bases {
		r.Paths = append(r.Paths, base+template)
		if object != nil {
			r.Paths = append(r.Paths, base+template+"/{name}")
		}
	}
	return r
}

// describe finds the schemas of a resource, and what follows from them.
func (d *Document) describe(r *Resource) {
	create := d.requestSchema(r.collection.operation("post"))
	update := d.requestSchema(r.object.operation("put"))
	read := d.responseSchema(r.object.operation("get"))
	first := func(nodes ...document.Node) document.Node {
		for _, n := range nodes {
			if n.Valid() {
				return n
			}
		}
		return document.Node{}
	}
	any := first(read, update, create)
	t := &translator{doc: d, depth: maxDepth}
	var c conjunction
	if any.Valid() {
		c = t.flatten([]document.Node{any}, nil)
	}
	switch said := r.setting("envelope"); {
	case len(r.Paths) == 0 || said == "Kubernetes":
		r.Envelope = resource.Kubernetes
	case said == "" && c.hasMember("apiVersion") && c.hasMember("kind") && c.hasMember("metadata"):
		r.Envelope = resource.Kubernetes
	default:
		r.Envelope = resource.Bare
	}
	r.NameField = nameField(r, &c)
	r.ItemsField = d.itemsField(r)
	if r.Kind == "" {
		r.Kind = d.kindOf(r, read, update, create)
	}
	o := translation{envelope: r.Envelope == resource.Kubernetes, kubernetes: d.isKubernetes() && len(r.Paths) == 0}
	// What the gateway cannot read it refuses: nothing has to be held against a schema then.
	unread := r.takesNoJSON(create, update)
	if n := first(create, update, read); n.Valid() && !unread {
		r.Create = d.cached(n, o)
	}
	if n := first(update, read, create); n.Valid() && !unread {
		r.Update = d.cached(n, o)
	}
	o.response = true
	if n := first(read, update, create); n.Valid() {
		if s := d.cached(n, o); s != nil && s.Defaults {
			r.Read = s
		}
	}
	if patch := r.object.operation("patch"); patch.Valid() && !r.object.has("put") && len(r.Paths) > 0 {
		d.report.warn(patch, "becomes a PUT of the object that results from it, and the document has no PUT here")
	}
}

// takesNoJSON tells whether all writes that the document describes carry something else.
func (r *Resource) takesNoJSON(create, update document.Node) bool {
	documented := false
	for _, operation := range []document.Node{r.collection.operation("post"), r.object.operation("post"), r.object.operation("put"), r.object.operation("patch")} {
		_, found := operation.Get("requestBody")
		documented = documented || found
	}
	if patch := r.object.operation("patch"); patch.Valid() {
		content, _ := patch.Get("requestBody")
		types, _ := content.Get("content")
		if types.Len() == 0 || jsonMedia(types).Valid() {
			return false
		}
	}
	return documented && !create.Valid() && !update.Valid()
}

// cacheKey tells the translations of a document apart.
type cacheKey struct {
	node    uint32
	options translation
}

func (d *Document) cached(n document.Node, o translation) *Schema {
	if ref, found := n.Get("$ref"); found && !d.v31 {
		if to, err := d.resolve(ref.Str()); err == nil {
			n = to
		}
	}
	key := cacheKey{n.Index(), o}
	if s, found := d.translated[key]; found {
		return s
	}
	s := d.translate(n, o, nil)
	if d.translated == nil {
		d.translated = map[cacheKey]*Schema{}
	}
	d.translated[key] = s
	return s
}

// hasMember tells whether the schema names a member.
func (c *conjunction) hasMember(name string) bool {
	found := false
	c.each("properties", func(p document.Node) {
		_, has := p.Get(name)
		found = found || has
	})
	return found
}

// nameField is the member that repeats the name in the path: the one that has the variable's own name, or the identifier
// of the kind.
func nameField(r *Resource, c *conjunction) string {
	if r.object == nil || r.Envelope == resource.Kubernetes {
		return ""
	}
	name := variable(r.object.segments[len(r.object.segments)-1])
	if c.hasMember(name) {
		return name
	}
	plain := strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
	if plain == "id" || len(r.static) > 0 && plain == letters(singular(r.static[len(r.static)-1]))+"id" {
		if c.hasMember("id") {
			return "id"
		}
	}
	return ""
}

// itemsField is the member of a list's answer that holds the items: the only one that is a list. Empty is an answer that
// is itself the list.
func (d *Document) itemsField(r *Resource) string {
	n := d.responseSchema(r.collection.operation("get"))
	if !n.Valid() || r.Envelope == resource.Kubernetes {
		return ""
	}
	t := &translator{doc: d, depth: maxDepth}
	c := t.flatten([]document.Node{n}, nil)
	var lists []string
	c.each("properties", func(properties document.Node) {
		members(properties, func(m document.Node) {
			sub := t.flatten([]document.Node{m}, nil)
			if types, _ := t.types(&sub); slices.Equal(types, []string{"array"}) {
				lists = append(lists, strings.Clone(m.Key()))
			}
		})
	})
	if len(lists) == 1 {
		return lists[0]
	}
	return ""
}
