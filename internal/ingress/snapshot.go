package ingress

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/admission-gateway/gateway/internal/routing"
)

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
	// Pool has the addresses that Gateways may ask for, and of which each Gateway gets one of its own if it asks for
	// none. Without a pool all Gateways share all addresses of the machine.
	Pool []netip.Prefix
	// Published are the addresses, or the host names, by which clients reach Gateways that have none of the pool.
	Published []string
	// Service is the Service whose addresses are published if Published is empty.
	Service types.NamespacedName
	// IngressPort and IngressTLSPort are the ports of Ingresses; 0 means 80 and 443.
	IngressPort, IngressTLSPort int32
	// AreOfFiles says that an operator has written the objects into files: a Service without EndpointSlices, or that is
	// not among them, is reached by its name in DNS, and Gateways listen on the addresses that they ask for.
	AreOfFiles bool
}

// An Outcome is the result of a translation. Its Table must not be changed.
type Outcome struct {
	Table *routing.Table
	// Problems are all that keeps objects from being in force as they are written.
	Problems []Problem

	translation *translation
}

// A Problem is why a part of an object is not in force.
type Problem struct {
	Kind, Namespace, Name string
	// Path is the field that is to blame.
	Path    string
	Message string
}

// A Status is what became of an object of the controller's.
type Status struct {
	Kind, Namespace, Name string
	// Version is the resourceVersion of the object.
	Version string
	// Value is the whole status, in the type that the API has for it. What others said in it stays.
	Value any
	// HasChanged says that the object has another one.
	HasChanged bool
}

// Target returns the path of the status of an object at an API server.
func (s *Status) Target() (string, error) {
	for i := range Kinds {
		if k := &Kinds[i]; k.Kind == s.Kind {
			return k.Path(s.Namespace) + "/" + s.Name + "/status", nil
		}
	}
	return "", fmt.Errorf("the kind '%s' has no status", s.Kind)
}

// Fields are the fields that the controller writes in the status of such an object.
func (s *Status) Fields() []string {
	switch s.Value.(type) {
	case *gatewayv1.GatewayStatus:
		return []string{"addresses", "conditions", "listeners", "attachedListenerSets"}
	case *gatewayv1.ListenerSetStatus:
		return []string{"conditions", "listeners"}
	case *networkingv1.IngressStatus:
		return []string{"loadBalancer"}
	}
	return nil
}

// DefaultController is the controller of GatewayClasses and IngressClasses that the gateway serves unless it is given
// another name.
const DefaultController = "admission-gateway.io/gateway"
