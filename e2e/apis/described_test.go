package apis

import (
	"net/http"
	"strings"
	"testing"
)

// startDescribed runs Fastify, and the gateway before it with the document that Fastify generates and further files.
func startDescribed(t *testing.T, version string, policies ...string) (api, gateway *program) {
	t.Helper()
	api = startNode(t, nodeDir(t), "/openapi.json",
		func(port string) []string { return []string{"fastify.mjs", port, version} })
	document := (&request{method: "GET", target: "/openapi.json"}).mustSend(t, api.address)
	return api, startGateway(t, api.url(), append([]string{document.body}, policies...)...)
}

// TestDocumentOfFastify: with Fastify's own document, in either version, what is valid answers as without the gateway,
// and what is not is refused with the field.
func TestDocumentOfFastify(t *testing.T) {
	for _, version := range []string{"3.0.3", "3.1.0"} {
		t.Run(version, func(t *testing.T) { testDocumentOfFastify(t, version) })
	}
}

func testDocumentOfFastify(t *testing.T, version string) {
	direct := startFastify(t)
	_, gateway := startDescribed(t, version)
	t.Run("valid", func(t *testing.T) {
		proveEqual(t, direct.address, gateway.address, varying(), []request{
			withJSON("login", "POST", "/v1/login", `{"user":"ann"}`),
			withJSON("login-refused", "POST", "/v1/login", `{"user":"bob"}`),
			without("preflight", "OPTIONS", "/v1/books/1", preflight...),
			withJSON("create", "POST", "/v1/books", `{"title":"one"}`),
			without("list", "GET", "/v1/books?limit=5"),
			without("read", "GET", "/v1/books/1"),
			without("read-missing", "GET", "/v1/books/99"),
			withJSON("update", "PUT", "/v1/books/1", `{"title":"two","tags":["a"]}`),
			withJSON("update-missing", "PUT", "/v1/books/99", `{"title":"two"}`),
			withJSON("patch", "PATCH", "/v1/books/1", `{"price_cents":300}`),
			without("publish", "POST", "/v1/books/1/publish"),
			without("publish-missing", "POST", "/v1/books/99/publish"),
			{name: "upload", method: "POST", target: "/v1/covers",
				header: []string{"Content-Type: multipart/form-data; boundary=b"}, body: multipartBody},
			without("delete", "DELETE", "/v1/books/1"),
			without("delete-missing", "DELETE", "/v1/books/1"),
			without("undescribed", "GET", "/nothing/here"),
		})
	})
	(&request{method: "POST", target: "/v1/books", header: []string{"Content-Type: application/json"},
		body: `{"title":"kept"}`}).mustSend(t, gateway.address)
	for _, c := range []struct {
		request
		code int
		text string
	}{
		{withJSON("create-empty-title", "POST", "/v1/books", `{"title":""}`), 422, "title"},
		{withJSON("create-two-causes", "POST", "/v1/books", `{"title":"","price_cents":-1}`), 422, "price_cents"},
		{withJSON("create-unknown-field", "POST", "/v1/books", `{"title":"a","colour":"red"}`), 422, "colour"},
		{withJSON("update-type", "PUT", "/v1/books/2", `{"title":7}`), 422, "title"},
		{withJSON("patch-type", "PATCH", "/v1/books/2", `{"price_cents":"x"}`), 422, "price_cents"},
		{withJSON("patch-unknown-field", "PATCH", "/v1/books/2", `{"colour":"red"}`), 422, "colour"},
		{withJSON("login-without-user", "POST", "/v1/login", `{}`), 422, "user"},
		{without("query", "GET", "/v1/books?limit=x"), 422, "query.limit"},
		{without("query-range", "GET", "/v1/books?limit=51"), 422, "query.limit"},
		{without("path-parameter", "GET", "/v1/books/x"), 422, "path.id"},
		{without("method", "DELETE", "/v1/books"), 405, ""},
		{request{name: "media-type", method: "POST", target: "/v1/books", header: []string{"Content-Type: text/csv"},
			body: "a,b"}, 415, ""},
		{withJSON("override", "POST", "/v1/books?_method=DELETE", `{"title":"a"}`), 400, ""},
		{without("original-url", "GET", "/nothing", "X-Original-URL: /v1/books/2"), 400, ""},
	} {
		prove(t, "refused/"+c.name, func(t *proof) {
			a := c.mustSend(t, gateway.address)
			if a.code != c.code || !strings.Contains(a.body, c.text) {
				t.Errorf("%s %s: %d %q, want %d with %q", c.method, c.target, a.code, a.body, c.code, c.text)
			}
			if strings.Contains(a.body, "Def0") || strings.Contains(a.body, `Book \"\"`) ||
				strings.Contains(a.body, `"name":""`) {
				t.Errorf("a name that no reader of the API knows: %s", a.body)
			}
		})
	}
}

