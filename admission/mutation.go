package admission

import (
	"cmp"
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/merge"
	"github.com/admission-gateway/gateway/internal/status"
)

// Stage is when a mutator runs. The mutators of a stage run in the order of their names, after all
// mutators of previous stages.
type Stage uint8

// The stages.
const (
	// StageDefaults are mutators that only set what is unset. They run again when
	// something of a later stage changed the object.
	StageDefaults Stage = iota
	// StagePolicies are Kubernetes' mutating policies.
	StagePolicies
	// StageEngines are the mutators of other engines.
	StageEngines
)

// A Run is one run of a mutator: for one of its bindings and one parameter, if it has such.
type Run struct {
	// Binding is the mutator's binding that it is for, and Param the parameter; invalid for none.
	Binding int
	Param   document.Node
	// As is the resource as which the mutator matched the request: its own or
	// another version of it.
	As schema.GroupVersionResource
	// Reinvocable runs may come a second time, when the object was changed.
	Reinvocable bool
	// Invoked is set by Mutate if the mutator's conditions hold, and Patched if it could change the
	// object, or did.
	Invoked, Patched bool

	// DryRun are the terms by which the run is only tried; nil: it changes the object.
	DryRun Terms

	mutator int // its position in the chain
}

// same reports whether two runs are for the same policy, binding and parameter.
func (r *Run) same(o *Run) bool {
	return r.mutator == o.mutator && r.Binding == o.Binding && r.Param == o.Param
}

// A Schema has what is known of the resource of a request while policies change its object.
type Schema interface {
	// SetDefaults fills in what the object leaves unset, as before admission. The
	// error is the answer to the request.
	SetDefaults() error
	// MergeType is the type by which objects of the kind are merged, which are of the
	// request's resource in the version of as, or of its subresource; never nil.
	MergeType(as schema.GroupVersionResource, kind schema.GroupVersionKind) *merge.Type
	// PatchLimits bound what patches may make of the object.
	PatchLimits() document.Limits
}

// Changed notes that a policy changed the object.
func (a *Attributes) Changed() { a.mutated.changes++ }

// Changes is how often policies have changed the object.
func (a *Attributes) Changes() int { return a.mutated.changes }

// mutation is the mutation of one request.
type mutation struct {
	*Chain
	ctx    context.Context
	a      *Attributes
	report *Report
}

// mutate runs the found mutators that match the request, as [Chain.Mutate] says.
func (c *Chain) mutate(ctx context.Context, f found, a *Attributes, r *Report) error {
	a.mutated.changes = 0
	if len(f) == 0 && len(r.denials) == 0 {
		return nil
	}
	m := mutation{c, ctx, a, r}
	defer func() {
		clear(a.mutated.runs)
		a.mutated.runs = a.mutated.runs[:0]
	}()
	first, changed, err := m.pass(f, nil, false)
	if err != nil || first == 0 {
		return err
	}
	patched := slices.ContainsFunc(a.mutated.runs, func(r Run) bool { return r.Patched })
	var again []Run
	if patched {
		again = slices.DeleteFunc(slices.Clone(a.mutated.runs),
			func(r Run) bool { return !r.Invoked || !r.Reinvocable })
	}
	if len(again) == 0 && !changed {
		return nil
	}
	_, _, err = m.pass(f, again, true)
	return err
}

// pass runs the mutators found once, in the second pass only the mutators that are to run again. It
// returns how many runs there were, and whether something changed the object after the defaults
// were set.
func (m *mutation) pass(f found, again []Run, second bool) (runs int, changed bool, err error) {
	a := m.a
	a.mutated.runs = a.mutated.runs[:0]
	s := search(f, a.Info)
	afterDefaults := a.mutated.changes
	for p := s.Next(); p >= 0; {
		stage, begin := m.mutators[p].Stage(), len(a.mutated.runs)
		a.Bind()
		for ; p >= 0 && m.mutators[p].Stage() == stage; p = s.Next() {
			if !second || stage != StageEngines {
				if err := m.plan(p, second); err != nil {
					return 0, false, err
				}
			}
		}
		if second && stage == StagePolicies {
			kept := slices.DeleteFunc(a.mutated.runs[begin:], func(r Run) bool {
				return !slices.ContainsFunc(again, func(o Run) bool { return r.same(&o) })
			})
			a.mutated.runs = a.mutated.runs[:begin+len(kept)]
		}
		for i := begin; i < len(a.mutated.runs); i++ {
			if err := m.run(&a.mutated.runs[i]); err != nil {
				return 0, false, err
			}
		}
		if stage == StageDefaults {
			afterDefaults = a.mutated.changes
		}
	}
	if refusal := m.report.mutationErr(a); refusal != nil {
		return 0, false, refusal
	}
	return len(a.mutated.runs), a.mutated.changes > afterDefaults, nil
}

// plan adds the runs of a mutator. A mutator that cannot determine its runs has failed. What is
// tried runs in the first pass alone. The error is the answer to the request.
func (m *mutation) plan(position int, second bool) error {
	if m.mutatorTerms != nil && m.mutatorTerms[position] != nil {
		return m.planBy(m.mutatorTerms[position], position, second)
	}
	return m.planRuns(position, nil, second)
}

