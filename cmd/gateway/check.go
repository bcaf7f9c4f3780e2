package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/policies"
)

func newCheck() *cobra.Command {
	plans, file := false, ""
	cmd := &cobra.Command{
		Use:   "check [PATH...]",
		Short: "Say what is wrong with policy files",
		Long: `Load policy files and directories exactly as 'gateway serve' would, compile everything in them, and print each
finding on a line of its own:

  file:line: field.path: message

Findings marked 'warning' do not keep the gateway from starting. The exit code is 0 if there is no error, 1 if there
is one, 2 if the command line is wrong.

With --config they are also held to a configuration: to the upstreams that it names, and whether gateways share limits.
Without a PATH it is the policy files of the configuration that are checked.

With --plans it also says how each CEL expression runs: natively, or by cel-go and why.`,
		Example: `  gateway check policies/
  gateway check crds/orders.yaml limits.yaml
  gateway check --plans policies/
  gateway check --config /etc/gateway/gateway.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && file == "" {
				return usageError("name at least one file or directory to check")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, paths []string) error {
			found, paths, err := check(paths, file)
			if err != nil {
				return &failure{exitUsage, err}
			}
			for _, f := range found {
				cmd.Println(f)
			}
			if plans {
				for _, p := range policies.Plans(paths) {
					cmd.Println(p)
				}
			}
			if !policies.HasErrors(found) {
				return nil
			}
			errs := 0
			for _, f := range found {
				if f.Severity == policies.Error {
					errs++
				}
			}
			return &failure{exitFailure, fmt.Errorf("%s, %s", count(errs, "error"), count(len(found)-errs, "warning"))}
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "hold the files to the gateway's configuration `FILE`")
	cmd.Flags().BoolVar(&plans, "plans", false, "also say which CEL expressions run natively, and why others do not")
	return cmd
}

// check checks files, and holds them to a configuration where there is one. It returns the paths that were checked.
func check(paths []string, file string) ([]policies.Finding, []string, error) {
	if file == "" {
		return policies.Check(paths), paths, nil
	}
	// It may be meant for a pod, where it needs no upstream.
	c, err := config.Load(file, config.Flags{Pod: config.Pod{Host: "kubernetes.default.svc", Port: "443"}})
	if err != nil {
		return nil, nil, err
	}
	if len(paths) == 0 {
		paths = c.Policies
	}
	return policies.CheckFor(paths, asked(c)), paths, nil
}

// asked is what policy files may ask of a gateway with the configuration.
func asked(c *config.Configuration) policies.Gateway {
	g := policies.Gateway{Upstreams: []string{}, SharedLimits: c.Redis != nil}
	for _, u := range c.Upstreams {
		g.Upstreams = append(g.Upstreams, u.Name)
	}
	return g
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
