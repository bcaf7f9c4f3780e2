package ingress

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/admission-gateway/gateway/internal/routing"
)

// classes finds the GatewayClasses that count.
func (c *translation) classes() {
	c.owned = map[string]bool{}
	for _, class := range byAge(c.in.GatewayClasses) {
		if string(class.Spec.ControllerName) != c.options.Controller || c.options.GatewayClass != "" &&
			class.Name != c.options.GatewayClass {
			continue
		}
		var refused fault
		if class.Spec.ParametersRef != nil {
			refused = fault{string(gatewayv1.GatewayClassReasonInvalidParameters), "the controller takes no parameters"}
			c.problem(kindGatewayClass, "", class.Name, "spec.parametersRef", refused.message)
		}
		c.owned[class.Name] = !refused.is()
		c.statuses.class(class, refused)
	}
}

// gateways finds the Gateways that count, with their listeners, and decides which of these are served.
func (c *translation) gateways() {
	c.byGateway, c.bySet, c.taken = map[types.NamespacedName]*gateway{}, map[types.NamespacedName]*listenerSet{},
		map[netip.Addr]bool{}
	for _, one := range byAge(c.in.Gateways) {
		if !c.owned[string(one.Spec.GatewayClassName)] {
			continue
		}
		g := &gateway{Gateway: one}
		c.served = append(c.served, g)
		c.byGateway[nameOf(one)] = g
	}
	c.assign()
	for _, g := range c.served {
		c.check(g)
		for i := range g.Spec.Listeners {
			g.listeners = append(g.listeners,
				c.newListener(g, nil, g.Spec.Listeners[i], fmt.Sprintf("spec.listeners[%d]", i)))
		}
		c.claim(g, g.listeners)
	}
	for _, one := range byAge(c.in.ListenerSets) {
		c.listenerSet(one)
	}
	for _, g := range c.served {
		c.open(g)
	}
}

// check finds what is wrong with a Gateway as a whole.
func (c *translation) check(g *gateway) {
	refuse := func(path string, reason gatewayv1.GatewayConditionReason, message string) {
		g.refused = first(g.refused, fault{string(reason), message})
		c.problem(kindGateway, g.Namespace, g.Name, path, message)
	}
	if i := g.Spec.Infrastructure; i != nil && i.ParametersRef != nil {
		refuse("spec.infrastructure.parametersRef", gatewayv1.GatewayReasonInvalidParameters,
			fmt.Sprintf("the controller takes no parameters, and so no %s '%s'", i.ParametersRef.Kind,
				i.ParametersRef.Name))
	}
	for i, a := range g.Spec.Addresses {
		if t := or(a.Type, gatewayv1.IPAddressType); t != gatewayv1.IPAddressType {
			refuse(fmt.Sprintf("spec.addresses[%d].type", i), gatewayv1.GatewayReasonUnsupportedAddress,
				fmt.Sprintf("addresses of the type '%s' are not supported: only 'IPAddress' is", t))
		}
	}
	if t := g.Spec.TLS; t != nil && t.Backend != nil && t.Backend.ClientCertificateRef != nil {
		certificate, f := c.certificate(referrer{kindGateway, g.Namespace}, t.Backend.ClientCertificateRef,
			string(gatewayv1.GatewayReasonInvalidClientCertificateRef))
		if f.is() {
			g.unresolved = f
			c.problem(kindGateway, g.Namespace, g.Name, "spec.tls.backend.clientCertificateRef", f.message)
		}
		g.client = certificate
	}
	if g.unaddressed.is() {
		c.problem(kindGateway, g.Namespace, g.Name, "spec.addresses", g.unaddressed.message)
	}
}

// listenerSet takes a ListenerSet in, if its Gateway is the controller's.
func (c *translation) listenerSet(one *gatewayv1.ListenerSet) {
	p := &one.Spec.ParentRef
	if or(p.Group, gatewayv1.GroupName) != gatewayv1.GroupName || or(p.Kind, kindGateway) != kindGateway {
		return
	}
	g := c.byGateway[types.NamespacedName{Namespace: string(or(p.Namespace, gatewayv1.Namespace(one.Namespace))),
		Name: string(p.Name)}]
	if g == nil {
		return
	}
	s := &listenerSet{ListenerSet: one, gateway: g}
	g.sets = append(g.sets, s)
	c.bySet[nameOf(one)] = s
	var allowed namespaceRule
	if a := g.Spec.AllowedListeners; a != nil && a.Namespaces != nil {
		allowed = ruleOf(a.Namespaces.From, a.Namespaces.Selector, gatewayv1.NamespacesFromNone)
	}
	switch {
	case !allowed.allows(&c.namespaces, g.Namespace, one.Namespace):
		s.refused = fault{string(gatewayv1.ListenerSetReasonNotAllowed), fmt.Sprintf("the Gateway '%s/%s' allows no ListenerSets of the namespace '%s' (spec.allowedListeners)", g.Namespace, g.Name, one.Namespace)}
	case g.refused.is():
		s.refused = fault{string(gatewayv1.ListenerSetReasonParentNotAccepted),
			fmt.Sprintf("the Gateway '%s/%s' is not accepted: %s", g.Namespace, g.Name, g.refused.message)}
	}
	if s.refused.is() {
		c.problem(kindListenerSet, one.Namespace, one.Name, "spec.parentRef", s.refused.message)
		return
	}
	for i := range one.Spec.Listeners {
		s.listeners = append(s.listeners, c.newListener(g, s, gatewayv1.Listener(one.Spec.Listeners[i]),
			fmt.Sprintf("spec.listeners[%d]", i)))
	}
	c.claim(g, s.listeners)
}

// open puts the listeners of a Gateway that can be served into the table.
func (c *translation) open(g *gateway) {
	c.overlaps(g)
	for _, l := range g.all() {
		l.isOpen = !g.refused.is() && !g.unaddressed.is() && l.isValid()
		if !l.isOpen {
			continue
		}
		l.index = len(c.out.Table.Listeners)
		section := string(l.spec.Name)
		if l.set != nil {
			section = l.set.Namespace + "/" + l.set.Name + "/" + section
		}
		c.out.Table.Listeners = append(c.out.Table.Listeners, routing.Listener{
			Gateway: g.Namespace + "/" + g.Name, Section: section, Port: l.spec.Port, Addresses: g.addresses,
			Host: l.host, TLS: l.tls,
		})
		g.letsStrangersIn = g.letsStrangersIn || l.tls != nil && l.tls.LetsStrangersIn
	}
}