// planRuns adds the runs of a mutator, which are only tried by terms unless these are nil.
func (m *mutation) planRuns(position int, tried Terms, second bool) error {
	begin := len(m.a.mutated.runs)
	planned, err := plan(m.ctx, m.mutators[position], m.a, m.report)
	var missing *NoNamespace
	if errors.As(err, &missing) {
		return missing
	}
	if err != nil {
		m.failed(m.mutators[position], err)
		return nil
	}
	for i := begin; i < len(planned); i++ {
		planned[i].mutator = position
		if tried != nil {
			planned[i].DryRun = tried
		}
	}
	if second {
		kept := slices.DeleteFunc(planned[begin:], func(r Run) bool { return r.DryRun != nil })
		planned = planned[:begin+len(kept)]
	}
	m.a.mutated.runs = planned
	return nil
}

// run runs a mutator. The error is the answer to the request.
func (m *mutation) run(r *Run) error {
	if r.DryRun != nil {
		m.try(r)
		return nil
	}
	mutator := m.mutators[r.mutator]
	m.a.Bind()
	before, changes := m.report.measure(m.a), m.a.mutated.changes
	if m.report.Recorder != nil {
		m.report.Recorder.Begin(m.ctx, mutator, m.a, m.report)
	}
	err := mutate(m.ctx, mutator, m.a, r, m.report)
	var answer *status.Error
	if errors.As(err, &answer) {
		return answer
	}
	if err != nil {
		m.failed(mutator, err)
	}
	verdict := Unchanged
	if m.a.mutated.changes > changes {
		verdict = Changed
	}
	m.report.decided(r.mutator, mutator.Name(), before, m.a, verdict)
	return nil
}

// planBy adds the runs of a mutator as its terms say.
func (m *mutation) planBy(t Terms, position int, second bool) error {
	mutator := m.mutators[position]
	before, mark := m.report.measure(m.a), m.report.Mark()
	tried, asked := m.report.stand(m.ctx, m.a, mutator, t)
	m.a.Bind() // conditions of exceptions have variables of their own
	switch {
	case !asked:
		if len(m.report.dryRuns.excepted) > before.excepted {
			if m.report.Recorder != nil {
				m.report.Recorder.Begin(m.ctx, mutator, m.a, m.report)
			}
			m.report.decided(position, mutator.Name(), before, m.a, Unchanged)
		}
		return nil
	case !tried:
		return m.planRuns(position, nil, second)
	case second:
		return nil
	}
	err := m.planRuns(position, t, second)
	m.report.Soften(t, mark)
	if err != nil {
		m.report.tryFailure(t, mutator, err)
	}
	return nil
}

// try runs a mutator on a copy of the object, which is thrown away.
func (m *mutation) try(r *Run) {
	mutator, a := m.mutators[r.mutator], m.a
	a.Bind()
	before, mark := m.report.measure(a), m.report.Mark()
	if m.report.Recorder != nil {
		m.report.Recorder.Begin(m.ctx, mutator, a, m.report)
	}
	changed, err := m.tryOn(mutator, r)
	a.Bind()
	r.Invoked, r.Patched = false, false // it is as if the run had not been
	if err != nil {
		m.report.tryFailure(r.DryRun, mutator, err)
	}
	m.report.Soften(r.DryRun, mark)
	verdict := Unchanged
	if changed {
		m.report.TryChange(r.DryRun, mutator.Name())
		verdict = WouldMutate
	}
	m.report.decided(r.mutator, mutator.Name(), before, a, verdict)
}

// tryOn runs a mutator on a copy of the object, and reports whether it changed the copy.
func (m *mutation) tryOn(mutator Mutator, r *Run) (changed bool, err error) {
	defer recovered(&err) // there may be no memory for the copy
	a := m.a
	object, schema, changes := a.Object, a.Schema, a.mutated.changes
	defer func() { a.Object, a.Schema, a.mutated.changes = object, schema, changes }()
	copied := object.Clone()
	defer copied.Release()
	a.Object = copied
	if schema != nil {
		a.Schema = withoutDefaults{schema}
	}
	a.Bind()
	err = mutate(m.ctx, mutator, a, r, m.report)
	return a.mutated.changes > changes, err
}

// withoutDefaults is the schema of a copy of the object, which gets no defaults.
type withoutDefaults struct{ Schema }

// SetDefaults implements Schema.
func (withoutDefaults) SetDefaults() error { return nil }

func (m *mutation) failed(mutator Mutator, err error) {
	if mutator.FailurePolicy() == Ignore {
		m.report.Ignored(mutator.Name(), err)
		return
	}
	d := failed(mutator.Name(), err)
	d.Reason = metav1.StatusReasonForbidden
	m.report.Deny(d)
}

func plan(ctx context.Context, m Mutator, a *Attributes, r *Report) (planned []Run, err error) {
	defer recovered(&err)
	return m.Plan(ctx, a, a.mutated.runs, r)
}

func mutate(ctx context.Context, m Mutator, a *Attributes, run *Run, r *Report) (err error) {
	defer recovered(&err)
	return m.Mutate(ctx, a, run, r)
}

// byStage sorts mutators by stage, and within a stage by name.
func byStage(mutators []Mutator) []Mutator {
	sorted := byName(mutators)
	slices.SortStableFunc(sorted, func(a, b Mutator) int { return cmp.Compare(a.Stage(), b.Stage()) })
	return sorted
}
