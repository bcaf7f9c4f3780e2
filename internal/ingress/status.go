package ingress

import (
	"net/netip"
	"reflect"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/admission-gateway/gateway/internal/quote"
)

func (s *statuses) add(kind string, o metav1.Object, value any, hasChanged bool) {
	s.all = append(s.all, Status{kind, o.GetNamespace(), o.GetName(), o.GetResourceVersion(), value, hasChanged})
}

// The conditions that are the controller's own.
var (
	classConditions   = []string{string(gatewayv1.GatewayClassConditionStatusAccepted)}
	gatewayConditions = []string{string(gatewayv1.GatewayConditionAccepted),
		string(gatewayv1.GatewayConditionProgrammed), string(gatewayv1.GatewayConditionResolvedRefs),
		string(gatewayv1.GatewayConditionInsecureFrontendValidationMode)}
	setConditions = []string{string(gatewayv1.ListenerSetConditionAccepted),
		string(gatewayv1.ListenerSetConditionProgrammed)}
	listenerConditions = []string{string(gatewayv1.ListenerConditionAccepted),
		string(gatewayv1.ListenerConditionConflicted), string(gatewayv1.ListenerConditionResolvedRefs),
		string(gatewayv1.ListenerConditionProgrammed), string(gatewayv1.ListenerConditionOverlappingTLSConfig)}
	routeConditions = []string{string(gatewayv1.RouteConditionAccepted),
		string(gatewayv1.RouteConditionResolvedRefs), string(gatewayv1.RouteConditionPartiallyInvalid)}
	policyConditions = []string{string(gatewayv1.PolicyConditionAccepted),
		string(gatewayv1.BackendTLSPolicyConditionResolvedRefs)}
)

// features are the names of the API's features that the gateway has, in the order of the alphabet.
var features = []gatewayv1.FeatureName{
	"BackendTLSPolicy", "BackendTLSPolicySANValidation", "GRPCRoute", "GRPCRouteNamedRouteRule", "Gateway",
	"GatewayAddressEmpty",
	"GatewayBackendClientCertificate", "GatewayFrontendClientCertificateValidation",
	"GatewayFrontendClientCertificateValidationInsecureFallback", "GatewayHTTPListenerIsolation",
	"GatewayHTTPSListenerDetectMisdirectedRequests", "GatewayPort8080", "GatewayStaticAddresses", "HTTPRoute",
	"HTTPRoute303RedirectStatusCode", "HTTPRoute307RedirectStatusCode", "HTTPRoute308RedirectStatusCode",
	"HTTPRouteBackendProtocolH2C", "HTTPRouteBackendProtocolWebSocket", "HTTPRouteBackendRequestHeaderModification",
	"HTTPRouteBackendTimeout", "HTTPRouteCORS", "HTTPRouteDestinationPortMatching", "HTTPRouteHostRewrite",
	"HTTPRouteMethodMatching", "HTTPRouteNamedRouteRule", "HTTPRouteParentRefPort", "HTTPRoutePathRedirect",
	"HTTPRoutePathRewrite", "HTTPRoutePortRedirect", "HTTPRouteQueryParamMatching", "HTTPRouteRequestMirror",
	"HTTPRouteRequestMultipleMirrors", "HTTPRouteRequestPercentageMirror", "HTTPRouteRequestTimeout",
	"HTTPRouteResponseHeaderModification", "HTTPRouteRetry", "HTTPRouteRetryBackendTimeout",
	"HTTPRouteRetryConnectionError", "HTTPRouteSchemeRedirect", "ListenerSet", "ReferenceGrant",
}

// class says what became of a GatewayClass.
func (s *statuses) class(o *gatewayv1.GatewayClass, refused fault) {
	v := gatewayv1.GatewayClassStatus{Conditions: merged(o.Status.Conditions, []metav1.Condition{
		holds(gatewayv1.GatewayClassConditionStatusAccepted, gatewayv1.GatewayClassReasonAccepted, refused),
	}, classConditions, o.Generation, s.now)}
	for _, f := range features {
		v.SupportedFeatures = append(v.SupportedFeatures, gatewayv1.SupportedFeature{Name: f})
	}
	s.add(kindGatewayClass, o, &v, !sameConditions(v.Conditions, o.Status.Conditions) ||
		!slices.Equal(v.SupportedFeatures, o.Status.SupportedFeatures))
}

