package ingress

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// manyRoutes are so many HTTPRoutes, each with a host, a path and a Service of its own, and what they need.
func manyRoutes(n int) *Objects {
	o := &Objects{
		GatewayClasses: []*gatewayv1.GatewayClass{{ObjectMeta: metav1.ObjectMeta{Name: "ours"},
			Spec: gatewayv1.GatewayClassSpec{ControllerName: DefaultController}}},
		Namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}},
		Gateways: []*gatewayv1.Gateway{{
			ObjectMeta: metav1.ObjectMeta{Name: "gw", Namespace: "ns"},
			Spec: gatewayv1.GatewaySpec{GatewayClassName: "ours",
				Listeners: []gatewayv1.Listener{{Name: "http", Port: 80, Protocol: gatewayv1.HTTPProtocolType}}},
		}},
	}
	port, name := int32(8080), "http"
	for i := range n {
		service, path := fmt.Sprintf("s%d", i), fmt.Sprintf("/p%d", i)
		o.Services = append(o.Services, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: service, Namespace: "ns"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: name, Port: 80}}},
		})
		o.EndpointSlices = append(o.EndpointSlices, &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: service + "-1", Namespace: "ns",
				Labels: map[string]string{discoveryv1.LabelServiceName: service}},
			AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}, {Addresses: []string{"10.0.0.2"}}},
		})
		servicePort := int32(80)
		o.HTTPRoutes = append(o.HTTPRoutes, &gatewayv1.HTTPRoute{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("r%d", i), Namespace: "ns", Generation: 1,
				CreationTimestamp: metav1.Unix(int64(i%97), 0)},
			Spec: gatewayv1.HTTPRouteSpec{
				CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "gw"}}},
				Hostnames:       []gatewayv1.Hostname{gatewayv1.Hostname(fmt.Sprintf("h%d.example.com", i))},
				Rules: []gatewayv1.HTTPRouteRule{{
					Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Value: &path}}},
					BackendRefs: []gatewayv1.HTTPBackendRef{
						{BackendRef: gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{
							Name: gatewayv1.ObjectName(service), Port: &servicePort,
						}}}},
				}},
			},
		})
	}
	return o
}

// BenchmarkTranslate translates 10,000 routes whose statuses are written.
func BenchmarkTranslate(b *testing.B) {
	o := manyRoutes(10_000)
	translator := New(Options{Published: []string{"192.0.2.1"}})
	routes := byName(o.HTTPRoutes)
	for _, s := range translator.Translate(o, now).Statuses(nil) {
		if v, is := s.Value.(*gatewayv1.RouteStatus); is {
			routes[serviceName(s.Namespace, s.Name)].Status.RouteStatus = *v
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		translator.Translate(o, now).Statuses(nil)
	}
}
