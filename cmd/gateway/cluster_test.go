package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/admission-gateway/gateway/internal/cluster/clustertest"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// ingressOf starts a gateway that routes by the objects of an API server, on the loopback alone.
func ingressOf(t *testing.T, s *clustertest.Server) *process {
	t.Helper()
	kubeconfig := write(t, "kubeconfig", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {}}], contexts: [{name: c, context: {cluster: c, user: u}}]}`, s.URL))
	file := write(t, "gateway.yaml", fmt.Sprintf("apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\ndrainSeconds: 0\nkubernetes: {watch: {kubeconfig: %q, addresses: [127.0.0.1]}}\n", kubeconfig))
	return startUnready(t, "", "--config", file)
}

// The paths of the objects of these tests.
const (
	gatewayPath = "/apis/gateway.networking.k8s.io/v1/namespaces/ns/gateways/gw"
	routePath   = "/apis/gateway.networking.k8s.io/v1/namespaces/ns/httproutes/app"
)

// serveApp puts a Gateway on a port, and a route to an app, into a cluster.
func serveApp(t *testing.T, s *clustertest.Server, port, app, path string) {
	t.Helper()
	host, appPort, err := net.SplitHostPort(app)
	if err != nil {
		t.Fatal(err)
	}
	s.Put("/apis/gateway.networking.k8s.io/v1/gatewayclasses/ours", `{"metadata":{"name":"ours"},"spec":{"controllerName":"admission-gateway.io/gateway"}}`)
	s.Put("/api/v1/namespaces/ns", `{"metadata":{"name":"ns"}}`)
	s.Put("/api/v1/namespaces/ns/services/app", `{"metadata":{"name":"app","namespace":"ns"},"spec":{"ports":[{"name":"http","port":80}]}}`)
	s.Put("/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices/app", fmt.Sprintf(`{"metadata":{"name":"app","namespace":"ns","labels":{"kubernetes.io/service-name":"app"}},"addressType":"IPv4","ports":[{"name":"http","port":%s}],"endpoints":[{"addresses":[%q]}]}`, appPort, host))
	s.Put(routePath, fmt.Sprintf(`{"metadata":{"name":"app","namespace":"ns"},"spec":{"parentRefs":[{"name":"gw"}],"rules":[{"matches":[{"path":{"value":%q}}],"backendRefs":[{"name":"app","port":80}]}]}}`, path))
	s.Put(gatewayPath, fmt.Sprintf(`{"metadata":{"name":"gw","namespace":"ns"},"spec":{"gatewayClassName":"ours","listeners":[{"name":"http","port":%s,"protocol":"HTTP"}]}}`, port))
}

// TestIngressController: the gateway serves the listeners and routes of a cluster as they are, without a backend of its
// own configuration, goes on while the API server is away, and is not ready before it has read the objects.
func TestIngressController(t *testing.T) {
	app := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, "app "+r.URL.Path) }))
	t.Cleanup(app.Close)
	s := clustertest.New(t)
	s.Fail(true)
	p := ingressOf(t, s)
	testutil.Eventually(t, "it waits for the API server", func() bool {
		r := p.get("/readyz?verbose")
		return r.code == 503 && strings.Contains(r.body, "cluster")
	})
	_, port, _ := net.SplitHostPort(testutil.FreeAddress(t))
	address := "http://127.0.0.1:" + port
	serveApp(t, s, port, strings.TrimPrefix(app.URL, "http://"), "/a")
	s.Fail(false)
	testutil.Eventually(t, "it is ready", func() bool { return p.get("/readyz").code == 200 })
	testutil.Eventually(t, "the route is served", func() bool { return fetch(address+"/a/b").body == "app /a/b" })
	if r := fetch(address + "/b"); r.code != 404 {
		t.Errorf("a path of no route is answered %+v", r)
	}
	s.Fail(true)
	s.CloseClientConnections()
	if r := fetch(address + "/a"); r.body != "app /a" {
		t.Errorf("without the API server a request is answered %+v", r)
	}
	_, other, _ := net.SplitHostPort(testutil.FreeAddress(t))
	serveApp(t, s, other, strings.TrimPrefix(app.URL, "http://"), "/c")
	s.Fail(false)
	testutil.Eventually(t, "the changed route is served",
		func() bool { return fetch("http://127.0.0.1:"+other+"/c").body == "app /c" })
	testutil.Eventually(t, "the other port is closed", func() bool { return fetch(address+"/a").code == 0 })
	p.signal(t, syscall.SIGTERM)
	if err := p.Wait(); err != nil {
		t.Errorf("exit: %v, want 0", err)
	}
}

// TestClosedListener: a listener of a cluster's Gateway whose port another program has is said everywhere, keeps no
// other one from being served, and is served once the port is free.
func TestClosedListener(t *testing.T) {
	app := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, "app "+r.URL.Path) }))
	t.Cleanup(app.Close)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	_, port, _ := net.SplitHostPort(testutil.FreeAddress(t))
	_, takenPort, _ := net.SplitHostPort(taken.Addr().String())
	s := clustertest.New(t)
	serveApp(t, s, port, strings.TrimPrefix(app.URL, "http://"), "/a")
	s.Put(gatewayPath, fmt.Sprintf(`{"metadata":{"name":"gw","namespace":"ns"},"spec":{"gatewayClassName":"ours","listeners":[{"name":"open","port":%s,"protocol":"HTTP"},{"name":"taken","port":%s,"protocol":"HTTP"}]}}`, port, takenPort))
	p := ingressOf(t, s)
	testutil.Eventually(t, "the other listener is served",
		func() bool { return fetch("http://127.0.0.1:"+port+"/a").body == "app /a" })
	conditions := func() string {
		text, _ := json.Marshal(s.Get(gatewayPath)["status"])
		return string(text)
	}
	why := "cannot listen on " + taken.Addr().String() +
		": another program does already; choose another address with the Gateway"
	testutil.Eventually(t, "the status says so", func() bool {
		said := conditions()
		return strings.Contains(said, `"reason":"PortUnavailable"`) && strings.Contains(said, `"reason":"Pending"`) &&
			strings.Contains(said, why)
	})
	if r := p.get("/readyz?verbose"); r.code != 200 ||
		!strings.Contains(r.body, "[+]listener ok, but: 'ns/gw/taken' takes no requests: "+why) {
		t.Errorf("readiness is %+v", r)
	}
	if r := p.get("/readyz/cluster?verbose"); r.code != 200 ||
		!regexp.MustCompile(`^\[\+\]cluster ok \(last known to be right \d+ s ago\)\n`).MatchString(r.body) {
		t.Errorf("readiness does not show the age of the cluster: %+v", r)
	}
	if r := p.get("/metrics"); !strings.Contains(r.body, "gateway_cluster_lists_total{kind=\"Gateway\"} 1\n") ||
		!regexp.MustCompile(`(?m)^gateway_cluster_age_seconds\{kind="Gateway"\} \d+\.\d+$`).MatchString(r.body) {
		t.Errorf("the metrics do not show the cluster:\n%s", r.body)
	}
	if r := p.get("/metrics"); !regexp.MustCompile(`gateway_requests_total\{code="200",.*listener="ns/gw/open",.*route="HTTPRoute/ns/app",rule="0",upstream="ns/app:80"`).MatchString(r.body) {
		t.Errorf("the metrics do not show the rule and the listener:\n%s", r.body)
	}
	if r := p.get("/metrics"); !strings.Contains(r.body, "gateway_listeners{state=\"Failed\"} 1\n") ||
		!strings.Contains(r.body, "gateway_listeners{state=\"Serving\"} 2\n") {
		t.Errorf("the metrics do not count the listeners:\n%s", r.body)
	}
	if log := p.log.String(); !strings.Contains(log, "a listener takes no requests") || !strings.Contains(log, why) {
		t.Errorf("the log does not say so:\n%s", log)
	}
	shown := run("status", "--admin", p.admin).stdout
	for _, row := range []string{
		`(?m)^LISTENER +ADDRESSES +PROTOCOL +HOSTS +ROUTES +STATE$`,
		`(?m)^ns/gw/open +127\.0\.0\.1:` + port + ` +HTTP +\* +1 +Serving$`,
		`(?m)^ns/gw/taken +127\.0\.0\.1:` + takenPort + ` +HTTP +\* +1 +FAILED: cannot listen on `,
	} {
		if !regexp.MustCompile(row).MatchString(shown) {
			t.Errorf("the status has no row %s:\n%s", row, shown)
		}
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "it is served",
		func() bool { return fetch("http://127.0.0.1:"+takenPort+"/a").body == "app /a" })
	testutil.Eventually(t, "the status says so",
		func() bool { return !strings.Contains(conditions(), "PortUnavailable") })
	if r := p.get("/readyz/listener?verbose"); r.code != 200 || !strings.HasPrefix(r.body, "[+]listener ok\n") {
		t.Errorf("readiness is %+v", r)
	}
}

// TestRoutesOfFiles: the gateway serves the listeners and routes of its policy files, and those that the files have
// after a change.
func TestRoutesOfFiles(t *testing.T) {
	app := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, "app "+r.URL.Path) }))
	t.Cleanup(app.Close)
	_, appPort, _ := net.SplitHostPort(strings.TrimPrefix(app.URL, "http://"))
	_, port, _ := net.SplitHostPort(testutil.FreeAddress(t))
	text := func(port, path string) string {
		return strings.NewReplacer("PATH", path, "APP", appPort, "PORT", port).Replace(`apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: ours}
