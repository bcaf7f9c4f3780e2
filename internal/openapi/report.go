package openapi

import (
	"fmt"
	"slices"

	"github.com/admission-gateway/gateway/internal/document"
)

// Finding is something about a document that its author should know.
type Finding struct {
	// Path is its place in the document.
	Path string
	// Message is a sentence without a final full stop.
	Message string
	// Error says that what the document asks for cannot be done; else it is not enforced, and the
	// rest is.
	Error bool
	// Note says that only the API itself can enforce it.
	Note bool
	// Gap says that the document is right, and the gateway cannot enforce it.
	Gap bool
	// Unmet says that no value can meet a schema, which the author of the document may mean.
	Unmet bool
}

// report collects findings. Documents repeat themselves: of findings that say the same only so many are kept that no
// document takes all memory, and the others are counted.
type report struct {
	list  []Finding
	seen  map[Finding]bool
	count map[string]int // of findings by what they say
}

func newReport() *report { return &report{seen: map[Finding]bool{}, count: map[string]int{}} }

// sameFindings is how many findings that say the same are kept: more than the operations of any document that is
// published.
const sameFindings = 20000

func (r *report) add(f Finding) {
	if r.seen[f] {
		return
	}
	r.seen[f] = true
	r.count[f.Message]++
	if f.Error || r.count[f.Message] <= sameFindings {
		r.list = append(r.list, f)
	}
}

// refuse records an error about a value.
func (r *report) refuse(at document.Node, format string, args ...any) {
	r.add(Finding{Path: Place(at), Message: fmt.Sprintf(format, args...), Error: true})
}

// gap records what the document rightly asks for, and the gateway cannot enforce.
func (r *report) gap(at document.Node, format string, args ...any) {
	r.add(Finding{Path: Place(at), Message: fmt.Sprintf(format, args...), Gap: true})
}

// warn records what the author of the document can mend, or what refuses requests that the document allows.
func (r *report) warn(at document.Node, format string, args ...any) {
	r.add(Finding{Path: Place(at), Message: fmt.Sprintf(format, args...)})
}

// note records what only the API itself can enforce.
func (r *report) note(at document.Node, format string, args ...any) {
	r.add(Finding{Path: Place(at), Message: fmt.Sprintf(format, args...), Note: true})
}

// findings are all that was found.
func (r *report) findings() []Finding {
	all := slices.Clone(r.list)
	last := map[string]int{}
	for i, f := range all {
		last[f.Message] = i
	}
	for message, i := range last {
		if more := r.count[message] - sameFindings; more > 0 && !all[i].Error {
			all[i].Message = fmt.Sprintf("%s; the same is true of %d more places", message, more)
		}
	}
	return all
}
