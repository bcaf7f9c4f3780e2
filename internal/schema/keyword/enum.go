package keyword

import (
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/compare"
)

// manyStrings is from how many strings on a table is faster than a look at each.
const manyStrings = 8

// Enum holds the values of an enumeration or a constant.
type Enum struct {
	Strings []string // in the order of the schema
	Shown   []string // the values as messages list them
	// And is another enumeration that holds too; nil for none.
	And *Enum

	names   document.Names // of the strings, if they are many
	numbers []compare.Number
	others  []document.Node // they live as long as the schema
	isExact bool
}

// NewEnum makes the enumeration of a schema of Kubernetes. Null is none of its values, even if it is listed.
func NewEnum(values []document.Node) *Enum {
	e := &Enum{}
	for _, v := range values {
		switch v.Kind() {
		case document.String:
			text := strings.Clone(v.Str())
			if !slices.Contains(e.Strings, text) {
				e.Strings = append(e.Strings, text)
			}
			e.Shown = append(e.Shown, text)
			continue
		case document.Number:
			e.numbers = append(e.numbers, compare.NumberOf(v))
		case document.Null:
		default:
			e.others = append(e.others, v)
		}
		e.Shown = append(e.Shown, string(v.Raw()))
	}
	return e.indexed()
}

// ExactEnum makes the enumeration of a schema of a document, which may hold beside another one. Messages do not list
// null.
func ExactEnum(values []document.Node, and *Enum) *Enum {
	e := &Enum{And: and, isExact: true}
	for _, v := range values {
		if v.Kind() != document.String {
			e.others = append(e.others, v)
			if v.Kind() != document.Null {
				e.Shown = append(e.Shown, string(v.Raw()))
			}
			continue
		}
		if text := strings.Clone(v.Str()); !slices.Contains(e.Strings, text) {
			e.Strings, e.Shown = append(e.Strings, text), append(e.Shown, text)
		}
	}
	return e.indexed()
}

func (e *Enum) indexed() *Enum {
	if len(e.Strings) > manyStrings && len(e.Strings) <= document.MaxNames {
		e.names = document.NewNames(e.Strings)
	}
	return e
}

// Has reports whether a value that is no string is one of those listed.
func (e *Enum) Has(v document.Node) bool {
	if e.isExact {
		for _, want := range e.others {
			if document.EqualNodes(v, want) {
				return true
			}
		}
		return false
	}
	if v.Kind() == document.Number {
		return e.HasNumber(compare.NumberOf(v))
	}
	for _, want := range e.others {
		if compare.Equal(v, want) {
			return true
		}
	}
	return false
}

// HasString reports whether a string is one of those listed.
func (e *Enum) HasString(s string) bool {
	if len(e.Strings) > manyStrings && len(e.Strings) <= document.MaxNames {
		return e.names.Index(s) >= 0
	}
	for _, want := range e.Strings {
		if s == want {
			return true
		}
	}
	return false
}

// HasNumber reports whether a number as Kubernetes decodes it is one of those listed.
func (e *Enum) HasNumber(n compare.Number) bool {
	for _, want := range e.numbers {
		if n.Same(want) {
			return true
		}
	}
	return false
}
