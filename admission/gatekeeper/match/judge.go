package match

import (
	"context"
	"fmt"

	"github.com/admission-gateway/gateway/admission"
	vapmatch "github.com/admission-gateway/gateway/admission/match"
	"github.com/admission-gateway/gateway/internal/resource"
)

// A reason is the member of a match block that does not fit a request. The zero value says that all do, as far as the
// request is known.
type reason uint8

const (
	fits reason = iota
	noSource
	noKind
	noScope
	noNamespace
	noLabels
	noName
	noNamespaceLabels
)

// field is the member.
func (why reason) field() string {
	return [...]string{noSource: "source", noKind: "kinds", noScope: "scope", noNamespace: "namespaces",
		noLabels: "labelSelector",
		noName:   "name", noNamespaceLabels: "namespaceSelector"}[why]
}

// says is a sentence.
func (why reason) says() string {
	return [...]string{
		noSource:          "it is about generated objects alone, and the gateway generates none",
		noKind:            "`kinds` names other kinds",
		noScope:           "`scope` is another one",
		noNamespace:       "`namespaces` and `excludedNamespaces` leave the namespace out",
		noLabels:          "`labelSelector` does not select the object",
		noName:            "`name` is another one",
		noNamespaceLabels: "`namespaceSelector` does not select the namespace",
	}[why]
}

// IsExcluded says that the namespace is one that Gatekeeper leaves alone.
const IsExcluded = "Gatekeeper's Config excludes the namespace"

// A matchRequest is a request, as far as a matcher may know it.
type matchRequest struct {
	info       *resource.Info
	known      vapmatch.Known
	attributes *admission.Attributes // nil by the URL
	object     *Object               // nil unless it is known
}

// judge says which member of the match block does not fit, and whether others are open. What is said of a match all
// comes from it: what is excluded before anything is read, the match itself, the applicability and the explanation. It
// errs if the labels of the namespace decide and cannot be read.
func (m *Matcher) judge(ctx context.Context, q *matchRequest) (not reason, isOpen bool, err error) {
	if m == nil {
		return fits, false, nil
	}
	var p matchState
	if p.ends(noSource, vapmatch.VerdictOf(!m.never)) || p.ends(noKind, m.judgeKind(q)) ||
		p.ends(noScope, m.judgeScope(q)) ||
		p.ends(noNamespace, m.judgeNamespaceName(q)) || p.ends(noLabels, m.judgeLabels(q)) ||
		p.ends(noName, m.judgeName(q)) {
		return p.not, false, nil
	}
	is, err := m.judgeNamespace(ctx, q)
	if err != nil {
		return noNamespaceLabels, false, fmt.Errorf("the namespace of the object cannot be matched: %w", err)
	}
	p.ends(noNamespaceLabels, is)
	return p.not, p.isOpen, nil
}

// matchState is what the members so far say.
type matchState struct {
	not    reason
	isOpen bool
}

// ends takes what a member says, and reports whether it does not fit.
func (p *matchState) ends(not reason, is vapmatch.Verdict) bool {
	switch is {
	case vapmatch.No:
		p.not = not
	case vapmatch.Open:
		p.isOpen = true
	}
	return is == vapmatch.No
}

func (m *Matcher) judgeKind(q *matchRequest) vapmatch.Verdict {
	switch {
	case len(m.kinds) == 0:
		return vapmatch.Yes
	case q.object == nil:
		return vapmatch.Open
	}
	return vapmatch.VerdictOf(m.matchesKind(q.object))
}

func (m *Matcher) judgeScope(q *matchRequest) vapmatch.Verdict {
	var namespaced bool
	switch {
	case m.scope != scopeCluster && m.scope != scopeNamespaced:
		return vapmatch.Yes
	case q.object != nil:
		namespaced = q.object.Namespace != "" && !q.object.isNamespace()
	case q.info.Verb == resource.VerbDeleteCollection && q.info.Namespace == "":
		return vapmatch.Open // each object has a namespace, or none
	default:
		namespaced = q.info.ObjectNamespace() != "" && !q.info.IsNamespaces()
	}
	return vapmatch.VerdictOf(namespaced == (m.scope == scopeNamespaced))
}

