package proxy

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/internal/testutil/scenario"
)

// thousandPolicies are policies that do not match the benchmark's request, by what they do not match it.
func thousandPolicies(by string) string {
	var b strings.Builder
	for i := range 1000 {
		group, resource, operation, selector := "bench.example.com", "workloads", `["*"]`, ""
		switch by {
		case "resource":
			resource = fmt.Sprint("others", i)
		case "operation":
			operation = `[DELETE]`
		case "namespace":
			group, resource, selector = "'*'", "'*'", fmt.Sprintf("\n    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other-%d}}", i)
		}
		fmt.Fprintf(&b, `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: other-%d}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [%s], apiVersions: [v1], operations: %s, resources: [%s]}]%s
  validations: [{expression: "false"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: other-%d}
spec: {policyName: other-%d, validationActions: [Deny]}
`, i, group, operation, resource, selector, i, i)
	}
	return b.String()
}

// matchingPolicies are policies that match the benchmark's request and hold, each of so many rules.
func matchingPolicies(policies, rules int) string {
	expressions := []string{
		"object.spec.replicas <= 50",
		"object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example.com/'))",
		"'app' in object.metadata.labels && object.metadata.labels.app == object.spec.selector.matchLabels.app",
	}
	var b strings.Builder
	for i := range policies {
		fmt.Fprintf(&b, `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: matching-%d}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [bench.example.com], apiVersions: [v1], operations: [CREATE], resources: [workloads]}]
  validations:
`, i)
		for rule := range rules {
			fmt.Fprintf(&b, "  - expression: %q\n", expressions[rule%len(expressions)])
		}
		fmt.Fprintf(&b, `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: matching-%d}
spec: {policyName: matching-%d, validationActions: [Deny]}
`, i, i)
	}
	return b.String()
}

// BenchmarkOtherPolicies is a whole fully admitted request, beside 1,000 policies that do not match it.
func BenchmarkOtherPolicies(b *testing.B) {
	b.Run("none", func(b *testing.B) { benchmarkAdmitted(b, "") })
	for _, by := range []string{"resource", "operation", "namespace"} {
		b.Run(by, func(b *testing.B) { benchmarkAdmitted(b, thousandPolicies(by)) })
	}
}

// BenchmarkMatchingPolicies is the same with policies that match it: what they add is linear.
func BenchmarkMatchingPolicies(b *testing.B) {
	for _, size := range []struct{ policies, rules int }{{0, 0}, {1, 10}, {10, 3}, {10, 10}, {100, 3}} {
		b.Run(fmt.Sprintf("%d of %d rules", size.policies, size.rules), func(b *testing.B) {
			benchmarkAdmitted(b, matchingPolicies(size.policies, size.rules))
		})
	}
}

// benchmarkAdmitted is a whole fully admitted request, with further policies.
func benchmarkAdmitted(b *testing.B, further string) {
	object, err := os.ReadFile(benchObject)
	if err != nil {
		b.Fatal(err)
	}
	const created = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Length: 2\r\n\r\n{}"
	request := scenario.JSON("POST /apis/bench.example.com/v1/namespaces/team-a/workloads", string(object))
	dir := b.TempDir()
	if err := os.CopyFS(dir, os.DirFS(benchPolicies)); err != nil {
		b.Fatal(err)
	}
	if further != "" {
		testutil.WriteFile(b, filepath.Join(dir, "further.yaml"), further)
	}
	address := startGateway(b, gatewayFor(b, dir, strings.TrimPrefix(h1test.Replying(b, created), "http://"), nil))
	nc, err := net.Dial("tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	in := make([]byte, len(created))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := nc.Write(request); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(nc, in); err != nil {
			b.Fatal(err)
		}
		if in[9] != '2' {
			b.Fatalf("answered %s", in)
		}
	}
}
