package ingress

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// newListener reads a listener.
func (c *translation) newListener(g *gateway, s *listenerSet, spec gatewayv1.Listener, path string) *listener {
	l := &listener{gateway: g, set: s, spec: spec, path: path, host: strings.ToLower(string(or(spec.Hostname, "")))}
	var from *gatewayv1.RouteNamespaces
	if spec.AllowedRoutes != nil {
		from = spec.AllowedRoutes.Namespaces
	}
	if from == nil {
		from = &gatewayv1.RouteNamespaces{}
	}
	l.allowed = ruleOf(from.From, from.Selector, gatewayv1.NamespacesFromSame)
	l.kinds = []gatewayv1.RouteGroupKind{}
	switch spec.Protocol {
	case gatewayv1.HTTPProtocolType, gatewayv1.HTTPSProtocolType:
		c.kindsOf(l)
	default:
		l.refused = fault{string(gatewayv1.ListenerReasonUnsupportedProtocol),
			fmt.Sprintf("the protocol '%s' is not supported: only 'HTTP' and 'HTTPS' are", spec.Protocol)}
		if a := spec.AllowedRoutes; a != nil && len(a.Kinds) > 0 {
			l.unresolved = fault{string(gatewayv1.ListenerReasonInvalidRouteKinds),
				"no kind of route is supported for the protocol"}
		}
	}
	if problem := c.hostProblem(l.host); problem != "" && !l.refused.is() {
		l.refused = fault{string(gatewayv1.ListenerReasonUnsupportedValue), problem}
	}
	if spec.Port < 1 || spec.Port > 65535 {
		l.refused = first(l.refused,
			fault{string(gatewayv1.ListenerReasonPortUnavailable),
				fmt.Sprintf("%d is not the number of a port", spec.Port)})
	}
	if spec.Protocol == gatewayv1.HTTPSProtocolType {
		c.secure(l)
	}
	return l
}

// kindsOf finds the kinds of routes that a listener takes.
func (c *translation) kindsOf(l *listener) {
	group := gatewayv1.Group(gatewayv1.GroupName)
	if a := l.spec.AllowedRoutes; a != nil && len(a.Kinds) > 0 {
		for i, k := range a.Kinds {
			if or(k.Group, group) != group || k.Kind != kindHTTPRoute && k.Kind != kindGRPCRoute {
				l.unresolved = first(l.unresolved,
					fault{string(gatewayv1.ListenerReasonInvalidRouteKinds),
						fmt.Sprintf("the kind '%s' is not supported: only 'HTTPRoute' and 'GRPCRoute' are", k.Kind)})
				c.listenerProblem(l, fmt.Sprintf(".allowedRoutes.kinds[%d]", i), l.unresolved.message)
				continue
			}
			l.kinds = append(l.kinds, gatewayv1.RouteGroupKind{Group: &group, Kind: k.Kind})
		}
		if len(l.kinds) == 0 {
			l.lacks = fault{string(gatewayv1.ListenerReasonInvalid),
				"the listener takes no kind of route that is supported"}
		}
		return
	}
	l.kinds = append(l.kinds, gatewayv1.RouteGroupKind{Group: &group, Kind: kindHTTPRoute},
		gatewayv1.RouteGroupKind{Group: &group, Kind: kindGRPCRoute})
}

// takes reports whether the listener takes routes of a kind.
func (l *listener) takes(kind string) bool {
	return slices.ContainsFunc(l.kinds, func(k gatewayv1.RouteGroupKind) bool { return string(k.Kind) == kind })
}

// hostProblem says why a host, in lower case, cannot be served; "" if it can.
func (c *translation) hostProblem(host string) string {
	if host == "" {
		return ""
	}
	return c.hosts.of(host, func() string { return hostProblem(host) })
}

func hostProblem(host string) string {
	name, _ := strings.CutPrefix(host, "*.")
	if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
		return fmt.Sprintf("the host '%s' is no name of a host: %s", host, errs[0])
	}
	if isAddress(name) {
		return fmt.Sprintf("the host '%s' must be a name, not an address", host)
	}
	return ""
}

