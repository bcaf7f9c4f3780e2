package assembly

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/theory/jsonpath"
	"github.com/theory/jsonpath/spec"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/finding"
)

// An overlay is an OpenAPI Overlay that was read.
type overlay struct {
	from    *manifest.Object
	extends string
	actions []action
}

// An action changes what its target selects.
type action struct {
	place   string // in the overlay
	target  *jsonpath.Path
	update  document.Node // invalid if there is none
	removes bool
}

// read reads an overlay; nil if it has errors.
func (a *Assembly) read(o *manifest.Object) *overlay {
	r := overlayReader{Assembly: a, from: o, isRight: true}
	root := o.Document().Root()
	if o.APIVersion != "1.0" && !strings.HasPrefix(o.APIVersion, "1.0.") {
		r.wrong(root, "overlay", "must be of version 1.0 of the Overlay specification, not '%.80s'", o.APIVersion)
	}
	r.members(root, "", "overlay", "info", "extends", "actions")
	made := &overlay{from: o, extends: r.text(root, "", "extends")}
	info, _ := root.Get("info")
	for _, key := range []string{"title", "version"} {
		if r.text(info, "info", key) == "" {
			r.wrong(info, "info", "must have a `%s`", key)
		}
	}
	actions, _ := root.Get("actions")
	if actions.Kind() != document.Array || actions.Len() == 0 {
		r.wrong(actions, "actions", "must be a list of at least one action")
		return nil
	}
	for n := actions.First(); n.Valid(); n = n.Next() {
		made.actions = append(made.actions, r.action(n))
	}
	if !r.isRight {
		return nil
	}
	return made
}

// An overlayReader reads an overlay.
type overlayReader struct {
	*Assembly
	from    *manifest.Object
	isRight bool
}

// wrong records an error at a value, or at a path if there is none.
func (r *overlayReader) wrong(n document.Node, path, format string, args ...any) {
	r.isRight = false
	if n.Valid() && n.Parent().Valid() {
		path = n.Path()
	}
	r.found.At(r.from, finding.Error, path, format, args...)
}

// members refuses members that an object of an overlay does not have.
func (r *overlayReader) members(n document.Node, path string, known ...string) {
	if n.Kind() != document.Object {
		r.wrong(n, path, "must be an object")
		return
	}
	for m := n.First(); m.Valid(); m = m.Next() {
		if !slices.Contains(known, m.Key()) && !strings.HasPrefix(m.Key(), "x-") {
			r.wrong(m, path, "must be one of '%s', or begin with 'x-'", strings.Join(known, "', '"))
		}
	}
}

// text returns a member that is a string, or "".
func (r *overlayReader) text(n document.Node, path, key string) string {
	m, found := n.Get(key)
	if found && m.Kind() != document.String {
		r.wrong(m, path, "must be a string")
	}
	return m.Str()
}

func (r *overlayReader) action(n document.Node) action {
	made := action{place: n.Path()}
	r.members(n, made.place, "target", "description", "update", "remove")
	if n.Kind() != document.Object {
		return made
	}
	r.text(n, made.place, "description")
	target, _ := n.Get("target")
	var err error
	if made.target, err = jsonpath.Parse(r.text(n, made.place, "target")); err != nil {
		r.wrong(target, made.place, "must be a JSONPath as RFC 9535 has it, such as '$.paths[*].get': %s",
			strings.TrimPrefix(err.Error(), "jsonpath: "))
	}
	remove, isRemoval := n.Get("remove")
	if isRemoval && remove.Kind() != document.Bool {
		r.wrong(remove, made.place, "must be 'true' or 'false'")
	}
	made.removes = remove.Bool()
	update, isUpdate := n.Get("update")
	if made.update = update; !isUpdate && !made.removes {
		r.wrong(n, made.place, "must have an `update`, or `remove: true`")
	}
	return made
}

