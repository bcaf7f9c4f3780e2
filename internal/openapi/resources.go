package openapi

import (
	"cmp"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Resources are the resources that the document describes, the operations that are no verbs of them, and everything
// that was found on the way. compile, which may be nil, gets each resource once it has its schemas. The translations of
// these are dropped when it returns, so that there is no memory for all of them at the same time.
func (d *Document) Resources(compile func(*Resource)) ([]*Resource, []*Documented, []Finding) {
	paths := d.paths()
	d.overlaps = overlapsIn(paths)
	d.checkDefaults()
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
			d.operations(r)
		}
		d.describe(r)
	}
	kubernetesOperations(d, all, paths)
	d.name(all)
	for _, r := range all {
		d.addSchemas(r)
		if compile != nil {
			compile(r)
		}
	}
	findActions(d, all, paths)
	documented := d.documented(paths)
	return all, documented, d.report.findings()
}

func (p *pathItem) is(part partOf) {
	if p != nil {
		p.part = part
	}
}

// ordinary finds the resources among paths that are not Kubernetes' own: a path that ends in a variable leads to an
// object, and what stands before it to its collection. Collections without paths of objects can be posted to, and paths
// of single objects can be read and written.
func (d *Document) ordinary(paths []*pathItem) []*Resource {
	byShape := map[string]*pathItem{}
	for _, p := range paths {
		if first := byShape[p.shape()]; p.part == noPart && len(p.segments) > 0 &&
			(first == nil || first.trailing && !p.trailing) {
			byShape[p.shape()] = p
		}
	}
	known := map[string]bool{}
	var all []*Resource
	for _, p := range paths {
		last := len(p.segments) - 1
		if p.part != noPart || byShape[p.shape()] != p || last < 1 || !isVariable(p.segments[last]) ||
			!plainBut(p.segments) {
			continue
		}
		collection := shapeOf(p.segments[:last])
		if isVariable(p.segments[last-1]) && byShape[collection] != nil {
			continue // what stands before the last variable is the path of an object, which is no collection
		}
		known[collection], known[p.shape()] = true, true
		above := byShape[collection]
		if above != nil && !slices.Equal(above.bases, p.bases) {
			above = nil // the collection is at other servers
		}
		all = append(all, d.resource(above, p, p.segments[:last]))
	}
	for _, p := range paths {
		last := len(p.segments) - 1
		if p.part != noPart || byShape[p.shape()] != p || known[p.shape()] || isVariable(p.segments[last]) ||
			!plainBut(p.segments) ||
			!p.has("post") || p.has("put") || p.has("patch") || p.has("delete") {
			continue
		}
		if action := known[shapeOf(p.segments[:last])] && !p.has("get"); action {
			continue
		}
		all = append(all, d.resource(p, nil, p.segments))
	}
	for _, p := range paths {
		if p.part == noPart && byShape[p.shape()] == p && !known[p.shape()] && plainBut(p.segments) && isSingle(d, p) {
			all = append(all, d.resource(nil, p, p.segments))
		}
	}
	return all
}

// isSingle reports whether a path that ends in no variable is the path of one object, such as '/me': it is read, and it
// is replaced or patched, and it is no list.
func isSingle(d *Document, p *pathItem) bool {
	last := p.segments[len(p.segments)-1]
	if isVariable(last) || !p.has("get") || p.has("post") || !p.writes("put") && !p.writes("patch") {
		return false
	}
	bodies := []document.Node{d.responseSchema(p.operation("get")), d.requestSchema(p.operation("put")),
		d.requestSchema(p.operation("patch"))}
	return all(bodies, func(body document.Node) bool { return !isList(d, body) })
}

// isList reports whether a schema is one of a list.
func isList(d *Document, n document.Node) bool {
	if !n.Valid() {
		return false
	}
	c := d.conjunctionOf(n)
	return c.is("array")
}

