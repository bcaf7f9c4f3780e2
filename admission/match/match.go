// Package match tells which requests an admission policy or a binding of one is
// about, as kube-apiserver's matcher of policies does.
//
// # Where we differ from kube-apiserver
//
//   - A namespace selector that asks for nothing but kubernetes.io/metadata.name
//     is decided by the name: every namespace has that label.
package match

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
)

// A Matcher is a compiled matchConstraints or matchResources. It is immutable
// and safe for concurrent use. A nil Matcher matches every request.
type Matcher struct {
	rules, excluded      []rule
	namespaces, objects  labels.Selector
	namespaceByNameAlone bool // the namespace selector asks for nothing but the namespace's name
	all                  bool // no resource rules: every resource
	equivalent           bool // rules count for other versions of their resources too
}

// New compiles matchConstraints or matchResources; nil for none. What
// validation has refused may be left out.
func New(m *admissionv1.MatchResources, fldPath *field.Path) (*Matcher, field.ErrorList) {
	if m == nil {
		return nil, nil
	}
	var errs field.ErrorList
	selector := func(s *metav1.LabelSelector, name string) labels.Selector {
		if s == nil {
			return labels.Everything()
		}
		parsed, err := metav1.LabelSelectorAsSelector(s)
		if err != nil {
			errs = append(errs, field.Invalid(fldPath.Child(name), s, err.Error()))
			return labels.Nothing()
		}
		return parsed
	}
	compiled := &Matcher{
		rules:      newRules(m.ResourceRules),
		excluded:   newRules(m.ExcludeResourceRules),
		namespaces: selector(m.NamespaceSelector, "namespaceSelector"),
		objects:    selector(m.ObjectSelector, "objectSelector"),
		all:        len(m.ResourceRules) == 0,
		equivalent: isEquivalent(m),
	}
	requirements, _ := compiled.namespaces.Requirements()
	compiled.namespaceByNameAlone = !slices.ContainsFunc(requirements, func(r labels.Requirement) bool { return r.Key() != corev1.LabelMetadataName })
	return compiled, errs
}

// isEquivalent reports whether rules are about other versions of their resources too, which is the
// default.
func isEquivalent(m *admissionv1.MatchResources) bool {
	return m.MatchPolicy == nil || *m.MatchPolicy == admissionv1.Equivalent
}

// SelectsObjects reports whether labels of objects decide, for which the stored object counts too.
func (m *Matcher) SelectsObjects() bool { return m != nil && !m.objects.Empty() }

// Matches reports whether the matcher is about the request, and as which resource: its own or, if
// the rules name only another version of it, that one, to which the object then has to be
// converted. It errs only about requests that its rules match.
func (m *Matcher) Matches(ctx context.Context, a *admission.Attributes) (as schema.GroupVersionResource, matches bool, err error) {
	as = a.Info.GroupVersionResource()
	if neverAdmitted(as.GroupResource()) {
		return as, false, nil
	}
	if m == nil {
		return as, true, nil
	}
	if !m.matchesObject(a) {
		return as, false, nil
	}
	if _, excluded, err := m.find(ctx, m.excluded, a); excluded || err != nil {
		return as, false, err
	}
	if !m.all {
		if as, matches, err = m.find(ctx, m.rules, a); !matches || err != nil {
			return as, false, err
		}
	}
	matches, err = m.matchesNamespace(ctx, a)
	return as, matches, err
}

// neverAdmitted tells of resources that nobody stores: they are questions to
// kube-apiserver, which no policy may stand in the way of.
func neverAdmitted(r schema.GroupResource) bool {
	switch r.Group {
	case "authentication.k8s.io":
		return r.Resource == "selfsubjectreviews" || r.Resource == "tokenreviews"
	case "authorization.k8s.io":
		switch r.Resource {
		case "localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews":
			return true
		}
	}
	return false
}

// find looks for a rule that matches the request as it is, then for one that matches another version of its resource.
func (m *Matcher) find(ctx context.Context, rules []rule, a *admission.Attributes) (as schema.GroupVersionResource, found bool, err error) {
	as = a.Info.GroupVersionResource()
	cohabitant, cohabits := admission.Cohabitant(as.Group, as.Resource)
	mayBeEquivalent := false
	for i := range rules {
		switch r := &rules[i]; {
		case !r.matchesRequest(a):
		case r.matchesVersion(as):
			return as, true, nil
		case r.matchesGroup(as.Group) || cohabits && r.matchesGroup(cohabitant):
			mayBeEquivalent = true
		}
	}
	if !mayBeEquivalent || !m.equivalent {
		return as, false, nil
	}
	equivalents, err := a.Equivalents(ctx)
	if err != nil {
		return as, false, fmt.Errorf("the other versions of '%s' cannot be told: %w", as.GroupResource(), err)
	}
	for i := range rules {
		if !rules[i].matchesRequest(a) {
			continue
		}
		for _, other := range equivalents {
			if rules[i].matchesVersion(other) {
				return other, true, nil
			}
		}
	}
	return as, false, nil
}

// matchesObject reports whether the object selector selects the object or the stored object, so
// that nobody escapes a policy by changing labels.
func (m *Matcher) matchesObject(a *admission.Attributes) bool {
	return m.objects.Empty() || a.Object != nil && admission.Selects(m.objects, a.Object.Root()) || a.Old != nil && admission.Selects(m.objects, a.Old.Root())
}

func (m *Matcher) matchesNamespace(ctx context.Context, a *admission.Attributes) (bool, error) {
	namespaces := a.Info.Resource == "namespaces"
	switch {
	case m.namespaces.Empty() || a.Namespace() == "" && !namespaces:
		return true, nil // objects without a namespace are never exempt
	case namespaces && a.Info.Subresource == "" && a.Object != nil:
		return admission.Selects(m.namespaces, a.Object.Root()), nil // the namespace itself is written
	case namespaces && a.Info.Subresource == "" && a.Old != nil:
		return admission.Selects(m.namespaces, a.Old.Root()), nil
	case m.namespaceByNameAlone:
		return m.namespaces.Matches(NamespaceName(a.Namespace())), nil
	}
	namespace, err := a.LookUpNamespace(ctx)
	switch {
	case err != nil:
		return false, err
	case !namespace.Valid():
		return false, errors.New("the request names no namespace, whose labels the policy selects by")
	}
	return admission.Selects(m.namespaces, namespace), nil
}
