package vap

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
)

// matcher tells which requests a policy or binding is about.
type matcher struct {
	rules, excluded      []rule
	namespaces, objects  labels.Selector
	namespaceByNameAlone bool // the namespace selector asks for nothing but the namespace's name
	all                  bool // no resource rules: every resource
}

// rule is a resource rule.
type rule struct {
	groups, versions []string // nil: any
	resources        []resourceName
	operations       admission.Operation
	scope            admissionv1.ScopeType
	names            []string // nil: any
}

// resourceName is a resource and subresource, "*" for any.
type resourceName struct{ resource, subresource string }

const anyName = "*"

// newMatcher compiles matchConstraints or matchResources; nil for none. What validation has refused may be left out.
func newMatcher(m *admissionv1.MatchResources, fldPath *field.Path) (*matcher, field.ErrorList) {
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
	equivalent := m.MatchPolicy == nil || *m.MatchPolicy == admissionv1.Equivalent
	compiled := &matcher{
		rules:      newRules(m.ResourceRules, equivalent),
		excluded:   newRules(m.ExcludeResourceRules, equivalent),
		namespaces: selector(m.NamespaceSelector, "namespaceSelector"),
		objects:    selector(m.ObjectSelector, "objectSelector"),
		all:        len(m.ResourceRules) == 0,
	}
	requirements, _ := compiled.namespaces.Requirements()
	compiled.namespaceByNameAlone = !slices.ContainsFunc(requirements, func(r labels.Requirement) bool { return r.Key() != corev1.LabelMetadataName })
	return compiled, errs
}

func newRules(from []admissionv1.NamedRuleWithOperations, equivalent bool) []rule {
	rules := make([]rule, 0, len(from))
	for _, r := range from {
		compiled := rule{
			groups:     unlessAny(r.APIGroups),
			versions:   unlessAny(r.APIVersions),
			operations: operationsOf(r.Operations),
			scope:      admissionv1.AllScopes,
			names:      r.ResourceNames,
		}
		if equivalent {
			compiled.versions = nil
		}
		if r.Scope != nil {
			compiled.scope = *r.Scope
		}
		for _, name := range r.Resources {
			compiled.resources = append(compiled.resources, split(name))
		}
		rules = append(rules, compiled)
	}
	return rules
}

func unlessAny(names []string) []string {
	if slices.Contains(names, anyName) {
		return nil
	}
	return names
}

func operationsOf(operations []admissionv1.OperationType) admission.Operation {
	var set admission.Operation
	for _, o := range operations {
		switch o {
		case admissionv1.Create:
			set |= admission.Create
		case admissionv1.Update:
			set |= admission.Update
		case admissionv1.Delete:
			set |= admission.Delete
		case admissionv1.Connect:
			set |= admission.Connect
		case admissionv1.OperationAll:
			set |= admission.AllOperations
		}
	}
	return set
}

// split takes 'pods/status' apart; 'pods' has no subresource.
func split(name string) resourceName {
	resource, subresource, _ := strings.Cut(name, "/")
	return resourceName{resource, subresource}
}

// indexRules are the rules under which the chain finds the policy: none for one that nothing binds. Bindings can only
// narrow what the policy matches.
func indexRules(m *admissionv1.MatchResources, bindings []*Binding) []admission.Rule {
	if len(bindings) == 0 {
		return nil
	}
	var found []admission.Rule
	for _, r := range m.ResourceRules {
		groups := r.APIGroups
		if slices.Contains(groups, anyName) {
			groups = []string{anyName}
		}
		for _, group := range groups {
			for _, name := range r.Resources {
				found = append(found, admission.Rule{Group: group, Resource: split(name).resource, Operations: operationsOf(r.Operations)})
			}
		}
	}
	return found
}

// selectsObjects tells whether labels of objects decide.
func (m *matcher) selectsObjects() bool { return m != nil && !m.objects.Empty() }

