package openapi

import "github.com/admission-gateway/gateway/internal/document"

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
