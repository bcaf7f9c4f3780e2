package contract

import (
	"strings"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// A Body is a media type that a document declares for the body of an operation.
type Body struct {
	// Media is the type in lower case; it may be a range, such as 'image/*' and 'application/*+json'.
	Media string
	As    Language
	// Form says how the fields of a form are read; nil for other bodies.
	Form *Form
	// Schema says what JSON must be, or the object that the fields of a form make; nil if anything is right, and for
	// bodies that are not read. Owned says what of it the API itself sets.
	Schema *schema.Schema
	Owned  *Members
}

// IsDescribed reports whether anything is said of what a body must be.
func (b *Body) IsDescribed() bool { return b != nil && b.Schema != nil }

// SchemaOf returns the body's schema; nil if there is none.
func (b *Body) SchemaOf() *schema.Schema {
	if b == nil {
		return nil
	}
	return b.Schema
}

// Check returns what is wrong with a body that was read, by the schema of its media type alone. The frame is asked for
// only if the schema has rules.
func (b *Body) Check(root document.Node, frame func() *cel.Frame) schema.Result {
	if !b.IsDescribed() {
		return schema.Result{}
	}
	var f *cel.Frame
	if b.Schema.HasRules() {
		f = frame()
		f.SetBudget(cel.PolicyBudget)
	}
	result := b.Schema.Validate(f, root, document.Node{})
	if b.Form != nil {
		result.Errors = Renamed(b.Form.Fields, result.Errors)
	}
	return result
}

// Language is how bodies of a media type are read.
type Language uint8

const (
	// AsJSON reads them as JSON.
	AsJSON Language = iota
	// AsFields reads them as the fields of an urlencoded form.
	AsFields
	// AsParts reads them as the fields of a form in parts.
	AsParts
	// AsBytes does not read them.
	AsBytes
)

// covers reports whether a media type is the one that is declared, or in the range.
func covers(declared, media string) bool {
	before, after, isRange := strings.Cut(declared, "*")
	if !isRange {
		return media == declared
	}
	after = strings.TrimPrefix(after, "/*")
	return len(media) > len(before)+len(after) && strings.HasPrefix(media, before) && strings.HasSuffix(media, after)
}

// rank is greater for a more specific media type.
func rank(declared string) int {
	if !strings.Contains(declared, "*") {
		return 1 << 10
	}
	return len(declared)
}
