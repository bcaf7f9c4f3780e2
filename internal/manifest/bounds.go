package manifest

import "fmt"

// Bounds of a file. They are far above what people write by hand; the Gateway API's CRDs, among the largest of the
// ecosystem, have 1.2 MB in all, and the largest OpenAPI documents that are published about 12 MB.
const (
	// MaxBytes is the size a file may have.
	MaxBytes = 16 << 20
	// maxExpandedBytes bounds the JSON made of one file. Aliases repeat what they point to, so a small file can
	// mean a very large one.
	maxExpandedBytes = 32 << 20
	// maxWritten bounds what is written to make it: members that a '<<' brings are written twice.
	maxWritten = 3 * maxExpandedBytes
	// MaxValues bounds the keys and values of a file, which take more memory and time than its bytes.
	MaxValues = 4 << 20
	// maxDepth bounds the nesting of objects and lists.
	maxDepth = 256
)

// tooMany is the sentence about a file of too many keys and values.
var tooMany = fmt.Sprintf("must have at most %d keys and values", MaxValues)
