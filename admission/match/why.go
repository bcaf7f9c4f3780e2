package match

import (
	"context"
	"fmt"
	"strings"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Why returns why the matcher is not about a request: the field that decides, below the matcher's
// own, and a sentence. The sentence is empty if the matcher matches the request.
func (m *Matcher) Why(ctx context.Context, a *admission.Attributes) (field, because string) {
	q := &matchRequest{a.Info, a.Operation, ByObject, a}
	v := m.judge(ctx, q)
	if v.err != nil {
		return v.not.clause.field(), v.err.Error()
	}
	field = v.not.clause.field()
	switch v.not.clause {
	case reviews:
		because = isReview
	case targetRefs:
		because = isElsewhere
	case objectSelector:
		because = "the labels of the object do not fit '" + m.objects.String() + "'"
	case excludedRules:
		field, because = fmt.Sprintf("%s[%d]", field, v.not.rule), "the rule names the request"
	case resourceRules:
		member, why := m.rules[v.not.rule].why(v.not.miss, q)
		field, because = fmt.Sprintf("%s[%d].%s", field, v.not.rule, member), why
	case namespaceSelector:
		because = "the labels of the namespace '" + a.Namespace() + "' do not fit '" + m.namespaces.String() + "'"
	}
	return field, because
}

const (
	isReview    = "no policy is asked about questions to the API server"
	isElsewhere = "no targetRef names the route or the listener"
)

// field is the field of a clause, "" if it has none.
func (c clause) field() string {
	switch c {
	case objectSelector:
		return "objectSelector"
	case excludedRules:
		return "excludeResourceRules"
	case resourceRules:
		return "resourceRules"
	case namespaceSelector:
		return "namespaceSelector"
	}
	return ""
}

// why returns which member of the rule a request misses, and a sentence.
func (r *rule) why(missed miss, q *matchRequest) (member, because string) {
	switch missed {
	case missGroup:
		return "apiGroups", "the rule does not name the group '" + q.info.Group + "'"
	case missResource, missSubresource:
		name := q.info.Resource
		if q.info.Subresource != "" {
			name += "/" + q.info.Subresource
		}
		return "resources", "the rule does not name the resource '" + name + "'"
	case missOperation:
		return "operations", "the rule does not name the operation " + q.operation.String()
	case missScope:
		return "scope", "the rule is about another scope"
	case missName:
		return "resourceNames", "the rule names other objects: '" + strings.Join(r.names, "', '") + "'"
	}
	return "apiVersions", "the rule does not name the version '" + q.info.Version + "'"
}

// Applicability adds to an applicability whether the matcher matches a request that has no object yet.
func (m *Matcher) Applicability(a *admission.Attributes, o resource.Applicability) resource.Applicability {
	q := &matchRequest{info: a.Info, operation: a.Operation}
	v := m.judge(context.Background(), q)
	switch v.not.clause {
	case reviews:
		return o.Unless(isReview)
	case targetRefs:
		return o.Unless(isElsewhere)
	case excludedRules:
		return o.Unless("excludeResourceRules names the request")
	case resourceRules:
		return o.Unless(v.not.miss.foretold(q))
	case namespaceSelector:
		return o.Unless("namespaceSelector does not select the namespace '" + a.Info.Namespace + "'")
	}
	if v.open&excludedRules != 0 {
		o = o.If("excludeResourceRules does not name the object, or another version of it")
	}
	if v.open&resourceRules != 0 {
		o = o.If(m.rules[v.nearest.rule].mayFit(v.nearest.miss))
	}
	if v.open&namespaceSelector != 0 {
		o = o.If("labels of the namespace fit '" + m.namespaces.String() + "'")
	}
	if v.open&objectSelector != 0 {
		o = o.If("labels of the object fit '" + m.objects.String() + "'")
	}
	return o
}

// foretold says what keeps the nearest rule from a request that has no object yet.
func (m miss) foretold(q *matchRequest) string {
	switch m {
	case missSubresource:
		return "its rules name the resource, and not the subresource '" + q.info.Subresource + "'"
	case missOperation:
		return "no rule for the resource names the operation " + q.operation.String()
	case missScope:
		return "the rules for the resource have another scope"
	case missVersion:
		return "no rule for the resource names the version '" + q.info.Version + "'"
	case missName:
		return "the rules for the resource name other objects"
	}
	return "no rule names the resource"
}

// mayFit says what is open about the rule.
func (r *rule) mayFit(open miss) string {
	switch open {
	case openScope:
		return "the objects have the scope that the rules name"
	case openName:
		return "the object has one of the names '" + strings.Join(r.names, "', '") + "'"
	}
	return "the resource is served in a version that the rules name"
}

// ConditionsApplicability adds that match conditions decide, if there are any.
func ConditionsApplicability(conditions int, o resource.Applicability) resource.Applicability {
	if conditions == 0 {
		return o
	}
	return o.If("its matchConditions hold")
}