// plainBut reports whether each segment is plain or a variable, the first one plain.
func plainBut(segments []string) bool {
	for i, s := range segments {
		if s == "" || isVariable(s) && i == 0 || !isVariable(s) && strings.ContainsAny(s, "{}%") {
			return false
		}
	}
	return true
}

// resource makes the resource of a collection and the path of its objects. Either may be missing.
func (d *Document) resource(collection, object *pathItem, segments []string) *Resource {
	at := cmp.Or(object, collection)
	r := &Resource{at: at.node, collection: collection, object: object, Settings: d.settings(collection, object)}
	template := ""
	for _, s := range segments {
		switch {
		case !isVariable(s):
		case !r.Namespaced:
			r.Namespaced, s = true, "{namespace}"
		default:
			s = "{parent-" + variable(s) + "}"
		}
		template += "/" + s
	}
	for _, base := range at.bases {
		if collection != nil || r.IsSingleton() {
			r.Paths = append(r.Paths, base+template+cmp.Or(collection, object).slash())
		}
		if object != nil && !r.IsSingleton() {
			r.Paths = append(r.Paths, base+template+"/{name}"+object.slash())
		}
	}
	return r
}

// schemasOf returns the schemas of the objects that are created, that replace others, and that are read.
func (d *Document) schemasOf(r *Resource) (create, update, read document.Node) {
	return d.requestSchema(r.collection.operation("post")), d.requestSchema(r.object.operation("put")),
		d.responseSchema(r.object.operation("get"))
}

// firstOf returns the first node that there is.
func firstOf(nodes ...document.Node) document.Node {
	for _, n := range nodes {
		if n.Valid() {
			return n
		}
	}
	return document.Node{}
}

// describe finds out how the objects of a resource look.
func (d *Document) describe(r *Resource) {
	create, update, read := d.schemasOf(r)
	c := d.conjunctionOf(firstOf(read, update, create))
	switch said := r.setting("envelope"); {
	case len(r.Paths) == 0 || said == "Kubernetes":
		r.Envelope = resource.Kubernetes
	case said == "" && c.hasMember("apiVersion") && c.hasMember("kind") && c.hasMember("metadata"):
		r.Envelope = resource.Kubernetes
	default:
		r.Envelope = resource.Bare
	}
	if shown := d.shownOf(r); !r.saysShown() {
		if r.Answer, r.Unshown = shown.answer, shown.why; r.Unshown != "" {
			r.Changes = r.changes()
		}
		if r.Answer != "" {
			read, c = shown.schema, d.conjunctionOf(shown.schema)
		}
	}
	r.NameField = nameField(r, &c)
	r.NameMayChange = r.NameField != "" && r.setting("fields", "name") == "" &&
		!d.isReadOnly(r.NameField, read, update, create)
	r.ItemsField = d.itemsField(r)
	if r.Kind == "" {
		r.Kind = d.kindOf(r, read, update, create)
	}
}

// addSchemas translates the schemas of a resource.
func (d *Document) addSchemas(r *Resource) {
	create, update, read := d.schemasOf(r)
	o := translation{envelope: r.Envelope == resource.Kubernetes, kubernetes: d.isKubernetes() && len(r.Paths) == 0}
	d.bodies(r, o)
	posted, put := r.collection.operation("post"), r.object.operation("put")
	patched, got := r.object.operation("patch"), r.object.operation("get")
	if create.Valid() {
		o.filling = d.fillingOf(posted)
		r.Create = d.schemaOf(create, o)
	}
	if update.Valid() {
		o.filling = d.fillingOf(put)
		r.Update = d.schemaOf(update, o)
	}
	if n := firstOf(update, create); n.Valid() {
		o.filling = d.fillingOf(firstOf(patched, put, posted))
		r.Result = d.schemaOf(n, o)
	}
	if r.Result.IsList() {
		r.Result = nil // no patch of an object makes a list
	}
	if patch := d.requestSchema(r.object.operation("patch")); patch.Valid() && isSameSchema(patch, update, create) {
		if c := d.conjunctionOf(patch); len(c.required()) > 0 {
			d.report.warn(patch, "is the schema of whole objects: a patch must have all that it requires")
		}
	}
	o.of = ofAnswers
	from := firstOf(got, put, patched, posted)
	r.ReadDefaults = d.readDefaultsOf(firstOf(got, r.collection.operation("get"), from))
	if r.Answer != "" {
		read = d.shownOf(r).schema
	}
	if n := firstOf(read, update, create); n.Valid() && fillsReads(r) {
		o.filling = d.fillingOf(from)
		if s := d.schemaOf(n, o); s != nil && s.Defaults && !s.IsList() {
			r.Read, d.fillsReads = s, true
		}
	}
	if patch := r.object.operation("patch"); patch.Valid() && len(r.Paths) > 0 {
		r.object.patchTypes = d.patchTypes(patch)
	}
}

