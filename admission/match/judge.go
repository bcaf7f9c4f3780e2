package match

import (
	"context"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/resource"
)

// A clause is a part of a matcher, or a set of them.
type clause uint8

// The clauses of a [Matcher].
const (
	// reviews are questions to the API server, which nothing matches.
	reviews clause = 1 << iota
	targetRefs
	objectSelector
	excludedRules
	resourceRules
	namespaceSelector
)

// A reason says why a matcher does not match a request. The zero value says that it matches, as far as the request is
// known.
type reason struct {
	clause clause // that does not fit
	miss   miss   // what of the rule
	rule   int32  // of the clause
}

// A matchResult is what a matcher says of a request as far as that is known. All that is said of a match comes from it:
// what is excluded before anything is read, the match itself, the applicability and the explanation.
type matchResult struct {
	not  reason // why it does not match
	open clause // clauses that have not been decided
	// isUnsure says that to match the request may fail, or lead to another version of its resource: nothing that comes
	// after may decide then.
	isUnsure bool
	nearest  reason // the rule that may match, if the rules are open
	// other is the version of the request's resource that the rules name, to which the object has to be converted; nil
	// is the request's own.
	other *schema.GroupVersionResource
	err   error // why it cannot be decided
}

// matches reports whether the matcher certainly matches.
func (v *matchResult) matches() bool { return v.not.clause == 0 && v.open == 0 && v.err == nil }

// excludes reports whether the matcher certainly does not match.
func (v *matchResult) excludes() bool { return v.not.clause != 0 && v.err == nil }

// A matchRequest is a request as far as a matcher may know it.
type matchRequest struct {
	info       *resource.Info
	operation  admission.Operation
	known      Known
	attributes *admission.Attributes // nil by the URL; without an object by the namespace
}

// name is the object's, "" if it is not known, or there is none.
func (q *matchRequest) name() string {
	if q.attributes == nil {
		return q.info.Name
	}
	return q.attributes.Name()
}

// judge says whether the matcher matches a request, as far as that is known.
func (m *Matcher) judge(ctx context.Context, q *matchRequest) (v matchResult) {
	switch {
	case neverAdmitted(q.info.Group, q.info.Resource):
		v.not.clause = reviews
		return v
	case m == nil:
		return v
	case !m.reaches(q.info.Place):
		v.not.clause = targetRefs
		return v
	case m.objects.Empty():
	case q.known < ByObject:
		v.open |= objectSelector
	case !m.matchesObject(q.attributes):
		v.not.clause = objectSelector
		return v
	}
	if len(m.excluded) > 0 {
		f := m.find(ctx, m.excluded, q)
		switch v.isUnsure = f.needsOthers; {
		case f.err != nil:
			v.not.clause, v.err = excludedRules, f.err
			return v
		case f.is == Yes:
			v.not = reason{excludedRules, f.miss, f.rule}
			return v
		case f.is == Open:
			v.open |= excludedRules
		}
	}
	if !m.all {
		f := m.find(ctx, m.rules, q)
		v.isUnsure = v.isUnsure || f.needsOthers
		switch f.is {
		case No:
			v.not, v.err = reason{resourceRules, f.miss, f.rule}, f.err
			return v
		case Open:
			v.open |= resourceRules
			v.nearest = reason{resourceRules, f.miss, f.rule}
		}
		v.other = f.other
	}
	is, err := m.judgeNamespace(ctx, q)
	switch {
	case is == No:
		v.not.clause, v.err = namespaceSelector, err
	case is == Open:
		v.open |= namespaceSelector
		v.isUnsure = v.isUnsure || q.known == ByNamespace
	}
	return v
}

// A miss is what of a rule does not fit a request, from the farthest to the nearest.
type miss uint8

const (
	missNothing miss = iota
	missGroup
	missResource
	missSubresource
	missOperation
	missScope
	missVersion
	missName
	// What is not known yet comes last.
	openScope
	openName
	openVersion // in which other versions the resource is served
)

// nearness orders misses. All that is open is equally near.
func (m miss) nearness() miss { return min(m, openScope) }

