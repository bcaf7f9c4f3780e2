package kubernetes

import (
	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// ReadRule returns the rule that a role needs for the stored object of a write to be read.
func (s *Store) ReadRule(i *resource.Info) status.AccessRule {
	rule := itemRule(i, resource.VerbGet)
	if s.hasOwnKind && !isWriteOnly(i) {
		rule.Subresource = i.Subresource
	}
	return rule
}

// itemRule is the rule for a verb on the resource itself.
func itemRule(i *resource.Info, verb resource.Verb) status.AccessRule {
	return status.AccessRule{Group: i.Group, Resource: i.Resource, Verb: verb.String()}
}

// isWriteOnly reports whether a subresource is known to take no GET, so that no role needs a right to try it.
func isWriteOnly(i *resource.Info) bool {
	return i.IsNamespaces() && i.Subresource == "finalize"
}

// Rules returns the rules that a role needs for all that is read to judge writes of a verb, as far as policies and
// schema ask for it. The resource may be "*".
func (s *Store) Rules(i *resource.Info) []status.AccessRule {
	switch {
	case i.Verb == resource.VerbDeleteCollection:
		if !s.Policies.NeedsOld(i, admission.Delete) {
			return nil
		}
		// The objects are listed, and one that another writer changes is read again.
		return []status.AccessRule{itemRule(i, resource.VerbList), itemRule(i, resource.VerbGet)}
	case !s.mayRead(i):
		return nil
	}
	return []status.AccessRule{s.ReadRule(i)}
}

// mayRead reports whether there are writes of the verb for which the stored object is read.
func (s *Store) mayRead(i *resource.Info) bool {
	isUpdate := i.Verb == resource.VerbUpdate || i.Verb == resource.VerbPatch
	if !isUpdate {
		// A policy that reads request.options sees what follows from the stored object of some kinds.
		return i.Verb == resource.VerbDelete && (s.areAbout(i) || optionsCompleterOf(i) != nil && s.Policies.Concerns(i,
			admission.Delete))
	}
	return s.areAbout(i) || s.Schemas.For(i.Verb) != nil || // what an update leaves as it was does not count
		s.createsByUpdate(i) || i.Verb == resource.VerbPatch && s.Policies.Mutates(i, admission.Update) // pinned
}
