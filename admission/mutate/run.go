package mutate

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/policy"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
)

// Plan implements admission.Mutator.
func (p *Policy) Plan(ctx context.Context, a *admission.Attributes, to []admission.Run,
	r *admission.Report) ([]admission.Run, error) {
	if a.Object == nil {
		return to, nil
	}
	as, matches, err := p.Matches(ctx, a, r)
	if !matches {
		return to, err
	}
	for i, b := range p.bindings {
		mark := r.Mark()
		found, err := p.Params(ctx, b, a, r)
		if err != nil || r.Grew(mark) {
			err = b.Soften(ctx, a, mark, err, r)
		}
		if err != nil {
			return to, err
		}
		if len(found) == 0 {
			continue
		}
		run := admission.Run{Binding: i, As: as, Reinvocable: p.reinvoked}
		if t := b.Terms(); t != nil && r.Stand(ctx, a, p.Name(), t).IsDryRun {
			run.DryRun = t
		}
		for _, param := range found {
			run.Param = param
			to = append(to, run)
		}
	}
	return to, nil
}

// IsAbout reports whether the policy changes the object by one of its bindings, or whether it does
// cannot be determined.
func (p *Policy) IsAbout(ctx context.Context, a *admission.Attributes) bool {
	return p.IsAboutBy(ctx, p.bindings, a)
}

// Mutate implements admission.Mutator. A mutation that fails is a failure of the policy, but the others run.
func (p *Policy) Mutate(ctx context.Context, a *admission.Attributes, run *admission.Run, r *admission.Report) error {
	b := p.bindings[run.Binding]
	w := work{subject: newSubject(a, run, &p.Policy)}
	if err := w.bind(ctx, false); err != nil {
		return p.AnswerOr(b, err, r)
	}
	applies, err := p.MatchesConditions(a.Frame, a.Frame.Vars())
	if err != nil {
		p.Failed(b, metav1.StatusReasonInvalid, err, r)
		return nil
	}
	if !applies {
		return nil
	}
	run.Invoked = true
	for i := range p.mutations {
		if i > 0 {
			a.Bind()
		}
		if err := w.mutate(ctx, &p.mutations[i]); err != nil {
			if err := p.AnswerOr(b, err, r); err != nil {
				return err
			}
			continue
		}
		run.Patched = true
	}
	return nil
}

// work is one run of a policy.
type work struct {
	subject
	buffer []byte
}

// mutate makes one mutation: all of it, or none.
func (w *work) mutate(ctx context.Context, m *mutation) error {
	if err := w.bind(ctx, true); err != nil {
		return err
	}
	patch, err := w.evaluate(m.program)
	if err != nil {
		return err
	}
	defer patch.Release()
	var changed bool
	if m.apply {
		changed, err = w.apply(patch)
	} else {
		changed, err = policy.ApplyPatch(w.target, patch.Root(), w.limits())
	}
	if err != nil || !changed {
		return err
	}
	return w.applyTarget()
}

// evaluate makes the patch that an expression describes.
func (w *work) evaluate(p *cel.Program) (*document.Document, error) {
	frame, vars := w.attributes.Frame, w.attributes.Frame.Vars()
	w.policy.OpenVariables(frame, vars)
	defer w.policy.CloseVariables(frame, vars)
	frame.SetBudget(cel.PolicyBudget)
	var err error
	if w.buffer, err = p.EvalPatch(frame, vars, w.buffer[:0]); err != nil {
		return nil, err
	}
	patch, err := document.Parse(w.buffer, w.limits())
	if err != nil {
		return nil, fmt.Errorf("the patch that the policy makes cannot be applied: %w", err)
	}
	return patch, nil
}

// apply merges an apply configuration. It is of the object's kind whatever the policy says.
func (w *work) apply(patch *document.Document) (changed bool, err error) {
	for _, name := range []string{"apiVersion", "kind"} {
		if n, ok := w.target.Root().Get(name); ok {
			patch.Set(patch.Root(), name, n.Raw())
		}
	}
	changed, err = w.mergeType().Apply(w.target, patch.Root())
	if err != nil {
		return false, fmt.Errorf("error applying patch: %w", err)
	}
	return changed, nil
}