// meets reports whether two Gateways have an address in common, of which those without addresses have all.
func (g *gateway) meets(other *gateway) bool {
	switch {
	case g == other:
		return true
	case g.unaddressed.is() || other.unaddressed.is():
		return false
	case len(g.addresses) == 0 || len(other.addresses) == 0:
		return true
	}
	return slices.ContainsFunc(g.addresses, func(a netip.Addr) bool { return slices.Contains(other.addresses, a) })
}

// isHTTP reports whether a protocol is one that the gateway serves.
func isHTTP(p gatewayv1.ProtocolType) bool {
	return p == gatewayv1.HTTPProtocolType || p == gatewayv1.HTTPSProtocolType
}

// claim has listeners of one object take their ports. Of two within one Gateway that cannot be told apart neither is
// served; a listener that comes after others, of an older object or of the Gateway whose ListenerSet it is in, gives
// way.
func (c *translation) claim(g *gateway, all []*listener) {
	for i, l := range all {
		if f := c.conflictBefore(l); f.is() {
			l.conflict = f
		}
		if l.set != nil {
			// Listeners of one ListenerSet come one after the other too.
			for _, o := range all[:i] {
				if !o.refused.is() && !o.conflict.is() {
					l.conflict = first(l.conflict, conflictOf(l, o))
				}
			}
			continue
		}
		for j, o := range all {
			if j != i && !l.refused.is() && !o.refused.is() {
				l.conflict = first(l.conflict, conflictOf(l, o))
			}
		}
	}
	for _, l := range all {
		switch {
		case l.conflict.is():
			c.listenerProblem(l, "", l.conflict.message)
		case l.refused.is():
			c.listenerProblem(l, "", l.refused.message)
		case g.refused.is() || g.unaddressed.is():
		default:
			c.held = append(c.held, l)
		}
	}
}

// conflictBefore returns the conflict of a listener with one that has its port already.
func (c *translation) conflictBefore(l *listener) fault {
	for _, h := range c.held {
		if h.spec.Port == l.spec.Port && h.gateway.meets(l.gateway) {
			if l.refused.is() && (l.set == nil || l.spec.Protocol == gatewayv1.UDPProtocolType ||
				isHTTP(l.spec.Protocol)) {
				continue
			}
			if f := conflictOf(l, h); f.is() {
				return f
			}
		}
	}
	return fault{}
}

// conflictOf returns why a listener cannot be told apart from another one.
func conflictOf(l, other *listener) fault {
	if l.spec.Port != other.spec.Port {
		return fault{}
	}
	name := string(other.spec.Name)
	switch {
	case l.spec.Protocol != other.spec.Protocol:
		return fault{string(gatewayv1.ListenerReasonProtocolConflict),
			fmt.Sprintf("the listener '%s' of '%s/%s' has the port %d for the protocol '%s'", name, other.namespace(),
				other.owner(), l.spec.Port, other.spec.Protocol)}
	case l.host == other.host:
		host := "all hosts"
		if l.host != "" {
			host = "the host '" + l.host + "'"
		}
		return fault{string(gatewayv1.ListenerReasonHostnameConflict),
			fmt.Sprintf("the listener '%s' of '%s/%s' has %s on the port %d", name, other.namespace(), other.owner(),
				host, l.spec.Port)}
	}
	return fault{}
}

// overlaps finds listeners with TLS on one port whose hosts overlap, so that clients may send requests for one on a
// connection to the other.
func (c *translation) overlaps(g *gateway) {
	byPort := map[int32][]*listener{}
	for _, l := range g.all() {
		if l.spec.Protocol == gatewayv1.HTTPSProtocolType && !l.refused.is() && !l.conflict.is() {
			byPort[l.spec.Port] = append(byPort[l.spec.Port], l)
		}
	}
	for _, all := range byPort {
		for _, l := range all {
			for _, o := range all {
				if _, both := intersection(l.host, o.host); o != l && both {
					l.overlaps = append(l.overlaps, string(o.spec.Name))
				}
			}
		}
	}
}