// isSameSchema reports whether a schema is written as one of the others.
func isSameSchema(n document.Node, others ...document.Node) bool {
	return slices.ContainsFunc(others,
		func(o document.Node) bool { return o.Valid() && string(o.Raw()) == string(n.Raw()) })
}

// patchTypes returns the media types of an operation's JSON besides the usual ones of patches: each is one of merge
// patches.
func (d *Document) patchTypes(patch document.Node) []string {
	body, _ := patch.Get("requestBody")
	content, _ := d.follow(body).Get("content")
	var types []string
	members(content, func(m document.Node) {
		name, _, _ := strings.Cut(strings.ToLower(m.Key()), ";")
		switch name = strings.TrimSpace(name); {
		case name == "application/json", !strings.HasSuffix(name, "+json") && !strings.HasSuffix(name, "/json"):
		case slices.Contains(usualPatches, name), slices.Contains(types, name):
		default:
			types = append(types, name)
		}
	})
	return types
}

// usualPatches are the media types of patches whose language they say themselves.
var usualPatches = []string{"application/json-patch+json", "application/merge-patch+json",
	"application/strategic-merge-patch+json"}

// nameField is the member that repeats the name in the path: the one that has the variable's own name, or the
// identifier of the kind.
func nameField(r *Resource, c *conjunction) string {
	if r.object == nil || r.IsSingleton() || r.Envelope == resource.Kubernetes {
		return ""
	}
	name := variable(r.object.segments[len(r.object.segments)-1])
	isStyled := func(p contract.Parameter) bool {
		return p.In == contract.InPath && p.Name == name && p.Style != contract.Simple
	}
	if slices.ContainsFunc(r.said, func(o Operation) bool { return slices.ContainsFunc(o.Parameters, isStyled) }) {
		return "" // the path has more than the name
	}
	if c.hasMember(name) {
		return name
	}
	plain := strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
	if plain == "id" || len(r.static()) > 0 && plain == letters(singular(r.static()[len(r.static())-1]))+"id" {
		if c.hasMember("id") {
			return "id"
		}
	}
	return ""
}

// isReadOnly reports whether one of the schemas says that a member is readOnly.
func (d *Document) isReadOnly(name string, schemas ...document.Node) bool {
	return slices.ContainsFunc(schemas, func(n document.Node) bool {
		if !n.Valid() {
			return false
		}
		found, c := false, d.conjunctionOf(n)
		c.each("properties", func(properties document.Node) {
			if m, has := properties.Get(name); has {
				member := d.conjunctionOf(m)
				found = found || member.says("readOnly")
			}
		})
		return found
	})
}

// itemsField is the member of a list's answer that holds the items: the only one that is a list. Empty is an answer
// that is itself the list.
func (d *Document) itemsField(r *Resource) string {
	n := d.responseSchema(r.collection.operation("get"))
	if !n.Valid() || r.Envelope == resource.Kubernetes {
		return ""
	}
	c := d.conjunctionOf(n)
	var lists []string
	c.each("properties", func(properties document.Node) {
		members(properties, func(m document.Node) {
			if isList(d, m) {
				lists = append(lists, strings.Clone(m.Key()))
			}
		})
	})
	if len(lists) == 1 {
		return lists[0]
	}
	return ""
}