// apply applies overlays to a document, one after the other.
func (a *Assembly) apply(draft *manifest.Draft, o *manifest.Object, overlays []*overlay) {
	if len(overlays) == 0 {
		return
	}
	decoder := json.NewDecoder(strings.NewReader(string(o.JSON)))
	decoder.UseNumber()
	var plain any
	if err := decoder.Decode(&plain); err != nil {
		a.refuse(o, "", "must be an object that overlays can change: %v", err)
		return
	}
	for _, l := range overlays {
		for _, one := range l.actions {
			c := changer{Assembly: a, from: l.from, action: one}
			selected := one.target.SelectLocated(plain).Deduplicate()
			if len(selected) == 0 {
				a.refuse(l.from, one.place+".target", "must select something in the document '%s'", o.File)
			}
			selected.Sort() // so that what is within another value, and the last of a list, is changed first
			for _, at := range slices.Backward(selected) {
				plain = c.at(draft, plain, at.Path)
			}
		}
	}
}

// A changer carries out an action. The document that it changes is there twice: as a draft, which knows its lines, and
// as plain values, which targets are looked for in.
type changer struct {
	*Assembly
	from   *manifest.Object
	action action
}

// at changes the value at a path, and returns what it is then.
func (c *changer) at(d *manifest.Draft, plain any, path spec.NormalizedPath) any {
	if len(path) == 0 {
		if c.action.removes {
			c.refuse(c.from, c.action.place+".target", "must not select the whole document, which cannot be removed")
			return plain
		}
		return c.update(d, plain)
	}
	removesPart := c.action.removes && len(path) == 1
	switch step := path[0].(type) {
	case spec.Name:
		object, key := plain.(map[string]any), string(step)
		part := d.Member(key)
		if removesPart {
			d.Remove(part)
			delete(object, key)
			return object
		}
		object[key] = c.at(part, object[key], path[1:])
		return object
	case spec.Index:
		list, i := plain.([]any), int(step)
		part := d.Parts()[i]
		if removesPart {
			d.Remove(part)
			return slices.Delete(list, i, i+1)
		}
		list[i] = c.at(part, list[i], path[1:])
		return list
	}
	return plain
}

// update merges the update into a value that the target selects.
func (c *changer) update(d *manifest.Draft, plain any) any {
	switch d.Kind() {
	case document.Object:
		if c.action.update.Kind() != document.Object {
			c.refuse(c.from, c.action.place+".update", "must be an object, as what the target selects")
			return plain
		}
		return c.merge(d, plain, c.action.update)
	case document.Array:
		d.Append(c.from.Draft(c.action.update))
		return append(plain.([]any), c.plain(c.action.update))
	}
	c.refuse(c.from, c.action.place+".target", "must select objects or lists, not %s: select the object that has the member, and update that",
		d.Kind().WithArticle())
	return plain
}

// merge gives an object the members of another one.
func (c *changer) merge(d *manifest.Draft, plain any, update document.Node) any {
	object := plain.(map[string]any)
	for m := update.First(); m.Valid(); m = m.Next() {
		key := m.Key()
		there := d.Member(key)
		isNew := there == nil
		if !isNew && c.isContainer(there.Kind()) != c.isContainer(m.Kind()) || !isNew && c.isContainer(m.Kind()) &&
			there.Kind() != m.Kind() {
			c.refuse(c.from, m.Path(), "must be %s, as in the document", there.Kind().WithArticle())
			continue
		}
		switch {
		case isNew || !c.isContainer(m.Kind()):
			d.Set(key, c.from.Draft(m))
			object[key] = c.plain(m)
		case m.Kind() == document.Object:
			object[key] = c.merge(there, object[key], m)
		default:
			list := object[key].([]any)
			for item := m.First(); item.Valid(); item = item.Next() {
				there.Append(c.from.Draft(item))
				list = append(list, c.plain(item))
			}
			object[key] = list
		}
	}
	return object
}

func (c *changer) isContainer(k document.Kind) bool {
	return k == document.Object || k == document.Array
}

// plain returns a value of the overlay as targets look at it.
func (c *changer) plain(n document.Node) (v any) {
	decoder := json.NewDecoder(strings.NewReader(string(n.Raw())))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		c.refuse(c.from, n.Path(), "must be a value that can be read in one way only: %v", err)
	}
	return v
}
