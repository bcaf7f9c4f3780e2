package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is the version that the build was given with -ldflags "-X main.release=v1.2.3"; see tools/version.sh.
var release string

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this gateway",
		Long:  `Print the gateway's version or the commit it was built from, the Go version and the platform, as 'gateway --version' does.`,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.Print(versionLine())
			return nil
		},
	}
}

// versionLine returns the line that `gateway version` and `gateway --version` print.
func versionLine() string {
	return fmt.Sprintf("gateway %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// version returns the release, or what the module proxy or the version control system said at build time.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return versionOf(release, info)
	}
	return versionOf(release, &debug.BuildInfo{})
}

func versionOf(release string, info *debug.BuildInfo) string {
	if release != "" {
		return release
	}
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
