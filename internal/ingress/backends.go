package ingress

import (
	"fmt"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/admission-gateway/gateway/internal/routing"
)

// The protocols of Service ports (appProtocol) that Kubernetes names.
const (
	protocolH2C = "kubernetes.io/h2c"
	protocolWS  = "kubernetes.io/ws"
	protocolWSS = "kubernetes.io/wss"
)

// servicesOf finds Services and their endpoints by name.
func servicesOf(in *Objects) map[types.NamespacedName]*service {
	all := make(map[types.NamespacedName]*service, len(in.Services))
	for _, s := range in.Services {
		all[nameOf(s)] = &service{Service: s}
	}
	for _, e := range in.EndpointSlices {
		name := types.NamespacedName{Namespace: e.Namespace, Name: e.Labels[discoveryv1.LabelServiceName]}
		if name.Name == "" {
			continue
		}
		s := all[name]
		if s == nil {
			s = &service{}
			all[name] = s
		}
		s.slices = append(s.slices, e)
	}
	return all
}

// target follows a reference to a backend.
func (r *reading) target(ref *gatewayv1.BackendObjectReference, path string, isHTTP2 bool) target {
	t := target{name: types.NamespacedName{
		Namespace: string(or(ref.Namespace, gatewayv1.Namespace(r.object.GetNamespace()))), Name: string(ref.Name)},
		port: or(ref.Port, 0), isHTTP2: isHTTP2}
	if or(ref.Group, "") != "" || or(ref.Kind, kindService) != kindService {
		return r.faulty(t, path, gatewayv1.RouteReasonInvalidKind, fmt.Sprintf("the kind '%s' of the group '%s' is not supported: only the core kind 'Service' is", or(ref.Kind, kindService), or(ref.Group, "")))
	}
	if !r.grants.allow(referrer{r.object.kind, r.object.GetNamespace()}, kindService, t.name.Namespace, t.name.Name) {
		return r.faulty(t, path, gatewayv1.RouteReasonRefNotPermitted, fmt.Sprintf("no ReferenceGrant in the namespace '%s' lets a %s of the namespace '%s' refer to the Service '%s'", t.name.Namespace, r.object.kind, r.object.GetNamespace(), t.name.Name))
	}
	port, reason, message := r.portOf(&t)
	if message != "" {
		return r.faulty(t, path, reason, message)
	}
	switch protocol := or(port.AppProtocol, ""); protocol {
	case protocolH2C:
		t.isHTTP2 = true
	case protocolWSS:
		if r.policyFor(&t, port.Name) == nil {
			return r.faulty(t, path, gatewayv1.RouteReasonUnsupportedProtocol, fmt.Sprintf("the port %d has the protocol '%s', for which a BackendTLSPolicy must say how its servers are known", t.port, protocol))
		}
	}
	if t.policy = r.policyFor(&t, port.Name); t.policy != nil && t.policy.refused.is() {
		t.fault = fmt.Sprintf("the BackendTLSPolicy '%s/%s' is not accepted: %s", t.policy.Namespace, t.policy.Name,
			t.policy.refused.message)
	}
	return t
}

// faulty notes that a reference leads nowhere.
func (r *reading) faulty(t target, path string, reason gatewayv1.RouteConditionReason, message string) target {
	r.unresolve(path, fault{string(reason), message})
	t.fault, t.policy = message, nil
	return t
}

// portOf returns the port of a Service that a reference names.
func (c *translation) portOf(t *target) (_ corev1.ServicePort, reason gatewayv1.RouteConditionReason, message string) {
	if t.port < 1 || t.port > 65535 {
		return corev1.ServicePort{}, gatewayv1.RouteReasonUnsupportedValue,
			fmt.Sprintf("a reference to the Service '%s' must name a port", t.name)
	}
	s := c.services[t.name]
	if s == nil || s.Service == nil {
		if c.options.AreOfFiles {
			return corev1.ServicePort{Port: t.port}, "", ""
		}
		return corev1.ServicePort{}, gatewayv1.RouteReasonBackendNotFound,
			fmt.Sprintf("there is no Service '%s'", t.name)
	}
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		// It would let whoever may write a Service name any host, also those of other namespaces.
		return corev1.ServicePort{}, gatewayv1.RouteReasonUnsupportedValue,
			fmt.Sprintf("the Service '%s' has the type 'ExternalName', which may name servers of others", t.name)
	}
	for _, p := range s.Spec.Ports {
		if p.Port == t.port && (p.Protocol == corev1.ProtocolTCP || p.Protocol == "") {
			return p, "", ""
		}
	}
	return corev1.ServicePort{}, gatewayv1.RouteReasonBackendNotFound,
		fmt.Sprintf("the Service '%s' has no port %d", t.name, t.port)
}

