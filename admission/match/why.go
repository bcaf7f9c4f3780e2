package match

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/admission"
)

// Why returns why the matcher is not about a request: the field that decides, below the matcher's own,
// and a sentence. The sentence is empty if the matcher is about the request.
func (m *Matcher) Why(ctx context.Context, a *admission.Attributes) (field, because string) {
	switch {
	case neverAdmitted(a.Info.GroupResource()):
		return "", "no policy is asked about questions to the API server"
	case m == nil:
		return "", ""
	case !m.matchesObject(a):
		return "objectSelector", "the labels of the object do not fit '" + m.objects.String() + "'"
	}
	for i := range m.excluded {
		if _, excluded, err := m.find(ctx, m.excluded[i:i+1], a); excluded && err == nil {
			return fmt.Sprintf("excludeResourceRules[%d]", i), "the rule names the request"
		}
	}
	if !m.all {
		if _, found, err := m.find(ctx, m.rules, a); err != nil {
			return "resourceRules", err.Error()
		} else if !found {
			return m.nearest(a)
		}
	}
	switch matches, err := m.matchesNamespace(ctx, a); {
	case err != nil:
		return "namespaceSelector", err.Error()
	case !matches:
		return "namespaceSelector", "the labels of the namespace '" + a.Namespace() + "' do not fit '" + m.namespaces.String() + "'"
	}
	return "", ""
}

// nearest returns what keeps the rule from the request that names most of it.
func (m *Matcher) nearest(a *admission.Attributes) (field, because string) {
	best, i, as := -1, a.Info, a.Info.GroupVersionResource()
	for n := range m.rules {
		r := &m.rules[n]
		cohabitant, cohabits := admission.Cohabitant(as.Group, as.Resource)
		resource := i.Resource
		if i.Subresource != "" {
			resource += "/" + i.Subresource
		}
		distance, member, why := 0, "", ""
		switch {
		case !r.matchesGroup(as.Group) && !(cohabits && r.matchesGroup(cohabitant)):
			distance, member, why = 0, "apiGroups", "the rule does not name the group '"+as.Group+"'"
		case !r.matchesResource(i.Resource, i.Subresource):
			distance, member, why = 1, "resources", "the rule does not name the resource '"+resource+"'"
		case r.operations&a.Operation == 0:
			distance, member, why = 2, "operations", "the rule does not name the operation "+a.Operation.String()
		case !r.matchesScope(a):
			distance, member, why = 3, "scope", "the rule is about another scope"
		case len(r.names) > 0 && !slices.Contains(r.names, a.Name()):
			distance, member, why = 5, "resourceNames", "the rule names other objects: '"+strings.Join(r.names, "', '")+"'"
		default:
			distance, member, why = 4, "apiVersions", "the rule does not name the version '"+as.Version+"'"
		}
		if distance > best {
			best, field, because = distance, fmt.Sprintf("resourceRules[%d].%s", n, member), why
		}
	}
	return field, because
}
