package ingress

import (
	"fmt"
	"regexp"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/admission-gateway/gateway/internal/routing"
)

func (c *translation) grpcRoute(o *gatewayv1.GRPCRoute) {
	r, parents := c.begin(routeObject{kindGRPCRoute, o, o.Spec.ParentRefs, o.Spec.Hostnames, &o.Status.RouteStatus})
	if r == nil {
		return
	}
	kind := ruleKind[gatewayv1.GRPCRouteMatch, gatewayv1.GRPCRouteFilter, gatewayv1.GRPCBackendRef]{
		isHTTP2: true, match: grpcMatch, filters: r.grpcFilters,
		backend: func(b *gatewayv1.GRPCBackendRef) (*gatewayv1.BackendRef, []gatewayv1.GRPCRouteFilter) {
			return &b.BackendRef, b.Filters
		},
	}
	rules := make([]madeRule, 0, len(o.Spec.Rules))
	for i := range o.Spec.Rules {
		spec := &o.Spec.Rules[i]
		if rule, ok := kind.read(r, ruleSpec[gatewayv1.GRPCRouteMatch, gatewayv1.GRPCRouteFilter,
			gatewayv1.GRPCBackendRef]{
			spec.Name, spec.Matches, spec.Filters, spec.BackendRefs, spec.SessionPersistence,
		}, i); ok {
			rules = append(rules, rule)
		}
	}
	r.end(parents, rules)
}

// grpcMatch translates a match: a call is a POST to the path of its service and method. A problem is at a field of it.
func grpcMatch(spec *gatewayv1.GRPCRouteMatch) (m routing.Match, problem, at string) {
	m.Path.Value = "/"
	if s := spec.Method; s != nil {
		if m.Path, problem = grpcPath(s); problem != "" {
			return m, problem, ".method"
		}
	}
	for i := range spec.Headers {
		h := &spec.Headers[i]
		v, problem := valueMatch(string(h.Name), h.Value, string(or(h.Type, gatewayv1.GRPCHeaderMatchExact)))
		if problem != "" {
			return m, problem, fmt.Sprintf(".headers[%d]", i)
		}
		m.Headers = appendValue(m.Headers, v, true)
	}
	return m, "", ""
}

// grpcPath translates the match of a service and a method.
func grpcPath(s *gatewayv1.GRPCMethodMatch) (p routing.PathMatch, problem string) {
	service, method := or(s.Service, ""), or(s.Method, "")
	switch kind := or(s.Type, gatewayv1.GRPCMethodMatchExact); kind {
	case gatewayv1.GRPCMethodMatchExact:
		switch {
		case service != "" && method != "":
			return routing.PathMatch{Kind: routing.PathExact, Value: "/" + service + "/" + method}, ""
		case service != "":
			return routing.PathMatch{Kind: routing.PathPrefix, Value: "/" + service}, ""
		case method != "":
			return routing.PathMatch{Kind: routing.PathExpression, Value: "/[^/]+/" + regexp.QuoteMeta(method)}, ""
		}
		return routing.PathMatch{Kind: routing.PathPrefix, Value: "/"}, ""
	case gatewayv1.GRPCMethodMatchRegularExpression:
		const any = "[^/]+"
		for _, part := range []*string{&service, &method} {
			if *part == "" {
				*part = any
			}
			if _, err := regexp.Compile(*part); err != nil {
				return p, "must be a regular expression of RE2: " + err.Error()
			}
		}
		return routing.PathMatch{Kind: routing.PathExpression, Value: "/(?:" + service + ")/(?:" + method + ")"}, ""
	default:
		return p, fmt.Sprintf("the type '%s' is not supported", kind)
	}
}

// grpcFilters translates filters. One that cannot be carried out refuses the requests.
func (r *reading) grpcFilters(specs []gatewayv1.GRPCRouteFilter, path string) []routing.Filter {
	var all []routing.Filter
	for i := range specs {
		f, at := &specs[i], fmt.Sprintf("%s[%d]", path, i)
		switch {
		case f.Type == gatewayv1.GRPCRouteFilterRequestHeaderModifier && f.RequestHeaderModifier != nil:
			all = append(all, r.edits(f.RequestHeaderModifier, at,
				func(e *routing.HeaderEdits) routing.Filter { return routing.Filter{Request: e} }))
		case f.Type == gatewayv1.GRPCRouteFilterResponseHeaderModifier && f.ResponseHeaderModifier != nil:
			all = append(all, r.edits(f.ResponseHeaderModifier, at,
				func(e *routing.HeaderEdits) routing.Filter { return routing.Filter{Answer: e} }))
		case f.Type == gatewayv1.GRPCRouteFilterRequestMirror && f.RequestMirror != nil:
			all = r.mirror(all, f.RequestMirror, at, true)
		default:
			all = append(all, r.unknownFilter(string(f.Type), f.ExtensionRef, at))
		}
	}
	return all
}
