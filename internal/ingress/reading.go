package ingress

import (
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/admission-gateway/gateway/internal/routing"
)

// A reading is a route whose rules are read.
type reading struct {
	*translation
	object routeObject
	// gateways are those whose listeners take requests for the route.
	gateways []*gateway
	// unresolved is the first reference that leads nowhere, unsupported the first value that cannot be carried out.
	unresolved, unsupported fault
	// dropped counts the rules that are not in force for it.
	dropped int
}

func (r *reading) problem(path, message string) {
	r.translation.problem(r.object.kind, r.object.GetNamespace(), r.object.GetName(), path, message)
}

// unresolve notes a reference that leads nowhere.
func (r *reading) unresolve(path string, f fault) {
	r.unresolved = first(r.unresolved, f)
	r.problem(path, f.message)
}

// unsupport notes a value that cannot be carried out.
func (r *reading) unsupport(path, message string) {
	r.unsupported = first(r.unsupported, fault{string(gatewayv1.RouteReasonUnsupportedValue), path + ": " + message})
	r.problem(path, message)
}

// A madeRule is a rule of a route before it is attached to listeners.
type madeRule struct {
	routing.Route
	// backends are those of Route.Backends, and mirrors those of its filters, before they are in the table.
	backends []weighted
}

// asksTLS reports whether a backend of the rule is spoken to by TLS.
func (m *madeRule) asksTLS() bool {
	return slices.ContainsFunc(m.backends, func(b weighted) bool { return b.target.policy != nil })
}

// weighted is a backend's share of a rule.
type weighted struct {
	target  target
	weight  int32
	filters []routing.Filter
}
