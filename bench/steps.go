package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

// A Step is a part of full admission. Each is measured under load by a gateway that takes this step and those before
// it: the difference to the row before is what the step costs.
type Step struct {
	Name  string // of the target
	Title string // in the table
	// Leave takes off the description of the resource what later steps need.
	Leave func(spec map[string]any)
	// HasRules says that the rules of the policy are kept.
	HasRules bool
}

// steps are the parts of full admission in the order in which a request goes through them.
func steps() []Step {
	open := func(spec map[string]any) {
		spec["statusSubresource"] = "Disabled"
		spec["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object",
			"x-kubernetes-preserve-unknown-fields": true}}
	}
	return []Step{
		{Name: "gateway-step-read", Title: "the object is read, and its identity checked", Leave: open},
		{Name: "gateway-step-schema", Title: "the schema prunes and checks it", Leave: func(spec map[string]any) {
			spec["statusSubresource"] = "Disabled"
			withoutDefaults(spec)
		}},
		{Name: "gateway-step-status", Title: "its status is stripped",
			Leave: func(spec map[string]any) { withoutDefaults(spec) }},
		{Name: "gateway-step-defaults", Title: "three defaults are set", Leave: func(map[string]any) {}},
		{Name: "gateway-step-rules", Title: "five rules judge it", Leave: func(map[string]any) {}, HasRules: true},
	}
}

// withoutDefaults takes the defaults off a schema and the schemas in it.
func withoutDefaults(in any) {
	switch v := in.(type) {
	case map[string]any:
		delete(v, "default")
		for _, member := range v {
			withoutDefaults(member)
		}
	case []any:
		for _, item := range v {
			withoutDefaults(item)
		}
	}
}

// write writes the policy files of the step to a folder of its own and returns it.
func (s *Step) write(m *Machine) (string, error) {
	from := filepath.Join(m.Root, "bench", "policies")
	to := filepath.Join(m.Dir, s.Name)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(from, "workloads.yaml"))
	if err != nil {
		return "", err
	}
	var resource map[string]any
	if err := yaml.Unmarshal(text, &resource); err != nil {
		return "", err
	}
	spec, isObject := resource["spec"].(map[string]any)
	if !isObject {
		return "", fmt.Errorf("workloads.yaml has no spec")
	}
	s.Leave(spec)
	if text, err = yaml.Marshal(resource); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(to, "workloads.yaml"), text, 0o644); err != nil || !s.HasRules {
		return to, err
	}
	rules, err := os.ReadFile(filepath.Join(from, "admission.yaml"))
	if err != nil {
		return "", err
	}
	return to, os.WriteFile(filepath.Join(to, "admission.yaml"), rules, 0o644)
}

// check makes sure that a gateway takes the step and none of those after it.
func (s *Step) check(address string) error {
	if s.HasRules {
		return checkAdmission(address)
	}
	admitted, err := exchange(address, http.MethodPost, collection, workloadJSON)
	if err != nil {
		return err
	}
	place := placeOf(s.Name)
	for _, one := range []struct {
		text  string
		after int // the step from which on the admitted object has the text, or lacks it
		lacks bool
	}{{`"status":`, 2, true}, {`"restartPolicy":`, 3, false}} {
		if has := bytes.Contains(admitted, []byte(one.text)); has != (place >= one.after != one.lacks) {
			return fmt.Errorf("%s: whether the admitted object has %s is %t: %s", s.Title, one.text, has, admitted)
		}
	}
	wrong := bytes.Replace(workloadJSON, []byte(`"replicas":3`), []byte(`"replicas":"3"`), 1)
	code, answer, err := send(address, http.MethodPost, collection, wrong)
	if err == nil && (code == http.StatusUnprocessableEntity) != (place >= 1) {
		err = fmt.Errorf("%s: a wrong object is answered %d: %s", s.Title, code, answer)
	}
	return err
}

// runSteps prints what each step of full admission costs under load.
func runSteps(ctx context.Context, o options) error {
	rows, err := chosen([]string{nginxTarget, fasthttpTarget, gatewayTarget})
	if err != nil {
		return err
	}
	for _, s := range steps() {
		rows = append(rows, Target{
			Name: s.Name, Title: s.Title, OfGateway: true, Check: s.check,
			Command: func(m *Machine, listen string) ([]string, error) {
				dir, err := s.write(m)
				if err != nil {
					return nil, err
				}
				return m.gateway(listen, "--policies", dir)
			},
		})
	}
	m, o, closeAll, err := prepare(ctx, o, rows)
	if err != nil {
		return err
	}
	defer closeAll()
	report, err := m.measure(ctx, o, rows,
		[]Load{{Name: postLoad, Method: http.MethodPost, Path: collection, Body: workloadJSON}})
	if err != nil {
		return err
	}
	p := printer{to: os.Stdout}
	p.printf("Medians of %d interleaved rounds of %g s, %d keep-alive connections. A difference is the median of the differences within the rounds.\n\n",
		o.rounds, o.duration.Seconds(), o.connections)
	p.printf("| POST 1.3 KB | CPU µs/request | more than the row before | user | more than the row before |\n|---|--:|--:|--:|--:|\n")
	for i := range report.Results {
		x := &report.Results[i]
		more, moreUser := "–", "–"
		if placeOf(x.Target) >= 0 {
			before := report.Results[i-1].Samples
			more, moreUser = difference(x.Samples, before, cpuOf), difference(x.Samples, before, userOf)
		}
		p.printf("| %s | %.1f | %s | %.1f | %s |\n", x.Title, median(x.Samples, cpuOf), more, median(x.Samples, userOf),
			moreUser)
	}
	return p.err
}

// placeOf returns the place of a target among the steps; -1 if it is none of them.
func placeOf(target string) int {
	return slices.IndexFunc(steps(), func(s Step) bool { return s.Name == target })
}

// difference returns the median over the rounds of how much more a figure is than the reference's in the same round.
func difference(samples, reference []Sample, figure func(Sample) float64) string {
	var values []float64
	for i := range min(len(samples), len(reference)) {
		values = append(values, figure(samples[i])-figure(reference[i]))
	}
	return fmt.Sprintf("%+.1f", middle(values))
}
