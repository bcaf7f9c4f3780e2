package ingress

import (
	"fmt"
	"iter"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// maxPool is how many addresses of a block of the pool are given away at most, so that a wide one costs no time.
const maxPool = 1 << 16

// assign gives each Gateway its addresses: those it asks for, then those it has already, then free ones.
func (c *translation) assign() {
	if len(c.options.Pool) == 0 {
		for _, g := range c.served {
			if c.options.AreOfFiles {
				c.bind(g)
			} else {
				c.share(g)
			}
		}
		return
	}
	for _, g := range c.served {
		c.asked(g)
	}
	var waiting []*gateway
	for _, g := range c.served {
		switch {
		case len(g.addresses) > 0 || g.unaddressed.is():
		case !c.keep(g):
			waiting = append(waiting, g)
		}
	}
	c.keepOfIngresses()
	next, stop := iter.Pull(c.free())
	defer stop()
	for _, g := range waiting {
		if a, ok := next(); ok {
			g.take(c, a)
			continue
		}
		g.unaddressed = fault{string(gatewayv1.GatewayReasonAddressNotAssigned),
			"all addresses of the controller's pool belong to other Gateways"}
	}
	for _, g := range c.served {
		for _, a := range g.addresses {
			g.show(gatewayv1.IPAddressType, a.String())
		}
	}
}

// take gives an address to a Gateway.
func (g *gateway) take(c *translation, a netip.Addr) {
	c.taken[a] = true
	g.addresses = append(g.addresses, a)
}

func (g *gateway) show(kind gatewayv1.AddressType, value string) {
	g.shown = append(g.shown, gatewayv1.GatewayStatusAddress{Type: &kind, Value: value})
}

// asked gives a Gateway the addresses that it asks for by their values.
func (c *translation) asked(g *gateway) {
	for _, want := range g.Spec.Addresses {
		if or(want.Type, gatewayv1.IPAddressType) != gatewayv1.IPAddressType || want.Value == "" {
			continue
		}
		a, err := netip.ParseAddr(want.Value)
		switch {
		case err != nil || !c.inPool(a):
			g.unaddressed = first(g.unaddressed,
				fault{string(gatewayv1.GatewayReasonAddressNotUsable),
					fmt.Sprintf("the address '%s' is not one of the controller's pool", want.Value)})
		case c.taken[a]:
			g.unaddressed = first(g.unaddressed,
				fault{string(gatewayv1.GatewayReasonAddressNotUsable),
					fmt.Sprintf("the address '%s' belongs to an older Gateway", want.Value)})
		default:
			g.take(c, a)
		}
	}
}

// keep lets a Gateway have the address that it had before, and reports whether it could.
func (c *translation) keep(g *gateway) bool {
	for _, had := range g.Status.Addresses {
		if a, err := netip.ParseAddr(had.Value); err == nil && c.inPool(a) && !c.taken[a] {
			g.take(c, a)
			return true
		}
	}
	return false
}

// keepOfIngresses lets the Ingresses have the address that they had before, if no Gateway has it.
func (c *translation) keepOfIngresses() {
	for _, i := range c.ownIngresses() {
		for _, had := range i.Status.LoadBalancer.Ingress {
			if a, err := netip.ParseAddr(had.IP); err == nil && c.inPool(a) && !c.taken[a] {
				c.ofIngresses, c.taken[a] = a, true
				return
			}
		}
	}
}

func (c *translation) inPool(a netip.Addr) bool {
	for _, p := range c.options.Pool {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// free are the unused addresses of the pool.
func (c *translation) free() iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for _, p := range c.options.Pool {
			a := p.Masked().Addr()
			for n := 0; n < maxPool && p.Contains(a); n++ {
				if !c.taken[a] && !yield(a) {
					return
				}
				a = a.Next()
			}
		}
	}
}

// bind has a Gateway listen on the addresses that it asks for.
func (c *translation) bind(g *gateway) {
	for _, want := range g.Spec.Addresses {
		if or(want.Type, gatewayv1.IPAddressType) != gatewayv1.IPAddressType || want.Value == "" {
			continue
		}
		a, err := netip.ParseAddr(want.Value)
		if err != nil {
			g.unaddressed = first(g.unaddressed,
				fault{string(gatewayv1.GatewayReasonAddressNotUsable), fmt.Sprintf("'%s' is no address", want.Value)})
			continue
		}
		g.addresses = append(g.addresses, a)
		g.show(gatewayv1.IPAddressType, a.String())
	}
}

// share lets a Gateway be reached by the addresses that all Gateways have in common.
func (c *translation) share(g *gateway) {
	common := c.published()
	for _, want := range g.Spec.Addresses {
		if want.Value == "" {
			continue
		}
		isCommon := false
		for _, a := range common {
			isCommon = isCommon || a.Value == want.Value && or(want.Type, gatewayv1.IPAddressType) == *a.Type
		}
		if !isCommon {
			g.unaddressed = first(g.unaddressed,
				fault{string(gatewayv1.GatewayReasonAddressNotUsable),
					fmt.Sprintf("the address '%s' is none of the controller's", want.Value)})
			continue
		}
		g.shown = append(g.shown, gatewayv1.GatewayStatusAddress(want))
	}
	if len(g.shown) == 0 {
		g.shown = common
	}
}

// published are the addresses by which clients reach the gateway.
func (c *translation) published() []gatewayv1.GatewayStatusAddress {
	var all gateway
	for _, p := range c.options.Published {
		all.showAny(p)
	}
	s := c.services[c.options.Service]
	if len(all.shown) > 0 || s == nil || s.Service == nil {
		return all.shown
	}
	for _, i := range s.Status.LoadBalancer.Ingress {
		if i.IP != "" {
			all.showAny(i.IP)
		} else if i.Hostname != "" {
			all.showAny(i.Hostname)
		}
	}
	for _, ip := range s.Spec.ExternalIPs {
		all.showAny(ip)
	}
	if len(all.shown) == 0 && s.Spec.Type != corev1.ServiceTypeLoadBalancer && s.Spec.ClusterIP != "" &&
		s.Spec.ClusterIP != corev1.ClusterIPNone {
		all.showAny(s.Spec.ClusterIP)
	}
	return all.shown
}

// showAny shows an address, or the name of a host.
func (g *gateway) showAny(value string) {
	if _, err := netip.ParseAddr(value); err == nil {
		g.show(gatewayv1.IPAddressType, value)
		return
	}
	g.show(gatewayv1.HostnameAddressType, value)
}
