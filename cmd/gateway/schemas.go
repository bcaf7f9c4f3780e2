package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/policies"
)

func newSchemas() *cobra.Command {
	return &cobra.Command{
		Use:   "schemas DIR",
		Short: "Write JSON Schemas of the configuration and the gateway's own kinds for editors",
		Long: `Write a JSON Schema for the configuration file and for each of the gateway's own kinds into a folder, KIND.json. Editors
complete and explain the fields of files by them; a file names its schema in its first line:

  # yaml-language-server: $schema=schemas/GatewayConfiguration.json

'any.json' is for files with objects of several kinds, and for whole folders: it judges objects of the gateway's own kinds by
their schemas, and lets all others pass.`,
		Example: `  gateway schemas schemas`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("name the folder that the schemas are written to")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := policies.JSONSchemas()
			if err != nil {
				return err
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			files := map[string][]byte{config.Kind: config.JSONSchema()}
			for kind, s := range all {
				data, err := json.MarshalIndent(s, "", "  ")
				if err != nil {
					return err
				}
				files[kind] = append(data, '\n')
			}
			every, err := json.MarshalIndent(schemaOfAny(slices.Sorted(maps.Keys(files))), "", "  ")
			if err != nil {
				return err
			}
			files["any"] = append(every, '\n')
			for _, kind := range slices.Sorted(maps.Keys(files)) {
				file := filepath.Join(args[0], kind+".json")
				if err := os.WriteFile(file, files[kind], 0o644); err != nil {
					return err
				}
				cmd.Println(file)
			}
			return nil
		},
	}
}

// schemaOfAny returns a schema that judges objects of the kinds by the schemas beside it.
func schemaOfAny(kinds []string) map[string]any {
	var judges []any
	for _, kind := range kinds {
		judges = append(judges, map[string]any{
			"if": map[string]any{
				"properties": map[string]any{
					"apiVersion": map[string]any{"pattern": "^admission-gateway\\.io/"},
					"kind":       map[string]any{"const": kind},
				},
				"required": []string{"apiVersion", "kind"},
			},
			"then": map[string]any{"$ref": kind + ".json"},
		})
	}
	return map[string]any{"$schema": "http://json-schema.org/draft-07/schema#", "title": "An object of any kind",
		"allOf": judges}
}
