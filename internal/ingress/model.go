package ingress

import (
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/admission-gateway/gateway/internal/routing"
)

// The kinds of Gateway API.
const (
	kindGatewayClass     = "GatewayClass"
	kindGateway          = "Gateway"
	kindListenerSet      = "ListenerSet"
	kindHTTPRoute        = "HTTPRoute"
	kindGRPCRoute        = "GRPCRoute"
	kindTLSRoute         = "TLSRoute"
	kindTCPRoute         = "TCPRoute"
	kindUDPRoute         = "UDPRoute"
	kindBackendTLSPolicy = "BackendTLSPolicy"
)

// Core kinds.
const (
	kindSecret    = "Secret"
	kindConfigMap = "ConfigMap"
	kindService   = "Service"
)

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
	held      []*listener // that have their ports
	taken     map[netip.Addr]bool
	// ofIngresses is the address of the pool that the Ingresses have; invalid if they have none.
	ofIngresses netip.Addr
}

// problem notes that a part of an object is not in force.
func (c *translation) problem(kind, namespace, name, path, message string) {
	c.out.Problems = append(c.out.Problems, Problem{kind, namespace, name, path, message})
}

// A Translator translates one snapshot after the other, and keeps what it has worked out of objects that did not
// change: these have to be the same pointers then. It is for one goroutine at a time.
type Translator struct {
	options Options
	pairs   kept[*corev1.Secret, pair]
	cas     kept[*corev1.ConfigMap, authorities]
	hosts   kept[string, string] // why they cannot be served
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

// A gateway is a Gateway of the controller's.
type gateway struct {
	*gatewayv1.Gateway
	listeners []*listener // its own
	sets      []*listenerSet
	addresses []netip.Addr
	shown     []gatewayv1.GatewayStatusAddress
	// refused is why it is not accepted, unaddressed why its addresses cannot be served, unresolved why its client
	// certificate is not known.
	refused, unaddressed, unresolved fault
	// client is what it shows to backends; nil is nothing.
	client *routing.Certificate
	// letsStrangersIn says that a listener serves clients without a valid certificate.
	letsStrangersIn bool
}

// A listenerSet is a ListenerSet of such a Gateway.
type listenerSet struct {
	*gatewayv1.ListenerSet
	gateway   *gateway
	listeners []*listener
	refused   fault
}

// A listener is one of a Gateway, or of a ListenerSet.
type listener struct {
	gateway *gateway
	set     *listenerSet // nil for the Gateway's own
	spec    gatewayv1.Listener
	path    string // of the field that has it
	host    string
	kinds   []gatewayv1.RouteGroupKind
	allowed namespaceRule // whose routes it takes
	tls     *routing.ListenerTLS
	// refused is why it is not accepted, conflict with what it is in conflict, unresolved what it refers to in vain.
	refused, conflict, unresolved fault
	// lacks is why it cannot be served although it is accepted.
	lacks fault
	// overlaps are the names of the listeners of the port that may take requests of one connection for it.
	overlaps []string
	isOpen   bool
	index    int // in the table, if it is open
	// closed is why it takes no requests although it is open in the table: a socket, or certificates, are in the way.
	closed   fault
	attached int32
}

// namespace is the one of the object that has the listener.
func (l *listener) namespace() string {
	if l.set != nil {
		return l.set.Namespace
	}
	return l.gateway.Namespace
}

// owner is the name of the object that has the listener.
func (l *listener) owner() string {
	if l.set != nil {
		return l.set.Name
	}
	return l.gateway.Name
}

// isValid reports whether the listener can be served, as far as it is up to itself.
func (l *listener) isValid() bool { return !l.refused.is() && !l.conflict.is() && !l.lacks.is() }

// problem notes what is wrong with a field of the listener.
func (c *translation) listenerProblem(l *listener, field, message string) {
	if l.set != nil {
		c.problem(kindListenerSet, l.set.Namespace, l.set.Name, l.path+field, message)
		return
	}
	c.problem(kindGateway, l.gateway.Namespace, l.gateway.Name, l.path+field, message)
}

// A routeObject is a route of any kind, as far as the kinds are alike.
type routeObject struct {
	kind string
	metav1.Object
	parents []gatewayv1.ParentReference
	hosts   []gatewayv1.Hostname
	status  *gatewayv1.RouteStatus
}

// An attached parent is a Gateway or a ListenerSet of the controller's that a route names.
type attachedParent struct {
	index   int // of the reference
	gateway *gateway
	// refused is why the route is not accepted there.
	refused fault
	takes   []attachment
}

// An attachment is a listener that takes requests for a route, and for which host.
type attachment struct {
	listener *listener
	host     string
}

// A service is a Service with its endpoints; the Service is nil if there are endpoints alone.
type service struct {
	*corev1.Service
	slices []*discoveryv1.EndpointSlice
}

// A target is what a reference to a backend leads to.
type target struct {
	name    types.NamespacedName
	port    int32
	isHTTP2 bool
	policy  *tlsPolicy // nil: it is spoken to without TLS
	// fault is why requests cannot go there.
	fault string
}

// backendKey identifies a backend of the table.
type backendKey struct {
	target
	client *routing.Certificate
}

// A tlsPolicy is a BackendTLSPolicy, with the settings of TLS that are made of it.
type tlsPolicy struct {
	*gatewayv1.BackendTLSPolicy
	tls routing.BackendTLS
	// refused is why it cannot be used, conflict why an older one counts, unresolved which authority is not known.
	refused, conflict, unresolved fault
	wins                          bool // for one of its targets
	ancestors                     []*gateway
}

// A policyTarget is a port of a Service, or all its ports.
type policyTarget struct {
	service types.NamespacedName
	section string
}

// A pair is what a Secret has of a certificate and its key.
type pair struct {
	certificate *routing.Certificate // nil if it has none that can be used
	problem     string
}

// authorities are what a ConfigMap has of certificates of authorities.
type authorities struct {
	pem     []byte // nil if it has none that can be used
	problem string
}

// statuses collects what became of objects.
type statuses struct {
	now time.Time
	all []Status
}

func serviceName(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// maxAncestors is how many ancestors a policy may have in its status.
const maxAncestors = 16

// all returns the listeners of a Gateway and of its ListenerSets.
func (g *gateway) all() []*listener {
	all := g.listeners[:len(g.listeners):len(g.listeners)]
	for _, s := range g.sets {
		all = append(all, s.listeners...)
	}
	return all
}
