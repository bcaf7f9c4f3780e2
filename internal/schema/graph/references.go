package graph

import (
	"bytes"
	"net/url"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
)

// identify finds the identifiers of the document: few documents have any.
func (c *Compiler) identify() {
	c.top = &resource{root: c.root}
	raw := c.root.Raw()
	if c.dialect == OpenAPI30 || !bytes.Contains(raw, []byte(`"$id"`)) && !bytes.Contains(raw, []byte(`"$anchor"`)) &&
		!bytes.Contains(raw, []byte(`"$dynamicAnchor"`)) {
		return
	}
	c.top.uri = &url.URL{}
	c.resources = map[uint32]*resource{c.root.Index(): c.top}
	c.identifyIn(c.root, c.top)
}

// identifyIn finds the identifiers in a value. Examples and the like are no schemas.
func (c *Compiler) identifyIn(n document.Node, in *resource) {
	if n.Kind() == document.Object {
		if id, found := n.Get("$id"); found && id.Kind() == document.String {
			if uri, err := in.uri.Parse(id.Str()); err == nil {
				if n != c.root {
					in = &resource{root: n}
					c.resources[n.Index()] = in
				}
				in.uri = uri
			}
		}
		for _, key := range []string{"$anchor", "$dynamicAnchor"} {
			if anchor, found := n.Get(key); found && anchor.Kind() == document.String {
				if in.anchors == nil {
					in.anchors = map[string]document.Node{}
				}
				name := strings.Clone(anchor.Str())
				in.anchors[name] = n
				if key == "$dynamicAnchor" {
					in.moving = append(in.moving, name)
				}
			}
		}
	}
	for m := n.First(); m.Valid(); m = m.Next() {
		switch m.Key() {
		case "enum", "const", "default", "example", "examples":
			continue
		}
		c.identifyIn(m, in)
	}
}

// dynamicRef compiles a $dynamicRef. It is a $ref unless it points to a dynamic anchor.
func (f *filler) dynamicRef(m document.Node) {
	if m.Kind() != document.String {
		f.refuse(m, "must be a string")
		return
	}
	to, err := f.resolve(m.Str(), f.at)
	if err != nil {
		f.refuse(m, "%s", err.Error())
		return
	}
	l := f.s.logical()
	_, name, _ := strings.Cut(m.Str(), "#")
	anchor, found := to.Get("$dynamicAnchor")
	if !found || !anchor.Is(name) {
		l.all = append(l.all, f.sub(to))
		return
	}
	d := &dynamic{name: strings.Clone(name), fallback: f.sub(to)}
	for _, r := range f.resources {
		for _, moving := range r.moving {
			if moving != name {
				continue
			}
			if r.dynamicSchema(name) == nil {
				r.dynamic = append(r.dynamic, dynamicAnchor{d.name, f.sub(r.anchors[name])})
			}
			d.all = append(d.all, r)
		}
	}
	l.dynamic = append(l.dynamic, d)
}
