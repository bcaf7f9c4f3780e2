// Package keyword holds the keywords of schemas that look at one value alone: its text, its number, how many members or
// items it has, and whether it is one of those listed. The schemas of Kubernetes and the schemas of documents have the
// same keywords, and say the same of what breaks them.
//
// They differ in arithmetic. Kubernetes decodes a number to an int64 or a double before it compares it, see package
// compare. JSON Schema compares numbers by their exact values, however they are spelled.
package keyword

import (
	"math/bits"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
)

// Broken is a set of keywords that a value breaks.
type Broken uint16

// The keywords, in the order in which failures name them.
const (
	MaxLength Broken = 1 << iota
	MinLength
	Pattern
	Format
	Range
	Single
	Minimum
	Maximum
	MultipleOf
	Least
	Most
)

// Failures says what is wrong with the value at the path, which breaks a keyword.
type Failures func(broken Broken, path *field.Path, v document.Node) *field.Error

// First returns the first keyword of a set that is not empty.
func (b Broken) First() Broken { return b & -b }

// Rest returns the set without the first keyword.
func (b Broken) Rest() Broken { return b & (b - 1) }

// Len is how many keywords are in the set.
func (b Broken) Len() int { return bits.OnesCount16(uint16(b)) }

func (b *Broken) add(keyword Broken, isBroken bool) {
	if isBroken {
		*b |= keyword
	}
}
