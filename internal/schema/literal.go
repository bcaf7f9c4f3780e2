package schema

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
)

// CheckLiteral holds a value that stands in a policy against the shape of the field that it is for: what it is whatever
// the rest of the object, so without CEL rules. A nil shape takes any. Fields of errors are within the value.
func (s *Schema) CheckLiteral(shape *Shape, value document.Node) field.ErrorList {
	if shape == nil {
		return nil
	}
	w := s.validator(value, document.Node{})
	defer w.release()
	w.trusting = false
	w.locator = locator{top: value, shape: shape, meta: s.meta}
	w.value(shape, value, document.Node{})
	return w.result(value).Errors
}