// matches tells whether the request is among those that the matcher is about. It errs only about requests that its rules
// match.
func (m *matcher) matches(a *admission.Attributes) (bool, error) {
	if m == nil {
		return true, nil
	}
	if !m.matchesObject(a) {
		return false, nil
	}
	if matchesAny(m.excluded, a) || !m.all && !matchesAny(m.rules, a) {
		return false, nil
	}
	return m.matchesNamespace(a)
}

func matchesAny(rules []rule, a *admission.Attributes) bool {
	for i := range rules {
		if rules[i].matches(a) {
			return true
		}
	}
	return false
}

func (r *rule) matches(a *admission.Attributes) bool {
	i := a.Info
	return r.operations&a.Operation != 0 &&
		(r.groups == nil || slices.Contains(r.groups, i.Group)) &&
		(r.versions == nil || slices.Contains(r.versions, i.Version)) &&
		r.matchesResource(i.Resource, i.Subresource) &&
		r.matchesScope(a) &&
		(len(r.names) == 0 || slices.Contains(r.names, a.Name()))
}

func (r *rule) matchesResource(resource, subresource string) bool {
	for _, n := range r.resources {
		if (n.resource == anyName || n.resource == resource) && (n.subresource == anyName || n.subresource == subresource) {
			return true
		}
	}
	return false
}

func (r *rule) matchesScope(a *admission.Attributes) bool {
	namespaced := a.Namespace() != "" && !isNamespace(a)
	switch r.scope {
	case admissionv1.NamespacedScope:
		return namespaced
	case admissionv1.ClusterScope:
		return !namespaced
	}
	return true
}

// isNamespace tells whether the request is about a namespace itself.
func isNamespace(a *admission.Attributes) bool {
	return a.Info.Group == "" && a.Info.Resource == "namespaces"
}

// matchesObject tells whether the object selector selects the object or the stored object, so that nobody escapes a policy
// by changing labels.
func (m *matcher) matchesObject(a *admission.Attributes) bool {
	return m.objects.Empty() || selects(m.objects, a.Object) || selects(m.objects, a.Old)
}

func selects(s labels.Selector, d *document.Document) bool {
	if d == nil {
		return false
	}
	n, _ := admission.Labels(d)
	return s.Matches(nodeLabels{n})
}

func (m *matcher) matchesNamespace(a *admission.Attributes) (bool, error) {
	if m.namespaces.Empty() || a.Namespace() == "" && !isNamespace(a) {
		return true, nil // objects without a namespace are never exempt
	}
	if isNamespace(a) && a.Info.Subresource == "" && a.Object != nil {
		return selects(m.namespaces, a.Object), nil
	}
	switch {
	case a.NamespaceObject != nil:
		return selects(m.namespaces, a.NamespaceObject), nil
	case isNamespace(a) && a.Old != nil:
		return selects(m.namespaces, a.Old), nil
	case m.namespaceByNameAlone:
		name := a.Namespace()
		if isNamespace(a) {
			name = a.Name()
		}
		return m.namespaces.Matches(namespaceName(name)), nil
	}
	return false, fmt.Errorf("the labels of namespace '%s' are not known", a.Namespace())
}

// nodeLabels are the labels in an object's metadata.
type nodeLabels struct{ node document.Node }

// Has implements labels.Labels.
func (l nodeLabels) Has(key string) bool {
	_, ok := l.node.Get(key)
	return ok
}

// Get implements labels.Labels.
func (l nodeLabels) Get(key string) string {
	value, _ := l.Lookup(key)
	return value
}

// Lookup implements labels.Labels.
func (l nodeLabels) Lookup(key string) (string, bool) {
	n, ok := l.node.Get(key)
	if !ok || n.Kind() != document.String {
		return "", ok
	}
	return n.Str(), true
}

// namespaceName is the one label that every namespace has.
type namespaceName string

// Has implements labels.Labels.
func (namespaceName) Has(key string) bool { return key == corev1.LabelMetadataName }

// Get implements labels.Labels.
func (n namespaceName) Get(key string) string {
	value, _ := n.Lookup(key)
	return value
}

// Lookup implements labels.Labels.
func (n namespaceName) Lookup(key string) (string, bool) {
	if key == corev1.LabelMetadataName {
		return string(n), true
	}
	return "", false
}
