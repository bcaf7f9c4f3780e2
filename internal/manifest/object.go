package manifest

import (
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
)

// Object is one object of a file.
type Object struct {
	// File is the name by which the file was read.
	File string
	// OpenAPI says that the object is an OpenAPI document, whose APIVersion is the version of the
	// specification that it follows, its Kind 'OpenAPI' and its Name its title.
	OpenAPI bool
	// Overlay says that the object is an OpenAPI Overlay, whose APIVersion is the version of the specification that it
	// follows, its Kind 'Overlay' and its Name its title.
	Overlay bool
	// APIVersion and Kind are never empty.
	APIVersion, Kind string
	// Namespace and Name come from metadata and are empty if it has none.
	Namespace, Name string
	// IsAnnotated says that metadata has annotations or labels.
	IsAnnotated bool
	// JSON is the object as compact JSON, members in the file's order, numbers unrounded.
	JSON []byte

	parsed *parsed        // of JSON
	places *positionTable // in JSON
	sum    *Sum           // nil until it is asked for
}

// Document is the object as it was parsed from JSON. It must not be edited or released.
func (o *Object) Document() *document.Document { return o.parsed.document() }

// GroupVersion splits the object's apiVersion; the group of "v1" is empty.
func (o *Object) GroupVersion() (group, version string) {
	if group, version, found := strings.Cut(o.APIVersion, "/"); found {
		return group, version
	}
	return "", o.APIVersion
}
