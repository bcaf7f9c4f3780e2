package schema

import (
	"math"
	"unicode/utf8"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/pattern"
	"github.com/admission-gateway/gateway/internal/schema/compare"
	"github.com/admission-gateway/gateway/internal/schema/format"
)

// takesText reports whether the text of a string is right by the keywords of a plain shape.
func (s *Shape) takesText(text string) bool {
	return (s.text == nil || s.text.takes(text)) && (s.enum == nil || s.enum.hasString(text))
}

// textRules are the keywords of strings.
type textRules struct {
	minLength, maxLength int64 // in code points; -1 if there is none
	pattern              *pattern.Pattern
	format               *format.Format
}

// takes reports whether nothing is wrong with a string.
func (t *textRules) takes(s string) bool {
	if t.mayMisfit(int64(len(s))) {
		length := int64(utf8.RuneCountInString(s))
		if t.maxLength >= 0 && length > t.maxLength || length < t.minLength {
			return false
		}
	}
	return (t.pattern == nil || t.pattern.Match(s)) && (t.format == nil || t.format.Matches(s))
}

// mayMisfit reports whether the characters of a string have to be counted: it has so many bytes that they may be too many, or
// so few that they may be too few.
func (t *textRules) mayMisfit(size int64) bool {
	return t.maxLength >= 0 && size > t.maxLength || size <= (t.minLength-1)*utf8.UTFMax
}

// sizeRules are the keywords that count the items of a list, or the members of an object.
type sizeRules struct {
	least, most int64 // -1 if there is none
}

// takes reports whether nothing is wrong with the size of an object or list.
func (r *sizeRules) takes(v document.Node) bool {
	n := int64(v.Len())
	return n >= r.least && (r.most < 0 || n <= r.most)
}

// bounds are the numbers that are right; all are without rules.
func (r *sizeRules) bounds() document.Size {
	b := document.Size{Most: math.MaxUint32}
	if r == nil {
		return b
	}
	b.Least = uint32(min(max(r.least, 0), math.MaxUint32))
	if r.most >= 0 {
		b.Most = uint32(min(r.most, math.MaxUint32))
	}
	return b
}

// logicRules combine other shapes of the same value.
type logicRules struct {
	allOf, anyOf, oneOf []*Shape
	not                 *Shape
}

// A listType says how the items of a list are identified: x-kubernetes-list-type set or map.
type listType struct {
	keys     []document.Name // of x-kubernetes-list-type map; none for set
	defaults []document.Node // of the keys; invalid if there is none; the documents are kept for good
	// mayRepeat is set if the rules are for merging alone.
	mayRepeat bool
}

// numberRules are the keywords of numbers.
type numberRules struct {
	minimum, maximum *bound
	multipleOf       *factor
	low, high        int64 // of formats int32 and int64
	single           bool  // format float: must fit a float32
}

// takes reports whether nothing is wrong with a number.
func (r *numberRules) takes(n compare.Number) bool {
	return (r.low == math.MinInt64 || n.Compare(float64(r.low)) >= 0 && n.Compare(float64(r.high)) <= 0) &&
		(!r.single || compare.FitsFloat32(n.Float())) &&
		(r.minimum == nil || n.Compare(r.minimum.value) >= r.minimum.least()) &&
		(r.maximum == nil || -n.Compare(r.maximum.value) >= r.maximum.least()) &&
		(r.multipleOf == nil || r.multipleOf.divides(n))
}

// A bound is a minimum or a maximum.
type bound struct {
	value     float64
	exclusive bool
}

// least returns the least result of a comparison that passes.
func (b *bound) least() int {
	if b.exclusive {
		return 1
	}
	return 0
}

// A factor is the value of multipleOf.
type factor struct {
	value float64
	whole int64 // the value, if it is an integer; 0 otherwise
}

func newFactor(value float64) *factor {
	f := &factor{value: value}
	if value >= 1 && value <= compare.MaxSafe && value == math.Trunc(value) {
		f.whole = int64(value)
	}
	return f
}

// divides reports whether the number is a multiple. Integers are divided exactly. Doubles are spelled in decimal and
// seldom exact, so that a quotient counts as whole within one part in 10^9, as go-openapi has it.
func (f *factor) divides(n compare.Number) bool {
	if f.value <= 0 {
		return false
	}
	if n.IsInt && f.whole != 0 {
		return n.Int%f.whole == 0
	}
	var quotient float64
	if f.value < 1 {
		quotient = 1 / f.value * n.Float()
	} else {
		quotient = n.Float() / f.value
	}
	if math.IsNaN(quotient) || math.Abs(quotient) > compare.MaxSafe {
		return false
	}
	rounded := math.Round(quotient)
	if quotient == rounded {
		return true
	}
	return rounded != 0 && math.Abs(quotient-rounded) < 1e-9*math.Abs(rounded)
}

// enumRules hold the values of an enumeration.
type enumRules struct {
	strings []string // in the schema's order
	numbers []compare.Number
	others  []document.Node // booleans, objects and lists; the documents are kept for good
	null    bool            // null too; see Beyond.Null
	shown   []string        // as messages list them
}

// has reports whether the value is one of those listed. Kubernetes' enumerations do not contain
// null, and a nullable field with one of these takes no null either.
func (e *enumRules) has(v document.Node, kind document.Kind) bool {
	switch kind {
	case document.Null:
		return e.null
	case document.String:
		return e.hasString(v.Str())
	case document.Number:
		return e.hasNumber(compare.NumberOf(v))
	default:
		for _, want := range e.others {
			if compare.Equal(v, want) {
				return true
			}
		}
		return false
	}
}

func (e *enumRules) hasString(s string) bool {
	for _, want := range e.strings {
		if s == want {
			return true
		}
	}
	return false
}

func (e *enumRules) hasNumber(n compare.Number) bool {
	for _, want := range e.numbers {
		if n == want || n.IsInt != want.IsInt && n.Same(want) {
			return true
		}
	}
	return false
}
