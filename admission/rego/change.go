package rego

import (
	"context"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/policy"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// A Mutator is a policy whose rules change objects.
type Mutator struct{ *Policy }

// Rules implements admission.Policy. There is no object to change in a deletion.
func (m Mutator) Rules() []admission.Rule {
	all := append([]admission.Rule(nil), m.Policy.Rules()...)
	for i := range all {
		all[i].Operations &^= admission.Delete
	}
	return all
}

// Applicabilities implements admission.Explainer.
func (m Mutator) Applicabilities(a *admission.Attributes) []resource.Applicability {
	all := m.Policy.Applicabilities(a)
	if a.Operation == admission.Delete {
		all[0] = all[0].Unless("it changes objects, and a deletion has none")
	}
	return all
}

// Stage implements admission.Mutator.
func (m Mutator) Stage() admission.Stage { return admission.StageEngines }

// Plan implements admission.Mutator.
func (m Mutator) Plan(ctx context.Context, a *admission.Attributes, to []admission.Run,
	r *admission.Report) ([]admission.Run, error) {
	if a.Object == nil {
		return to, nil
	}
	as, matches, err := m.Matches(ctx, a, r)
	if !matches {
		return to, err
	}
	found, err := m.Params(ctx, m.binding, a, r)
	if err != nil {
		return to, err
	}
	for _, param := range found {
		to = append(to, admission.Run{As: as, Param: param})
	}
	return to, nil
}

// Mutate implements admission.Mutator.
func (m Mutator) Mutate(ctx context.Context, a *admission.Attributes, run *admission.Run, r *admission.Report) error {
	if err := m.change(ctx, a, run, r); err != nil {
		return m.AnswerOr(nil, err, r)
	}
	return nil
}

// change sets default values, and then applies the patch that is made for the object with them.
func (m Mutator) change(
	ctx context.Context, a *admission.Attributes, run *admission.Run, r *admission.Report,
) error {
	target := a.Object
	if run.As != a.Info.GroupVersionResource() {
		var err error
		if target, err = policy.Convert(a, run.As); err != nil {
			return err
		}
	}
	in, applies, err := m.input(a, run.As, run.Param, r)
	if err != nil || !applies {
		return err
	}
	run.Invoked = true
	if m.rules.defaults != nil {
		changed, err := m.setDefaults(ctx, in, a, target)
		if err != nil {
			return err
		}
		if changed && m.rules.patch != nil {
			a.Bind()
			if run.As != a.Info.GroupVersionResource() {
				if target, err = policy.Convert(a, run.As); err != nil {
					return err
				}
			}
			if in.Review, err = ReviewOf(a, run.As); err != nil {
				return err
			}
		}
	}
	if m.rules.patch == nil {
		return nil
	}
	return m.patch(ctx, in, a, target)
}

// setDefaults sets what the rule gives and the object leaves unset: all of it, or nothing.
func (m Mutator) setDefaults(ctx context.Context, in *Input, a *admission.Attributes,
	target *document.Document) (changed bool, err error) {
	value, err := m.rules.defaults.Value(ctx, in)
	if err != nil {
		return false, err
	}
	given, ok := value.term.Value.(ast.Object)
	if !ok {
		return false, fmt.Errorf("%s: the value must be an object, not %s", m.rules.defaults.rule,
			ast.ValueName(value.term.Value))
	}
	f := filler{target: target, most: mostBytes(a, target)}
	if err := target.Atomically(func() error { return f.fill(target.Root(), given) }); err != nil {
		return false, err
	}
	if !f.changed {
		return false, nil
	}
	return true, policy.ApplyTarget(a, target)
}

func mostBytes(a *admission.Attributes, target *document.Document) int {
	if most := policy.Limits(a, target).Bytes; most > 0 {
		return most
	}
	return document.DefaultBytes
}

// filler sets members that an object does not have. What is there stays as it is, null and lists
// too; objects on both sides are completed.
type filler struct {
	target  *document.Document
	most    int
	changed bool
}

func (f *filler) fill(at document.Node, given ast.Object) error {
	for _, key := range given.Keys() {
		name, ok := key.Value.(ast.String)
		if !ok {
			return fmt.Errorf("the names of fields must be strings, not %s", ast.ValueName(key.Value))
		}
		value := given.Get(key).Value
		if there, ok := at.Get(string(name)); ok {
			if inner, isObject := value.(ast.Object); isObject && there.Kind() == document.Object {
				if err := f.fill(there, inner); err != nil {
					return err
				}
			}
			continue
		}
		text, err := appendJSON(nil, value)
		if err != nil {
			return err
		}
		if f.target.Extent()+len(text) > f.most {
			return status.RequestEntityTooLarge("the object as policies change it must be at most %d bytes", f.most)
		}
		f.target.Set(at, string(name), text)
		f.changed = true
	}
	return nil
}

// patch applies the JSON patch that the rule gives: a list or a set of operations, or of such lists.
func (m Mutator) patch(ctx context.Context, in *Input, a *admission.Attributes, target *document.Document) error {
	value, err := m.rules.patch.Value(ctx, in)
	if err != nil {
		return err
	}
	text, err := value.AppendJSON(nil)
	if err != nil {
		return err
	}
	if o, ok := value.term.Value.(ast.Object); ok && o.Len() > 0 {
		return fmt.Errorf("%s: the value must be a list of operations, not an object", m.rules.patch.rule)
	}
	patch, err := document.Parse(text, policy.Limits(a, target))
	if err != nil {
		return fmt.Errorf("%s: the patch cannot be applied: %w", m.rules.patch.rule, err)
	}
	defer patch.Release()
	changed, err := policy.ApplyPatch(target, patch.Root(), policy.Limits(a, target))
	if err != nil || !changed {
		return err
	}
	return policy.ApplyTarget(a, target)
}
