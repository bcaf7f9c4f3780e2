package gatewayapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The Ingresses and routes that public charts make route as their authors say. The files of testdata/charts are short
// forms of them.
func TestCharts(t *testing.T) {
	var all strings.Builder
	all.WriteString(class("charts") + `---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: charts}
spec: {controller: example.com/charts}
---
apiVersion: v1
kind: Namespace
metadata: {name: charts}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: front, namespace: charts}
spec:
  gatewayClassName: charts
  listeners: [{name: http, port: 80, protocol: HTTP}]
`)
	for name, port := range map[string]int{
		"harbor-core": 80, "harbor-portal": 80, "loki-distributor": 3100, "loki-query-frontend": 3100,
		"loki-ruler": 3100, "jenkins": 8080,
		"argocd-server": 80, "grafana": 80, "podinfo": 9898, "podinfo-canary": 9898,
	} {
		fmt.Fprintf(&all, serviceOfChart, name, port)
	}
	files, err := filepath.Glob("testdata/charts/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no charts: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString("---\n" + string(text))
	}
	apply(t, all.String())
	t.Cleanup(func() { remove(t, all.String()) })
	startGateway(t, gatewayOptions{controller: "charts", pool: []string{"10.100.6.0/24"}})
	gateway, ingress := addressOf(t, "charts", "front"), addressOfIngress(t, "charts", "harbor-ingress")
	for _, c := range []struct {
		at, host, path string
		header         string
		// code is that of the answer, or 0 if the Service answers, and gets the path.
		code          int
		service, gets string
	}{
		{at: ingress, host: "core.harbor.domain", path: "/", service: "harbor-portal"},
		{at: ingress, host: "core.harbor.domain", path: "/harbor/projects", service: "harbor-portal"},
		{at: ingress, host: "core.harbor.domain", path: "/api/v2.0/projects", service: "harbor-core"},
		{at: ingress, host: "core.harbor.domain", path: "/v2/", service: "harbor-core"},
		{at: ingress, host: "core.harbor.domain", path: "/c/login", service: "harbor-core"},
		{at: ingress, host: "core.harbor.domain", path: "/apis", service: "harbor-portal"},
		{at: ingress, host: "loki.example.com", path: "/loki/api/v1/push", service: "loki-distributor"},
		{at: ingress, host: "loki.example.com", path: "/otlp/v1/logs", service: "loki-distributor"},
		{at: ingress, host: "loki.example.com", path: "/loki/api/v1/label/job/values", service: "loki-query-frontend"},
		{at: ingress, host: "loki.example.com", path: "/loki/api/v1/query", service: "loki-query-frontend"},
		{at: ingress, host: "loki.example.com", path: "/loki/api/v1/rules/fake", service: "loki-ruler"},
		{at: ingress, host: "loki.example.com", path: "/metrics", code: http.StatusNotFound},
		{at: ingress, host: "ci.example.com", path: "/jenkins/job/a", service: "jenkins"},
		{at: ingress, host: "ci.example.com", path: "/", code: http.StatusNotFound},
		{at: ingress, host: "elsewhere.example.com", path: "/", code: http.StatusNotFound},
		{at: gateway, host: "argocd.example.com", path: "/applications", service: "argocd-server"},
		{at: gateway, host: "grpc.argocd.example.com", path: "/session.SessionService/Create",
			service: "argocd-server"},
		{at: gateway, host: "grpc.argocd.example.com", path: "/version.VersionService/Version",
			code: http.StatusNotFound},
		{at: gateway, host: "grafana.example.com", path: "/grafana/api/health", service: "grafana",
			gets: "/api/health"},
		{at: gateway, host: "grafana.example.com", path: "/api/health", code: http.StatusNotFound},
		{at: gateway, host: "old-grafana.example.com", path: "/d/1", code: http.StatusMovedPermanently},
		{at: gateway, host: "podinfo.example.com", path: "/version", service: "podinfo"},
		{at: gateway, host: "podinfo.example.com", path: "/version", header: "insider", service: "podinfo-canary"},
		{at: gateway, host: "podinfo.example.com", path: "/version", header: "other", service: "podinfo"},
	} {
		t.Run(c.host+c.path+c.header, func(t *testing.T) {
			if c.code == 0 {
				c.code = http.StatusOK
			}
			client := &http.Client{Transport: withHeader{"X-Canary", c.header}, CheckRedirect: once.CheckRedirect}
			body := awaitAnswer(t, client, "http://"+c.at+c.path, c.host, c.code)
			if c.service == "" {
				return
			}
			var got struct{ Service, Path string }
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatal(err)
			}
			if c.gets == "" {
				c.gets = c.path
			}
			if got.Service != c.service || got.Path != c.gets {
				t.Errorf("%s gets %s, want %s and %s", got.Service, got.Path, c.service, c.gets)
			}
		})
	}
}

// withHeader sends a header with each request, unless its value is empty.
type withHeader struct{ name, value string }

// RoundTrip implements http.RoundTripper.
func (h withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.value != "" {
		r = r.Clone(r.Context())
		r.Header.Set(h.name, h.value)
	}
	return once.Transport.RoundTrip(r)
}

// serviceOfChart is a Service with its Pod.
const serviceOfChart = `---
apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: charts}
spec:
  selector: {app: %[1]s}
  ports:
  - {name: http, port: %[2]d, targetPort: 3000}
  - {name: grpc, port: 443, targetPort: 3001}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: charts}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers:
      - name: %[1]s
        image: registry.k8s.io/gateway-api/echo-basic:v1.6.0
        env: [{name: SERVICE_NAME, value: %[1]s}]
`

// addressOfIngress waits until an Ingress has an address, and returns it.
func addressOfIngress(t *testing.T, namespace, name string) (address string) {
	t.Helper()
	c := newClient(t)
	eventually(t, "the Ingress "+name+" has an address", func() bool {
		var i networkingv1.Ingress
		if err := c.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, &i); err != nil ||
			len(i.Status.LoadBalancer.Ingress) == 0 {
			return false
		}
		address = i.Status.LoadBalancer.Ingress[0].IP
		return address != ""
	})
	return address
}
