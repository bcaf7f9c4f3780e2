package schema

import (
	"math"
	"unicode/utf8"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/pattern"
)

// textRules are the keywords of strings.
type textRules struct {
	minLength, maxLength int64 // in code points; -1 is none
	pattern              *pattern.Pattern
	format               *format
}

// takes tells whether nothing is wrong with a string.
func (t *textRules) takes(s string) bool {
	// Strings of so few bytes that their characters cannot be too many, and so many that they cannot be too few, are
	// not counted.
	if size := int64(len(s)); t.maxLength >= 0 && size > t.maxLength || size < t.minLength*utf8.UTFMax {
		length := int64(utf8.RuneCountInString(s))
		if t.maxLength >= 0 && length > t.maxLength || length < t.minLength {
			return false
		}
	}
	return (t.pattern == nil || t.pattern.Match(s)) && (t.format == nil || t.format.matches(s))
}

// sizeRules are the keywords that count the members of lists and objects.
type sizeRules struct {
	minItems, maxItems           int64 // -1 is none
	minProperties, maxProperties int64
}

// takes tells whether nothing is wrong with the size of an object or list.
func (r *sizeRules) takes(v document.Node, kind document.Kind) bool {
	least, most := r.minItems, r.maxItems
	if kind == document.Object {
		least, most = r.minProperties, r.maxProperties
	}
	n := int64(v.Len())
	return n >= least && (most < 0 || n <= most)
}

// logicRules combine other shapes of the same value.
type logicRules struct {
	allOf, anyOf, oneOf []*Shape
	not                 *Shape
	choices             []*choice
}

// choice is one of several shapes of an object, which a member names.
type choice struct {
	property document.Name
	values   []string
	shapes   []*Shape // by the index of the value
}

// listRules say how the items of a list are told apart.
type listRules struct {
	keys     []document.Name // of x-kubernetes-list-type map; none for set
	defaults []document.Node // of the keys; invalid where there is none; the documents are kept for good
	// mayRepeat is set where the rules are for merging alone.
	mayRepeat bool
}

// numberRules are the keywords of numbers.
type numberRules struct {
	minimum, maximum *bound
	multipleOf       *factor
	low, high        int64 // of formats int32 and int64
	single           bool  // format float: must fit a float32
}

// takes tells whether nothing is wrong with a number.
func (r *numberRules) takes(n number) bool {
	return (r.low == math.MinInt64 || n.compare(float64(r.low)) >= 0 && n.compare(float64(r.high)) <= 0) &&
		(!r.single || fitsFloat32(n.float())) &&
		(r.minimum == nil || n.compare(r.minimum.value) >= r.minimum.least()) &&
		(r.maximum == nil || -n.compare(r.maximum.value) >= r.maximum.least()) &&
		(r.multipleOf == nil || r.multipleOf.divides(n))
}

// A bound is a minimum or a maximum.
type bound struct {
	value     float64
	exclusive bool
}

// least is what a comparison must give at least.
func (b *bound) least() int {
	if b.exclusive {
		return 1
	}
	return 0
}

// compareInt compares an integer with a double by their exact values: -1, 0, 1.
func compareInt(i int64, f float64) int {
	switch {
	case f >= 1<<63:
		return -1
	case f < -1<<63:
		return 1
	}
	whole := int64(f) // exact: f is within int64, the fraction is cut off
	switch {
	case i < whole:
		return -1
	case i > whole:
		return 1
	}
	fraction := f - float64(whole)
	switch {
	case fraction > 0:
		return -1
	case fraction < 0:
		return 1
	}
	return 0
}

func compareFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// number is a value that was read as the package's documentation says.
type number struct {
	i       int64
	f       float64 // set for doubles only
	integer bool
}

func numberOf(n document.Node) number {
	if n.IsInteger() {
		if i, ok := n.Int64(); ok {
			return number{i: i, integer: true}
		}
	}
	f, _ := n.Float64() // a double holds what the parser lets through
	return number{f: f}
}

func (n number) float() float64 {
	if n.integer {
		return float64(n.i)
	}
	return n.f
}

// fitsFloat32 tells whether a float32 can hold the number at all.
func fitsFloat32(f float64) bool { return !math.IsInf(float64(float32(f)), 0) }

// maxSafe is the largest number up to which a double without fraction is taken for an integer.
const maxSafe = 1<<53 - 1

// integral tells whether the number may stand in a field of type integer.
func (n number) integral() bool {
	return n.integer || math.Abs(n.f) <= maxSafe && n.f == math.Trunc(n.f)
}

// compare compares the number with a bound by value: -1, 0, 1.
func (n number) compare(f float64) int {
	if n.integer {
		return compareInt(n.i, f)
	}
	return compareFloat(n.f, f)
}

// A factor is the value of multipleOf.
type factor struct {
	value float64
	whole int64 // the value, where it is an integer; 0 otherwise
}

func newFactor(value float64) *factor {
	f := &factor{value: value}
	if value >= 1 && value <= maxSafe && value == math.Trunc(value) {
		f.whole = int64(value)
	}
	return f
}

// divides tells whether the number is a multiple. Integers are divided exactly. Doubles are spelled in decimal and
// seldom exact, so that a quotient counts as whole within one part in 10^9, as go-openapi has it.
func (f *factor) divides(n number) bool {
	if f.value <= 0 {
		return false
	}
	if n.integer && f.whole != 0 {
		return n.i%f.whole == 0
	}
	var quotient float64
	if f.value < 1 {
		quotient = 1 / f.value * n.float()
	} else {
		quotient = n.float() / f.value
	}
	if math.IsNaN(quotient) || math.Abs(quotient) > maxSafe {
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
	numbers []number
	others  []document.Node // booleans, objects and lists; the documents are kept for good
	null    bool            // null too; see Beyond.Null
	shown   []string        // as messages list them
}

// has tells whether the value is one of those listed. Null is none of Kubernetes' enumerations, and a nullable field with
// one of these takes no null either.
func (e *enumRules) has(v document.Node, kind document.Kind) bool {
	switch kind {
	case document.Null:
		return e.null
	case document.String:
		return e.hasString(v.Str())
	case document.Number:
		return e.hasNumber(numberOf(v))
	default:
		for _, want := range e.others {
			if equal(v, want) {
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

func (e *enumRules) hasNumber(n number) bool {
	for _, want := range e.numbers {
		if n == want || n.integer != want.integer && n.same(want) {
			return true
		}
	}
	return false
}

// same compares by value.
func (n number) same(m number) bool {
	switch {
	case n.integer && m.integer:
		return n.i == m.i
	case n.integer:
		return compareInt(n.i, m.f) == 0
	case m.integer:
		return compareInt(m.i, n.f) == 0
	}
	return n.f == m.f
}
