package ingress

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// owned are the objects of the namespace 'infra': a host, a Service at 10.0.0.1, a Secret and authorities, that the
// namespace 'evil' has no leave to use.
const owned = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: ours}
spec: {controllerName: admission-gateway.io/gateway}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: infra, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  gatewayClassName: ours
  allowedListeners: {namespaces: {from: Selector, selector: {matchLabels: {listeners: "yes"}}}}
  listeners:
  - {name: own, port: 80, protocol: HTTP, hostname: app.example.com}
  - {name: selected, port: 80, protocol: HTTP, hostname: "*.example.com", allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {routes: "yes"}}}}}
  - {name: tls, port: 443, protocol: HTTPS, hostname: app.example.com, tls: {certificateRefs: [{name: tls}]}}
  - {name: calls, port: 81, protocol: HTTP, hostname: app.example.com, allowedRoutes: {namespaces: {from: All}, kinds: [{kind: GRPCRoute}]}}
---
apiVersion: v1
kind: Namespace
metadata: {name: infra, labels: {routes: "yes", listeners: "yes"}}
---
apiVersion: v1
kind: Namespace
metadata: {name: evil, labels: {routes: "no"}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: app, namespace: infra}
spec:
  parentRefs: [{name: gw}]
  rules: [{backendRefs: [{name: app, port: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: app, namespace: infra}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: app, namespace: infra, labels: {kubernetes.io/service-name: app}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.0.0.1]}]
---
apiVersion: v1
kind: Secret
metadata: {name: tls, namespace: infra}
type: kubernetes.io/tls
stringData: {tls.crt: %q, tls.key: %q}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: ca, namespace: infra}
data: {ca.crt: %q}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: ours}
spec: {controller: admission-gateway.io/gateway}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, namespace: infra, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  ingressClassName: ours
  tls: [{hosts: [shop.example.org], secretName: tls}]
  rules: [{host: shop.example.org, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: app, port: {number: 80}}}}]}}]
---
`

// A Gateway and a route of the namespace 'evil', which it may have.
const (
	evilGateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: evil, creationTimestamp: "2026-01-02T00:00:00Z"}
spec:
  gatewayClassName: ours
  listeners: [{name: l, port: 8000, protocol: HTTP}]
---
`
	evilRoute = `
apiVersion: gateway.networking.k8s.io/v1
kind: %s
metadata: {name: steal, namespace: evil}
spec:
  parentRefs: [%s]
  hostnames: [%s]
  rules: [%s]
---
`
	grant = `
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: g, namespace: %s}
spec:
  from: [{group: gateway.networking.k8s.io, kind: %s, namespace: %s}]
  to: [{group: "", kind: %s%s}]
---
`
)

