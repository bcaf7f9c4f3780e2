package vap

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel/explain"
	"github.com/admission-gateway/gateway/internal/status"
)

// explain says what is wrong with the object by a validation that does not hold: in the author's
// words, or else in words that follow from the expression. Nothing that it evaluates can change the
// verdict: the validations are all done, and it has only what they and their messages left of the
// budget.
func (e *evaluation) explain(o *outcome, v *validation) {
	violations := v.because.Explain(e.frame, e.vars)
	first := &violations[0]
	o.Cause.Type, o.Cause.Field = metav1.CauseType(first.Error.Type), first.Error.Field
	if o.Cause.Field == "" {
		o.Cause.Field = v.field
	}
	if o.Cause.Message == "" {
		if v.compute == nil {
			o.Cause.Message = derived(violations)
		} else { // the author had something else to say
			o.Cause.Message = "failed expression: " + strings.TrimSpace(v.program.Source())
			o.add(first)
		}
	}
	for i := range violations {
		x := &violations[i]
		if i > 0 && len(x.Items) == 0 {
			o.add(x)
		}
		for _, item := range x.Items {
			if item.Type == field.ErrorTypeInvalid && item.Detail == "" { // there are no words for it
				item.Detail = o.Cause.Message
			}
			if len(o.Details) < maxDetails {
				o.Details = append(o.Details, causeOf(item))
			}
		}
	}
}

// maxDetails is how many further causes one validation can have.
const maxDetails = 2 * explain.MaxItems

// add adds a violation to the details, if there are words for it.
func (o *outcome) add(x *explain.Violation) {
	if x.Worded() && len(o.Details) < maxDetails {
		o.Details = append(o.Details, causeOf(&x.Error))
	}
}

// causeOf is a failure as a cause, whose message says the field too.
func causeOf(err *field.Error) metav1.StatusCause {
	c := metav1.StatusCause{Type: metav1.CauseType(err.Type), Field: err.Field, Message: err.ErrorBody()}
	switch {
	case err.Field != "":
		c.Message = err.Field + ": " + c.Message
	case err.Detail != "":
		c.Message = err.Detail
	}
	return c
}

// derived is the message of a validation whose author gave none. Failing items stand for the list that they are in.
func derived(violations []explain.Violation) string {
	var texts []string
	more := 0
	add := func(text string) {
		if len(texts) == explain.MaxItems {
			more++
			return
		}
		texts = append(texts, text)
	}
	for i := range violations {
		x := &violations[i]
		for _, item := range x.Items {
			if item.Type == field.ErrorTypeInvalid && item.Detail == "" {
				item.Detail = "failed expression: " + x.Source
			}
			add(causeOf(item).Message)
		}
		more += x.More
		switch {
		case len(x.Items) > 0:
		case x.Worded():
			add(causeOf(&x.Error).Message)
		default:
			add("failed expression: " + x.Source)
		}
	}
	if more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return status.List(texts)
}