spec: {controllerName: admission-gateway.io/gateway}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: ns}
spec:
  gatewayClassName: ours
  addresses: [{value: 127.0.0.1}]
  listeners: [{name: http, port: PORT, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: app, namespace: ns}
spec:
  parentRefs: [{name: gw}]
  rules: [{matches: [{path: {value: PATH}}], backendRefs: [{name: app, port: 80}]}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: app, namespace: ns, labels: {kubernetes.io/service-name: app}}
addressType: IPv4
ports: [{name: http, port: APP}]
endpoints: [{addresses: [127.0.0.1]}]
---
apiVersion: v1
kind: Service
metadata: {name: app, namespace: ns}
spec: {ports: [{name: http, port: 80}]}
`)
	}
	_, backend := startBackend(t)
	dir := t.TempDir()
	testutil.WriteFile(t, filepath.Join(dir, "limit.yaml"), `apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: few}
spec:
  requests: 2
  periodSeconds: 3600
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: ns, name: app, sectionName: "0"}]
`)
	testutil.WriteFile(t, filepath.Join(dir, "routes.yaml"), text(port, "/a"))
	p := startServe(t, backend, "--policies", dir)
	address := "http://127.0.0.1:" + port
	if r := fetch(address + "/a"); r.body != "app /a" {
		t.Errorf("the route is answered %+v", r)
	}
	_, other, _ := net.SplitHostPort(testutil.FreeAddress(t))
	if r := fetch(address + "/a/2"); r.body != "app /a/2" {
		t.Errorf("the second request is answered %+v", r)
	}
	if r := fetch(address + "/a/3"); r.code != 429 {
		t.Errorf("the third request, which the limit about the rule counts, is answered %+v", r)
	}
	for range 4 {
		if r := fetch("http://" + p.listen + "/v2/orders"); r.code != 200 {
			t.Errorf("a request by another route is answered %+v", r)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:"+other)
	if err != nil {
		t.Fatal(err)
	}
	testutil.WriteFile(t, filepath.Join(dir, "routes.yaml"), text(other, "/b"))
	p.signal(t, syscall.SIGHUP)
	testutil.Eventually(t, "files whose listener cannot be served are refused", func() bool {
		return strings.Contains(run("status", "--admin", p.admin).stdout, "routes.yaml:12:3: spec.listeners: the listener 'ns/gw/http' cannot be served: cannot listen on 127.0.0.1:"+other)
	})
	if r := fetch(address + "/a/2"); r.code != 429 { // by the route and the limit that were in force
		t.Errorf("the listener of the files before is answered %+v", r)
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "limit.yaml")); err != nil {
		t.Fatal(err)
	}
	p.signal(t, syscall.SIGHUP)
	testutil.Eventually(t, "the changed route is served",
		func() bool { return fetch("http://127.0.0.1:"+other+"/b").body == "app /b" })
	testutil.Eventually(t, "the other port is closed", func() bool { return fetch(address+"/a").code == 0 })
	if r := fetch("http://" + p.listen + "/b"); r.body == "app /b" {
		t.Errorf("the configuration's own listener leads to the route: %+v", r)
	}
}