// TestHostile tries each way by which a namespace could take the host, the backend, the Secret or the certificates of
// another one that has not given it leave. None may succeed, and the owner's own routes stay as they are.
func TestHostile(t *testing.T) {
	route := func(parents, hosts, rules string) string {
		return fmt.Sprintf(evilRoute, kindHTTPRoute, parents, hosts, rules)
	}
	toTheirs := `{backendRefs: [{name: app, namespace: infra, port: 80}]}`
	for name, objects := range map[string]string{
		"a route at the Gateway": route(`{name: gw, namespace: infra}`, "app.example.com", "{}"),
		"a route at a listener by its name": route(`{name: gw, namespace: infra, sectionName: own}`,
			"app.example.com", "{}"),
		"a route at a listener for selected namespaces": route(`{name: gw, namespace: infra, sectionName: selected}`,
			"app.example.com, evil.example.com", "{}"),
		"a route of a kind that is not allowed": route(`{name: gw, namespace: infra, sectionName: calls}`,
			"app.example.com", "{}"),
		"a Gateway for the host": strings.Replace(evilGateway, "port: 8000, protocol: HTTP",
			"port: 80, protocol: HTTP, hostname: app.example.com", 1) + route("{name: gw}", "app.example.com", "{}"),
		"a Gateway of the port in another protocol": strings.Replace(evilGateway, "port: 8000, protocol: HTTP", "port: 80, protocol: HTTPS, tls: {certificateRefs: [{name: tls, namespace: infra}]}", 1) + route("{name: gw}", "app.example.com", "{}"),
		"a ListenerSet": evilSet("hostname: other.example.com", "{name: gw, namespace: infra}"),
		"a ListenerSet and a route": evilSet("hostname: app.example.com",
			"{name: gw, namespace: infra}") + route("{kind: ListenerSet, name: set}", "app.example.com", "{}"),
		"a backend":           evilGateway + route("{name: gw}", "evil.com", toTheirs),
		"a backend of a call": evilGateway + fmt.Sprintf(evilRoute, kindGRPCRoute, "{name: gw}", "evil.com", toTheirs),
		"a backend, with a grant of its own": evilGateway + route("{name: gw}", "evil.com", toTheirs) +
			fmt.Sprintf(grant, "evil", kindHTTPRoute, "evil", kindService, ""),
		"a backend, with a grant for another namespace": evilGateway + route("{name: gw}", "evil.com", toTheirs) +
			fmt.Sprintf(grant, "infra", kindHTTPRoute, "other", kindService, ""),
		"a backend, with a grant for another kind": evilGateway + route("{name: gw}", "evil.com", toTheirs) +
			fmt.Sprintf(grant, "infra", kindGRPCRoute, "evil", kindService, ""),
		"a backend, with a grant of another name": evilGateway + route("{name: gw}", "evil.com", toTheirs) +
			fmt.Sprintf(grant, "infra", kindHTTPRoute, "evil", kindService, ", name: other"),
		"a backend, with a grant of Secrets": evilGateway + route("{name: gw}", "evil.com", toTheirs) +
			fmt.Sprintf(grant, "infra", kindHTTPRoute, "evil", kindSecret, ""),
		"a mirror": evilGateway + route("{name: gw}", "evil.com",
			`{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: app, namespace: infra, port: 80}}}], backendRefs: [{name: app, namespace: infra, port: 80}]}`),
		"a Service by the name of a host": evilGateway + route("{name: gw}", "evil.com", `{backendRefs: [{name: alias, port: 80}]}`) + `
apiVersion: v1
kind: Service
metadata: {name: alias, namespace: evil}
spec: {type: ExternalName, externalName: app.infra.svc, ports: [{port: 80}]}
---
`,
		"endpoints for a Service of another namespace": `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: app-2, namespace: evil, labels: {kubernetes.io/service-name: app}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.6.6.6]}]
---
`,
		"a policy for a Service of another namespace": `
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: p, namespace: evil}
spec:
  targetRefs: [{group: "", kind: Service, name: app}]
  validation: {wellKnownCACertificates: System, hostname: evil.com}
---
`,
		"a Secret": strings.Replace(evilGateway, "protocol: HTTP",
			"protocol: HTTPS, tls: {certificateRefs: [{name: tls, namespace: infra}]}", 1),
		"a Secret, with a grant for routes": strings.Replace(evilGateway, "protocol: HTTP",
			"protocol: HTTPS, tls: {certificateRefs: [{name: tls, namespace: infra}]}", 1) +
			fmt.Sprintf(grant, "infra", kindHTTPRoute, "evil", kindSecret, ""),
		"a Secret in a ListenerSet, with the grant of its Gateway": evilSetOf("evil",
			"protocol: HTTPS, tls: {certificateRefs: [{name: tls, namespace: infra}]}") +
			fmt.Sprintf(grant, "infra", kindGateway, "evil", kindSecret, ""),
		"a Secret to show to backends": strings.Replace(evilGateway, "  listeners:", "  tls: {backend: {clientCertificateRef: {name: tls, namespace: infra}}}\n  listeners:", 1) +
			route("{name: gw}", "evil.com", `{backendRefs: [{name: sink, port: 443}]}`) + `
apiVersion: v1
kind: Service
metadata: {name: sink, namespace: evil}
spec: {ports: [{port: 443}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: p, namespace: evil}
spec:
  targetRefs: [{group: "", kind: Service, name: sink}]
  validation: {wellKnownCACertificates: System, hostname: evil.com}
---
`,
		"an Ingress for the host":    evilIngress("shop.example.org", ""),
		"an Ingress for a Gateway's": evilIngress("app.example.com", ""),
		"an Ingress, with a certificate": evilIngress("shop.example.org",
			"tls: [{hosts: [shop.example.org], secretName: tls}]"),
	} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf(owned, certificate, key, certificate)
			before := New(Options{Published: []string{"192.0.2.1"}}).Translate(objectsOf(t, []byte(text)), now).Table
			after := New(Options{Published: []string{"192.0.2.1"}}).Translate(objectsOf(t, []byte(text+objects)),
				now).Table
			var theirs []string
			for _, r := range after.Routes {
				if r.Namespace != "evil" {
					for _, a := range r.Attachments {
						theirs = append(theirs, fmt.Sprint(r.Name, after.Listeners[a.Listener].Gateway, a.Host,
							after.Backends[r.Backends[0].Backend]))
					}
					continue
				}
				for _, a := range r.Attachments {
					if strings.HasPrefix(after.Listeners[a.Listener].Gateway, "infra/") ||
						slices.Contains([]string{"app.example.com", "shop.example.org"}, a.Host) {
						t.Errorf("its route takes requests for '%s' from %+v", a.Host, after.Listeners[a.Listener])
					}
				}
				for _, b := range r.Backends {
					if k := after.Backends[b.Backend]; len(k.Servers) > 0 || k.TLS != nil && k.TLS.Client != nil {
						t.Errorf("its route leads to %+v", k)
					}
				}
				for _, f := range r.Filters {
					if f.Mirror != nil {
						t.Errorf("its route sends copies to %+v", after.Backends[f.Mirror.Backend])
					}
				}
			}
			for _, l := range after.Listeners {
				if strings.HasPrefix(l.Gateway, "evil/") && l.TLS != nil {
					t.Errorf("its listener %s has a certificate", l.Section)
				}
			}
			var were []string
			for _, r := range before.Routes {
				for _, a := range r.Attachments {
					were = append(were, fmt.Sprint(r.Name, before.Listeners[a.Listener].Gateway, a.Host,
						before.Backends[r.Backends[0].Backend]))
				}
			}
			if !slices.Equal(were, theirs) {
				t.Errorf("the owner's routes are\n%q\nnot\n%q", theirs, were)
			}
		})
	}
}

