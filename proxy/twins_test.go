package proxy

import (
	"strconv"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/policies/policiestest"
)

const twinFiles = `
apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: notes}
spec:
  version: v1
  names: {plural: notes, kind: Note}
  paths: {collection: /v1/notes, item: "/v1/notes/{name}"}
  yamlBodies: Allowed
  dataMaps: [spec.settings, items.labels]
  fields: {name: id}
---
apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: forms}
spec:
  group: example.com
  version: v1
  names: {plural: forms, kind: Form}
  paths: {collection: /v1/forms, item: "/v1/forms/{name}"}
  envelope: Kubernetes
  schema:
    openAPIV3Schema:
      type: object
      properties:
        spec:
          type: object
          properties:
            free: {type: object, x-kubernetes-preserve-unknown-fields: true}
            half: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {evil: {type: boolean}}}
            named: {type: object, additionalProperties: {type: string}}
            closed: {type: object, properties: {a: {type: string}}}
            list: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
openapi: 3.0.3
info: {title: Shop, version: v1}
paths:
  /v1/carts:
    post:
      requestBody: {content: {application/json: {schema: {$ref: "#/components/schemas/Cart"}}}}
      responses: {"201": {description: ok}}
  /v1/carts/{id}:
    get: {responses: {"200": {description: ok, content: {application/json: {schema: {$ref: "#/components/schemas/Cart"}}}}}}
    put:
      requestBody: {content: {application/json: {schema: {$ref: "#/components/schemas/Cart"}}}}
      responses: {"200": {description: ok}}
components:
  schemas:
    Cart:
      type: object
      properties:
        id: {type: string}
        tags: {type: object, additionalProperties: {type: string}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: all}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"]}
    - {apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [configmaps]}
  validations: [{expression: "!has(object.evil) || !object.evil"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: all}
spec: {policyName: all, validationActions: [Deny]}
`

