// Package match decides which requests an admission policy or a binding matches, as
// kube-apiserver's matcher of policies does.
//
// # Where we differ from kube-apiserver
//
//   - A namespace selector that asks for nothing but kubernetes.io/metadata.name
//     is decided by the name: every namespace has that label.
package match

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/resource"
)

// A Matcher is a compiled matchConstraints or matchResources. It is immutable
// and safe for concurrent use. A nil Matcher matches every request.
type Matcher struct {
	rules, excluded      []rule
	namespaces, objects  labels.Selector
	namespaceByNameAlone bool              // the namespace selector asks for nothing but the namespace's name
	all                  bool              // no resource rules: every resource
	equivalent           bool              // rules count for other versions of their resources too
	targets              []resource.Target // none: requests by any route
	byRules              bool              // the resource rules alone decide
}

// New compiles matchConstraints or matchResources, and the routes by which requests come; nil for none of both. What
// validation has refused may be left out.
func New(m *admissionv1.MatchResources, targets []resource.Target, fldPath *field.Path) (*Matcher, field.ErrorList) {
	switch {
	case m == nil && len(targets) == 0:
		return nil, nil
	case m == nil:
		m = &admissionv1.MatchResources{}
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
		targets:    targets,
	}
	compiled.namespaceByNameAlone = AsksForNames(compiled.namespaces)
	compiled.byRules = len(targets)+len(compiled.excluded) == 0 && compiled.namespaces.Empty() &&
		compiled.objects.Empty()
	return compiled, errs
}

// isEquivalent reports whether rules match other versions of their resources too, which is the
// default.
func isEquivalent(m *admissionv1.MatchResources) bool {
	return m.MatchPolicy == nil || *m.MatchPolicy == admissionv1.Equivalent
}

// SelectsObjects reports whether labels of objects decide, for which the stored object counts too.
func (m *Matcher) SelectsObjects() bool { return m != nil && !m.objects.Empty() }

// neverAdmitted reports whether a resource is never stored: they are questions to kube-apiserver,
// which no policy may stand in the way of.
func neverAdmitted(group, resource string) bool {
	switch group {
	case "authentication.k8s.io":
		return resource == "selfsubjectreviews" || resource == "tokenreviews"
	case "authorization.k8s.io":
		switch resource {
		case "localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews":
			return true
		}
	}
	return false
}

// matchesObject reports whether the object selector selects the object or the stored object, so
// that no client escapes a policy by changing labels.
func (m *Matcher) matchesObject(a *admission.Attributes) bool {
	return m.objects.Empty() || a.Object != nil && admission.Selects(m.objects, a.Object.Root()) || a.Old != nil &&
		admission.Selects(m.objects, a.Old.Root())
}
