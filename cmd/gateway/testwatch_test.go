package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestWatchedTests: tests are played again when they change, or a policy outside the folder that they name, whatever
// their outcome; an interrupt ends the command without a failure.
func TestWatchedTests(t *testing.T) {
	const policy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: few}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: object.data.size() < 3}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: few}
spec: {policyName: few, validationActions: [Deny]}
`
	const test = `apiVersion: admission-gateway.io/v1alpha1
kind: PolicyTest
metadata: {name: few}
spec:
  policies: [../policies/few.yaml]
  cases: [{name: two, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: "1", b: "2"}}, expect: {decision: Allowed}}]
`
	dir := testutil.WriteFiles(t, map[string]string{"policies/few.yaml": policy, "tests/few_test.yaml": test})
	out := &lockedBuffer{}
	p := exec.Command(os.Args[0], "test", "--watch", filepath.Join(dir, "tests"))
	p.Env = append(os.Environ(), "GATEWAY_TEST_RUN_MAIN=1")
	p.Stdout, p.Stderr = out, out
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() }) // it has ended if the test passes
	said := func(text string, times int) {
		t.Helper()
		testutil.Eventually(t, text, func() bool { return strings.Count(out.String(), text) == times })
	}
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.Rename(testutil.WriteFile(t, file+".new", text), file); err != nil {
			t.Fatal(err)
		}
	}
	said("1 passed, 0 failed", 1)
	write("policies/few.yaml", strings.Replace(policy, "< 3", "< 2", 1))
	said("0 passed, 1 failed", 1)
	said("gateway test: 1 case failed", 1)
	write("tests/few_test.yaml", "kind: PolicyTest: no YAML\n")
	said("gateway test: the tests have errors", 1)
	write("tests/few_test.yaml", strings.Replace(test, "Allowed", "Denied", 1))
	said("1 passed, 0 failed", 2)
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
}
