// Chart writes the schema of the values of the Helm chart:
//
//	cd tools && go run ./chart ..
//
// The values are in values.go. What is below `configuration` is the schema of the configuration file.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
)

// The files, by their paths in the repository.
const (
	written       = "deploy/helm/values.schema.json"
	configuration = "internal/config/schema.json"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: chart REPOSITORY")
		os.Exit(2)
	}
	text, err := render(os.Args[1])
	if err == nil {
		err = os.WriteFile(filepath.Join(os.Args[1], written), text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

// render returns the schema of the chart's values.
func render(repository string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(repository, configuration))
	if err != nil {
		return nil, err
	}
	own, err := configurationSchema(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", configuration, err)
	}
	w := writer{defs: schema{}}
	all := w.of(reflect.TypeFor[values](), "")
	all["$schema"], all["title"] = "https://json-schema.org/draft/2020-12/schema", "Values of the gateway's chart"
	properties := all["properties"].(schema)
	properties["configuration"], properties["global"] = own, schema{"type": "object"}
	all["$defs"] = w.defs
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err = e.Encode(all)
	return b.Bytes(), err
}

// configurationSchema returns the schema of a configuration file without what the chart sets itself.
func configurationSchema(text []byte) (schema, error) {
	var own struct {
		Properties map[string]schema `json:"properties"`
	}
	if err := json.Unmarshal(text, &own); err != nil {
		return nil, err
	}
	of := func(key string) (map[string]any, error) {
		properties, ok := own.Properties[key]["properties"].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s is no object with properties", key)
		}
		return properties, nil
	}
	admin, err := of("admin")
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"listen", "tls", "tokenFile"} {
		delete(admin, key)
	}
	for _, key := range []string{"apiVersion", "kind", "listen", "tls"} {
		delete(own.Properties, key)
	}
	kept, err := lastGood(own.Properties["policies"])
	if err != nil {
		return nil, err
	}
	own.Properties["policies"] = schema{"type": "object", "additionalProperties": false,
		"properties": schema{"lastGood": kept}}
	return schema{
		"type": "object", "additionalProperties": false, "properties": own.Properties,
		"description": "A GatewayConfiguration without what the chart sets: apiVersion, kind, listen, tls, admin.listen, admin.tls, admin.tokenFile and the paths of policies.",
	}, nil
}

// lastGood returns the schema of the one setting about policies that is not about where they are.
func lastGood(policies schema) (any, error) {
	for _, key := range []string{"anyOf", "oneOf"} {
		ways, _ := policies[key].([]any)
		for _, way := range append(ways, any(map[string]any(policies))) {
			if object, ok := way.(map[string]any); ok {
				if properties, ok := object["properties"].(map[string]any); ok && properties["lastGood"] != nil {
					return properties["lastGood"], nil
				}
			}
		}
	}
	return nil, fmt.Errorf("policies has no lastGood")
}
