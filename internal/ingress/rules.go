package ingress

import (
	"fmt"
	"strconv"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/admission-gateway/gateway/internal/routing"
)

// A ruleSpec is a rule of a route of any kind, as far as the kinds are alike: in matches, filters and references to
// backends of types of their own.
type ruleSpec[M, F, B any] struct {
	name     *gatewayv1.SectionName
	matches  []M
	filters  []F
	backends []B
	sessions *gatewayv1.SessionPersistence
}

// A ruleKind reads what is of the types of a kind of route.
type ruleKind[M, F, B any] struct {
	isHTTP2 bool
	// match translates a match. A problem is at a field of it.
	match   func(*M) (m routing.Match, problem, at string)
	filters func(specs []F, path string) []routing.Filter
	backend func(*B) (*gatewayv1.BackendRef, []F)
}

// read translates a rule; false if it is not in force.
func (k *ruleKind[M, F, B]) read(r *reading, spec ruleSpec[M, F, B], i int) (m madeRule, isInForce bool) {
	m.Rule = ruleName(spec.name, i)
	for j := range spec.matches {
		match, problem, at := k.match(&spec.matches[j])
		if problem != "" {
			r.unsupport(fmt.Sprintf("%s.matches[%d]%s", rulePath(i), j, at), problem)
			continue
		}
		m.Matches = append(m.Matches, match)
	}
	switch {
	case len(m.Matches) > 0:
	case len(spec.matches) > 0:
		r.dropped++
		return m, false
	default:
		m.Matches = []routing.Match{{Path: routing.PathMatch{Kind: routing.PathPrefix, Value: "/"}}}
	}
	m.Filters = k.filters(spec.filters, rulePath(i)+".filters")
	for j := range spec.backends {
		ref, filters := k.backend(&spec.backends[j])
		path := fmt.Sprintf("%s.backendRefs[%d]", rulePath(i), j)
		m.backends = append(m.backends, weighted{
			r.target(&ref.BackendObjectReference, path, k.isHTTP2), max(or(ref.Weight, 1), 0),
			k.filters(filters, path+".filters"),
		})
	}
	if spec.sessions != nil {
		r.unsupport(rulePath(i)+".sessionPersistence", "sessions are not kept at one backend")
	}
	return m, true
}

// rulePath is the path of a rule in its route.
func rulePath(i int) string { return "spec.rules[" + strconv.Itoa(i) + "]" }

// ruleName names a rule.
func ruleName(name *gatewayv1.SectionName, i int) string {
	if name != nil && *name != "" {
		return string(*name)
	}
	return strconv.Itoa(i)
}
