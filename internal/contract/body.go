package contract

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

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
	// Schema says what JSON must be, or the object that the fields of a form make; nil if anything is right, and for bodies
	// that are not read. Owned says what of it the API itself sets.
	Schema *schema.Schema
	Owned  *Members
	// Alternatives says in the place of Schema what JSON must be that may be an object or something else: it is the schema of
	// a list with the body as its only item.
	Alternatives *schema.Schema
}

// IsDescribed reports whether anything is said of what a body must be.
func (b *Body) IsDescribed() bool { return b != nil && (b.Schema != nil || b.Alternatives != nil) }

// Check returns what is wrong with a body that was read, by the schema of its media type alone. The frame is asked for only
// if the schema has rules.
func (b *Body) Check(root document.Node, frame func() *cel.Frame) schema.Result {
	if !b.IsDescribed() {
		return schema.Result{}
	}
	of := b.Schema
	if b.Alternatives != nil {
		of = b.Alternatives
		wrapped, err := document.Parse(append(root.AppendRaw([]byte("[")), ']'), document.Limits{})
		if err != nil {
			return schema.Result{Errors: field.ErrorList{field.Invalid(nil, field.OmitValueType{}, "must be JSON that can be read again: "+err.Error())}}
		}
		defer wrapped.Release()
		root = wrapped.Root()
	}
	var f *cel.Frame
	if of.HasRules() {
		f = frame()
		f.SetBudget(cel.PolicyBudget)
	}
	result := of.Validate(f, root, document.Node{})
	if b.Alternatives != nil {
		for _, err := range result.Errors {
			err.Field = strings.TrimPrefix(strings.TrimPrefix(err.Field, "[0]"), ".")
		}
	}
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