// judgeNamespaceName looks at the names of namespaces. An object in no namespace is in none that is
// excluded, and no list of namespaces exempts it.
func (m *Matcher) judgeNamespaceName(q *matchRequest) vapmatch.Verdict {
	var name string
	switch o := q.object; {
	case len(m.namespaces) == 0 && len(m.excluded) == 0:
		return vapmatch.Yes
	case o != nil && o.isNamespace():
		name = o.name()
	case o != nil:
		if name = o.Namespace; name == "" {
			return vapmatch.Yes
		}
	case q.info.IsNamespaces():
		if !namesObject(q.info) {
			return vapmatch.Open
		}
		name = q.info.Name
	default:
		if name = q.info.ObjectNamespace(); name == "" {
			return vapmatch.Yes
		}
	}
	return vapmatch.VerdictOf(m.selectsName(name))
}

// namesObject reports whether the URL names the object, and not another one that a subresource may have.
func namesObject(i *resource.Info) bool {
	return i.Name != "" && i.Verb != resource.VerbCreate && i.Subresource == ""
}

func (m *Matcher) judgeLabels(q *matchRequest) vapmatch.Verdict {
	switch {
	case m.labels == nil:
		return vapmatch.Yes
	case q.object == nil:
		return vapmatch.Open
	}
	return vapmatch.VerdictOf(admission.Selects(m.labels, q.object.root))
}

func (m *Matcher) judgeName(q *matchRequest) vapmatch.Verdict {
	switch {
	case m.name == "":
		return vapmatch.Yes
	case q.object != nil:
		return vapmatch.VerdictOf(m.matchesName(q.object))
	case namesObject(q.info) && !m.name.mayBeGenerated() && !m.name.Matches(q.info.Name):
		return vapmatch.No
	}
	return vapmatch.Open
}

func (m *Matcher) judgeNamespace(ctx context.Context, q *matchRequest) (vapmatch.Verdict, error) {
	name := q.info.ObjectNamespace()
	switch {
	case m.namespace == nil:
		return vapmatch.Yes, nil
	case q.object != nil:
		if q.object.isNamespace() {
			return vapmatch.VerdictOf(admission.Selects(m.namespace, q.object.root)), nil
		}
		name = q.object.Namespace
	case q.info.IsNamespaces():
		return vapmatch.Open, nil
	}
	if name == "" {
		return vapmatch.Yes, nil
	}
	return vapmatch.JudgeNamespace(ctx, m.namespace, m.byName, name, q.known, q.attributes)
}

// Matches reports whether the object matches. It errs if the labels of its namespace decide and
// cannot be read.
func (m *Matcher) Matches(ctx context.Context, o *Object) (bool, error) {
	not, _, err := m.judge(ctx, &matchRequest{o.attributes.Info, vapmatch.ByObject, o.attributes, o})
	return not == fits, err
}

// Excludes reports whether the matcher is certainly not about a request, by what the URL says and whatever the object
// is.
func (m *Matcher) Excludes(i *resource.Info) bool {
	not, _, _ := m.judge(context.Background(), &matchRequest{info: i})
	return not != fits
}

// CanPrefilter reports whether [Matcher.IsFilteredOut] may know of a request that the matcher is not about it, though
// [Matcher.Excludes] does not.
func (m *Matcher) CanPrefilter() bool { return m != nil && m.namespace != nil && !m.byName }

// IsFilteredOut reports whether the matcher is certainly not about a request whose attributes have no object yet, by
// the labels of its namespace.
func (m *Matcher) IsFilteredOut(ctx context.Context, a *admission.Attributes) bool {
	not, _, err := m.judge(ctx, &matchRequest{info: a.Info, known: vapmatch.ByNamespace, attributes: a})
	return not != fits && err == nil
}

// Applicability adds to an applicability whether the matcher matches a request that has no object yet.
func (m *Matcher) Applicability(i *resource.Info, o resource.Applicability) resource.Applicability {
	switch not, isOpen, _ := m.judge(context.Background(), &matchRequest{info: i}); {
	case not != fits:
		return o.Unless(not.says())
	case isOpen:
		return o.If("its `match` selects the object")
	}
	return o
}

// Reasons returns why the matcher matches none of some objects of a request: the member of the match block that does
// not fit, below path. It returns nothing if it matches one.
func (m *Matcher) Reasons(ctx context.Context, path string, objects []Object) []admission.Reason {
	var found []admission.Reason
	for n := range objects {
		o := &objects[n]
		not, _, err := m.judge(ctx, &matchRequest{o.attributes.Info, vapmatch.ByObject, o.attributes, o})
		switch {
		case not == fits:
			return nil
		case found != nil: // by the object as it is sent
		case err != nil:
			found = []admission.Reason{{Field: path + "." + not.field(), Because: err.Error()}}
		default:
			found = []admission.Reason{{Field: path + "." + not.field(), Because: not.says()}}
		}
	}
	return found
}
