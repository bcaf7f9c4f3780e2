package status

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/quote"
)

// MaxCauses is how many failures one answer names; the rest are counted in a last cause.
const MaxCauses = 100

// Invalid is 422 with every failure as a cause (VAL-1): `<Kind.group> "<name>" is invalid: <e>`, or
// `[<e1>, <e2>]` for several. Failures of the same text are named once, as Kubernetes does. more
// counts failures that the caller found and did not keep. Of a long name only the beginning is
// shown: it may come from a client, which can fill a whole body with it.
func Invalid(gk schema.GroupKind, name string, failures field.ErrorList, more int) *Error {
	return invalidObject(gk, name, fmt.Sprintf("%s %q", short(gk), quote.ClipDots(name, quote.MaxCause)), failures,
		more)
}

// InvalidNameless is [Invalid] for an object that has no name yet, in a sentence that leaves the name out: an
// ordinary API gives names after the object was accepted.
func InvalidNameless(gk schema.GroupKind, failures field.ErrorList, more int) *Error {
	return invalidObject(gk, "", short(gk), failures, more)
}

// InvalidRequest is [Invalid] for a request without an object.
func InvalidRequest(failures field.ErrorList, more int) *Error {
	return invalidObject(schema.GroupKind{}, "", "the request", failures, more)
}

// short is a kind as a sentence shows it.
func short(gk schema.GroupKind) string {
	gk.Kind, gk.Group = quote.ClipDots(gk.Kind, quote.MaxCause), quote.ClipDots(gk.Group, quote.MaxCause)
	return gk.String()
}

// invalidObject is 422 about a subject, which the name is part of.
func invalidObject(gk schema.GroupKind, name, subject string, failures field.ErrorList, more int) *Error {
	gk.Kind, gk.Group, name = quote.ClipDots(gk.Kind, quote.MaxCause), quote.ClipDots(gk.Group, quote.MaxCause),
		quote.ClipDots(name, quote.MaxCause)
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
		if cause.Field == "" {
			text = cause.Message
		}
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
	message := subject + " is invalid"
	if len(texts) > 0 {
		message += ": " + List(texts)
	}
	e := failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, message)
	e.ErrStatus.Details = &metav1.StatusDetails{Group: gk.Group, Kind: gk.Kind, Name: name, Causes: causes}
	return e
}

// Detail adds causes to the answer that say more about what its message says: which field is wrong, and which items
// are.
func Detail(e *Error, details field.ErrorList) *Error {
	d := e.ErrStatus.Details
	for _, f := range details {
		if cause := Cause(f); len(d.Causes) < MaxCauses && !slices.Contains(d.Causes, cause) {
			d.Causes = append(d.Causes, cause)
		}
	}
	return e
}

// Cause is one failure as a cause: reason, message (the failure's text without its path) and field. Of a long value
// only the beginning is shown, and all of what is said about it.
func Cause(f *field.Error) metav1.StatusCause {
	body := f.ErrorBody()
	if len(body) > quote.MaxCause {
		value := body
		if f.Detail != "" {
			value = strings.TrimSuffix(body, ": "+f.Detail)
		}
		body = quote.ClipDots(value, quote.MaxCause)
		if f.Detail != "" {
			body += ": " + quote.ClipDots(f.Detail, quote.MaxDetail)
		}
	}
	return metav1.StatusCause{Type: metav1.CauseType(f.Type), Message: body, Field: f.Field}
}

// List writes one text as it is and several as `[a, b]`, the form of apimachinery's aggregates.
func List(texts []string) string {
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// InItem returns the error of a step that saw one item of a body alone, as one about the body: the message and the
// fields name the item, such as '[3]'.
func InItem(err error, item string) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	in := &Error{ErrStatus: *e.ErrStatus.DeepCopy()}
	in.ErrStatus.Message = item + ": " + in.ErrStatus.Message
	if in.ErrStatus.Details != nil {
		for i := range in.ErrStatus.Details.Causes {
			if c := &in.ErrStatus.Details.Causes[i]; c.Field == "" || c.Field[0] == '[' {
				c.Field = item + c.Field
			} else {
				c.Field = item + "." + c.Field
			}
		}
	}
	return in
}
