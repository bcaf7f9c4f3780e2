package schema

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
)

// A violation is a CEL rule that does not hold.
type violation struct {
	rules      *cel.Rules
	rule       *rule
	value, old document.Node
	failure    *field.Error // as it was added
	worded     bool         // the author has a message for it
	detail     string       // of the failure, before the gateway gave it its own words
	warning    int          // which of the warnings it is; -1: it is an error
}

// explain finds out what is wrong by a rule that does not hold. If its author gave no message, the
// failure says it; else only the items that fail are added. All rules have been evaluated by then,
// so that nothing it does can change the verdict.
func (e *evaluator) explain(x *violation) {
	if e.err != nil {
		return
	}
	e.bind(x.rules, x.value, x.old)
	found := x.rule.explanation.Explain(e.frame, e.vars)
	path := e.walk.path(x.value)
	place := func(err field.Error) *field.Error {
		err.Field = below(path, err.Field)
		return &err
	}
	if first := &found[0]; !x.worded && first.Worded() {
		e.reword(x, place(first.Error))
	}
	if x.warning >= 0 {
		e.warnings[x.warning] = x.failure.Error()
		return
	}
	for i := range found {
		if i > 0 && !x.worded && found[i].Worded() {
			e.further(x, place(found[i].Error))
		}
		for _, item := range found[i].Items {
			if item.Type == field.ErrorTypeInvalid && item.Detail == "" {
				item.Detail = x.detail
			}
			e.further(x, place(*item))
		}
	}
}

// reword gives the failure of a rule the words that follow from its expression. What the author says of field and
// reason stays.
func (e *evaluator) reword(x *violation, err *field.Error) {
	r := x.rule
	if r.FieldPath != "" {
		err.Field = x.failure.Field
	}
	if r.Reason != nil {
		switch {
		case err.Detail != "":
		case err.Type == field.ErrorTypeRequired:
			err.Detail = "must be set"
		case err.Type == field.ErrorTypeDuplicate:
			err.Detail = "must be unique"
		}
		err.Type, err.BadValue = x.failure.Type, x.failure.BadValue
	}
	*x.failure = *err
}

// further adds what else is wrong by a rule: as failures if the message is the gateway's, as
// details if it is the author's.
func (e *evaluator) further(x *violation, err *field.Error) {
	switch {
	case x.worded:
		if len(e.details) < maxFailures {
			e.details = append(e.details, err)
		}
	case !e.walk.fails():
		e.walk.add(x.value, err)
	}
}
