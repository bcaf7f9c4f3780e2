package policies

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/finding"
)

const bareOrders = `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: orders}
spec:
  group: shop.example.com
  version: v2
  names: {plural: orders, kind: Order}
  paths: {collection: /v2/orders, item: "/v2/orders/{name}"}
  envelope: Bare
`

// Objects that are not of Kubernetes' form belong to upstreams of the dialect Plain, whichever the
// routes lead their paths to.
func TestBareBeforeKubernetes(t *testing.T) {
	const refusal = ":9: spec.envelope: objects that are not of Kubernetes' form must be served by an upstream of the dialect Plain, not by 'cluster': " +
		"set `dialect: Plain` (--dialect Plain) if it is an ordinary API, else add a route that leads '/v2/orders' to one\n"
	const lost = ":8: spec.paths.collection: no route leads to '/v2/orders', '/v2/orders/{name}': "
	cluster := func(host, prefix string) Route {
		return Route{Host: host, PathPrefix: prefix, Upstream: "cluster", Kubernetes: true}
	}
	shop := func(host, prefix string) Route { return Route{Host: host, PathPrefix: prefix, Upstream: "shop"} }
	warning := func(where string) string {
		return ":9: spec.envelope: warning: requests for '/v2/orders' on " + where +
			" go to the upstream 'cluster', whose dialect is Kubernetes, " +
			"although the objects are not of Kubernetes' form; only an upstream of the dialect Plain can serve them\n"
	}
	for _, c := range []struct {
		name   string
		routes []Route
		want   string
	}{
		{"nothing is known", nil, ""},
		{"the only upstream", []Route{cluster("", "/")}, refusal},
		{"an ordinary API", []Route{shop("", "/")}, ""},
		{"no route leads there", []Route{cluster("", "/apis")}, lost + "'cluster' gets paths at and below '/apis' by the route of any host and the prefix '/apis'\n"},
		{"part of a segment", []Route{cluster("", "/v2/ord"), cluster("", "/v")}, lost + "'cluster' gets paths at and below '/v2/ord' by the route of any host and the prefix '/v2/ord', " +
			"'cluster' gets paths at and below '/v' by the route of any host and the prefix '/v'\n"},
		{"a longer prefix", []Route{cluster("", "/"), shop("", "/v2")}, ""},
		{"a longer prefix, in another order", []Route{shop("", "/v2/orders"), cluster("", "/")}, ""},
		{"the longer prefix is the cluster's", []Route{shop("", "/"), cluster("", "/v2")}, refusal},
		{"a prefix of some objects", []Route{shop("", "/"), cluster("", "/v2/orders/o1")},
			bareOn("/v2/orders/{name}", refusal)},
		{"a prefix of a subresource", []Route{shop("", "/"), cluster("", "/v2/orders/o1/status")},
			bareOn("/v2/orders/{name}", refusal)},
		{"a prefix beyond them", []Route{shop("", "/"), cluster("", "/v2/orders/o1/status/x")}, ""},
		{"one host", []Route{cluster("shop.example.com", "/"), cluster("", "/apis")}, refusal},
		{"hosts", []Route{cluster("kube.example.com", "/"), shop("shop.example.com", "/")},
			warning("host 'kube.example.com'")},
		{"any other host", []Route{cluster("", "/"), shop("shop.example.com", "/")},
			warning("hosts without a route of their own")},
		{"a host with other paths", []Route{cluster("kube.example.com", "/apis"), shop("", "/")}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := testutil.WriteFile(t, filepath.Join(t.TempDir(), "orders.yaml"), bareOrders)
			want, got := "", ""
			if c.want != "" {
				want = file + c.want
			}
			found := CheckFor([]string{file}, Gateway{Routes: c.routes})
			for _, f := range found {
				got += f.String() + "\n"
			}
			if got != want {
				t.Errorf("found %swant %s", got, want)
			}
			m, _ := NewManager([]string{file}, Options{Gateway: Gateway{Routes: c.routes}})
			if (m == nil) != finding.HasErrors(found) {
				t.Errorf("found %sand a gateway starts: %v", got, m != nil)
			}
		})
	}
}

// bareOn is the refusal for another path.
func bareOn(path, refusal string) string {
	return strings.ReplaceAll(refusal, "'/v2/orders'", "'"+path+"'")
}

// An OpenAPI document whose objects are of Kubernetes' form is served by either dialect, another
// one is not.
func TestOpenAPIBeforeKubernetes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "api.yaml")
	const document = `openapi: 3.0.3
info: {title: shop, version: v2}
x-admission-gateway-resource: {group: shop.example.com}
paths:
  /v2/orders:
    post: {requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {}}
  /v2/orders/{id}:
    put: {requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {}}
`
	testutil.WriteFile(t, file, document)
	var got string
	for _, f := range CheckFor([]string{file},
		Gateway{Routes: []Route{{PathPrefix: "/", Upstream: "shop", Kubernetes: true}}}) {
		if f.Severity == Error {
			got += f.String() + "\n"
		}
	}
	want := file + ":7: paths[/v2/orders/{id}]: objects that are not of Kubernetes' form must be served by an upstream of the dialect Plain, not by 'shop': " +
		"set `dialect: Plain` (--dialect Plain) if it is an ordinary API, else add a route that leads '/v2/orders' to one\n"
	if got != want {
		t.Errorf("found %swant %s", got, want)
	}
}

// A file that describes bare objects of an API server is refused while the gateway runs too; what
// is in force stays.
func TestBareReloaded(t *testing.T) {
	dir := t.TempDir()
	m, found := NewManager([]string{dir},
		Options{Gateway: Gateway{Routes: []Route{{PathPrefix: "/", Upstream: "cluster", Kubernetes: true}}}})
	if m == nil {
		t.Fatal(found)
	}
	testutil.WriteFile(t, filepath.Join(dir, "orders.yaml"), bareOrders)
	if found := m.Reload(); !finding.HasErrors(found) || m.Current().Generation() != 1 {
		t.Errorf("found %v in generation %d", found, m.Current().Generation())
	}
}