// Two keys of one object that differ in case alone are 400 for a plain backend wherever no schema
// knows them, in what a client sends and in what results from a patch; keys that are data pass. An
// API server stores both.
func TestCaseTwins(t *testing.T) {
	const (
		merge = "application/merge-patch+json"
		patch = "application/json-patch+json"
		yaml  = "application/yaml"
	)
	dir := policiestest.Write(t, twinFiles)
	for _, tt := range []struct {
		method, path, media, body string
		want                      string // a part of the message; "" passes
		kubernetes                bool
	}{
		{method: "POST", path: "/v1/notes", body: `{"id":"n2","evil":false,"Evil":true}`,
			want: "the keys 'evil' and 'Evil' in the body differ in case alone"},
		{method: "POST", path: "/v1/notes", body: `{"id":"n2","a":[{"b":{"x":1,"X":2}}]}`,
			want: "the keys 'x' and 'X' in `a[0].b` differ in case alone"},
		{method: "POST", path: "/v1/notes", body: "{\"id\":\"n2\",\"a\":{\"\u017f\":1,\"s\":2}}",
			want: "the keys '\u017f' and 's' in `a` differ"},
		{method: "POST", path: "/v1/notes", body: "{\"id\":\"n2\",\"a\":{\"k\":1,\"\\u212a\":2}}",
			want: "the keys 'k' and '\u212a' in `a` differ"},
		{method: "POST", path: "/v1/notes", body: `{"id":"n2","a":{"x":1},"b":[{"X":2},{"x":3}]}`},
		{method: "POST", path: "/v1/notes", body: `{"id":"n2","spec":{"settings":{"x":1,"X":2,"y":[{"z":1,"Z":2}]}},"items":[{"labels":{"a":"1","A":"2"}}]}`},
		{method: "POST", path: "/v1/notes", body: `{"id":"n2","spec":{"settings":{"x":1},"y":{"z":1,"Z":2}}}`,
			want: "the keys 'z' and 'Z' in `spec.y` differ"},
		{method: "POST", path: "/v1/notes", media: yaml, body: "id: n2\na: {x: 1, X: 2}\n",
			want: "the keys 'x' and 'X' in `a` differ"},
		{method: "PUT", path: "/v1/notes/n1", body: `{"id":"n1","a":{"x":1,"X":2}}`,
			want: "the keys 'x' and 'X' in `a` differ"},
		{method: "PATCH", path: "/v1/notes/n1", media: merge, body: `{"STORED":1}`,
			want: "the keys 'stored' and 'STORED' in the body differ"},
		{method: "PATCH", path: "/v1/notes/n1", media: patch, body: `[{"op":"copy","from":"/stored","path":"/Stored"}]`,
			want: "the keys 'stored' and 'Stored' in the body differ"},
		{method: "PATCH", path: "/v1/notes/n1", media: patch,
			body: `[{"op":"move","from":"/stored","path":"/Stored"}]`},
		{method: "POST", path: "/v1/forms", body: `{"metadata":{"name":"f2","labels":{"a":"1","A":"2"},"annotations":{"b":"1","B":"2"}},"spec":{"named":{"x":"1","X":"2"}}}`},
		{method: "POST", path: "/v1/forms", body: `{"metadata":{"name":"f2"},"spec":{"closed":{"x":"1","X":"2"}}}`},
		{method: "POST", path: "/v1/forms", body: `{"metadata":{"name":"f2"},"spec":{"free":{"x":"1","X":"2"}}}`,
			want: "in `spec.free` differ"},
		{method: "POST", path: "/v1/forms", body: `{"metadata":{"name":"f2"},"spec":{"half":{"x":"1","X":"2"}}}`,
			want: "in `spec.half` differ"},
		{method: "POST", path: "/v1/forms",
			body: `{"metadata":{"name":"f2"},"spec":{"half":{"evil":false,"Evil":true}}}`,
			want: "must be spelled 'evil'"},
		{method: "POST", path: "/v1/forms",
			body: `{"metadata":{"name":"f2"},"spec":{"list":[{},{"x":{"y":"1","Y":"2"}}]}}`,
			want: "in `spec.list[1].x` differ"},
		{method: "POST", path: "/v1/carts", body: `{"id":"c2","tags":{"x":"1","X":"2"}}`},
		{method: "POST", path: "/v1/carts", body: `{"id":"c2","other":{"x":"1","X":"2"}}`, want: "in `other` differ"},
		{method: "POST", path: "/v1/carts", body: `{"id":"c2","other":1,"Other":2}`, want: "in the body differ"},
		{method: "POST", path: "/api/v1/namespaces/team-a/configmaps",
			body: `{"metadata":{"name":"c","labels":{"a":"1","A":"2"}},"data":{"a":"1","A":"2"}}`},
		{method: "POST", path: "/api/v1/namespaces/team-a/configmaps",
			body: `{"metadata":{"name":"c"},"other":{"a":"1","A":"2"}}`, want: "in `other` differ"},
		{method: "POST", path: "/api/v1/namespaces/team-a/configmaps", body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"other":{"a":"1","A":"2"}}`, kubernetes: true},
		{method: "POST", path: "/undescribed", body: `{"a":1,"A":2}`},
	} {
		backend := newRecorder(t)
		backend.Reply = func(int, string, string) (string, bool) {
			const object = `{"id":"n1","stored":1}`
			return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nETag: \"7\"\r\nContent-Length: " + strconv.Itoa(len(object)) + "\r\n\r\n" + object, true
		}
		var words []string
		if tt.kubernetes {
			words = []string{"kubernetes"}
		}
		address := startGateway(t, gatewayFor(t, dir, backend.Addr().String(), words))
		if tt.media == "" {
			tt.media = "application/json"
		}
		nc, br := dial(t, address)
		send(t, nc, tt.method+" "+tt.path+" HTTP/1.1\r\nHost: gw\r\nContent-Type: "+tt.media+"\r\nContent-Length: "+
			strconv.Itoa(len(tt.body))+"\r\n\r\n"+tt.body)
		a, _ := readAnswer(t, br, false)
		_ = nc.Close()
		got := backend.Take()
		passed := a.StatusCode < 300
		writes := strings.Contains(got, "POST ") || strings.Contains(got, "PUT ") || strings.Contains(got, "PATCH ")
		switch {
		case tt.want == "" && (!passed || !writes):
			t.Errorf("%s %s %s is answered %d %s", tt.method, tt.path, tt.body, a.StatusCode, a.Content)
		case tt.want != "" && (a.StatusCode != 400 || writes || !strings.Contains(string(a.Content), tt.want)):
			t.Errorf("%s %s %s is answered %d %s; the backend got\n%s", tt.method, tt.path, tt.body, a.StatusCode,
				a.Content, got)
		}
	}
}
