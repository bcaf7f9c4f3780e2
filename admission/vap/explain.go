package vap

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
)

// A detail is one thing that is wrong, of those that a validation found at once.
type detail struct {
	kind  metav1.CauseType
	field string
	text  string // with the field
}

// explain says what is wrong with the object by a validation that does not hold: in the author's words, or else in those
// that follow from the expression. Nothing that it evaluates can change the verdict: the validations are all done, and it
// has only what they and their messages left of the budget.
func (e *evaluation) explain(o *outcome, v *validation) {
	violations := v.program.Explain(e.frame, e.vars)
	first := &violations[0]
	o.kind, o.field = metav1.CauseType(first.Error.Type), first.Error.Field
	if o.field == "" {
		o.field = v.field
	}
	if o.message == "" {
		if v.compute == nil {
			o.message = derived(violations)
		} else { // the author had something else to say
			o.message = "failed expression: " + strings.TrimSpace(v.program.Source())
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
				item.Detail = o.message
			}
			if len(o.details) < maxDetails {
				o.details = append(o.details, detailOf(item))
			}
		}
	}
}

// maxDetails is how many further causes one validation can have.
const maxDetails = 2 * cel.MaxItems

// add adds a violation to the details, if there are words for it.
func (o *outcome) add(x *cel.Violation) {
	if x.Worded() && len(o.details) < maxDetails {
		o.details = append(o.details, detailOf(&x.Error))
	}
}

func detailOf(err *field.Error) detail {
	d := detail{kind: metav1.CauseType(err.Type), field: err.Field, text: err.ErrorBody()}
	switch {
	case err.Field != "":
		d.text = err.Field + ": " + d.text
	case err.Detail != "":
		d.text = err.Detail
	}
	return d
}

// derived is the message of a validation whose author gave none. Failing items stand for the list that they are in.
func derived(violations []cel.Violation) string {
	var texts []string
	more := 0
	add := func(text string) {
		if len(texts) == cel.MaxItems {
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
			add(detailOf(item).text)
		}
		more += x.More
		switch {
		case len(x.Items) > 0:
		case x.Worded():
			add(detailOf(&x.Error).text)
		default:
			add("failed expression: " + x.Source)
		}
	}
	if more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}
