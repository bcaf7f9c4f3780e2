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
	"github.com/admission-gateway/gateway/internal/testutil/story"
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

// BenchmarkOtherPolicies is a whole fully admitted request, beside 1,000 policies that do not match it.
func BenchmarkOtherPolicies(b *testing.B) {
	object, err := os.ReadFile(benchObject)
	if err != nil {
		b.Fatal(err)
	}
	const created = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Length: 2\r\n\r\n{}"
	request := story.JSON("POST /apis/bench.example.com/v1/namespaces/team-a/workloads", string(object))
	for _, by := range []string{"none", "resource", "operation", "namespace"} {
		b.Run(by, func(b *testing.B) {
			dir := b.TempDir()
			if err := os.CopyFS(dir, os.DirFS(benchPolicies)); err != nil {
				b.Fatal(err)
			}
			if by != "none" {
				testutil.WriteFile(b, filepath.Join(dir, "others.yaml"), thousandPolicies(by))
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
		})
	}
}
