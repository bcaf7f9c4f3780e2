package vap

import (
	"context"
	"strings"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
)

// A Finding says of a validation that it does not hold, or could not be evaluated.
type Finding struct {
	Message, Field string
	Failed         bool
}

// Find evaluates the policy for a parameter, whatever its match constraints and bindings say. A
// validation without a message of its author's is named by its expression, as in Kubernetes.
func (p *Policy) Find(ctx context.Context, a *admission.Attributes, param document.Node,
	r *admission.Report) ([]Finding, error) {
	e := evaluation{policy: p, attributes: a, frame: a.Frame, vars: a.Frame.Vars()}
	if err := e.run(ctx, param, r); err != nil {
		return nil, err
	}
	found := make([]Finding, len(e.outcomes))
	for i := range e.outcomes {
		o := &e.outcomes[i]
		found[i] = Finding{o.Cause.Message, o.Cause.Field, o.Failed}
		if v := &p.validations[o.index]; !o.Failed && v.compute == nil && v.message == "" {
			found[i].Message = "failed expression: " + strings.TrimSpace(v.program.Source())
		}
	}
	return found, nil
}
