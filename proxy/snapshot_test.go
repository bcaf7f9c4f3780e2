package proxy

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/testutil/scenario"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// TestRequestUsesOneSnapshot swaps two policy sets under load. Each defaults spec.mode to its own letter, and has a
// rule and a policy that accept no other: a request that used a part of each would be refused.
func TestRequestUsesOneSnapshot(t *testing.T) {
	var sets [2]*policies.Set
	for i, letter := range []string{"A", "B"} {
		sets[i] = policiestest.Load(t, fmt.Sprintf(snapshotPolicies, letter))
	}
	var current atomic.Pointer[policies.Set]
	current.Store(sets[0])
	backend := newRecorder(t)
	c, err := config.Load("", config.Flags{Upstream: backend.URL(), Dialect: "Plain"})
	if err != nil {
		t.Fatal(err)
	}
	address := startGateway(t, newTestGateway(t, c, current.Load))
	stop := make(chan struct{})
	var swapping, load sync.WaitGroup
	swapping.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				current.Store(sets[i%2])
			}
		}
	})
	request := scenario.JSON("POST "+widgetsPath, `{"metadata":{"name":"w1"},"spec":{}}`)
	for range 4 {
		load.Go(func() {
			for range 150 {
				if answer := exchangeRaw(t, address, request); !bytes.HasPrefix(answer, []byte("HTTP/1.1 2")) {
					t.Errorf("a request saw two sets: %s", answer)
					return
				}
			}
		})
	}
	load.Wait()
	close(stop)
	swapping.Wait()
}

const snapshotPolicies = `
apiVersion: apiextensions.k8s.io/v1
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
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {mode: {type: string, default: "%[1]s"}}
            x-kubernetes-validations: [{rule: "self.mode == '%[1]s'", message: "must be of one set"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: one-set}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]
  validations: [{expression: "object.spec.mode == '%[1]s'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: one-set}
spec: {policyName: one-set, validationActions: [Deny]}
`