// report says what became of Gateways, ListenerSets and BackendTLSPolicies, once all routes are known.
func (c *translation) report(unserved map[string]string) {
	for _, g := range c.served {
		for _, l := range g.all() {
			l.closed = fault{}
			if !l.isOpen {
				continue
			}
			if why, is := unserved[c.out.Table.Listeners[l.index].Name()]; is {
				l.closed = fault{string(gatewayv1.ListenerReasonPortUnavailable), why}
			}
		}
		for _, set := range g.sets {
			c.statuses.set(set)
		}
		c.statuses.gateway(g)
	}
	var seen []*tlsPolicy
	for _, o := range c.in.BackendTLSPolicies {
		for i := range o.Spec.TargetRefs {
			ref := &o.Spec.TargetRefs[i]
			for _, p := range c.policies[policyTarget{serviceName(o.Namespace, string(ref.Name)),
				string(or(ref.SectionName, ""))}] {
				if p.BackendTLSPolicy == o && !slices.Contains(seen, p) {
					seen = append(seen, p)
				}
			}
		}
	}
	for _, p := range seen {
		c.statuses.policy(p, c.options.Controller)
	}
}

// gateway says what became of a Gateway.
func (s *statuses) gateway(g *gateway) {
	v := gatewayv1.GatewayStatus{Addresses: g.shown}
	has := map[gatewayv1.SectionName]gatewayv1.ListenerStatus{}
	for _, l := range g.Status.Listeners {
		has[l.Name] = l
	}
	var accepted, programmed int
	var faulty []string
	var closed fault
	count := func(l *listener) {
		if l.isOpen && !l.closed.is() {
			programmed++
		}
		closed = first(closed, l.closed)
	}
	for _, l := range g.listeners {
		one := gatewayv1.ListenerStatus{Name: l.spec.Name, SupportedKinds: l.kinds, AttachedRoutes: l.attached}
		one.Conditions = merged(has[l.spec.Name].Conditions, l.conditions(), listenerConditions, g.Generation, s.now)
		v.Listeners = append(v.Listeners, one)
		switch {
		case l.refused.is() || l.conflict.is():
			faulty = append(faulty, string(l.spec.Name))
		case l.closed.is():
			faulty = append(faulty, string(l.spec.Name))
			accepted++ // it may be served yet, without a change of the Gateway
		default:
			accepted++
		}
		count(l)
	}
	attached := int32(0)
	for _, set := range g.sets {
		if !set.fault().is() {
			attached++
		}
		for _, l := range set.listeners {
			count(l)
		}
	}
	v.AttachedListenerSets = &attached
	v.Conditions = merged(g.Status.Conditions, g.conditions(accepted, programmed, faulty, closed), gatewayConditions,
		g.Generation, s.now)
	s.add(kindGateway, g.Gateway, &v, !sameGatewayStatus(&v, &g.Status))
}

// conditions are those of a Gateway with so many listeners. closed is why the first of those that are in force takes no
// requests.
func (g *gateway) conditions(accepted, programmed int, faulty []string, closed fault) []metav1.Condition {
	refused := g.refused
	if !refused.is() && accepted == 0 {
		refused = fault{string(gatewayv1.GatewayReasonListenersNotValid), "no listener is accepted"}
	}
	is := holds(gatewayv1.GatewayConditionAccepted, gatewayv1.GatewayReasonAccepted, refused)
	if !refused.is() && len(faulty) > 0 {
		is = isSo(gatewayv1.GatewayConditionAccepted, gatewayv1.GatewayReasonListenersNotValid,
			"not accepted are the listeners "+quote.Names(faulty))
	}
	lacks := g.unaddressed
	switch {
	case refused.is():
		lacks = fault{string(gatewayv1.GatewayReasonInvalid), refused.message}
	case lacks.is():
	case programmed == 0 && closed.is():
		lacks = fault{string(gatewayv1.GatewayReasonAddressNotUsable), closed.message}
	case programmed == 0:
		lacks = fault{string(gatewayv1.GatewayReasonInvalid), "no listener can be served"}
	case len(g.shown) == 0:
		lacks = fault{string(gatewayv1.GatewayReasonAddressNotAssigned),
			"the addresses by which clients reach the gateway are not known"}
	}
	unresolved := g.unresolved
	for _, l := range g.listeners {
		if !unresolved.is() && l.unresolved.is() {
			unresolved = fault{string(gatewayv1.GatewayReasonListenersNotResolved), "the listener '" +
				string(l.spec.Name) + "': " + l.unresolved.message}
		}
	}
	all := []metav1.Condition{
		is,
		holds(gatewayv1.GatewayConditionProgrammed, gatewayv1.GatewayReasonProgrammed, lacks),
		holds(gatewayv1.GatewayConditionResolvedRefs, gatewayv1.GatewayReasonResolvedRefs, unresolved),
	}
	if g.asksInsecurely() {
		all = append(all, isSo(gatewayv1.GatewayConditionInsecureFrontendValidationMode,
			gatewayv1.GatewayReasonConfigurationChanged, "clients without a valid certificate are served"))
	}
	return all
}