// TestDescribedPathHasNoWayAround: a path that some server reads as a described one is not served as undescribed.
func TestDescribedPathHasNoWayAround(t *testing.T) {
	e := startEcho(t)
	g := startGateway(t, e.URL, `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: users.shop.example.com}
spec:
  group: shop.example.com
  version: v1
  names: {plural: users, kind: User}
  paths: {collection: /shop/users, item: "/shop/users/{name}"}
  fields: {name: id}
  schema:
    openAPIV3Schema:
      type: object
      required: [id]
      properties: {id: {type: string}, role: {type: string, enum: [member]}}
`)
	for name, target := range map[string]string{
		"plain": "/shop/users", "trailing-slash": "/shop/users/", "double-slash": "/shop//users",
		"leading-slashes": "//shop/users", "dot": "/shop/./users", "dots": "/x/../shop/users",
		"encoded-letter": "/shop/%75sers", "encoded-slash": "/shop%2Fusers", "double-encoded": "/shop/%2575sers",
		"encoded-dot": "/shop/%2e/users", "capitals": "/Shop/USERS",
		"parameters": "/shop/users;v=1", "middle-parameters": "/shop;a=b/users", "extension": "/shop/users.json",
		"blank": "/shop/users%20", "backslash": "/shop%5Cusers",
		"nul": "/shop/users%00", "long-s": "/shop/u%C5%BFers", "fullwidth": "/shop/%EF%BD%95sers",
		"tab": "/shop/users%09",
	} {
		prove(t, name, func(t *proof) {
			r := withJSON(name, "POST", target, `{"id":"a","role":"admin"}`)
			a := r.mustSend(t, g.address)
			if got := e.next(); a.code < 400 || !strings.HasPrefix(got, "nothing:") {
				t.Errorf("%s: %d %s; the backend got %s", target, a.code, a.body, got)
			}
		})
	}
	for _, line := range []string{"X-Original-URL: /shop/users", "X-Rewrite-URL: /shop/users",
		"X-HTTP-Method-Override: PUT"} {
		header, _, _ := strings.Cut(line, ":")
		prove(t, "header/"+header, func(t *proof) {
			r := withJSON("", "POST", "/shop/users", `{"id":"a"}`)
			r.header = append(r.header, line)
			a := r.mustSend(t, g.address)
			if got := e.next(); a.code != http.StatusBadRequest || !strings.HasPrefix(got, "nothing:") {
				t.Errorf("%s: %d %s; the backend got %s", line, a.code, a.body, got)
			}
		})
	}
	prove(t, "undescribed-beside", func(t *proof) {
		r := request{method: "PURGE", target: "/shop/orders/1", header: []string{"Content-Type: text/csv"}, body: "a,b"}
		if a := r.mustSend(t, g.address); a.code != http.StatusOK || a.body != "a,b" {
			t.Errorf("%d %s", a.code, a.body)
		}
		e.next()
	})
	prove(t, "undescribed-below", func(t *proof) {
		r := request{method: "POST", target: "/shop/users/5/activate"}
		if a := r.mustSend(t, g.address); a.code != http.StatusOK {
			t.Errorf("%d %s", a.code, a.body)
		}
		e.next()
	})
}
