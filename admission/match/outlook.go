package match

import (
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Outlook adds to an outlook whether the matcher is about a request that has no object yet.
func (m *Matcher) Outlook(a *admission.Attributes, o resource.Outlook) resource.Outlook {
	if neverAdmitted(a.Info.GroupResource()) {
		return o.Unless("no policy is asked about questions to the API server")
	}
	if m == nil {
		return o
	}
	switch excluded, _ := m.among(m.excluded, a); excluded.Applies {
	case resource.Always:
		return o.Unless("excludeResourceRules names the request")
	case resource.Sometimes:
		o = o.If("excludeResourceRules does not name the object, or another version of it")
	}
	if !m.all {
		included, because := m.among(m.rules, a)
		switch included.Applies {
		case resource.Never:
			return o.Unless(because)
		case resource.Sometimes:
			o = o.If(because)
		}
	}
	if o = m.inNamespace(a, o); !m.objects.Empty() {
		o = o.If("labels of the object fit '" + m.objects.String() + "'")
	}
	return o
}

// among says whether one of some rules names a request, and else how far the nearest one does.
func (m *Matcher) among(rules []rule, a *admission.Attributes) (o resource.Outlook, because string) {
	i, as := a.Info, a.Info.GroupVersionResource()
	cohabitant, cohabits := admission.Cohabitant(as.Group, as.Resource)
	nearest, because := 0, "no rule names the resource"
	is := func(distance int, why string) {
		if distance > nearest {
			nearest, because = distance, why
		}
	}
	const possible = 6 // and what is nearer than that is certain
	for n := range rules {
		r := &rules[n]
		isOwn := r.matchesGroup(as.Group)
		switch {
		case !isOwn && !(cohabits && r.matchesGroup(cohabitant)):
		case !r.matchesResource(i.Resource, i.Subresource):
			if i.Subresource != "" && r.matchesResource(i.Resource, "") {
				is(1, "its rules name the resource, and not the subresource '"+i.Subresource+"'")
			}
		case r.operations&a.Operation == 0:
			is(2, "no rule for the resource names the operation "+a.Operation.String())
		case !r.matchesScope(a):
			is(3, "the rules for the resource have another scope")
		case !r.matchesVersion(as) && !m.equivalent:
			is(4, "no rule for the resource names the version '"+as.Version+"'")
		case len(r.names) > 0 && a.Name() != "" && !slices.Contains(r.names, a.Name()):
			is(5, "the rules for the resource name other objects")
		case !r.matchesVersion(as):
			is(possible, "the resource is served in a version that the rules name")
		case len(r.names) > 0 && a.Name() == "":
			is(possible, "the object has one of the names '"+strings.Join(r.names, "', '")+"'")
		default:
			return resource.Outlook{Applies: resource.Always}, ""
		}
	}
	if nearest == possible {
		return resource.Outlook{Applies: resource.Sometimes}, because
	}
	return resource.Outlook{Applies: resource.Never}, because
}

// inNamespace adds what the namespace selector makes of the request.
func (m *Matcher) inNamespace(a *admission.Attributes, o resource.Outlook) resource.Outlook {
	isNamespace := a.Info.Resource == "namespaces"
	switch {
	case m.namespaces.Empty() || a.Namespace() == "" && !isNamespace:
		return o
	case isNamespace && a.Info.Subresource == "" || !m.namespaceByNameAlone:
		return o.If("labels of the namespace fit '" + m.namespaces.String() + "'")
	case m.namespaces.Matches(NamespaceName(a.Namespace())):
		return o
	}
	return o.Unless("namespaceSelector does not select the namespace '" + a.Namespace() + "'")
}

// ConditionsOutlook adds that match conditions decide, if there are any.
func ConditionsOutlook(conditions int, o resource.Outlook) resource.Outlook {
	if conditions == 0 {
		return o
	}
	return o.If("its matchConditions hold")
}
