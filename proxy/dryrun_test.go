package proxy

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/testutil"
)

const assessedPolicies = `
apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: queues}
spec:
  group: shop.example.com
  version: v1
  names: {kind: Queue, plural: queues}
  envelope: Kubernetes
  paths:
    collection: /apis/shop.example.com/v1/namespaces/{namespace}/queues
    item: /apis/shop.example.com/v1/namespaces/{namespace}/queues/{name}
  schema:
    openAPIV3Schema:
      type: object
      properties:
        spec:
          type: object
          properties: {size: {type: integer, default: 5}, owner: {type: string}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: sizes}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [shop.example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [queues]}]
  validations:
  - {expression: "object.spec.size < 10", message: "a queue has less than 10 places"}
  - {expression: "oldObject == null || object.spec.size >= oldObject.spec.size", message: "a queue does not shrink"}
  - {expression: "request.userInfo.username != 'eve'", message: "eve has no queues"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: sizes}
spec: {policyName: sizes, validationActions: [Deny]}
`

// verdictLines list the verdicts of policies.
type verdictLines []string

func (d *verdictLines) Decided(_ int, policy, _ string, v admission.Verdict, _ int64) {
	*d = append(*d, policy+" "+string(v))
}

// TestDryRunner: a dry run takes the steps of a write, knows what the backend would be sent, and sends nothing.
func TestDryRunner(t *testing.T) {
	dir := t.TempDir()
	testutil.WriteFile(t, filepath.Join(dir, "p.yaml"), assessedPolicies)
	g := gatewayFor(t, dir, "127.0.0.1:1", nil) // an address without a server
	const all, one = "/apis/shop.example.com/v1/namespaces/team-a/queues",
		"/apis/shop.example.com/v1/namespaces/team-a/queues/q"
	queue := func(spec string) string {
		return `{"apiVersion":"shop.example.com/v1","kind":"Queue","metadata":{"name":"q","namespace":"team-a"},"spec":` + spec + `}`
	}
	j := g.NewDryRunner()
	for _, c := range []struct {
		name, method, target, body, old, user string
		err, object, decided                  string
	}{
		{name: "admitted", method: "POST", target: all, body: queue(`{"owner":"a"}`), decided: "sizes Allow",
			object: `"size":5`},
		{name: "denied", method: "POST", target: all, body: queue(`{"size":10}`), decided: "sizes Deny",
			err: "less than 10 places", object: `"size":10`},
		{name: "user", method: "POST", target: all, body: queue(`{"size":1}`), user: "eve", decided: "sizes Deny",
			err: "eve has no queues", object: `"size":1`},
		{name: "schema", method: "POST", target: all, body: queue(`{"size":"x"}`), err: "spec.size", object: `"x"`},
		{name: "update", method: "PUT", target: one, body: queue(`{"size":3}`), old: queue(`{"size":4}`),
			decided: "sizes Deny", err: "does not shrink", object: `"size":3`},
		{name: "same", method: "PUT", target: one, body: queue(`{"size":3}`), old: queue(`{"size":3}`),
			decided: "sizes Allow", object: `"size":3`},
		{name: "old unknown", method: "PUT", target: one, body: queue(`{"size":3}`), err: ErrOldUnknown.Error()},
		{name: "undescribed", method: "POST", target: "/metrics", body: `{}`, err: ErrUndescribed.Error()},
		{name: "read", method: "GET", target: one, err: ErrNotWrite.Error()},
		{name: "contradiction", method: "PUT", target: one + "2", body: queue(`{}`), old: queue(`{}`),
			err: "does not match the name on the URL"},
		{name: "not JSON", method: "POST", target: all, body: `{"a":1,"a":2}`,
			err: "JSON that can be read in one way only"},
	} {
		for _, isParsed := range []bool{false, true} {
			var d verdictLines
			u := identity.User{Name: cmp.Or(c.user, "alice")}
			dry := &DryRun{Method: []byte(c.method), Target: []byte(c.target), Body: []byte(c.body), User: &u,
				Decided: &d, IsKept: true}
			if c.old != "" {
				dry.Old = []byte(c.old)
			}
			if parsed, err := document.Parse(dry.Body, document.Limits{}); isParsed && err == nil {
				dry.Object = parsed
			}
			o := j.Run(dry)
			said := ""
			if o.Err != nil {
				said = o.Err.Error()
			}
			if (c.err == "") != (said == "") || !strings.Contains(said, c.err) || strings.Join(d, ",") != c.decided {
				t.Errorf("%s: %q, %q; want %q, %q", c.name, said, d, c.err, c.decided)
			}
			if (c.object == "") != (len(o.Object) == 0) || !strings.Contains(string(o.Object), c.object) {
				t.Errorf("%s: the object is %s, want one with %s", c.name, o.Object, c.object)
			}
		}
	}
	unknown := j.Run(&DryRun{Method: []byte("PUT"), Target: []byte(one), Body: []byte(queue(`{}`)),
		User: &identity.User{}})
	if !errors.Is(unknown.Err, ErrOldUnknown) {
		t.Error(unknown.Err)
	}
}

// BenchmarkDryRunner judges one object of `make bench`'s workload without HTTP.
func BenchmarkDryRunner(b *testing.B) {
	object, err := os.ReadFile(benchObject)
	if err != nil {
		b.Fatal(err)
	}
	j := gatewayFor(b, benchPolicies, "127.0.0.1:1", nil).NewDryRunner()
	u := identity.User{Name: "scan"}
	method, target := []byte("POST"), []byte("/apis/bench.example.com/v1/namespaces/team-a/workloads")
	b.ReportAllocs()
	b.SetBytes(int64(len(object)))
	for b.Loop() {
		parsed, err := document.Parse(object, document.Limits{})
		if err != nil {
			b.Fatal(err)
		}
		if o := j.Run(&DryRun{Method: method, Target: target, Body: object, Object: parsed, User: &u}); o.Err != nil {
			b.Fatal(o.Err)
		}
	}
}
