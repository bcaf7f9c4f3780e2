package policies

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/policies/source"
)

// largeSet returns files with n ValidatingAdmissionPolicies, their bindings and n/4 CustomResourceDefinitions: ten
// policies in a file. The message of the first policy says the words.
func largeSet(n int, words string) *source.Source {
	var files []source.File
	var text strings.Builder
	for i := range n {
		said := "must be small"
		if i == 0 {
			said = words
		}
		fmt.Fprintf(&text, `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p%04d}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [g%d.example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [things]}]
  variables:
  - {name: labels, expression: "has(object.metadata.labels) ? object.metadata.labels : {}"}
  validations:
  - {expression: "object.spec.replicas <= %d", message: "%s"}
  - {expression: "object.spec.containers.all(c, c.image.startsWith('registry.example.com/') && c.name != 'p%d')"}
  - {expression: "'team' in variables.labels && variables.labels['team'].size() > 2", reason: Forbidden}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: p%04d}
spec: {policyName: p%04d, validationActions: [Deny]}
---
`, i, i%max(n/4, 1), i+1, said, i, i, i)
		if i%4 == 0 {
			fmt.Fprintf(&text, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.g%[1]d.example.com}
spec:
  group: g%[1]d.example.com
  names: {kind: Thing, plural: things}
  scope: Namespaced
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
            required: [replicas]
            x-kubernetes-validations:
            - {rule: "self.replicas <= self.most", message: "replicas must be less than or equal to most"}
            properties:
              replicas: {type: integer, minimum: 0}
              most: {type: integer, default: 100}
              containers:
                type: array
                maxItems: 20
                items:
                  type: object
                  required: [name, image]
                  properties:
                    name: {type: string, maxLength: 63}
                    image: {type: string, maxLength: 255}
                    args: {type: array, items: {type: string}}
---
`, i/4)
		}
		if i%10 == 9 || i == n-1 {
			files = append(files, source.File{Name: fmt.Sprintf("f%03d.yaml", len(files)), Data: []byte(text.String())})
			text.Reset()
		}
	}
	return source.Of(files)
}

// TestReloadShares: two sets that differ in one line take little more memory than one of them.
func TestReloadShares(t *testing.T) {
	sources := [3]*source.Source{largeSet(1, "must be little"), largeSet(200, "must be little"),
		largeSet(200, "must be small")}
	var sets [3]*Set
	var heap [3]int64
	for i, s := range sources {
		var found []Finding
		if sets[i], found = CompileAfter(sets[max(i-1, 0)], s, Gateway{}); sets[i] == nil {
			t.Fatal(found[0])
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		heap[i] = int64(m.HeapAlloc)
	}
	one, other := heap[1]-heap[0], heap[2]-heap[1]
	t.Logf("a set takes %d KB, the next one %d KB more", one>>10, other>>10)
	if one < 1<<20 || other*4 > one {
		t.Errorf("a set takes %d bytes, and the next one %d bytes more", one, other)
	}
	runtime.KeepAlive(sets)
}

// BenchmarkReload measures a load of 1,000 policies after one line changed, from scratch and with
// the previous set.
func BenchmarkReload(b *testing.B) {
	sources := [2]*source.Source{largeSet(1000, "must be little"), largeSet(1000, "must be small")}
	for _, reuses := range []bool{false, true} {
		b.Run(fmt.Sprintf("reuse=%v", reuses), func(b *testing.B) {
			before, _ := CompileFor(sources[0], Gateway{})
			b.ReportAllocs()
			spent := cpu(b)
			for i := 1; b.Loop(); i++ {
				if !reuses {
					before = nil
				}
				set, found := CompileAfter(before, sources[i%2], Gateway{})
				if set == nil {
					b.Fatal(found[0])
				}
				before = set
			}
			b.ReportMetric(float64((cpu(b)-spent).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

// cpu is the time that the process has computed.
func cpu(tb testing.TB) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
