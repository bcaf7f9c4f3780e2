// Monitoring writes what Prometheus and Grafana need to watch the gateway, for kustomize and for Helm:
//
//	cd tools && go run ./monitoring ..
//
// Records and alerts are in alerts.go, the dashboard's panels in panels.go.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: monitoring REPOSITORY")
		os.Exit(2)
	}
	files, err := render()
	for path, text := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Args[1], path), text, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "monitoring:", err)
		os.Exit(1)
	}
}

// header names the source in generated YAML.
const header = "# Written by `make monitoring` from tools/monitoring. docs/runbooks.md says what to do about each alert.\n"

// render returns the files by their paths in the repository.
func render() (map[string][]byte, error) {
	dashboard, err := encodeJSON(gatewayDashboard())
	if err != nil {
		return nil, err
	}
	rules, err := encodeYAML(ruleGroups())
	if err != nil {
		return nil, err
	}
	object, err := encodeYAML(prometheusRule{
		APIVersion: "monitoring.coreos.com/v1", Kind: "PrometheusRule", Metadata: metadata{Name: "gateway"},
		Spec: ruleGroups(),
	})
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"deploy/kustomize/monitoring/dashboard.json":      dashboard,
		"deploy/kustomize/monitoring/prometheusrule.yaml": append([]byte(header), object...),
		"deploy/helm/files/dashboard.json":                dashboard,
		"deploy/helm/files/alerts.yaml":                   append([]byte(header), rules...),
	}, nil
}

// encodeJSON writes JSON for people: indented, and with `<` and `&` as they are.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// encodeYAML writes YAML as people do, indented by two.
func encodeYAML(v any) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	err := e.Encode(v)
	return b.Bytes(), errors.Join(err, e.Close())
}