// asksInsecurely reports whether the Gateway says that clients without a valid certificate are to be served.
func (g *gateway) asksInsecurely() bool {
	if g.Spec.TLS == nil || g.Spec.TLS.Frontend == nil {
		return false
	}
	f := g.Spec.TLS.Frontend
	isInsecure := func(v *gatewayv1.FrontendTLSValidation) bool {
		return v != nil && v.Mode == gatewayv1.AllowInsecureFallback
	}
	return isInsecure(f.Default.Validation) ||
		slices.ContainsFunc(f.PerPort, func(p gatewayv1.TLSPortConfig) bool { return isInsecure(p.TLS.Validation) })
}

// conditions are those of a listener.
func (l *listener) conditions() []metav1.Condition {
	refused := first(l.conflict, l.refused, l.closed)
	lacks := l.lacks
	switch {
	case l.conflict.is():
		lacks = l.conflict
	case l.refused.is():
		lacks = fault{string(gatewayv1.ListenerReasonInvalid), l.refused.message}
	case lacks.is():
	case l.closed.is():
		lacks = fault{string(gatewayv1.ListenerReasonPending), l.closed.message}
	case l.isOpen:
	case l.gateway.unaddressed.is():
		lacks = fault{string(gatewayv1.ListenerReasonPending), l.gateway.unaddressed.message}
	case l.gateway.refused.is():
		lacks = fault{string(gatewayv1.ListenerReasonInvalid), l.gateway.refused.message}
	}
	conflicted := isNot(gatewayv1.ListenerConditionConflicted, gatewayv1.ListenerReasonNoConflicts, "")
	if l.conflict.is() {
		conflicted = isSo(gatewayv1.ListenerConditionConflicted, l.conflict.reason, l.conflict.message)
	}
	all := []metav1.Condition{
		holds(gatewayv1.ListenerConditionAccepted, gatewayv1.ListenerReasonAccepted, refused),
		conflicted,
		holds(gatewayv1.ListenerConditionResolvedRefs, gatewayv1.ListenerReasonResolvedRefs, l.unresolved),
		holds(gatewayv1.ListenerConditionProgrammed, gatewayv1.ListenerReasonProgrammed, lacks),
	}
	if len(l.overlaps) > 0 {
		all = append(all, isSo(gatewayv1.ListenerConditionOverlappingTLSConfig,
			gatewayv1.ListenerReasonOverlappingHostnames, "the hosts overlap with those of the listeners "+
				quote.Names(l.overlaps)))
	}
	return all
}

// fault is why no listener of the set can be served.
func (s *listenerSet) fault() fault {
	if s.refused.is() {
		return s.refused
	}
	for _, l := range s.listeners {
		if l.isValid() {
			return fault{}
		}
	}
	return fault{string(gatewayv1.ListenerSetReasonListenersNotValid), "no listener is accepted"}
}

