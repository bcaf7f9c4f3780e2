package match

import (
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/resource"
)

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

func newRules(from []admissionv1.NamedRuleWithOperations) []rule {
	rules := make([]rule, 0, len(from))
	for _, r := range from {
		compiled := rule{
			groups:     unlessAny(r.APIGroups),
			versions:   unlessAny(r.APIVersions),
			operations: operationsOf(r.Operations),
			scope:      admissionv1.AllScopes,
			names:      r.ResourceNames,
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

// IndexRules are the rules under which a [admission.Chain] finds a policy with these constraints. They may find more
// than a [Matcher] of the constraints matches, never less.
func IndexRules(m *admissionv1.MatchResources) []admission.Rule {
	if m == nil {
		return nil
	}
	var found []admission.Rule
	namespaces, labels := NamesOf(m.NamespaceSelector), LabelsOf(m.ObjectSelector)
	var versions []string
	add := func(group string, name resourceName, operations admission.Operation) {
		rule := admission.Rule{Group: group, Resource: name.resource, Operations: operations, Versions: versions,
			Namespaces: namespaces, Labels: labels}
		if name.subresource != anyName {
			rule.Subresources = []string{name.subresource}
		}
		found = append(found, rule)
	}
	for _, r := range m.ResourceRules {
		if versions = nil; !isEquivalent(m) {
			versions = unlessAny(r.APIVersions)
		}
		groups := r.APIGroups
		if slices.Contains(groups, anyName) {
			groups = []string{anyName}
		}
		for _, group := range groups {
			for _, name := range r.Resources {
				resource, operations := split(name), operationsOf(r.Operations)
				add(group, resource, operations)
				if other, ok := admission.Cohabitant(group, resource.resource); ok && isEquivalent(m) {
					add(other, resource, operations)
				}
			}
		}
	}
	if versions = nil; len(m.ResourceRules) == 0 {
		add(anyName, resourceName{anyName, anyName}, admission.AllOperations)
	}
	return found
}

// NamesOf returns the names of the only namespaces that a selector can select, as far as it asks for names alone.
func NamesOf(s *metav1.LabelSelector) []string {
	if s == nil {
		return nil
	}
	for key := range s.MatchLabels {
		if key != corev1.LabelMetadataName {
			return nil
		}
	}
	for _, e := range s.MatchExpressions {
		if e.Key != corev1.LabelMetadataName {
			return nil
		}
	}
	var names []string
	for _, l := range LabelsOf(s) {
		names = append(names, l.Value)
	}
	return names
}

// LabelsOf returns labels such that everything that a selector selects has one of them.
func LabelsOf(s *metav1.LabelSelector) []admission.Label {
	if s == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		return []admission.Label{{Key: key, Value: s.MatchLabels[key]}}
	}
	for _, e := range s.MatchExpressions {
		if e.Operator != metav1.LabelSelectorOpIn {
			continue
		}
		var labels []admission.Label
		for _, value := range e.Values {
			labels = append(labels, admission.Label{Key: e.Key, Value: value})
		}
		return labels
	}
	return nil
}

func (r *rule) matchesGroup(group string) bool {
	return r.groups == nil || slices.Contains(r.groups, group)
}

func (r *rule) matchesResource(resource, subresource string) bool {
	for _, n := range r.resources {
		if (n.resource == anyName || n.resource == resource) &&
			(n.subresource == anyName || n.subresource == subresource) {
			return true
		}
	}
	return false
}

func (r *rule) matchesScope(i *resource.Info) bool {
	namespaced := i.Namespace != "" && !i.IsNamespaces()
	switch r.scope {
	case admissionv1.NamespacedScope:
		return namespaced
	case admissionv1.ClusterScope:
		return !namespaced
	}
	return true
}
