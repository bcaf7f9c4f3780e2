package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// patchedAPI is a plain API with one object, which it patches itself.
type patchedAPI struct {
	etag   string
	mu     sync.Mutex
	object string
	sent   []string // method, If-Match, media type and body of each write
}

func (a *patchedAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if a.etag != "" {
		w.Header().Set("ETag", a.etag)
	}
	if r.Method != http.MethodGet {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		a.sent = append(a.sent, r.Method+" "+r.URL.Path+" "+r.Header.Get("If-Match")+" "+r.Header.Get("Content-Type")+
			" "+string(body))
		if r.Method != http.MethodPatch {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		a.patch(w, r.Header.Get("Content-Type"), body)
	}
	_, _ = io.WriteString(w, a.object)
}

func (a *patchedAPI) patch(w http.ResponseWriter, mediaType string, body []byte) {
	if mediaType != "application/json-patch+json" {
		a.object = string(merged([]byte(a.object), body))
		return
	}
	to, err := document.Parse([]byte(a.object), document.Limits{})
	if err != nil {
		return
	}
	defer to.Release()
	by, err := document.Parse(body, document.Limits{})
	if err != nil {
		return
	}
	defer by.Release()
	if err := to.ApplyJSONPatch(by.Root(), document.Limits{}); err != nil {
		w.WriteHeader(http.StatusConflict)
		return
	}
	a.object = string(to.AppendTo(nil))
}

const itemsFile = `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: items}
spec:
  version: v1
  names: {plural: items, kind: Item}
  paths: {collection: /v1/items, item: '/v1/items/{name}'}
  fields: {status: status}
`

const itemsSchema = `  schema:
    openAPIV3Schema:
      type: object
      properties:
        id: {type: integer}
        name: {type: string, maxLength: 8}
        size: {type: integer, default: 1}
        status: {type: object, x-kubernetes-preserve-unknown-fields: true}
        owner: {type: object, properties: {team: {type: string, default: none}, mail: {type: string}}}
        tags: {type: array, items: {type: object, properties: {key: {type: string}}}}
`

const itemsPolicy = `---
apiVersion: admission-gateway.io/v1alpha1
kind: DefaultingPolicy
metadata: {name: labelled}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [items]}]}
  defaults: [{field: label, valueExpression: "'of ' + object.name"}]
`

// TestValidatedPatch: a patch is sent as it came, in its own type. What the gateway adds to its
// result, and what a client may not write, is folded in; all else stays as it is stored.
func TestValidatedPatch(t *testing.T) {
	const merge, ops, plain = "application/merge-patch+json", "application/json-patch+json", "application/json"
	stored := `{"id":1,"name":"a","size":2,"status":{"phase":"New"},"hidden":{"x":1.50},"tags":[{"key":"k","made":7}]}`
	for _, tt := range []struct {
		name, file, stored, etag, mediaType, patch string
		code                                       int
		sent, object                               string // of the backend
	}{
		{"as it came", itemsSchema, stored, `"7"`, merge, `{ "name" : "b" }`, 200,
			`PATCH /v1/items/1 "7" application/merge-patch+json { "name" : "b" }`,
			strings.Replace(stored, `"a"`, `"b"`, 1)},
		{"in the type of ordinary clients", itemsSchema, stored, `W/"7"`, plain, `{"name":"b","size":2}`, 200,
			`PATCH /v1/items/1  application/json {"name":"b","size":2}`, strings.Replace(stored, `"a"`, `"b"`, 1)},
		{"without a schema", "", stored, "", plain, `{"any":[1]}`, 200,
			`PATCH /v1/items/1  application/json {"any":[1]}`, strings.TrimSuffix(stored, "}") + `,"any":[1]}`},
		{"operations", itemsSchema, stored, `"7"`, ops, `[{"op":"replace","path":"/name","value":"b"}]`, 200,
			`PATCH /v1/items/1 "7" application/json-patch+json [{"op":"replace","path":"/name","value":"b"}]`, strings.Replace(stored, `"a"`, `"b"`, 1)},
		{"a status of the client's", itemsSchema, stored, "", merge, `{"name":"b","status":{"phase":"Done"}}`, 200,
			`PATCH /v1/items/1  application/merge-patch+json {"name":"b"}`, strings.Replace(stored, `"a"`, `"b"`, 1)},
		{"a status of the client's among operations", itemsSchema, stored, "", ops,
			`[{"op":"replace","path":"/status/phase","value":"Done"}]`, 200,
			`PATCH /v1/items/1  application/json-patch+json [{"op":"replace","path":"/status/phase","value":"Done"},{"op":"replace","path":"/status/phase","value":"New"}]`, stored},
		{"a field that the schema does not know", itemsSchema, stored, "", merge,
			`{"name":"b","hidden":{"x":2},"other":1}`, 200,
			`PATCH /v1/items/1  application/merge-patch+json {"name":"b"}`, strings.Replace(stored, `"a"`, `"b"`, 1)},
		{"a default that is not shown", itemsSchema, `{"id":1,"owner":{"mail":"m"}}`, "", merge, `{"name":"b"}`, 200,
			`PATCH /v1/items/1  application/merge-patch+json {"name":"b"}`, `{"id":1,"owner":{"mail":"m"},"name":"b"}`},
		{"operations that depend on a default", itemsSchema, `{"id":1}`, "", ops,
			`[{"op":"test","path":"/size","value":1}]`, 422, "", `{"id":1}`},
		{"a default of a field that is removed", itemsSchema, stored, "", merge, `{"size":null}`, 200,
			`PATCH /v1/items/1  application/merge-patch+json {"size":1}`,
			strings.Replace(stored, `"size":2`, `"size":1`, 1)},
		{"an object that may be stored", itemsSchema, stored, "", merge, `{"owner":{"mail":"m"}}`, 200,
			`PATCH /v1/items/1  application/merge-patch+json {"owner":{"mail":"m"}}`, strings.TrimSuffix(stored, "}") +
				`,"owner":{"mail":"m"}}`},
		{"a default in a new object", itemsSchema, stored, "", ops,
			`[{"op":"add","path":"/owner","value":{"mail":"m"}}]`, 200,
			`PATCH /v1/items/1  application/json-patch+json [{"op":"add","path":"/owner","value":{"mail":"m","team":"none"}}]`,
			strings.TrimSuffix(stored, "}") + `,"owner":{"mail":"m","team":"none"}}`},
		{"what a policy adds", itemsPolicy, `{"name":"a"}`, `"7"`, plain, `{"name":"b"}`, 200,
			`PATCH /v1/items/1 "7" application/json {"name":"b","label":"of b"}`, `{"name":"b","label":"of b"}`},
		{"what is invalid", itemsSchema, stored, "", merge, `{"name":"far too long"}`, 422, "", stored},
		{"what only the stored object makes invalid", itemsSchema + "          x-kubernetes-validations: []\n",
			strings.Replace(stored, `"a"`, `"far too long"`, 1), "", merge, `{"size":3}`, 200,
			`PATCH /v1/items/1  application/merge-patch+json {"size":3}`,
			strings.NewReplacer(`"a"`, `"far too long"`, `"size":2`, `"size":3`).Replace(stored)},
		{"a type that nobody knows", itemsSchema, stored, "", "text/json", `{"name":"b"}`, 415, "", stored},
		{"a strategic patch", itemsSchema, stored, "", "application/strategic-merge-patch+json", `{"name":"b"}`, 415,
			"", stored},
	} {
		t.Run(tt.name, func(t *testing.T) {
			api := &patchedAPI{etag: tt.etag, object: tt.stored}
			backend := httptest.NewServer(api)
			defer backend.Close()
			file := itemsFile + tt.file
			if tt.file == itemsPolicy || tt.file == "" {
				file = strings.Replace(itemsFile, "  fields: {status: status}\n", "", 1) + tt.file
			}
			dir := policiestest.Write(t, strings.Replace(file, "          x-kubernetes-validations: []\n", "", 1))
			address := startGateway(t, gatewayFor(t, dir, strings.TrimPrefix(backend.URL, "http://"), nil))
			r, err := http.NewRequest(http.MethodPatch, "http://"+address+"/v1/items/1", strings.NewReader(tt.patch))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", tt.mediaType)
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = answer.Body.Close() }()
			body, _ := io.ReadAll(answer.Body)
			if answer.StatusCode != tt.code {
				t.Errorf("answered %d %s, want %d", answer.StatusCode, body, tt.code)
			}
			if got := strings.Join(api.sent, "\n"); got != tt.sent {
				t.Errorf("sent\n%s\nwant\n%s", got, tt.sent)
			}
			if api.object != tt.object {
				t.Errorf("stored\n%s\nwant\n%s", api.object, tt.object)
			}
		})
	}
}
