// Package openapi makes of OpenAPI documents, as the teams of APIs publish them, what policies are about: resources with
// their paths, and the schemas of their objects in the form that package schema compiles.
//
// Versions 3.0 and 3.1 are read. A document says of an API more than a gateway can hold requests to, and says some of it
// in ways that have no meaning here; whatever is in a document and will not be enforced is a [Finding].
package openapi

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
)

// Document is an OpenAPI document.
type Document struct {
	parsed *document.Document
	root   document.Node
	v31    bool // the dialect of schemas is JSON Schema 2020-12
	report *report

	extends    map[string][]string // by component, those that it extends by allOf; made when it is needed
	translated map[cacheKey]*Schema
	sizes      map[sizeKey]int
}

// Parse reads a document in JSON. The error is a sentence about the document as a whole.
func Parse(json []byte) (*Document, error) {
	parsed, err := document.Parse(json, document.Limits{Bytes: len(json), Depth: 1000, Nodes: len(json)})
	if err != nil {
		return nil, fmt.Errorf("must be a document that can be read in one way only: %w", err)
	}
	d := &Document{parsed: parsed, root: parsed.Root(), report: newReport()}
	version := text(d.root, "openapi")
	if n, found := d.root.Get("openapi"); found && n.Kind() == document.Number {
		version = string(n.Raw())
	}
	switch {
	case version == "3.0" || strings.HasPrefix(version, "3.0."):
	case version == "3.1" || strings.HasPrefix(version, "3.1."):
		d.v31 = true
	default:
		parsed.Release()
		return nil, fmt.Errorf("must be of version 3.0 or 3.1 of OpenAPI, not '%.80s'", version)
	}
	return d, nil
}

// Release gives the memory of the document back. Nothing that came from it may be used any more.
func (d *Document) Release() { d.parsed.Release() }

// resolve finds what a $ref points to.
func (d *Document) resolve(ref string) (document.Node, error) {
	pointer, local := strings.CutPrefix(ref, "#")
	if !local {
		return document.Node{}, fmt.Errorf("must be a reference within the document, such as '#/components/schemas/Order', not '%.200s': bundle the document first", ref)
	}
	at := d.root
	if pointer == "" {
		return at, nil
	}
	if pointer[0] != '/' {
		return document.Node{}, fmt.Errorf("must be a path within the document, such as '#/components/schemas/Order', not '%.200s'", ref)
	}
	for _, token := range strings.Split(pointer[1:], "/") {
		if decoded, err := url.PathUnescape(token); err == nil {
			token = decoded
		}
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		next, found := at.Get(token)
		if at.Kind() == document.Array {
			next, found = item(at, token)
		}
		if !found {
			return document.Node{}, fmt.Errorf("must point to something in the document, not '%.200s'", ref)
		}
		at = next
	}
	return at, nil
}

func item(list document.Node, token string) (document.Node, bool) {
	n := 0
	if token == "" || len(token) > 6 {
		return document.Node{}, false
	}
	for _, c := range []byte(token) {
		if c < '0' || c > '9' {
			return document.Node{}, false
		}
		n = 10*n + int(c-'0')
	}
	return list.At(n)
}

// follow is what a value stands for: itself, or what it refers to. Invalid is what cannot be found, which is reported.
func (d *Document) follow(n document.Node) document.Node {
	for range maxRefs {
		ref, found := n.Get("$ref")
		if !found {
			return n
		}
		to, err := d.resolve(ref.Str())
		if err != nil {
			d.report.refuse(ref, "%s", err.Error())
			return document.Node{}
		}
		n = to
	}
	d.report.refuse(n, "must not refer to itself")
	return document.Node{}
}

// maxRefs is how many references may lead from one to the next.
const maxRefs = 32

// text is a member that is a string, else "".
func text(n document.Node, key string) string {
	m, _ := n.Get(key)
	return m.Str()
}

// truth tells whether a member is true.
func truth(n document.Node, key string) bool {
	m, _ := n.Get(key)
	return m.Bool()
}

// members visits the members of an object, or the items of a list.
func members(n document.Node, visit func(document.Node)) {
	for m := n.First(); m.Valid(); m = m.Next() {
		visit(m)
	}
}
