package keyword

import (
	"math"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// Size says how many members an object may have, or items a list.
type Size struct {
	Least, Most int64 // -1 for none
}

// AnySize is the size without bounds.
var AnySize = Size{Least: -1, Most: -1}

// IsAny reports whether the size has no bounds.
func (s *Size) IsAny() bool { return s.Least <= 0 && s.Most < 0 }

// Broken returns the keywords that so many members or items break.
func (s *Size) Broken(n int) (b Broken) {
	b.add(Least, int64(n) < s.Least)
	b.add(Most, s.Most >= 0 && int64(n) > s.Most)
	return b
}

// Failure is the [Failures] of the keywords.
func (s *Size) Failure(broken Broken, path *field.Path, v document.Node) *field.Error {
	n, isObject := int64(v.Len()), v.Kind() == document.Object
	switch {
	case broken == Least && isObject:
		return wording.MinProperties(path, n, s.Least)
	case broken == Least:
		return wording.MinItems(path, n, s.Least)
	case isObject:
		return wording.MaxProperties(path, n, s.Most)
	}
	return wording.MaxItems(path, n, s.Most)
}

// Bounds are the bounds as walks over documents know them. Without keywords there are none.
func (s *Size) Bounds() document.Size {
	b := document.Size{Most: math.MaxUint32}
	if s == nil {
		return b
	}
	b.Least = uint32(min(max(s.Least, 0), math.MaxUint32))
	if s.Most >= 0 {
		b.Most = uint32(min(s.Most, math.MaxUint32))
	}
	return b
}