// found is what some rules say of a request: which rule fits, or else what keeps the nearest one from it.
type found struct {
	is          Verdict
	miss        miss
	needsOthers bool // the other versions of the resource decide
	rule        int32
	other       *schema.GroupVersionResource // as which the rule fits; nil: the request's own
	err         error
}

// find looks for a rule that matches the request as it is, then for one that matches another version of its resource.
func (m *Matcher) find(ctx context.Context, rules []rule, q *matchRequest) (f found) {
	cohabitant, cohabits := admission.Cohabitant(q.info.Group, q.info.Resource)
	for n := range rules {
		r := &rules[n]
		missed := missGroup
		if r.matchesGroup(q.info.Group) || cohabits && r.matchesGroup(cohabitant) {
			missed = r.miss(q, q.info.Group, q.info.Version, m.equivalent)
		}
		switch missed {
		case missNothing:
			return found{is: Yes, rule: int32(n)}
		case openVersion:
			f.needsOthers = true
			if q.known == ByObject {
				missed = missVersion
			}
		}
		if missed.nearness() > f.miss.nearness() {
			f.miss, f.rule = missed, int32(n)
		}
	}
	switch {
	case f.miss >= openScope:
		f.is = Open
	case f.needsOthers:
		findOther(ctx, rules, q, &f)
	}
	return f
}

// findOther looks for a rule that matches another version of the resource.
func findOther(ctx context.Context, rules []rule, q *matchRequest, f *found) {
	equivalents, err := q.attributes.Equivalents(ctx)
	if err != nil {
		f.err = fmt.Errorf("the other versions of '%s' cannot be told: %w", q.info.GroupResource(), err)
		return
	}
	for n := range rules {
		for i := range equivalents {
			other := &equivalents[i]
			if r := &rules[n]; r.matchesGroup(other.Group) &&
				r.miss(q, other.Group, other.Version, false) == missNothing {
				f.is, f.rule, f.other = Yes, int32(n), other
				return
			}
		}
	}
}

// miss returns what of the rule does not fit a request, as its resource in a group that fits and in a version.
func (r *rule) miss(q *matchRequest, group, version string, equivalent bool) (missed miss) {
	i := q.info
	switch {
	case !r.matchesResource(i.Resource, i.Subresource):
		if i.Subresource != "" && r.matchesResource(i.Resource, "") {
			return missSubresource
		}
		return missResource
	case r.operations&q.operation == 0:
		return missOperation
	case r.scope == admissionv1.AllScopes:
	case q.known < ByObject && i.Verb == resource.VerbDeleteCollection && i.Namespace == "":
		missed = openScope // each object has a namespace, or none
	case !r.matchesScope(i):
		return missScope
	}
	if len(r.names) > 0 {
		switch name := q.name(); {
		case name == "" && q.known < ByObject:
			missed = openName
		case !slices.Contains(r.names, name):
			return missName
		}
	}
	switch {
	case r.matchesGroup(group) && (r.versions == nil || slices.Contains(r.versions, version)):
		return missed
	case !equivalent:
		return missVersion
	}
	return openVersion
}

// judgeNamespace says whether the namespace selector selects the request.
func (m *Matcher) judgeNamespace(ctx context.Context, q *matchRequest) (Verdict, error) {
	i := q.info
	isNamespaces := i.IsNamespaces()
	switch {
	case m.namespaces.Empty() || i.Namespace == "" && !isNamespaces:
		return Yes, nil // objects without a namespace are never exempt
	case isNamespaces && i.Subresource == "":
		switch {
		case q.known < ByObject:
			return Open, nil
		case q.attributes.Object != nil: // the namespace itself is written
			return VerdictOf(admission.Selects(m.namespaces, q.attributes.Object.Root())), nil
		case q.attributes.Old != nil:
			return VerdictOf(admission.Selects(m.namespaces, q.attributes.Old.Root())), nil
		}
	}
	return JudgeNamespace(ctx, m.namespaces, m.namespaceByNameAlone, i.Namespace, q.known, q.attributes)
}
