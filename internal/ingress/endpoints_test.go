package ingress

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// conditions of endpoints, by what a test calls them.
var conditions = map[string]string{
	"unset":       ``,
	"ready":       `conditions: {ready: true, serving: true, terminating: false}`,
	"readyalone":  `conditions: {ready: true}`,
	"unready":     `conditions: {ready: false}`,
	"stopped":     `conditions: {ready: false, serving: false}`,
	"starting":    `conditions: {ready: false, serving: true, terminating: false}`,
	"leaving":     `conditions: {ready: false, serving: true, terminating: true}`,
	"leavingonly": `conditions: {ready: false, terminating: true}`,
	"gone":        `conditions: {ready: false, serving: false, terminating: true}`,
	// As of a Service with publishNotReadyAddresses.
	"published": `conditions: {ready: true, serving: false, terminating: true}`,
	// Before the condition 'ready' is written.
	"unsetleaving": `conditions: {serving: true, terminating: true}`,
}

// serversOf returns the servers that a route to each port of a Service gets. Endpoints are words: conditions, "@" and
// the last part of the address, and perhaps "/" and how the slice calls its port. A line is a slice.
func serversOf(t *testing.T, endpoints string, options Options) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(`
{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: ours}, spec: {controllerName: admission-gateway.io/gateway}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: gw, namespace: a}, spec: {gatewayClassName: ours, listeners: [{name: http, protocol: HTTP, port: 80}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r, namespace: a}
spec:
  parentRefs: [{name: gw}]
  rules:
  - {matches: [{path: {value: /web}}], backendRefs: [{name: app, port: 80}]}
  - {matches: [{path: {value: /more}}], backendRefs: [{name: app, port: 81}]}
---
{apiVersion: v1, kind: Service, metadata: {name: app, namespace: a}, spec: {ports: [{name: web, port: 80}, {name: more, port: 81}]}}
`)
	slice := 0
	for line := range strings.Lines(endpoints) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		slice++
		ports := "{name: web, port: 8080}"
		if _, port, isNamed := strings.Cut(words[0], "/"); isNamed {
			ports = map[string]string{"both": "{name: web, port: 8080}, {name: more, port: 8081}",
				"more": "{name: more, port: 8081}"}[port]
		}
		fmt.Fprintf(&b, `
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: app-%d, namespace: a, labels: {kubernetes.io/service-name: app}}
addressType: IPv4
ports: [%s]
endpoints:
`, slice, ports)
		for _, word := range words {
			word, _, _ = strings.Cut(word, "/")
			state, at, _ := strings.Cut(word, "@")
			written, isKnown := conditions[state]
			if !isKnown {
				t.Fatalf("no conditions are called '%s'", state)
			}
			fmt.Fprintf(&b, "- {addresses: [10.0.0.%s], %s}\n", at, written)
		}
	}
	out := New(options).Translate(objectsOf(t, []byte(b.String())), now)
	var all []string
	for _, k := range out.Table.Backends {
		if k.Fault != "" {
			t.Fatalf("the backend '%s' has the fault %s", k.Name, k.Fault)
		}
		for i, s := range k.Servers {
			k.Servers[i] = strings.TrimPrefix(s, "10.0.0.")
		}
		all = append(all, strings.TrimPrefix(k.Name, "a/app:")+" "+strings.Join(k.Servers, " "))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// TestEndpoints: ready endpoints take requests. If none is ready, those take them that terminate and still serve
// (KEP-1669). All slices of a Service decide together, and each port for itself.
func TestEndpoints(t *testing.T) {
	tests := []struct{ name, endpoints, want string }{
		{"none", "", "80 ; 81 "},

		{"unset", "unset@1", "80 1:8080; 81 "},
		{"ready", "ready@1", "80 1:8080; 81 "},
		{"ready alone", "readyalone@1", "80 1:8080; 81 "},
		{"not ready", "unready@1", "80 ; 81 "},
		{"not serving", "stopped@1", "80 ; 81 "},
		{"serving and not ready", "starting@1", "80 ; 81 "},
		{"terminating and serving", "leaving@1", "80 1:8080; 81 "},
		{"terminating, serving unset", "leavingonly@1", "80 1:8080; 81 "},
		{"terminating, not serving", "gone@1", "80 ; 81 "},
		{"published though not ready", "published@1", "80 1:8080; 81 "},
		{"terminating, ready unset", "unsetleaving@1", "80 1:8080; 81 "},

		{"a ready one beside one that leaves", "ready@1 leaving@2", "80 1:8080; 81 "},
		{"a ready one behind one that leaves", "leaving@2 ready@1", "80 1:8080; 81 "},
		{"an unset one beside one that leaves", "leaving@2 unset@1", "80 1:8080; 81 "},
		{"a published one beside one that leaves", "leaving@2 published@1", "80 1:8080; 81 "},
		{"several that leave", "leaving@3 gone@2 leavingonly@1 unready@4", "80 1:8080 3:8080; 81 "},
		{"one that starts beside one that leaves", "starting@1 leaving@2", "80 2:8080; 81 "},
		{"one that starts beside one that is gone", "starting@1 gone@2", "80 ; 81 "},

		{"ready and leaving in two slices", "leaving@1\nready@2", "80 2:8080; 81 "},
		{"leaving in two slices", "leaving@2\ngone@3 leaving@1", "80 1:8080 2:8080; 81 "},
		{"one endpoint moves between slices", "leaving@1\nleaving@1", "80 1:8080; 81 "},
		{"one endpoint is ready in the newer slice", "leaving@1\nready@1", "80 1:8080; 81 "},

		{"two ports in one slice", "leaving@1/both gone@2", "80 1:8080; 81 1:8081"},
		{"one port is ready, the other leaves", "ready@1\nleaving@2/more", "80 1:8080; 81 2:8081"},
		{"one port is ready, the other is gone", "ready@1\ngone@2/more", "80 1:8080; 81 "},
		{"the ready one lacks a port", "leaving@1/both\nready@2", "80 2:8080; 81 1:8081"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for of, options := range map[string]Options{"a cluster": {Published: []string{"192.0.2.1"}},
				"files": {AreOfFiles: true}} {
				if of == "files" && test.endpoints == "" {
					continue // the Service is its name in DNS
				}
				if got := serversOf(t, test.endpoints, options); got != test.want {
					t.Errorf("the objects of %s come to the servers %q, not %q", of, got, test.want)
				}
			}
		})
	}
}
