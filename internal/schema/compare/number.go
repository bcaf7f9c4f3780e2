package compare

import (
	"math"

	"github.com/admission-gateway/gateway/internal/document"
)

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

// Number is the value of a JSON number as Kubernetes reads it: one that is spelled without fraction and exponent and
// fits an int64 is an integer, any other is a double.
type Number struct {
	Int    int64
	Double float64 // set for doubles only
	IsInt  bool
}

// NumberOf returns the value of a JSON number.
func NumberOf(n document.Node) Number {
	if n.IsInteger() {
		if i, ok := n.Int64(); ok {
			return Number{Int: i, IsInt: true}
		}
	}
	f, _ := n.Float64() // a double holds what the parser lets through
	return Number{Double: f}
}

// Float returns the number as a double, rounded if it has to be.
func (n Number) Float() float64 {
	if n.IsInt {
		return float64(n.Int)
	}
	return n.Double
}

// FitsFloat32 reports whether a float32 can hold the number at all.
func FitsFloat32(f float64) bool { return !math.IsInf(float64(float32(f)), 0) }

// MaxSafe is the largest number up to which a double without fraction is taken for an integer.
const MaxSafe = 1<<53 - 1

// Integral reports whether the number may stand in a field of type integer.
func (n Number) Integral() bool {
	return n.IsInt || math.Abs(n.Double) <= MaxSafe && n.Double == math.Trunc(n.Double)
}

// Compare compares the number with a bound by value: -1, 0, 1.
func (n Number) Compare(f float64) int {
	if n.IsInt {
		return compareInt(n.Int, f)
	}
	return compareFloat(n.Double, f)
}

// Same compares by value.
func (n Number) Same(m Number) bool {
	switch {
	case n.IsInt && m.IsInt:
		return n.Int == m.Int
	case n.IsInt:
		return compareInt(n.Int, m.Double) == 0
	case m.IsInt:
		return compareInt(m.Int, n.Double) == 0
	}
	return n.Double == m.Double
}