// evilSet is a ListenerSet of the namespace 'evil'.
func evilSet(listener, parent string) string {
	return `
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: set, namespace: evil}
spec:
  parentRef: ` + parent + `
  listeners: [{name: l, port: 80, protocol: HTTP, ` + listener + `}]
---
`
}

// evilSetOf is a ListenerSet at a Gateway that allows it.
func evilSetOf(namespace, listener string) string {
	return strings.Replace(evilGateway, "  listeners:", "  allowedListeners: {namespaces: {from: Same}}\n  listeners:",
		1) +
		strings.Replace(evilSet("", "{name: gw, namespace: "+namespace+"}"), "protocol: HTTP, ", listener, 1)
}

// evilIngress is an Ingress of the namespace 'evil'.
func evilIngress(host, tls string) string {
	return `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: steal, namespace: evil, creationTimestamp: "2026-01-02T00:00:00Z"}
spec:
  ingressClassName: ours
  ` + tls + `
  rules: [{host: ` + host + `, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: app, port: {number: 80}}}}]}}]
---
`
}

// TestGranted: the leave that TestHostile lacks is enough.
func TestGranted(t *testing.T) {
	text := fmt.Sprintf(owned, certificate, key, certificate) +
		strings.Replace(evilGateway, "protocol: HTTP",
			"protocol: HTTPS, tls: {certificateRefs: [{name: tls, namespace: infra}]}", 1) +
		fmt.Sprintf(evilRoute, kindHTTPRoute, "{name: gw}", "evil.com",
			`{backendRefs: [{name: app, namespace: infra, port: 80}]}`) +
		fmt.Sprintf(grant, "infra", kindHTTPRoute, "evil", kindService, "") +
		strings.Replace(fmt.Sprintf(grant, "infra", kindGateway, "evil", kindSecret, ", name: tls"), "name: g,",
			"name: g2,", 1)
	table := New(Options{Published: []string{"192.0.2.1"}}).Translate(objectsOf(t, []byte(text)), now).Table
	for _, r := range table.Routes {
		if r.Namespace == "evil" {
			if servers := table.Backends[r.Backends[0].Backend].Servers; !slices.Equal(servers,
				[]string{"10.0.0.1:8080"}) || table.Listeners[r.Attachments[0].Listener].TLS == nil {
				t.Errorf("the route leads to %v", servers)
			}
			return
		}
	}
	t.Error("there is no route")
}