// set says what became of a ListenerSet.
func (s *statuses) set(set *listenerSet) {
	v := gatewayv1.ListenerSetStatus{}
	has := map[gatewayv1.SectionName]gatewayv1.ListenerEntryStatus{}
	for _, l := range set.Status.Listeners {
		has[l.Name] = l
	}
	isWhole := true
	var programmed int
	var closed fault
	for _, l := range set.listeners {
		one := gatewayv1.ListenerEntryStatus{Name: l.spec.Name, SupportedKinds: l.kinds, AttachedRoutes: l.attached}
		one.Conditions = merged(has[l.spec.Name].Conditions, l.conditions(), listenerConditions, set.Generation, s.now)
		v.Listeners = append(v.Listeners, one)
		isWhole = isWhole && l.isValid() && !l.closed.is()
		closed = first(closed, l.closed)
		if l.isOpen && !l.closed.is() {
			programmed++
		}
	}
	f := set.fault()
	accepted := holds(gatewayv1.ListenerSetConditionAccepted, gatewayv1.ListenerSetReasonAccepted, f)
	if !f.is() && !isWhole {
		accepted = isSo(gatewayv1.ListenerSetConditionAccepted, gatewayv1.ListenerSetReasonListenersNotValid,
			"some listeners are not accepted")
	}
	lacks := f
	if !f.is() && set.gateway.unaddressed.is() {
		lacks = fault{string(gatewayv1.ListenerSetReasonPending), set.gateway.unaddressed.message}
	} else if !f.is() && programmed == 0 && closed.is() {
		lacks = fault{string(gatewayv1.ListenerSetReasonPending), closed.message}
	}
	v.Conditions = merged(set.Status.Conditions,
		[]metav1.Condition{accepted,
			holds(gatewayv1.ListenerSetConditionProgrammed, gatewayv1.ListenerSetReasonProgrammed, lacks)},
		setConditions, set.Generation, s.now)
	same := sameConditions(v.Conditions, set.Status.Conditions) && slices.EqualFunc(v.Listeners, set.Status.Listeners,
		func(a, b gatewayv1.ListenerEntryStatus) bool {
			return a.Name == b.Name && a.AttachedRoutes == b.AttachedRoutes &&
				sameConditions(a.Conditions, b.Conditions) &&
				sameKinds(a.SupportedKinds, b.SupportedKinds)
		})
	s.add(kindListenerSet, set.ListenerSet, &v, !same)
}

func sameKinds(a, b []gatewayv1.RouteGroupKind) bool {
	return slices.EqualFunc(a, b, func(x, y gatewayv1.RouteGroupKind) bool {
		return x.Kind == y.Kind && or(x.Group, gatewayv1.GroupName) == or(y.Group, gatewayv1.GroupName)
	})
}

func sameGatewayStatus(a, b *gatewayv1.GatewayStatus) bool {
	return sameConditions(a.Conditions, b.Conditions) &&
		or(a.AttachedListenerSets, 0) == or(b.AttachedListenerSets, -1) &&
		slices.EqualFunc(a.Addresses, b.Addresses, func(x, y gatewayv1.GatewayStatusAddress) bool {
			return x.Value == y.Value && or(x.Type, gatewayv1.IPAddressType) == or(y.Type, gatewayv1.IPAddressType)
		}) &&
		slices.EqualFunc(a.Listeners, b.Listeners, func(x, y gatewayv1.ListenerStatus) bool {
			return x.Name == y.Name && x.AttachedRoutes == y.AttachedRoutes &&
				sameConditions(x.Conditions, y.Conditions) && sameKinds(x.SupportedKinds, y.SupportedKinds)
		})
}

// route says what became of a route at each of its parents. What other controllers say of it stays.
func (s *statuses) route(r *routeObject, controller string, parents []attachedParent, unresolved, partly fault) {
	wanted := make([]gatewayv1.RouteParentStatus, 0, len(r.status.Parents)+len(parents))
	isSame := true
	for _, has := range r.status.Parents {
		if string(has.ControllerName) != controller {
			wanted = append(wanted, has)
		}
	}
	others := len(wanted)
	for i := range parents {
		p := &parents[i]
		ref := r.parents[p.index]
		if slices.ContainsFunc(wanted[others:],
			func(w gatewayv1.RouteParentStatus) bool { return reflect.DeepEqual(w.ParentRef, ref) }) {
			continue // named twice
		}
		one := gatewayv1.RouteParentStatus{ParentRef: ref, ControllerName: gatewayv1.GatewayController(controller)}
		var has []metav1.Condition
		for j := range r.status.Parents {
			if h := &r.status.Parents[j]; string(h.ControllerName) == controller && sameParent(&h.ParentRef, &ref) {
				has = h.Conditions
			}
		}
		conditions := []metav1.Condition{
			holds(gatewayv1.RouteConditionAccepted, gatewayv1.RouteReasonAccepted, p.refused),
			holds(gatewayv1.RouteConditionResolvedRefs, gatewayv1.RouteReasonResolvedRefs, unresolved),
		}
		if partly.is() && !p.refused.is() {
			conditions = append(conditions, isSo(gatewayv1.RouteConditionPartiallyInvalid, partly.reason,
				partly.message))
		}
		one.Conditions = merged(has, conditions, routeConditions, r.GetGeneration(), s.now)
		wanted = append(wanted, one)
	}
	if len(wanted) == others && others == len(r.status.Parents) {
		return // it is, and was, none of the controller's
	}
	isSame = len(wanted) == len(r.status.Parents)
	for i := 0; isSame && i < len(wanted); i++ {
		h := &r.status.Parents[i]
		isSame = h.ControllerName == wanted[i].ControllerName && sameParent(&h.ParentRef, &wanted[i].ParentRef) &&
			sameConditions(h.Conditions, wanted[i].Conditions)
	}
	s.add(r.kind, r.Object, &gatewayv1.RouteStatus{Parents: wanted}, !isSame)
}

