package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// The gateway with few and with many constraints that match the request, of the same three templates.
const (
	fewTarget       = "gateway-constraints"
	manyTarget      = "gateway-many-constraints"
	constraintsLoad = "POST 1.3 KB judged by constraints"
	fewConstraints  = 3
	manyConstraints = 103
	// maxFurtherMicroseconds is the goal for the CPU time of each further constraint that matches.
	maxFurtherMicroseconds = 5
)

var constraintTargets = []string{fewTarget, manyTarget}

func constraintLoads() []Load {
	return []Load{{Name: constraintsLoad, Method: http.MethodPost, Path: collection, Body: workloadJSON,
		Only: constraintTargets}}
}

func constraintRows() []Target {
	row := func(name string, count int) Target {
		return Target{
			Name: name, Title: fmt.Sprintf("**gateway**, %d constraints", count), OfGateway: true,
			Check: func(address string) error { return checkRego(address, postRego) },
			Command: func(m *Machine, listen string) ([]string, error) {
				dir, err := m.writeConstraints(name, count)
				if err != nil {
					return nil, err
				}
				return m.gateway(listen, "--policies", dir)
			},
		}
	}
	return []Target{row(fewTarget, fewConstraints), row(manyTarget, manyConstraints)}
}

// writeConstraints writes a folder of policy files: the modules of bench/rego as templates, and so many
// constraints of them in turn, whose parameters differ.
func (m *Machine) writeConstraints(name string, count int) (string, error) {
	dir := filepath.Join(m.Dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	resource, err := os.ReadFile(filepath.Join(m.Root, "bench", "rego", "workloads.yaml"))
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.Write(resource)
	for _, module := range constraintTemplates {
		source, err := os.ReadFile(filepath.Join(m.Root, "bench", "rego", module.name, module.name+".rego"))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "---\napiVersion: templates.gatekeeper.sh/v1\nkind: ConstraintTemplate\nmetadata: {name: %[1]s}\nspec:\n"+
			"  crd: {spec: {names: {kind: %[1]s}, validation: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}\n"+
			"  targets:\n  - target: admission.k8s.gatekeeper.sh\n    code:\n    - engine: Rego\n      source:\n        version: v1\n        rego: |\n          %[2]s\n",
			module.name, strings.ReplaceAll(string(source), "\n", "\n          "))
	}
	for i := range count {
		module := constraintTemplates[i%len(constraintTemplates)]
		fmt.Fprintf(&text, "---\napiVersion: constraints.gatekeeper.sh/v1beta1\nkind: %s\nmetadata: {name: c%d}\nspec:\n"+
			"  match: {kinds: [{apiGroups: [bench.example.com], kinds: [Workload]}]}\n  parameters: %s\n",
			module.name, i, strings.ReplaceAll(module.parameters, "NUMBER", fmt.Sprint(i)))
	}
	return dir, os.WriteFile(filepath.Join(dir, "constraints.yaml"), []byte(text.String()), 0o644)
}

// constraintTemplates are the modules of bench/rego, and parameters by which the object passes.
var constraintTemplates = []struct{ name, parameters string }{
	{"labels", `{labels: [{key: team, allowedRegex: "^[a-z]+$"}, {key: app}]}`},
	{"privileged", `{exemptImages: [registry.example.com/systemNUMBER/*]}`},
	{"repos", `{repos: [registry.example.com/, othersNUMBER.example.com/]}`},
}

// furtherConstraint returns the CPU time in microseconds that each further constraint takes.
func (r *Report) furtherConstraint() (microseconds float64, ok bool) {
	few, many := r.find(constraintsLoad, fewTarget), r.find(constraintsLoad, manyTarget)
	if len(few) == 0 || len(many) == 0 {
		return 0, false
	}
	return (median(many, cpuOf) - median(few, cpuOf)) / (manyConstraints - fewConstraints), true
}
