package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/admission-gateway/gateway/policies"
)

func newSchemas() *cobra.Command {
	return &cobra.Command{
		Use:   "schemas DIR",
		Short: "Write JSON Schemas of the gateway's own kinds for editors",
		Long: `Write a JSON Schema for each of the gateway's own kinds into a folder, KIND.json. Editors complete and explain the fields
of policy files by them; a file says which one it keeps to in its first line:

  # yaml-language-server: $schema=schemas/RateLimitPolicy.json`,
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
			for _, kind := range slices.Sorted(maps.Keys(all)) {
				data, err := json.MarshalIndent(all[kind], "", "  ")
				if err != nil {
					return err
				}
				file := filepath.Join(args[0], kind+".json")
				if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil {
					return err
				}
				cmd.Println(file)
			}
			return nil
		},
	}
}
