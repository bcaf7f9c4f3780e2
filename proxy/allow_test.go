package proxy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// allowFiles describe paths of every kind.
const allowFiles = `openapi: 3.1.0
info: {title: Shop, version: "1"}
paths:
  /orders:
    get: {responses: {"200": {description: all}}}
    post: {requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {"201": {description: created}}}
  /orders/{id}:
    get: {responses: {"200": {description: one}}}
    put: {requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {"200": {description: replaced}}}
  /orders/{id}/cancel:
    post: {x-admission-gateway-operation: cancel, responses: {"202": {description: cancelled}}}
  /orders/bulk:
    delete: {x-admission-gateway-operation: bulk, responses: {"200": {description: gone}}}
  /carts/{id}:
    get: {responses: {"200": {description: one}}}
    post: {requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {"200": {description: done}}}
    patch: {requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {"200": {description: changed}}}
  /carts/{id}/label.txt:
    get: {responses: {"200": {description: it}}}
  /searches:
    post: {requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {"200": {description: found}}}
  /me:
    get: {responses: {"200": {description: it}}}
    patch: {requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {"200": {description: changed}}}
  /settings:
    get: {responses: {"200": {description: it}}}
    put: {requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {"200": {description: replaced}}}
    delete: {responses: {"204": {description: gone}}}
---
apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: users}
spec:
  version: v1
  names: {plural: users, kind: User}
  paths: {collection: /users, item: '/users/{name}'}
  backend: {patch: Refused}
  operations:
  - {path: '/users/{name}'}
  - {name: verify, path: '/users/{name}/verify', method: PUT}
---
apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: tasks}
spec:
  version: v1
  names: {plural: tasks, kind: Task}
  envelope: Kubernetes
  paths: {collection: '/teams/{namespace}/tasks', item: '/teams/{namespace}/tasks/{name}'}
  scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
---
apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: me}
spec:
  version: v1
  names: {plural: self, kind: Self}
  paths: {item: /self}
---
openapi: 3.0.0
info: {title: Gadgets, version: v1}
paths:
  /apis/example.net/v1/namespaces/{namespace}/gadgets/{name}:
    get: {x-kubernetes-group-version-kind: {group: example.net, version: v1, kind: Gadget}, responses: {"200": {description: one}}}
  /apis/example.net/v1/namespaces/{namespace}/gadgets/{name}/restart:
    post: {responses: {"202": {description: restarted}}}
components: {schemas: {Gadget: {type: object, x-kubernetes-group-version-kind: [{group: example.net, version: v1, kind: Gadget}]}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {replicas: {type: integer}}}, status: {type: object, properties: {replicas: {type: integer}}}}}}
`

