package keyword

import (
	"math"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/compare"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// Number holds the keywords of numbers.
type Number struct {
	Low, High        int64 // of the formats of integers; equal for none
	IsSingle         bool  // format float: the number must fit a float32
	Minimum, Maximum *Bound
	MultipleOf       *Factor
	// IsExact is set if numbers have their exact values, as in JSON Schema, and not the ones that Kubernetes decodes.
	IsExact bool
}

// Bound is a minimum or a maximum.
type Bound struct {
	Value       float64
	Exact       document.Node // the bound of an exact Number
	IsExclusive bool
}

// ExactBound is the bound at a node that lives as long as the schema.
func ExactBound(at document.Node, isExclusive bool) *Bound {
	value, _ := at.Float64()
	return &Bound{Value: value, Exact: at, IsExclusive: isExclusive}
}

// misses reports whether a number is on the wrong side of the bound. The comparison with it is less than 0 there.
func (b *Bound) misses(comparison int) bool {
	return comparison < 0 || comparison == 0 && b.IsExclusive
}

// Takes reports whether nothing is wrong with a number as Kubernetes decodes it.
func (r *Number) Takes(n compare.Number) bool { return r.decoded(n) == 0 }

// Broken returns the keywords that a number breaks.
func (r *Number) Broken(v document.Node) Broken {
	if r.IsExact {
		return r.exact(v)
	}
	return r.decoded(compare.NumberOf(v))
}

func (r *Number) decoded(n compare.Number) (b Broken) {
	b.add(Range, r.Low < r.High && (n.Compare(float64(r.Low)) < 0 || n.Compare(float64(r.High)) > 0))
	b.add(Single, r.IsSingle && !compare.FitsFloat32(n.Float()))
	b.add(Minimum, r.Minimum != nil && r.Minimum.misses(n.Compare(r.Minimum.Value)))
	b.add(Maximum, r.Maximum != nil && r.Maximum.misses(-n.Compare(r.Maximum.Value)))
	b.add(MultipleOf, r.MultipleOf != nil && !r.MultipleOf.divides(n))
	return b
}

func (r *Number) exact(v document.Node) (b Broken) {
	if r.Low < r.High {
		i, fits := v.Int64()
		b.add(Range, fits && (i < r.Low || i > r.High) || !fits && (v.IsWhole() || r.High < math.MaxInt64))
	}
	if r.IsSingle {
		f, _ := v.Float64()
		b.add(Single, !compare.FitsFloat32(f))
	}
	b.add(Minimum, r.Minimum != nil && r.Minimum.misses(document.CompareNumbers(v, r.Minimum.Exact)))
	b.add(Maximum, r.Maximum != nil && r.Maximum.misses(-document.CompareNumbers(v, r.Maximum.Exact)))
	b.add(MultipleOf, r.MultipleOf != nil && !r.MultipleOf.exact.Divides(v))
	return b
}

// Failure is the [Failures] of the keywords.
func (r *Number) Failure(broken Broken, path *field.Path, v document.Node) *field.Error {
	switch broken {
	case Range:
		return wording.Range(path, v, r.Low, r.High)
	case Single:
		return wording.Single(path, v)
	case Minimum:
		return wording.Minimum(path, v, r.Minimum.Value, r.Minimum.IsExclusive)
	case Maximum:
		return wording.Maximum(path, v, r.Maximum.Value, r.Maximum.IsExclusive)
	}
	return wording.MultipleOf(path, v, r.MultipleOf.value)
}

// Factor is the value of multipleOf.
type Factor struct {
	value float64
	whole int64            // the value, if it is an integer; 0 otherwise
	exact document.Divisor // of an exact Number
}

// NewFactor makes the factor of a Number that is not exact.
func NewFactor(value float64) *Factor {
	f := &Factor{value: value}
	if value >= 1 && value <= compare.MaxSafe && value == math.Trunc(value) {
		f.whole = int64(value)
	}
	return f
}

// ExactFactor makes the factor of an exact Number. It must be greater than 0, and must not have too many digits.
func ExactFactor(v document.Node) (f *Factor, ok bool) {
	exact, ok := document.NewDivisor(v)
	value, _ := v.Float64()
	return &Factor{value: value, exact: exact}, ok
}

// divides reports whether the number is a multiple. Integers are divided exactly. Doubles are spelled in decimal and
// seldom exact, so that a quotient counts as whole within one part in 10^9, as go-openapi has it.
func (f *Factor) divides(n compare.Number) bool {
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
