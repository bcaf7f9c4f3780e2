package status

import (
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxCauses is how many failures one answer names; the rest are counted in a last cause.
const MaxCauses = 100

// Invalid is 422 with every failure as a cause (VAL-1): `<Kind.group> "<name>" is invalid: <e>`, or `[<e1>, <e2>]` for several.
// Failures of the same text are named once, as Kubernetes does.
func Invalid(gk schema.GroupKind, name string, failures field.ErrorList) *Error {
	causes := make([]metav1.StatusCause, 0, min(len(failures), MaxCauses+1))
	texts := make([]string, 0, cap(causes))
	seen := make(map[string]struct{}, cap(causes))
	more := 0
	for _, f := range failures {
		text := f.Error()
		if _, twice := seen[text]; twice {
			continue
		}
		if len(causes) == MaxCauses {
			more++
			continue
		}
		seen[text] = struct{}{}
		texts = append(texts, text)
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseType(f.Type), Message: f.ErrorBody(), Field: f.Field})
	}
	if more > 0 {
		last := fmt.Sprintf("and %d more", more)
		texts = append(texts, last)
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Message: last})
	}
	e := failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
		fmt.Sprintf("%s %q is invalid: %s", gk.String(), name, list(texts)))
	e.ErrStatus.Details = &metav1.StatusDetails{Group: gk.Group, Kind: gk.Kind, Name: name, Causes: causes}
	return e
}

// list writes one text as it is and several as `[a, b]`, the form of apimachinery's aggregates.
func list(texts []string) string {
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}
