package gatekeeper

import (
	"context"
	"errors"
	"time"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/internal/status"
)

// constraintKind is the kind of constraints in what is taken down.
const constraintKind = "Constraint"

// evaluate runs the template's code. The evaluation is recorded if that is wanted.
func (c *Constraint) evaluate(ctx context.Context, q *request) ([]violation, error) {
	if q.report.Decisions == nil {
		return c.template.engine.find(ctx, q, c)
	}
	e := admission.Evaluation{
		Kind: constraintKind, Engine: c.template.engine.language(), Policy: c.template.kind, Binding: c.name,
		Actions: c.actions, Began: time.Now(),
	}
	q.result = rego.Value{}
	found, err := c.template.engine.find(ctx, q, c)
	var answer *status.Error
	if errors.As(err, &answer) {
		return found, err // the policies were not reached
	}
	e.Violations = len(found)
	c.describe(&e, q, found, err)
	q.report.Decisions.LogDecision(&e)
	return found, err
}

// describe sets the subject of the evaluation, and its result.
func (c *Constraint) describe(e *admission.Evaluation, q *request, found []violation, err error) {
	in := &q.plain
	if q.named.Review.Valid() && c.readsNamespace() {
		in = &q.named
	}
	if !in.Review.Valid() {
		if unmade := q.makePlain(); unmade != nil && err == nil {
			err = unmade
		}
	}
	shown := *in
	shown.Parameters = c.given
	result := q.result
	if engine, ok := c.template.engine.(*regoEngine); ok {
		e.Path = engine.path
	} else {
		shown.Parameters, result = c.parametersValue(), resultOf(found)
	}
	rego.Fill(e, q.attributes, &shown, result, err, false)
}

// readsNamespace reports whether the template's modules see the namespace.
func (c *Constraint) readsNamespace() bool {
	e, ok := c.template.engine.(*regoEngine)
	return ok && e.namespace
}

func (c *Constraint) parametersValue() rego.Value {
	n, ok := c.parameters()
	if !ok {
		return rego.Value{}
	}
	v, _ := rego.ValueOf(n) // the constraint was read already
	return v
}

// resultOf are violations in the form in which rules have them.
func resultOf(found []violation) rego.Value {
	items := make([]rego.Value, len(found))
	for i, v := range found {
		members := []rego.Member{{Name: "msg", Value: rego.Text(v.message)}}
		if v.field != "" {
			members = append(members, rego.Member{Name: "field", Value: rego.Text(v.field)})
		}
		items[i] = rego.Object(members...)
	}
	return rego.List(items...)
}
