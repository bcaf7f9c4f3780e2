package policytest

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

const widgetsDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, port: {type: integer, maximum: 65535}}
`

// TestPatches: before the dialect Kubernetes the backend of tests answers with what results from a
// patch, so that policies judge it.
func TestPatches(t *testing.T) {
	dir := testutil.WriteFiles(t, map[string]string{
		"p.yaml": widgetsDefinition,
		"p_test.yaml": `apiVersion: admission-gateway.io/v1alpha1
kind: PolicyTest
metadata: {name: patches}
spec:
  dialect: Kubernetes
  cases:
  - name: merge
    existing: &pod {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: default, labels: {a: "1", b: "2"}}, spec: {containers: [{name: x, image: "x:1"}, {name: y, image: "y:1"}]}}
    request: {method: PATCH, path: /api/v1/namespaces/default/pods/a, contentType: application/merge-patch+json, body: {metadata: {labels: {a: null, c: "3"}}}}
    expect:
      decision: Allowed
      object: {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: default, labels: {b: "2", c: "3"}}, spec: {containers: [{name: x, image: "x:1"}, {name: y, image: "y:1"}]}}
  - name: strategic
    existing: *pod
    request: {method: PATCH, path: /api/v1/namespaces/default/pods/a, contentType: application/strategic-merge-patch+json, body: {spec: {containers: [{name: y, image: "y:2"}]}}}
    expect:
      decision: Allowed
      object: {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: default, labels: {a: "1", b: "2"}}, spec: {containers: [{name: x, image: "x:1"}, {name: y, image: "y:2"}]}}
  - name: json
    existing: *pod
    request: {method: PATCH, path: /api/v1/namespaces/default/pods/a, contentType: application/json-patch+json, body: [{op: remove, path: /spec/containers/0}]}
    expect:
      decision: Allowed
      object: {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: default, labels: {a: "1", b: "2"}}, spec: {containers: [{name: y, image: "y:1"}]}}
  - name: json that fails
    existing: *pod
    request: {method: PATCH, path: /api/v1/namespaces/default/pods/a, contentType: application/json-patch+json, body: [{op: remove, path: /spec/volumes/0}]}
    expect: {decision: Denied, code: 422}
  - name: other version
    existing: *pod
    request: {method: PATCH, path: /api/v1/namespaces/default/pods/a, contentType: application/merge-patch+json, body: {metadata: {resourceVersion: "7"}}}
    expect: {decision: Denied, code: 409, message: the object has been modified}
  - name: no object
    request: {method: PATCH, path: /api/v1/namespaces/default/pods/b, contentType: application/merge-patch+json, body: {metadata: {labels: {c: "3"}}}}
    expect: {decision: Denied, code: 404}
  - name: apply
    existing: &widget {apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: default}, spec: {ports: [{name: http, port: 80}]}}
    request: {method: PATCH, path: "/apis/example.com/v1/namespaces/default/widgets/a?fieldManager=team-a", contentType: application/apply-patch+yaml, body: {apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {ports: [{name: https, port: 443}]}}}
    expect:
      decision: Allowed
      object: {apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: default}, spec: {ports: [{name: http, port: 80}, {name: https, port: 443}]}}
  - name: apply that the schema refuses
    existing: *widget
    request: {method: PATCH, path: "/apis/example.com/v1/namespaces/default/widgets/a?fieldManager=team-a", contentType: application/apply-patch+yaml, body: {apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {ports: [{name: http, port: 80000}]}}}
    expect: {decision: Denied, code: 422, causes: [{field: "spec.ports[0].port"}]}
  - name: apply of a new object
    request: {method: PATCH, path: "/apis/example.com/v1/namespaces/default/widgets/b?fieldManager=team-a", contentType: application/apply-patch+yaml, body: {apiVersion: example.com/v1, kind: Widget, metadata: {name: b, namespace: default}}}
    expect: {decision: Allowed, code: 201}
  - name: strategic merge of a custom resource
    existing: *widget
    request: {method: PATCH, path: /apis/example.com/v1/namespaces/default/widgets/a, contentType: application/strategic-merge-patch+json, body: {spec: {ports: []}}}
    expect: {decision: Denied, code: 415}
`,
	})
	s, err := Run(context.Background(), Options{Paths: []string{filepath.Join(dir, "p_test.yaml")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Results {
		if r.Outcome != Passed {
			t.Errorf("%s: %s", r.ID, strings.Join(r.Problems, "\n"))
		}
	}
	if s.Passed != 10 {
		t.Errorf("%d cases passed, want 10", s.Passed)
	}
}
