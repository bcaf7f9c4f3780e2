package defaults

import (
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// ApplyAt is [ApplyWithin] for an object within a document, such as a watch event's. The size is
// still the whole document's.
func ApplyAt(object document.Node, s *schema.Schema, most int) bool {
	return newFiller(object.Document(), s, most).fillRoot(s, object)
}
