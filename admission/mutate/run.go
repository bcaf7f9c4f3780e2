package mutate

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/status"
)

// Plan implements admission.Mutator.
func (p *Policy) Plan(ctx context.Context, a *admission.Attributes, to []admission.Run, r *admission.Report) ([]admission.Run, error) {
	if a.Object == nil {
		return to, nil
	}
	as, matches, err := p.match.Matches(ctx, a)
	if err != nil {
		p.misconfigured(nil, err, r)
		return to, nil
	}
	if !matches {
		return to, nil
	}
	for i, b := range p.bindings {
		_, matches, err := b.match.Matches(ctx, a)
		if err != nil {
			p.misconfigured(b, err, r)
			continue
		}
		if !matches {
			continue
		}
		found, err := b.params.Find(ctx, p.params, a)
		if err != nil {
			p.misconfigured(b, err, r)
			continue
		}
		for _, param := range found {
			to = append(to, admission.Run{Binding: i, Param: param, As: as, Reinvocable: p.reinvoked})
		}
	}
	return to, nil
}

// misconfigured handles a policy or binding that cannot tell whether it matches.
func (p *Policy) misconfigured(b *Binding, err error, r *admission.Report) {
	what := "policy"
	if b != nil {
		what = "binding"
	}
	p.failed(b, metav1.StatusReasonForbidden, fmt.Errorf("failed to configure %s: %w", what, err), r)
}

// failed handles a failure as the failure policy says.
func (p *Policy) failed(b *Binding, reason metav1.StatusReason, err error, r *admission.Report) {
	if p.failure == admission.Ignore || cel.IsSkip(err) {
		r.Ignored(p.name, err)
		return
	}
	r.Deny(p.denial(b, reason, err))
}

// Mutate implements admission.Mutator. A mutation that fails is a failure of the policy, but the others run.
func (p *Policy) Mutate(ctx context.Context, a *admission.Attributes, run *admission.Run, r *admission.Report) error {
	b := p.bindings[run.Binding]
	w := work{subject: newSubject(a, run, p.needs), policy: p, run: run}
	if err := w.bind(ctx, false); err != nil {
		return w.answerOr(err, b, r)
	}
	applies, err := p.conditions.Hold(a.Frame, a.Frame.Vars())
	if err != nil {
		p.failed(b, metav1.StatusReasonInvalid, err, r)
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
			if err := w.answerOr(err, b, r); err != nil {
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
	policy *Policy
	run    *admission.Run
	buffer []byte
}

// answerOr returns an error that is the answer to the request, and handles any other as a failure of the policy.
func (w *work) answerOr(err error, b *Binding, r *admission.Report) error {
	var answer *status.Error
	if errors.As(err, &answer) {
		return answer
	}
	w.policy.failed(b, metav1.StatusReasonInvalid, err, r)
	return nil
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
		changed, err = w.patch(patch)
	}
	if err != nil || !changed {
		return err
	}
	return w.settle()
}

// evaluate makes the patch that an expression describes.
func (w *work) evaluate(p *cel.Program) (*document.Document, error) {
	frame, vars := w.attributes.Frame, w.attributes.Frame.Vars()
	if v := w.policy.variables; v != nil {
		frame.OpenVariables(vars, v)
		defer frame.CloseVariables(vars)
	}
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

// patch applies a JSON patch. One whose test fails changes nothing and is no failure.
func (w *work) patch(patch *document.Document) (changed bool, err error) {
	if patch.Root().Len() == 0 {
		return false, nil
	}
	before := typeMetaOf(w.target.Root())
	err = w.target.Atomically(func() error {
		if err := w.target.ApplyPolicyPatch(patch.Root(), w.limits()); err != nil {
			return err
		}
		return before.check(w.target.Root())
	})
	var failed *document.PatchError
	if errors.As(err, &failed) && failed.Code == document.PatchTestFailed {
		return false, nil
	}
	return err == nil, err
}

// typeMeta tells which of the members are there that say what an object is.
type typeMeta struct{ kind, version bool }

func typeMetaOf(root document.Node) typeMeta {
	return typeMeta{named(root, "kind"), named(root, "apiVersion")}
}

func named(root document.Node, member string) bool {
	n, ok := root.Get(member)
	return ok && n.Kind() == document.String && !n.Is("")
}

// check holds the result of a patch to what kube-apiserver can read.
func (m typeMeta) check(root document.Node) error {
	switch {
	case root.Kind() != document.Object:
		return status.Internal("a JSON patch of a policy must leave an object, not a %s", root.Kind())
	case m.kind && !named(root, "kind"):
		return status.Internal("a JSON patch of a policy must not take the object's `kind` away")
	case m.version && !named(root, "apiVersion"):
		return status.Internal("a JSON patch of a policy must not take the object's `apiVersion` away")
	}
	return nil
}
