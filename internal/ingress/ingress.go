// Package ingress translates objects of Gateway API, and Ingresses, into what the data plane routes by, and into the
// statuses that say what became of them. It reads and writes nothing itself: where the objects come from, files or a
// cluster, is its caller's affair.
//
// It fails closed. A reference into another namespace counts only if a ReferenceGrant allows it, a route takes requests
// only from listeners that allow its namespace and its kind, and what cannot be carried out is an error for the clients
// of the rule that asks for it, never a rule that is left out in silence.
package ingress

import (
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/admission-gateway/gateway/internal/routing"
)

// DefaultController is the controller of GatewayClasses and IngressClasses that the gateway serves unless it is given
// another name.
const DefaultController = "admission-gateway.io/gateway"

// Objects are a snapshot of everything that routes are made of. Nothing changes them.
type Objects struct {
	GatewayClasses     []*gatewayv1.GatewayClass
	Gateways           []*gatewayv1.Gateway
	ListenerSets       []*gatewayv1.ListenerSet
	HTTPRoutes         []*gatewayv1.HTTPRoute
	GRPCRoutes         []*gatewayv1.GRPCRoute
	TLSRoutes          []*gatewayv1.TLSRoute
	TCPRoutes          []*gatewayv1.TCPRoute
	UDPRoutes          []*gatewayv1.UDPRoute
	ReferenceGrants    []*gatewayv1.ReferenceGrant
	BackendTLSPolicies []*gatewayv1.BackendTLSPolicy
	IngressClasses     []*networkingv1.IngressClass
	Ingresses          []*networkingv1.Ingress
	Services           []*corev1.Service
	EndpointSlices     []*discoveryv1.EndpointSlice
	Secrets            []*corev1.Secret
	ConfigMaps         []*corev1.ConfigMap
	Namespaces         []*corev1.Namespace
}

// Options say how objects are translated.
type Options struct {
	// Controller is the controllerName of the classes that count; empty means DefaultController.
	Controller string
	// GatewayClass is the only GatewayClass that counts; empty means all of the controller's.
	GatewayClass string
	// Pool has the addresses that Gateways may ask for, and of which each Gateway gets one of its own if it asks for none.
	// Without a pool all Gateways share all addresses of the machine.
	Pool []netip.Prefix
	// Published are the addresses, or the host names, by which clients reach Gateways that have none of the pool.
	Published []string
	// Service is the Service whose addresses are published if Published is empty.
	Service types.NamespacedName
	// IngressPort and IngressTLSPort are the ports of Ingresses; 0 means 80 and 443.
	IngressPort, IngressTLSPort int32
	// ResolvesNames says that a Service without EndpointSlices is reached by its name in DNS. It is so for objects of
	// files, among which there may not even be the Service.
	ResolvesNames bool
}

// An Outcome is what objects come to. Its Table must not be changed.
type Outcome struct {
	Table    *routing.Table
	Statuses []Status
	// Problems are all that keeps objects from being in force as they are written.
	Problems []Problem
}

// A Problem is why a part of an object is not in force.
type Problem struct {
	Kind, Namespace, Name string
	// Path is the field that is to blame.
	Path    string
	Message string
}

// A Translator translates one snapshot after the other, and keeps what it has worked out of objects that did not change:
// these have to be the same pointers then. It is for one goroutine at a time.
type Translator struct {
	options Options
	pairs   kept[*corev1.Secret, pair]
	cas     kept[*corev1.ConfigMap, authorities]
}

// New returns a Translator.
func New(o Options) *Translator {
	if o.Controller == "" {
		o.Controller = DefaultController
	}
	if o.IngressPort == 0 {
		o.IngressPort = 80
	}
	if o.IngressTLSPort == 0 {
		o.IngressTLSPort = 443
	}
	return &Translator{options: o}
}

// Translate translates a snapshot. Conditions that change have changed now.
func (t *Translator) Translate(in *Objects, now time.Time) *Outcome {
	c := &translation{
		Translator: t, in: in, out: &Outcome{Table: &routing.Table{}},
		grants: grantsOf(in.ReferenceGrants), namespaces: namespacesOf(in.Namespaces, t.options.ResolvesNames),
		services: servicesOf(in), secrets: byName(in.Secrets), configMaps: byName(in.ConfigMaps),
		backends: map[backendKey]int{},
	}
	c.statuses.now = now
	c.policies = c.tlsPolicies()
	c.classes()
	c.gateways()
	c.routes()
	c.ingresses()
	c.unsupportedRoutes()
	c.report()
	c.out.Statuses = c.statuses.all
	t.pairs.turn()
	t.cas.turn()
	return c.out
}

// A translation is one snapshot on its way.
type translation struct {
	*Translator
	in       *Objects
	out      *Outcome
	statuses statuses

	grants     grants
	namespaces namespaces
	services   map[types.NamespacedName]*service
	secrets    map[types.NamespacedName]*corev1.Secret
	configMaps map[types.NamespacedName]*corev1.ConfigMap
	policies   map[policyTarget][]*tlsPolicy
	backends   map[backendKey]int // indexes of the table's

	owned     map[string]bool // the names of the GatewayClasses that count
	served    []*gateway      // the oldest first
	byGateway map[types.NamespacedName]*gateway
	bySet     map[types.NamespacedName]*listenerSet
	held      []*claim // of ports
	taken     map[netip.Addr]bool
}

// problem notes that a part of an object is not in force.
func (c *translation) problem(kind, namespace, name, path, message string) {
	c.out.Problems = append(c.out.Problems, Problem{kind, namespace, name, path, message})
}

// kept remembers what was made of values of the last snapshot and of this one.
type kept[K comparable, V any] struct{ before, now map[K]V }

// of returns what was made of a value, which it makes if need be.
func (k *kept[K, V]) of(key K, make_ func() V) V {
	if v, found := k.now[key]; found {
		return v
	}
	v, found := k.before[key]
	if !found {
		v = make_()
	}
	if k.now == nil {
		k.now = map[K]V{}
	}
	k.now[key] = v
	return v
}

// turn ends a snapshot.
func (k *kept[K, V]) turn() { k.before, k.now = k.now, nil }
