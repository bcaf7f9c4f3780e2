package keyword

import (
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/pattern"
	"github.com/admission-gateway/gateway/internal/schema/format"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// Text holds the keywords of strings.
type Text struct {
	Least, Most int64 // characters; -1 for none
	Pattern     *pattern.Pattern
	Shown       string // the pattern as its author spells it
	Format      *format.Format
}

// Takes reports whether nothing is wrong with a string.
func (t *Text) Takes(s string) bool { return t.Broken(s) == 0 }

// Broken returns the keywords that a string breaks.
func (t *Text) Broken(s string) (b Broken) {
	// The characters of a string are counted if it has so many bytes that they may be too many, or so few that they may
	// be too few.
	if size := int64(len(s)); t.Most >= 0 && size > t.Most || size <= (t.Least-1)*utf8.UTFMax {
		length := int64(utf8.RuneCountInString(s))
		b.add(MaxLength, t.Most >= 0 && length > t.Most)
		b.add(MinLength, length < t.Least)
	}
	b.add(Pattern, t.Pattern != nil && !t.Pattern.Match(s))
	b.add(Format, t.Format != nil && !t.Format.Matches(s))
	return b
}

// Failure is the [Failures] of the keywords.
func (t *Text) Failure(broken Broken, path *field.Path, v document.Node) *field.Error {
	switch broken {
	case MaxLength:
		return wording.MaxLength(path, t.Most)
	case MinLength:
		return wording.MinLength(path, v, t.Least)
	case Pattern:
		return wording.Pattern(path, v, t.Shown)
	}
	return wording.Format(path, v, t.Format.Name)
}
