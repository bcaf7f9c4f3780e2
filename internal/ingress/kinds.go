package ingress

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// A Kind is one of the kinds of a snapshot.
type Kind struct {
	Group, Kind, Plural string
	// Versions are those that can be read as the type, the one to ask an API server for first.
	Versions []string
	// IsClusterScoped says that its objects belong to no namespace.
	IsClusterScoped bool
	// IsOptional says that an API server may not have it.
	IsOptional bool
	// HasStatus says that the controller writes its status.
	HasStatus bool
	// Query narrows a list at an API server.
	Query string
	// New returns an empty object, as a pointer to its type.
	New func() any
	// Add adds an object, of the type of New, to a snapshot.
	Add func(*Objects, any)
}

// Path is the path of its collection at an API server, in a namespace or, if it is empty, in all.
func (k *Kind) Path(namespace string) string {
	p := "/apis/" + k.Group + "/" + k.Versions[0]
	if k.Group == "" {
		p = "/api/" + k.Versions[0]
	}
	if namespace != "" && !k.IsClusterScoped {
		p += "/namespaces/" + namespace
	}
	return p + "/" + k.Plural
}

// Kinds are all kinds that routes are made of.
var Kinds = []Kind{
	of(gatewayv1.GroupName, kindGatewayClass, "gatewayclasses",
		func(o *Objects) *[]*gatewayv1.GatewayClass { return &o.GatewayClasses }, "v1",
		"v1beta1").optional().clusterScoped().written(),
	of(gatewayv1.GroupName, kindGateway, "gateways", func(o *Objects) *[]*gatewayv1.Gateway { return &o.Gateways },
		"v1", "v1beta1").optional().written(),
	of(gatewayv1.GroupName, kindListenerSet, "listenersets",
		func(o *Objects) *[]*gatewayv1.ListenerSet { return &o.ListenerSets }, "v1").optional().written(),
	of(gatewayv1.GroupName, kindHTTPRoute, "httproutes",
		func(o *Objects) *[]*gatewayv1.HTTPRoute { return &o.HTTPRoutes }, "v1", "v1beta1").optional().written(),
	of(gatewayv1.GroupName, kindGRPCRoute, "grpcroutes",
		func(o *Objects) *[]*gatewayv1.GRPCRoute { return &o.GRPCRoutes }, "v1").optional().written(),
	of(gatewayv1.GroupName, kindTLSRoute, "tlsroutes", func(o *Objects) *[]*gatewayv1.TLSRoute { return &o.TLSRoutes },
		"v1").optional().written(),
	of(gatewayv1.GroupName, kindTCPRoute, "tcproutes", func(o *Objects) *[]*gatewayv1.TCPRoute { return &o.TCPRoutes },
		"v1").optional().written(),
	of(gatewayv1.GroupName, kindUDPRoute, "udproutes", func(o *Objects) *[]*gatewayv1.UDPRoute { return &o.UDPRoutes },
		"v1").optional().written(),
	// Releases of the API before v1.5 have ReferenceGrant in v1beta1 alone, and all later ones serve it.
	of(gatewayv1.GroupName, "ReferenceGrant", "referencegrants",
		func(o *Objects) *[]*gatewayv1.ReferenceGrant { return &o.ReferenceGrants }, "v1beta1", "v1").optional(),
	of(gatewayv1.GroupName, kindBackendTLSPolicy, "backendtlspolicies",
		func(o *Objects) *[]*gatewayv1.BackendTLSPolicy { return &o.BackendTLSPolicies }, "v1").optional().written(),
	of(networkingv1.GroupName, kindIngressClass, "ingressclasses",
		func(o *Objects) *[]*networkingv1.IngressClass { return &o.IngressClasses }, "v1").clusterScoped(),
	of(networkingv1.GroupName, kindIngress, "ingresses",
		func(o *Objects) *[]*networkingv1.Ingress { return &o.Ingresses }, "v1").written(),
	of("", kindService, "services", func(o *Objects) *[]*corev1.Service { return &o.Services }, "v1"),
	of(discoveryv1.GroupName, "EndpointSlice", "endpointslices",
		func(o *Objects) *[]*discoveryv1.EndpointSlice { return &o.EndpointSlices }, "v1"),
	of("", kindSecret, "secrets", func(o *Objects) *[]*corev1.Secret { return &o.Secrets },
		"v1").narrowed("fieldSelector=type%3D" + "kubernetes.io%2Ftls"),
	of("", kindConfigMap, "configmaps", func(o *Objects) *[]*corev1.ConfigMap { return &o.ConfigMaps }, "v1"),
	of("", "Namespace", "namespaces", func(o *Objects) *[]*corev1.Namespace { return &o.Namespaces },
		"v1").clusterScoped(),
}

func of[T any](group, kind, plural string, in func(*Objects) *[]*T, versions ...string) Kind {
	return Kind{
		Group: group, Kind: kind, Plural: plural, Versions: versions,
		New: func() any { return new(T) },
		Add: func(o *Objects, one any) {
			to := in(o)
			*to = append(*to, one.(*T))
		},
	}
}

func (k Kind) optional() Kind { k.IsOptional = true; return k }

func (k Kind) clusterScoped() Kind { k.IsClusterScoped = true; return k }

func (k Kind) written() Kind { k.HasStatus = true; return k }

func (k Kind) narrowed(query string) Kind { k.Query = query; return k }
