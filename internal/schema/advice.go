package schema

import (
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/reword"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// OriginWording is the origin of warnings about the wording of messages.
const OriginWording = "wording"

// adviceOn checks the messages of a schema's own rules against the API conventions (VAL-4).
func adviceOn(s *apiextensions.JSONSchemaProps, path *field.Path) (warnings field.ErrorList) {
	advise := func(path *field.Path, message string) {
		if advice := reword.Advice(message); advice != "" {
			warnings = append(warnings, field.Invalid(path, wording.Omitted, advice).WithOrigin(OriginWording))
		}
	}
	for i, r := range s.XValidations {
		at := path.Child("x-kubernetes-validations").Index(i)
		if message := strings.TrimSpace(r.Message); message != "" {
			advise(at.Child("message"), message)
		}
		if strings.TrimSpace(r.MessageExpression) != "" {
			for _, part := range cel.Literals(r.MessageExpression) {
				advise(at.Child("messageExpression"), part)
			}
		}
	}
	return warnings
}
