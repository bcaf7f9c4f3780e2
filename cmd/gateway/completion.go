package main

import (
	"github.com/spf13/cobra"

	"github.com/admission-gateway/gateway/internal/config"
)

// choices lets shells complete the values of a flag.
func choices(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag,
		cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the command has no such flag, or has its values twice
	}
}

// dialectNames are the values of flags that say a backend's.
func dialectNames() []string { return []string{string(config.Kubernetes), string(config.Plain)} }
