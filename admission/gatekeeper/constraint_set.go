// Package gatekeeper runs Gatekeeper's ConstraintTemplates and constraints.
//
// A [Template] is compiled once for all of its constraints. The constraints of a policy set are one
// [ConstraintSet], which answers as Gatekeeper's validating webhook does: what constraints find is ordered by
// their actions and by its text, and joined to one message.
//
// # Where we differ from Gatekeeper
//
//   - Of a template with code for both engines, the one for Rego is used.
//   - Errors of Rego's built-in functions are violations; there the expression has no value.
//   - Templates are asked about deletions and connections if they name these operations.
//   - What a dryrun constraint finds is noted in the audit annotations.
package gatekeeper

import (
	"cmp"
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/gatekeeper/match"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// Webhook is the name of Gatekeeper's webhook that asks the constraints.
const Webhook = "validation.gatekeeper.sh"

// A ConstraintSet has all constraints of a policy set. It is immutable and safe for concurrent use.
type ConstraintSet struct {
	rules     []admission.Rule
	selection *admission.Selection[*Constraint]
	excluded  []match.Wildcard
	inventory *Inventory
}

// NewConstraintSet makes a set of constraints. Objects in the namespaces excluded are not looked at.
func NewConstraintSet(constraints []*Constraint, excluded []match.Wildcard, inventory *Inventory) *ConstraintSet {
	s := &ConstraintSet{selection: admission.NewSelection(constraints), excluded: excluded, inventory: inventory}
	for _, c := range constraints {
		needsOld := c.NeedsOld()
		for _, r := range c.rules {
			r.NeedsOld, r.ReadsCarried = r.NeedsOld || needsOld, r.ReadsCarried || c.template.engine.readsCarried()
			s.rules = append(s.rules, r)
		}
	}
	return s
}

// Name implements admission.Policy.
func (s *ConstraintSet) Name() string { return Webhook }

// Rules implements admission.Policy.
func (s *ConstraintSet) Rules() []admission.Rule { return s.rules }

// FailurePolicy implements admission.Policy.
func (s *ConstraintSet) FailurePolicy() admission.FailurePolicy { return admission.Fail }

// References implements admission.Referrer.
func (s *ConstraintSet) References() admission.References { return s.selection.References() }

// NeedsOld implements admission.Policy. The rules say it for each resource.
func (s *ConstraintSet) NeedsOld() bool { return false }

// Excludes implements admission.Narrower: it does if all constraints do.
func (s *ConstraintSet) Excludes(i *resource.Info, o admission.Operation) bool {
	return !reviews(i) || match.Holds(s.excluded, i) || s.selection.Excludes(i, o)
}

// CanPrefilter implements admission.Prefilter.
func (s *ConstraintSet) CanPrefilter() bool { return s.selection.CanPrefilter() }

// IsFilteredOut implements admission.Prefilter.
func (s *ConstraintSet) IsFilteredOut(ctx context.Context, a *admission.Attributes) bool {
	return s.selection.IsFilteredOut(ctx, a)
}

// ReadsOld implements admission.OldReader: constraints about other namespaces read nothing for the ones that are here.
func (s *ConstraintSet) ReadsOld(i *resource.Info, o admission.Operation) bool {
	return s.selection.ReadsOld(i, o)
}

// A result is a violation of a constraint.
type result struct {
	constraint *Constraint
	violation
	isTried bool // the constraint is not enforced for the request
}

// Applicabilities implements admission.Explainer. It names the constraints.
func (s *ConstraintSet) Applicabilities(a *admission.Attributes) []resource.Applicability {
	all := s.selection.Applicabilities(a)
	for i, o := range all {
		switch {
		case !reviews(a.Info):
			all[i] = o.Unless(notReviewed(a.Info))
		case match.Holds(s.excluded, a.Info):
			all[i] = o.Unless(match.IsExcluded)
		}
	}
	return all
}

// Reasons implements admission.Reasoner. It names the constraints.
func (s *ConstraintSet) Reasons(ctx context.Context, a *admission.Attributes) []admission.Reason {
	objects := match.Objects(nil, a)
	switch {
	case !reviews(a.Info):
		return []admission.Reason{{Because: notReviewed(a.Info)}}
	case len(objects) > 0 && objects[0].IsIn(s.excluded):
		return []admission.Reason{{Because: match.IsExcluded}}
	}
	return s.selection.Reasons(ctx, a)
}

func notReviewed(i *resource.Info) string {
	return "Gatekeeper's webhook is not asked about the subresource '" + i.Subresource + "'"
}

// Validate implements admission.Validator.
func (s *ConstraintSet) Validate(ctx context.Context, a *admission.Attributes, r *admission.Report) error {
	if !reviews(a.Info) {
		return nil
	}
	q := newRequest(s.inventory, a, r)
	if len(q.objects) == 0 || q.objects[0].IsIn(s.excluded) {
		return nil
	}
	var results []result
	for c := range s.selection.For(a.Info, a.Operation) {
		found, tried, err := c.findBy(ctx, q, r)
		if err != nil {
			return err
		}
		for _, v := range found {
			results = append(results, result{c, v, tried})
		}
	}
	if len(results) > 0 {
		act(results, r)
	}
	return nil
}

// findBy returns what is wrong by a constraint as its terms say, and whether it is only tried.
func (c *Constraint) findBy(ctx context.Context, q *request,
	r *admission.Report) (found []violation, tried bool, err error) {
	if c.terms == nil {
		found, err = c.find(ctx, q)
		return found, false, err
	}
	if matches, err := c.matches(ctx, q); err == nil && !matches {
		return nil, false, nil
	}
	s := r.Stand(ctx, q.attributes, c.Name(), c.terms)
	q.attributes.Bind() // conditions of exceptions have variables of their own
	if s.IsExcepted() {
		return nil, false, nil
	}
	found, err = c.find(ctx, q)
	if err != nil && s.IsDryRun {
		return []violation{{message: err.Error(), failed: true}}, true, nil
	}
	return found, s.IsDryRun, err
}

// find returns what is wrong by a constraint. What keeps it from a decision is wrong too, but for an
// error that is the answer to the request.
func (c *Constraint) find(ctx context.Context, q *request) ([]violation, error) {
	matches, err := c.matches(ctx, q)
	if err == nil {
		if !matches {
			return nil, nil
		}
		var found []violation
		if found, err = c.evaluate(ctx, q); err == nil {
			return found, nil
		}
	}
	var answer *status.Error
	if errors.As(err, &answer) {
		return nil, answer
	}
	return []violation{{message: err.Error(), failed: true}}, nil
}

// act does what the constraints ask for. As in Gatekeeper results are in the order of their actions,
// and then of their messages.
func act(results []result, r *admission.Report) {
	slices.SortStableFunc(results, func(a, b result) int {
		return cmp.Or(cmp.Compare(a.constraint.action, b.constraint.action), cmp.Compare(a.message, b.message))
	})
	for i := range results {
		v := &results[i]
		for _, action := range v.constraint.actions {
			switch action {
			case actionDeny:
				if v.isTried {
					r.Try(v.constraint.terms, v.denial())
				} else {
					r.Deny(v.denial())
				}
			case actionWarn:
				r.Warn(v.constraint.message(v.message))
			case actionDryRun:
				r.Audit(admission.AuditedFailure{
					Message: v.message, Policy: v.constraint.template.kind, Binding: v.constraint.name,
					ValidationActions: v.constraint.actions,
				})
			}
		}
	}
}

func (v *result) denial() status.Denial {
	return status.Denial{
		Policy: v.constraint.template.kind, Binding: v.constraint.name, Webhook: Webhook,
		Reason: metav1.StatusReasonForbidden,
		Cause:  metav1.StatusCause{Field: v.field, Message: v.constraint.message(v.message)},
		Failed: v.failed,
	}
}

// reviewed are the subresources that Gatekeeper's webhook is asked about, by their resources. The rules of the webhook
// name them in every group.
var reviewed = map[string][]string{
	"pods":                   {"ephemeralcontainers", "exec", "log", "eviction", "portforward", "proxy", "attach", "binding", "resize"},
	"deployments":            {"scale"},
	"replicasets":            {"scale"},
	"statefulsets":           {"scale"},
	"replicationcontrollers": {"scale"},
	"services":               {"proxy", "status"},
	"nodes":                  {"proxy"},
}

// reviews reports whether Gatekeeper's webhook is asked about a resource or a subresource.
func reviews(i *resource.Info) bool {
	return i.Subresource == "" || slices.Contains(reviewed[i.Resource], i.Subresource)
}
