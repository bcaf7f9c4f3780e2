package ingress

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// attach finds what of the references of a route leads to the controller's listeners.
func (c *translation) attach(r *routeObject) []attachedParent {
	var all []attachedParent
	hosts := c.hostsOf(r)
	for i := range r.parents {
		ref := &r.parents[i]
		g, candidates, refused := c.parent(r, ref)
		if g == nil {
			continue
		}
		p := attachedParent{index: i, gateway: g, refused: refused}
		if !refused.is() {
			p.refused = c.choose(r, ref, candidates, hosts, &p)
		}
		if p.refused.is() {
			c.problem(r.kind, r.GetNamespace(), r.GetName(), fmt.Sprintf("spec.parentRefs[%d]", i), p.refused.message)
		}
		all = append(all, p)
	}
	return all
}

// hostsOf returns the hosts of a route; nil is all hosts.
func (c *translation) hostsOf(r *routeObject) []string {
	if len(r.hosts) == 0 {
		return nil
	}
	hosts := make([]string, 0, len(r.hosts))
	for i, h := range r.hosts {
		host := strings.ToLower(string(h))
		if problem := c.hostProblem(host); problem != "" || host == "" {
			if host == "" {
				problem = "must not be empty"
			}
			c.problem(r.kind, r.GetNamespace(), r.GetName(), fmt.Sprintf("spec.hostnames[%d]", i), problem)
			continue
		}
		hosts = append(hosts, host)
	}
	return hosts
}

// parent follows a reference to a parent; a nil gateway means that it is none of the controller's.
func (c *translation) parent(r *routeObject, ref *gatewayv1.ParentReference) (*gateway, []*listener, fault) {
	if or(ref.Group, gatewayv1.GroupName) != gatewayv1.GroupName {
		return nil, nil, fault{}
	}
	name := types.NamespacedName{Namespace: string(or(ref.Namespace, gatewayv1.Namespace(r.GetNamespace()))),
		Name: string(ref.Name)}
	switch or(ref.Kind, kindGateway) {
	case kindGateway:
		if g := c.byGateway[name]; g != nil {
			return g, g.listeners, fault{}
		}
	case kindListenerSet:
		if s := c.bySet[name]; s != nil {
			if s.refused.is() {
				return s.gateway, nil, fault{string(gatewayv1.RouteReasonNoMatchingParent),
					fmt.Sprintf("the ListenerSet '%s' is not accepted: %s", name, s.refused.message)}
			}
			return s.gateway, s.listeners, fault{}
		}
	}
	return nil, nil, fault{}
}

// choose finds the listeners of a parent that take requests for a route. A fault says why there are none.
func (c *translation) choose(r *routeObject, ref *gatewayv1.ParentReference, candidates []*listener, hosts []string,
	p *attachedParent) fault {
	isNamed, isAllowed := false, false
	for _, l := range candidates {
		if ref.SectionName != nil && *ref.SectionName != "" && *ref.SectionName != l.spec.Name || ref.Port != nil &&
			*ref.Port != l.spec.Port {
			continue
		}
		isNamed = true
		if !l.takes(r.kind) || !l.allowed.allows(&c.namespaces, l.namespace(), r.GetNamespace()) {
			continue
		}
		isAllowed = true
		if r.hosts == nil {
			p.takes = append(p.takes, attachment{l, l.host})
		}
		for _, h := range hosts {
			if host, both := intersection(l.host, h); both {
				p.takes = append(p.takes, attachment{l, host})
			}
		}
	}
	switch {
	case len(p.takes) > 0:
		return fault{}
	case !isNamed:
		what := ""
		if ref.SectionName != nil {
			what += fmt.Sprintf(" of the name '%s'", *ref.SectionName)
		}
		if ref.Port != nil {
			what += fmt.Sprintf(" on the port %d", *ref.Port)
		}
		return fault{string(gatewayv1.RouteReasonNoMatchingParent),
			fmt.Sprintf("'%s' has no listener%s", ref.Name, what)}
	case !isAllowed:
		return fault{string(gatewayv1.RouteReasonNotAllowedByListeners),
			fmt.Sprintf("no listener of '%s' takes a route of the kind '%s' from the namespace '%s'", ref.Name, r.kind,
				r.GetNamespace())}
	}
	return fault{string(gatewayv1.RouteReasonNoMatchingListenerHostname),
		fmt.Sprintf("no listener of '%s' takes requests for the hosts of the route", ref.Name)}
}

// count counts a route at each listener that takes requests for it, whether or not the listener is served.
func count(parents []attachedParent) {
	var counted []*listener
	for i := range parents {
		for _, a := range parents[i].takes {
			if !slices.Contains(counted, a.listener) {
				counted = append(counted, a.listener)
				a.listener.attached++
			}
		}
	}
}

// unsupportedRoutes says of routes of kinds that are not served that no listener takes them.
func (c *translation) unsupportedRoutes() {
	for _, r := range c.in.TLSRoutes {
		c.unsupported(&routeObject{kindTLSRoute, r, r.Spec.ParentRefs, r.Spec.Hostnames, &r.Status.RouteStatus})
	}
	for _, r := range c.in.TCPRoutes {
		c.unsupported(&routeObject{kindTCPRoute, r, r.Spec.ParentRefs, nil, &r.Status.RouteStatus})
	}
	for _, r := range c.in.UDPRoutes {
		c.unsupported(&routeObject{kindUDPRoute, r, r.Spec.ParentRefs, nil, &r.Status.RouteStatus})
	}
}

func (c *translation) unsupported(r *routeObject) {
	parents := c.attach(r)
	for i := range parents {
		if p := &parents[i]; !p.refused.is() { // cannot be: no listener takes the kind
			p.refused = fault{string(gatewayv1.RouteReasonNotAllowedByListeners), "the kind is not supported"}
		}
	}
	c.statuses.route(r, c.options.Controller, parents, fault{}, fault{})
}
