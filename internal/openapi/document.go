// Package openapi turns OpenAPI documents, as the teams of APIs publish them, into what policies
// apply to: resources with their paths, and the schemas of their objects in the form that package
// schema compiles.
//
// Versions 3.0, 3.1 and 3.2 are read, and version 2 by making 3.0 of it. A document says more about an
// API than a gateway can enforce, and says some of it in ways that have no meaning here; whatever
// is in a document and will not be enforced is a [Finding].
package openapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/graph"
)

// Document is an OpenAPI document.
type Document struct {
	root   document.Node
	v31    bool // the dialect of schemas is JSON Schema 2020-12
	report *report
	mild   *report // of what nearly every document says

	compiler   *graph.Compiler          // of its schemas; made when it is needed
	modelers   map[translation]*modeler // by purpose
	made       map[schemaKey]*Schema
	isScanned  bool // for keywords of Kubernetes and the gateway, which hasNative reports
	hasNative  bool
	actions    []*Action
	watched    map[uint32]bool // the operations whose answers are checked against the document
	filled     map[uint32]bool // the defaults of schemas that are filled in
	fillsReads bool            // in answers too
	overlaps   map[uint32][]overlap
	renamed    int // the resources with longer names than the last segment of their path
}

// translation says what a schema is read for.
type translation struct {
	// envelope is set for objects of Kubernetes' form: what kind, apiVersion and metadata are is known.
	envelope bool
	// kubernetes is set for the schemas that Kubernetes publishes: what they do not name is unknown.
	kubernetes bool
	filling
	of purpose
}

// purpose is which values a schema is read for.
type purpose uint8

const (
	// The zero value is for objects that clients send.
	_ purpose = iota
	// ofAnswers are objects as they are read: what is readOnly is there, and what is writeOnly is not.
	ofAnswers
	// ofUndefaulted are forms, and bodies that are no objects of a resource, to which no defaults are given: they are
	// sent on as they are.
	ofUndefaulted
	// ofChanges are patches, which get no defaults either. Which members their schema has says what they may set.
	ofChanges
	// ofPatches are the results of patches of what is stored, as far as the API shows it: what is
	// writeOnly may be missing, however required, and a default would replace what is stored.
	ofPatches
	// ofResponses are answers as they are checked against the document: nothing is added to them,
	// and they may be of any type.
	ofResponses
	// ofTexts are the values of parameters.
	ofTexts
)

// isAnswer reports whether the values are answers.
func (p purpose) isAnswer() bool { return p == ofAnswers || p == ofResponses }

// lacksHidden reports whether the values consist of what the API shows.
func (p purpose) lacksHidden() bool { return p.isAnswer() || p == ofPatches }

// isUndefaulted reports whether no defaults are given.
func (p purpose) isUndefaulted() bool {
	return p >= ofUndefaulted && p != ofPatches
}

// isOnlyChecked reports whether nothing is asked of a schema but whether values are valid.
func (p purpose) isOnlyChecked() bool { return p == ofUndefaulted || p == ofResponses || p == ofTexts }

// use is what the values of a purpose are to the check of a schema.
func (p purpose) use() graph.Use {
	switch p {
	case ofAnswers, ofResponses:
		return graph.Answers
	case ofPatches:
		return graph.Patched
	}
	return graph.Requests
}

// schemaKey identifies a schema of a document for a purpose.
type schemaKey struct {
	node uint32
	as   translation
}

// New takes a document that was parsed, which must not be edited or released while the answer is in use. The error is a
// sentence about the document as a whole.
func New(parsed *document.Document) (*Document, error) {
	_, isOpenAPI := parsed.Root().Get("openapi")
	if _, isSwagger := parsed.Root().Get(swaggerKey); isSwagger && !isOpenAPI {
		return newSwagger(parsed)
	}
	d := &Document{root: parsed.Root(), report: newReport(), mild: newReport(), watched: map[uint32]bool{},
		filled: map[uint32]bool{}}
	version := text(d.root, "openapi")
	if n, found := d.root.Get("openapi"); found && n.Kind() == document.Number {
		version = string(n.Raw())
	}
	switch {
	case version == "3.0" || strings.HasPrefix(version, "3.0."):
	case version == "3.1" || strings.HasPrefix(version, "3.1."), version == "3.2" || strings.HasPrefix(version, "3.2."):
		d.v31 = true
	default:
		return nil, fmt.Errorf("must be of version 3.0, 3.1 or 3.2 of OpenAPI, not '%.80s'", version)
	}
	return d, nil
}

// resolve finds what a $ref points to.
func (d *Document) resolve(ref string) (document.Node, error) {
	return graph.Resolve(d.root, ref)
}

// follow returns a value itself, or what it refers to. The result is invalid if that cannot be
// found, which is reported.
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

// truth reports whether a member is true.
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

// all reports whether something is true of each node.
func all(nodes []document.Node, is func(document.Node) bool) bool {
	return !slices.ContainsFunc(nodes, func(n document.Node) bool { return !is(n) })
}