// TestAllow tries each method on each kind of described path. A 405 lists the methods that are not answered so, and so
// does an OPTIONS that the gateway answers itself.
func TestAllow(t *testing.T) {
	const (
		widget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"a","resourceVersion":"1"},"spec":{"replicas":1}}`
		task   = `{"apiVersion":"v1","kind":"Task","metadata":{"name":"w","namespace":"a","resourceVersion":"1"},"spec":{"replicas":1}}`
		scale  = `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"w","namespace":"a","resourceVersion":"1"},"spec":{"replicas":1}}`
		all    = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
	)
	type kindOfPath struct{ path, body, want string }
	paths := []kindOfPath{
		{"/apis/example.com/v1/widgets", widget, "GET, HEAD, OPTIONS"},
		{"/apis/example.com/v1/namespaces/a/widgets", widget, "GET, HEAD, POST, DELETE, OPTIONS"},
		{"/apis/example.com/v1/namespaces/a/widgets/w", widget, "GET, HEAD, PUT, PATCH, DELETE, OPTIONS"},
		{"/apis/example.com/v1/namespaces/a/widgets/w/status", widget, "GET, HEAD, PUT, PATCH, OPTIONS"},
		{"/apis/example.com/v1/namespaces/a/widgets/w/scale", scale, "GET, HEAD, PUT, PATCH, OPTIONS"},
	}
	ordinary := []kindOfPath{
		{"/orders", "{}", "GET, HEAD, POST, OPTIONS"},
		{"/orders/7", "{}", "GET, HEAD, PUT, OPTIONS"},
		{"/orders/7/cancel", "{}", all},
		{"/orders/bulk", "{}", "GET, HEAD, PUT, DELETE, OPTIONS"},
		{"/carts", "{}", all},
		{"/carts/7", "{}", "GET, HEAD, POST, PATCH, OPTIONS"},
		{"/carts/7/label.txt", "{}", all},
		{"/searches", "{}", "GET, HEAD, POST, OPTIONS"},
		{"/me", "{}", "GET, HEAD, PATCH, OPTIONS"},
		{"/settings", "{}", "GET, HEAD, PUT, DELETE, OPTIONS"},
		{"/users", "{}", "GET, HEAD, POST, PUT, DELETE, OPTIONS"},
		{"/users/adam", "{}", "GET, HEAD, POST, PUT, DELETE, OPTIONS"},
		{"/users/adam/verify", "{}", all},
		{"/users/adam/friends", "{}", all},
		{"/teams/a/tasks", task, "GET, HEAD, POST, DELETE, OPTIONS"},
		{"/teams/a/tasks/w", task, "GET, HEAD, PUT, PATCH, DELETE, OPTIONS"},
		{"/teams/a/tasks/w/status", task, "GET, HEAD, PUT, PATCH, OPTIONS"},
		{"/teams/a/tasks/w/scale", scale, "GET, HEAD, PUT, PATCH, OPTIONS"},
		{"/apis/example.net/v1/namespaces/a/gadgets/w/restart", "{}", "GET, HEAD, POST, PUT, DELETE, OPTIONS"},
		{"/self", "{}", all},
		{"/other", "{}", all},
	}
	server := []kindOfPath{
		{"/api/v1/namespaces/a/pods/p", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"a"}}`,
			"GET, HEAD, PUT, PATCH, DELETE, OPTIONS"},
		{"/api/v1/namespaces/a/pods/p/proxy/x", "{}", all},
		{"/version", "", all},
	}
	const list = `"metadata":{},"items":[]}`
	bodies := map[string]string{}
	for _, p := range slices.Concat(paths, ordinary, server) {
		bodies[p.path] = p.body
		switch {
		case strings.HasSuffix(p.path, "/widgets"):
			bodies[p.path] = `{"apiVersion":"example.com/v1","kind":"WidgetList",` + list
		case strings.HasSuffix(p.path, "/tasks"):
			bodies[p.path] = `{"apiVersion":"v1","kind":"TaskList",` + list
		}
	}
	bodies["/version"] = `{"major":"1","minor":"34","gitVersion":"v1.34.0"}`
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", `"1"`)
		_, _ = io.WriteString(w, bodies[r.URL.Path])
	}))
	t.Cleanup(backend.Close)
	crd := allowFiles[strings.Index(allowFiles, "apiVersion: apiextensions"):]
	for dialect, test := range map[string]struct {
		file  string
		words []string
		paths []kindOfPath
	}{
		"Plain":      {allowFiles, nil, slices.Concat(paths, ordinary)},
		"Kubernetes": {crd, []string{"kubernetes"}, slices.Concat(paths, server)},
	} {
		dir := testutil.WriteFiles(t, map[string]string{"a.yaml": test.file})
		address := startGateway(t, gatewayFor(t, dir, strings.TrimPrefix(backend.URL, "http://"), test.words))
		for _, p := range test.paths {
			tryMethods(t, dialect, address, p.path, p.body, p.want)
		}
	}
}

// tryMethods compares the answer to each method on a path with the methods that the path has. In
// the words of Kubernetes a method that a path lacks may also be a path without a name (400) or
// without a namespace (404).
func tryMethods(t *testing.T, dialect, address, path, body, want string) {
	t.Helper()
	var taken []string
	said := map[string]string{}
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PURGE"} {
		nc, br := dial(t, address)
		head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: a\r\n", method, path)
		switch method {
		case "POST", "PUT":
			sent := body
			if method == "POST" {
				sent = strings.Replace(body, `,"resourceVersion":"1"`, "", 1)
			}
			head += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(sent), sent)
		case "PATCH":
			head += "Content-Type: application/merge-patch+json\r\nContent-Length: 2\r\n\r\n{}"
		default:
			head += "\r\n"
		}
		send(t, nc, head)
		a, _ := readAnswer(t, br, method == "HEAD")
		_ = nc.Close()
		if allow := a.Header.Get("Allow"); a.StatusCode == http.StatusMethodNotAllowed || allow != "" {
			said[method] = allow
		}
		switch a.StatusCode {
		case http.StatusMethodNotAllowed, http.StatusBadRequest, http.StatusNotFound:
		default:
			if method != "PURGE" { // which passes if nothing describes the path, and has no place in a list
				taken = append(taken, method)
			}
		}
		if a.StatusCode >= 500 {
			t.Errorf("%s: %s %s is answered %d %s", dialect, method, path, a.StatusCode, a.Content)
		}
	}
	if got := strings.Join(taken, ", "); got != want {
		t.Errorf("%s: %s has the methods %s, want %s", dialect, path, got, want)
	}
	for method, allow := range said {
		if allow != want {
			t.Errorf("%s: %s %s is answered Allow: %s, want %s", dialect, method, path, allow, want)
		}
	}
}
