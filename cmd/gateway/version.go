package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this gateway",
		Long:  `Print the gateway's version, the commit it was built from (if the build knew it), and the Go version.`,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.Printf("gateway %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}

// version reads from the build information what the module proxy or the version control system said at build time.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
	}
	setting := make(map[string]string)
	for _, s := range info.Settings {
		setting[s.Key] = s.Value
	}
	if commit := setting["vcs.revision"]; commit != "" {
		if len(commit) > 12 {
			commit = commit[:12]
		}
		if setting["vcs.modified"] == "true" {
			commit += ", modified"
		}
		v = fmt.Sprintf("%s (%s)", v, commit)
	}
	return v
}
