package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// The gateway with full admission and further ValidatingAdmissionPolicies: ten of three rules that match, so many rules
// that match, and a thousand policies about other resources.
const (
	tenPoliciesTarget   = "gateway-ten-policies"
	hundredRulesTarget  = "gateway-hundred-rules"
	thousandOtherTarget = "gateway-thousand-others"
	policiesLoad        = "POST 1.3 KB judged by further policies"
)

var policiesTargets = []string{tenPoliciesTarget, hundredRulesTarget, thousandOtherTarget}

func policiesLoads() []Load {
	return []Load{{
		Name: policiesLoad, Method: http.MethodPost, Path: collection, Body: workloadJSON,
		Only: append([]string{admissionTarget}, policiesTargets...),
	}}
}

func policiesRows() []Target {
	row := func(name, title, resource string, policies, rules int) Target {
		return Target{
			Name: name, Title: "**gateway, full admission and " + title + "**", OfGateway: true, Check: checkAdmission,
			Command: func(m *Machine, listen string) ([]string, error) {
				dir := filepath.Join(m.Dir, name)
				if err := os.MkdirAll(dir, 0o755); err != nil {
					return nil, err
				}
				var b strings.Builder
				if resource != "workloads" {
					text, err := os.ReadFile(filepath.Join(m.Root, "bench", "policies", "workloads.yaml"))
					if err != nil {
						return nil, err
					}
					b.WriteString(strings.NewReplacer("workload", "job", "Workload", "Job").Replace(string(text)))
				}
				for i := range policies {
					b.WriteString(furtherPolicy(fmt.Sprintf("further-%d", i), "bench.example.com", resource, i*rules,
						rules))
				}
				if err := os.WriteFile(filepath.Join(dir, "further.yaml"), []byte(b.String()), 0o644); err != nil {
					return nil, err
				}
				return m.gateway(listen, "--policies", filepath.Join(m.Root, "bench", "policies"), "--policies", dir)
			},
		}
	}
	return []Target{
		row(tenPoliciesTarget, "10 policies of 3 rules", "workloads", 10, 3),
		row(hundredRulesTarget, "100 policies of 3 rules", "workloads", 100, 3),
		row(thousandOtherTarget, "1,000 policies about others", "jobs", 1000, 3),
	}
}

func policiesGoals() []Goal {
	return []Goal{
		{Load: policiesLoad, Target: tenPoliciesTarget, Reference: admissionTarget, AtMost: 1.15},
		// A hundredth by instructions; two runs of one program differ by more.
		{Load: policiesLoad, Target: thousandOtherTarget, Reference: admissionTarget, AtMost: 1.03},
		// Ten times as many rules take no more than ten times the time.
		{Load: policiesLoad, Target: hundredRulesTarget, Reference: tenPoliciesTarget, Of: []string{policiesLoad},
			Beyond: admissionTarget, AtMost: 10},
	}
}

// furtherRules are rules that the benchmark's object keeps, as platform teams write them. NUMBER differs from one to
// the next.
var furtherRules = []string{
	"object.spec.replicas <= 100NUMBER",
	"object.spec.template.spec.containers.all(c, !c.image.endsWith(':testNUMBER'))",
	"!has(object.metadata.annotations) || !('example.com/frozen-NUMBER' in object.metadata.annotations)",
}

// furtherPolicy returns a policy with so many rules, the first of them of that number, and its binding.
func furtherPolicy(name, group, resource string, first, rules int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [%[2]s], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [%[3]s]}
  validations:
`, name, group, resource)
	for i := first; i < first+rules; i++ {
		rule := strings.ReplaceAll(furtherRules[i%len(furtherRules)], "NUMBER", fmt.Sprint(i))
		fmt.Fprintf(&b, "  - expression: %q\n    message: must keep rule %d\n", rule, i)
	}
	fmt.Fprintf(&b, `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`, name)
	return b.String()
}
