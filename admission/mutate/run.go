package mutate

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/merge"
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
	w := work{policy: p, attributes: a, run: run, frame: a.Frame, vars: a.Frame.Vars()}
	if err := w.bind(ctx, false); err != nil {
		return w.answerOr(err, b, r)
	}
	applies, err := p.conditions.Hold(w.frame, w.vars)
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
	policy     *Policy
	attributes *admission.Attributes
	run        *admission.Run
	frame      *cel.Frame
	vars       *cel.Vars

	target *document.Document // what is changed: the object, or a copy in another version
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

// bind binds what the attributes have not: the parameter, the object in the version that the policy's rules name, and
// the namespace, which match conditions do not see.
func (w *work) bind(ctx context.Context, namespace bool) error {
	w.target = w.attributes.Object
	if w.converts() {
		var err error
		if w.target, err = w.attributes.BindAs(w.run.As); err != nil {
			return fmt.Errorf("failed to convert object version: %w", err)
		}
	}
	w.vars.Set(cel.Params, w.run.Param, nil)
	if namespace && w.policy.needs.namespace {
		return w.attributes.BindNamespace(ctx)
	}
	return nil
}

func (w *work) converts() bool { return w.run.As != w.attributes.Info.GroupVersionResource() }

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
	if v := w.policy.variables; v != nil {
		w.frame.OpenVariables(w.vars, v)
		defer w.frame.CloseVariables(w.vars)
	}
	w.frame.SetBudget(cel.PolicyBudget)
	var err error
	if w.buffer, err = p.EvalPatch(w.frame, w.vars, w.buffer[:0]); err != nil {
		return nil, err
	}
	patch, err := document.Parse(w.buffer, w.limits())
	if err != nil {
		return nil, fmt.Errorf("the patch that the policy makes cannot be applied: %w", err)
	}
	return patch, nil
}

// limits bound what patches make.
func (w *work) limits() document.Limits {
	if w.attributes.Schema == nil {
		return document.Limits{}
	}
	return w.attributes.Schema.PatchLimits()
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

func (w *work) mergeType() *merge.Type {
	if w.attributes.Schema == nil {
		return merge.Deduced()
	}
	version, _ := w.target.Root().Get("apiVersion")
	kind, _ := w.target.Root().Get("kind")
	return w.attributes.Schema.MergeType(w.run.As, schema.FromAPIVersionAndKind(version.Str(), kind.Str()))
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

// settle takes what was changed over into the object, and fills in what it leaves unset now.
func (w *work) settle() error {
	a := w.attributes
	if w.converts() {
		back, _, err := a.Lookup.Convert(w.target, a.Info.GroupVersionResource())
		if err != nil {
			return fmt.Errorf("failed to convert object version: %w", err)
		}
		a.Object.Replace(a.Object.Root(), back.Root().Raw())
	}
	a.Changed()
	if a.Schema == nil {
		return nil
	}
	return a.Schema.SetDefaults()
}
