package proxy

import (
	"fmt"
	"strconv"
	"strings"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// checkOptions holds those parameters of a write to what Kubernetes allows that the gateway itself has no use for: on a
// plain backend nobody else would.
func (x *exchange) checkOptions() error {
	if x.info.Query == "" || x.res == nil || !x.upstream.plain || x.res.Envelope != resource.Kubernetes {
		return nil
	}
	var failures field.ErrorList
	if _, found := x.info.Param("force"); found && x.info.Verb == resource.VerbPatch {
		failures = append(failures, field.Forbidden(field.NewPath("force"), "may not be specified for non-apply patch"))
	}
	if manager, found := x.info.Param("fieldManager"); found {
		failures = append(failures, metav1validation.ValidateFieldManager(short(manager), field.NewPath("fieldManager"))...)
	}
	if len(failures) == 0 {
		return nil
	}
	kind := "UpdateOptions"
	switch x.info.Verb {
	case resource.VerbCreate:
		kind = "CreateOptions"
	case resource.VerbPatch:
		kind = "PatchOptions"
	}
	return status.Invalid(schema.GroupKind{Group: "meta.k8s.io", Kind: kind}, "", failures, 0)
}

// unknownInPatch are the members of the operations of a JSON patch that none of them has, as Kubernetes names them.
func unknownInPatch(patch document.Node) []string {
	var unknown []string
	i := 0
	for op := patch.First(); op.Valid() && len(unknown) < maxNamed; op = op.Next() {
		for m := op.First(); m.Valid() && op.Kind() == document.Object; m = m.Next() {
			switch key := m.Key(); key {
			case "op", "path", "from", "value":
			default:
				unknown = append(unknown, fmt.Sprintf("json patch unknown field %q", "["+strconv.Itoa(i)+"]."+short(key)))
			}
		}
		i++
	}
	return unknown
}

// reportPatch says what of a JSON patch nobody reads, as far as the request asks for it (VAL-7).
func (x *exchange) reportPatch() error {
	if x.patchType != jsonPatch || x.res == nil {
		return nil
	}
	validation := x.fieldValidation()
	if validation == resource.FieldValidationIgnore {
		return nil
	}
	unknown := unknownInPatch(x.doc.Root())
	switch {
	case len(unknown) == 0:
	case validation == resource.FieldValidationStrict:
		return x.unreadable("strict decoding error: " + strings.Join(unknown, ", "))
	default:
		x.warnings = append(x.warnings, unknown...)
	}
	return nil
}