// backend returns the index of a target in the table.
func (c *translation) backend(t target, client *routing.Certificate) int {
	if t.policy == nil {
		client = nil
	}
	key := backendKey{t, client}
	if i, found := c.backends[key]; found {
		return i
	}
	b := routing.Backend{Name: t.name.Namespace + "/" + t.name.Name + ":" + strconv.Itoa(int(t.port)),
		IsHTTP2: t.isHTTP2, Fault: t.fault}
	if t.fault == "" {
		b.Servers = c.servers(&t)
		if t.policy != nil {
			of := t.policy.tls
			of.Client = client
			b.TLS = &of
		}
	}
	c.out.Table.Backends = append(c.out.Table.Backends, b)
	c.backends[key] = len(c.out.Table.Backends) - 1
	return c.backends[key]
}

// servers are the ready endpoints of a target; if none is ready, those that terminate and still serve. In files without
// endpoints it is the name of the target in DNS.
func (c *translation) servers(t *target) []string {
	s := c.services[t.name]
	if c.options.AreOfFiles && (s == nil || len(s.slices) == 0) {
		port := t.port
		if s != nil && s.Spec.ClusterIP == corev1.ClusterIPNone { // DNS has the endpoints themselves
			p, _, _ := c.portOf(t)
			port = max(p.TargetPort.IntVal, 0)
			if port == 0 {
				port = t.port
			}
		}
		return []string{net.JoinHostPort(t.name.Name+"."+t.name.Namespace+".svc", strconv.Itoa(int(port)))}
	}
	name := ""
	if s.Service != nil {
		p, _, _ := c.portOf(t)
		name = p.Name
	}
	isNamed := func(p *discoveryv1.EndpointPort) bool {
		switch {
		case p.Port == nil || or(p.Protocol, corev1.ProtocolTCP) != corev1.ProtocolTCP:
			return false
		case s.Service != nil:
			return or(p.Name, "") == name
		}
		return *p.Port == t.port
	}
	if ready := addresses(s.slices, isNamed, isReady); len(ready) > 0 {
		return ready
	}
	return addresses(s.slices, isNamed, isLeaving)
}

// addresses returns the addresses of the endpoints of slices, each with its port, in order. A name in DNS is none, as
// of a Service of the type ExternalName.
func addresses(of []*discoveryv1.EndpointSlice, has func(*discoveryv1.EndpointPort) bool,
	is func(*discoveryv1.EndpointConditions) bool) []string {
	var all []string
	for _, slice := range of {
		if slice.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		for i := range slice.Ports {
			if !has(&slice.Ports[i]) {
				continue
			}
			port := strconv.Itoa(int(*slice.Ports[i].Port))
			for j := range slice.Endpoints {
				if e := &slice.Endpoints[j]; is(&e.Conditions) {
					all = appendAddresses(all, e.Addresses, port)
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func appendAddresses(all, addresses []string, port string) []string {
	for _, a := range addresses {
		if isAddress(a) {
			all = append(all, net.JoinHostPort(a, port))
		}
	}
	return all
}

// isReady reports whether an endpoint takes new requests. An unset condition means that it does.
func isReady(c *discoveryv1.EndpointConditions) bool { return or(c.Ready, true) }

// isLeaving reports whether an endpoint still answers while it terminates. kube-proxy sends requests to such endpoints
// if none is ready (KEP-1669).
func isLeaving(c *discoveryv1.EndpointConditions) bool {
	return or(c.Serving, true) && or(c.Terminating, false)
}
