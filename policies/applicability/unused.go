package applicability

import (
	"bytes"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/finding"
)

// The annotation, the label, or the member of a document by which an author says that an object may never apply.
const (
	UnusedMark    = "admission-gateway.io" + unusedName
	UnusedAllowed = "Allow"
	unusedName    = "/unused"
	unusedKey     = "x-admission-gateway-unused" // of a document
)

// MayBeUnused reports whether the author of an object says that it may never apply.
func MayBeUnused(o *manifest.Object) bool {
	n, _ := unusedMarkOf(o)
	return n.Is(UnusedAllowed)
}

// CheckUnusedMark finds a mark that says something else.
func CheckUnusedMark(f *finding.List, o *manifest.Object) {
	if n, path := unusedMarkOf(o); n.Valid() && !n.Is(UnusedAllowed) {
		f.At(o, finding.Error, path, "must be 'Allow'")
	}
}

// unusedMarkOf returns the mark of an object, and its path.
func unusedMarkOf(o *manifest.Object) (n document.Node, path string) {
	if o.OpenAPI {
		n, _ = o.At(unusedKey)
		return n, unusedKey
	}
	if !o.IsAnnotated || !bytes.Contains(o.JSON, []byte(unusedName)) {
		return n, ""
	}
	for _, at := range [...]string{"metadata.annotations", "metadata.labels"} {
		all, _ := o.At(at)
		if n, found := all.Get(UnusedMark); found {
			return n, at + "[" + UnusedMark + "]"
		}
	}
	return n, ""
}
