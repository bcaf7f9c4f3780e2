package status

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// MaxCauses is how many failures one answer names; the rest are counted in a last cause.
	MaxCauses = 100
	// maxValue is how many bytes of an offending value one cause shows, and maxDetail how many of what is said about it:
	// an answer stays small however large the object is.
	maxValue  = 1024
	maxDetail = 5 * 1024
)

// Invalid is 422 with every failure as a cause (VAL-1): `<Kind.group> "<name>" is invalid: <e>`, or `[<e1>, <e2>]` for several.
// Failures of the same text are named once, as Kubernetes does. more counts failures that the caller found and did not keep.
// Of a long name only the beginning is shown: it may be a client's, who has the whole of a body to write it in.
func Invalid(gk schema.GroupKind, name string, failures field.ErrorList, more int) *Error {
	gk.Kind, gk.Group, name = cutBytes(gk.Kind, maxValue), cutBytes(gk.Group, maxValue), cutBytes(name, maxValue)
	causes := make([]metav1.StatusCause, 0, min(len(failures), MaxCauses+1))
	texts := make([]string, 0, cap(causes))
	seen := make(map[string]struct{}, cap(causes))
	for i, f := range failures {
		if len(causes) == MaxCauses {
			more += len(failures) - i
			break
		}
		cause := Cause(f)
		text := cause.Field + ": " + cause.Message
		if _, twice := seen[text]; twice {
			continue
		}
		seen[text] = struct{}{}
		texts = append(texts, text)
		causes = append(causes, cause)
	}
	if more > 0 {
		last := fmt.Sprintf("and %d more", more)
		texts = append(texts, last)
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Message: last})
	}
	message := fmt.Sprintf("%s %q is invalid", gk.String(), name)
	if len(texts) > 0 {
		message += ": " + list(texts)
	}
	e := failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, message)
	e.ErrStatus.Details = &metav1.StatusDetails{Group: gk.Group, Kind: gk.Kind, Name: name, Causes: causes}
	return e
}

// Detail adds causes to the answer that say more about what its message says: which field is wrong, and which items are.
func Detail(e *Error, details field.ErrorList) *Error {
	d := e.ErrStatus.Details
	for _, f := range details {
		if cause := Cause(f); len(d.Causes) < MaxCauses && !slices.Contains(d.Causes, cause) {
			d.Causes = append(d.Causes, cause)
		}
	}
	return e
}

// Cause is one failure as a cause: reason, message (the failure's text without its path) and field. Of a long value only the
// beginning is shown, and all of what is said about it.
func Cause(f *field.Error) metav1.StatusCause {
	body := f.ErrorBody()
	if len(body) > maxValue {
		value := body
		if f.Detail != "" {
			value = strings.TrimSuffix(body, ": "+f.Detail)
		}
		body = cutBytes(value, maxValue)
		if f.Detail != "" {
			body += ": " + cutBytes(f.Detail, maxDetail)
		}
	}
	return metav1.StatusCause{Type: metav1.CauseType(f.Type), Message: body, Field: f.Field}
}

// cutBytes shortens s to at most n bytes, on a rune boundary, and shows that it did.
func cutBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// list writes one text as it is and several as `[a, b]`, the form of apimachinery's aggregates.
func list(texts []string) string {
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}