// sameParent reports whether two references say the same in the same words, as the defaults of the API leave them.
func sameParent(a, b *gatewayv1.ParentReference) bool {
	return a.Name == b.Name && samePointed(a.Group, b.Group) && samePointed(a.Kind, b.Kind) &&
		samePointed(a.Namespace, b.Namespace) &&
		samePointed(a.SectionName, b.SectionName) && samePointed(a.Port, b.Port)
}

func samePointed[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// policy says what became of a BackendTLSPolicy at each Gateway whose routes lead to its targets.
func (s *statuses) policy(p *tlsPolicy, controller string) {
	var wanted []gatewayv1.PolicyAncestorStatus
	for _, has := range p.Status.Ancestors {
		if string(has.ControllerName) != controller {
			wanted = append(wanted, has)
		}
	}
	if len(wanted) == 0 && len(p.ancestors) == 0 && len(p.Status.Ancestors) == 0 {
		return
	}
	refused := p.refused
	if !p.wins {
		refused = first(p.conflict, refused)
	}
	group, kind := gatewayv1.Group(gatewayv1.GroupName), gatewayv1.Kind(kindGateway)
	for _, g := range p.ancestors {
		if len(wanted) == maxAncestors {
			break
		}
		namespace := gatewayv1.Namespace(g.Namespace)
		ref := gatewayv1.ParentReference{Group: &group, Kind: &kind, Namespace: &namespace,
			Name: gatewayv1.ObjectName(g.Name)}
		one := gatewayv1.PolicyAncestorStatus{AncestorRef: ref, ControllerName: gatewayv1.GatewayController(controller)}
		var has []metav1.Condition
		for i := range p.Status.Ancestors {
			if h := &p.Status.Ancestors[i]; string(h.ControllerName) == controller && sameParent(&h.AncestorRef, &ref) {
				has = h.Conditions
			}
		}
		one.Conditions = merged(has, []metav1.Condition{
			holds(gatewayv1.PolicyConditionAccepted, gatewayv1.PolicyReasonAccepted, refused),
			holds(gatewayv1.BackendTLSPolicyConditionResolvedRefs, gatewayv1.BackendTLSPolicyReasonResolvedRefs,
				p.unresolved),
		}, policyConditions, p.Generation, s.now)
		wanted = append(wanted, one)
	}
	if wanted == nil {
		wanted = []gatewayv1.PolicyAncestorStatus{} // the API requires a list
	}
	same := slices.EqualFunc(wanted, p.Status.Ancestors, func(a, b gatewayv1.PolicyAncestorStatus) bool {
		return a.ControllerName == b.ControllerName && sameParent(&a.AncestorRef, &b.AncestorRef) &&
			sameConditions(a.Conditions, b.Conditions)
	})
	s.add(kindBackendTLSPolicy, p.BackendTLSPolicy, &gatewayv1.PolicyStatus{Ancestors: wanted}, !same)
}

// ingress says by which addresses an Ingress is reached.
func (s *statuses) ingress(o *networkingv1.Ingress, shown []gatewayv1.GatewayStatusAddress) {
	v := networkingv1.IngressStatus{}
	for _, a := range shown {
		one := networkingv1.IngressLoadBalancerIngress{Hostname: a.Value}
		if _, err := netip.ParseAddr(a.Value); err == nil {
			one = networkingv1.IngressLoadBalancerIngress{IP: a.Value}
		}
		v.LoadBalancer.Ingress = append(v.LoadBalancer.Ingress, one)
	}
	same := slices.EqualFunc(v.LoadBalancer.Ingress, o.Status.LoadBalancer.Ingress,
		func(a, b networkingv1.IngressLoadBalancerIngress) bool {
			return a.IP == b.IP && a.Hostname == b.Hostname
		})
	s.add(kindIngress, o, &v, !same)
}
