package openapi

import (
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
)

// Parse reads a document in JSON.
func Parse(json []byte) (*Document, error) {
	parsed, err := document.Parse(json, document.Limits{Bytes: len(json), Depth: 1000, Nodes: len(json)})
	if err != nil {
		return nil, err
	}
	return New(parsed)
}

// Release gives the memory of the document back. Nothing that came from it may be used any more.
func (d *Document) Release() { d.root.Document().Release() }

// Models is how many models a schema has.
func Models(s *Schema) int { return len(s.model.Reachable()) }

// Declared is how many schemas the form of Kubernetes has.
func Declared(s *Schema) int { return len(unroll(s.model)) }

// TypeOf is the type of a schema's values.
func TypeOf(s *Schema) string { return strings.Join(s.model.Types, " or ") }
