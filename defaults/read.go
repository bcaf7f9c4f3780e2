package defaults

import (
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// ApplyAt is [ApplyWithin] for an object within a document, such as that of a watch event. The size is still that of
// the whole document.
func ApplyAt(object document.Node, s *schema.Schema, most int) bool {
	return newFiller(object.Document(), s, most).fillRoot(s, object)
}
