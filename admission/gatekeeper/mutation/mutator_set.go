// Package mutation runs Gatekeeper's mutators: Assign, AssignMetadata, ModifySet and AssignImage.
//
// As in Gatekeeper they run together, in the order of their kinds and names, again and again until
// none of them changes the object any more.
//
// # Where we differ from Gatekeeper
//
//   - Mutators that contradict each other about the form of an object are refused when they are
//     loaded; there they stop to act.
//   - Numbers are compared by their value, and never rounded.
//   - There is no external data.
package mutation

import (
	"context"
	"strings"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/gatekeeper/match"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Webhook is the name of Gatekeeper's webhook of mutators.
const Webhook = "mutation.gatekeeper.sh"

// A MutatorSet has all mutators of a policy set. It is immutable and safe for concurrent use.
type MutatorSet struct {
	count     int // of mutators
	excluded  []match.Wildcard
	rules     []admission.Rule
	selection *admission.Selection[*Mutator]
}

// NewMutatorSet makes a set of mutators. Objects in the namespaces excluded are left alone.
func NewMutatorSet(mutators []*Mutator, excluded []match.Wildcard) *MutatorSet {
	s := &MutatorSet{count: len(mutators), excluded: excluded, selection: admission.NewSelection(mutators)}
	for _, m := range mutators {
		s.rules = append(s.rules, m.rules...)
	}
	return s
}

// Conflicts returns what is to be said of each mutator that contradicts others.
func Conflicts(mutators []*Mutator) map[*Mutator]string {
	found := map[*Mutator]string{}
	for m, others := range conflicting(mutators) {
		names := make([]string, len(others))
		for i, o := range others {
			names[i] = o.String()
		}
		if len(names) == 0 {
			names = []string{"itself"}
		}
		found[m] = "must not take the fields of objects for others than these do: " + strings.Join(names, ", ")
	}
	return found
}

// Name implements admission.Policy.
func (s *MutatorSet) Name() string { return Webhook }

// Rules implements admission.Policy.
func (s *MutatorSet) Rules() []admission.Rule { return s.rules }

// FailurePolicy implements admission.Policy.
func (s *MutatorSet) FailurePolicy() admission.FailurePolicy { return admission.Fail }

// References implements admission.Referrer.
func (s *MutatorSet) References() admission.References { return s.selection.References() }

// NeedsOld implements admission.Policy.
func (s *MutatorSet) NeedsOld() bool { return false }

// Excludes implements admission.Narrower: it does if all mutators do. Gatekeeper's webhook sees no subresources.
func (s *MutatorSet) Excludes(i *resource.Info, o admission.Operation) bool {
	return i.Subresource != "" || match.Holds(s.excluded, i) || s.selection.Excludes(i, o)
}

// CanPrefilter implements admission.Prefilter.
func (s *MutatorSet) CanPrefilter() bool { return s.selection.CanPrefilter() }

// IsFilteredOut implements admission.Prefilter.
func (s *MutatorSet) IsFilteredOut(ctx context.Context, a *admission.Attributes) bool {
	return s.selection.IsFilteredOut(ctx, a)
}

// Applicabilities implements admission.Explainer. It names the mutators.
func (s *MutatorSet) Applicabilities(a *admission.Attributes) []resource.Applicability {
	all := s.selection.Applicabilities(a)
	for i, o := range all {
		switch {
		case a.Info.Subresource != "":
			all[i] = o.Unless(notReviewed(a.Info))
		case a.Operation == admission.Delete:
			all[i] = o.Unless(noObject)
		case match.Holds(s.excluded, a.Info):
			all[i] = o.Unless(match.IsExcluded)
		}
	}
	return all
}

// Reasons implements admission.Reasoner. It names the mutators.
func (s *MutatorSet) Reasons(ctx context.Context, a *admission.Attributes) []admission.Reason {
	because := s.leaves(a)
	if a.Info.Subresource != "" {
		because = notReviewed(a.Info)
	}
	if because != "" {
		return []admission.Reason{{Because: because}}
	}
	return s.selection.Reasons(ctx, a)
}

// leaves says why Gatekeeper leaves the object of a request alone, whatever its mutators are; empty if it does not.
func (s *MutatorSet) leaves(a *admission.Attributes) string {
	if a.Object == nil {
		return noObject
	}
	switch o := match.New(a, a.Object); {
	case o.IsGatekeepers():
		return "Gatekeeper leaves objects of its own kinds alone"
	case o.IsIn(s.excluded):
		return match.IsExcluded
	}
	return ""
}

const noObject = "it changes objects, and a deletion has none"

func notReviewed(i *resource.Info) string {
	return "Gatekeeper's webhook is not asked about the subresource '" + i.Subresource + "'"
}

// Stage implements admission.Mutator.
func (s *MutatorSet) Stage() admission.Stage { return admission.StageEngines }

// Plan implements admission.Mutator.
func (s *MutatorSet) Plan(_ context.Context, a *admission.Attributes, to []admission.Run,
	_ *admission.Report) ([]admission.Run, error) {
	if a.Info.Subresource != "" || s.leaves(a) != "" {
		return to, nil
	}
	return append(to, admission.Run{}), nil
}
