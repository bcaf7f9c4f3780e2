package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/policytest"
	"github.com/admission-gateway/gateway/internal/quote"
)

// testFlags are the flags of the command.
type testFlags struct {
	options  policytest.Options
	run      string
	format   string
	verbose  bool
	mutate   bool
	least    int
	watch    bool
	coverage int
	config   string
}

func newTest() *cobra.Command {
	var flags testFlags
	cmd := &cobra.Command{
		Use:   "test [PATH...]",
		Short: "Test policies",
		Long: `Play the cases of policy tests through the gateway, in this process and before a backend in memory, and say which are
answered otherwise than expected. A test is an object of the kind PolicyTest beside the policies. Rules 'test_…' in
files that end in '.rego' are run as OPA runs them. Suites of gator and Kyverno's kyverno-test.yaml are read too. What they
need and the gateway lacks is skipped, and -v says why.

With --config the requests are led as a gateway with that configuration leads them: by its routes, upstreams, users and
limits. Policies may name its bundles that are files, and the tests in these bundles are run too.

Without a PATH it plays the tests in the current folder and below. The exit code is 0 if all cases pass, 1 if one fails
or less than --coverage is reached, 2 if a test or the command line is wrong.

With --mutate it changes the policies instead, in one place at a time (operators, bounds, limits, defaults, what a policy
matches, exceptions, rules in Rego), and lists the changes that survive: no test fails with them. The exit code is 1 if
less than --min percent of the changes are killed.

With --watch it plays the tests again whenever a file below the paths changes, until it is interrupted.

With -o github failures annotate the lines of a pull request, -o sarif is for code scanning, -o tap for what reads the
Test Anything Protocol, version 14.`,
		Example: `  gateway test policies/
  gateway test --run 'replicas/' -v policies/
  gateway test -o junit --coverage 90 policies/ > tests.xml
  gateway test --watch policies/
  gateway test --mutate --min 80 policies/`,
		RunE: func(cmd *cobra.Command, paths []string) error { return flags.play(cmd, paths) },
	}
	cmd.Flags().StringVar(&flags.run, "run", "", "play the cases whose name, TEST/CASE, matches the regular expression `PATTERN`; -run is the same")
	cmd.Flags().StringVarP(&flags.format, "output", "o", "text", "write the results as `FORMAT`: "+
		strings.Join(policytest.Formats[:len(policytest.Formats)-1], ", ")+" or "+
		policytest.Formats[len(policytest.Formats)-1])
	choices(cmd, "output", policytest.Formats...)
	cmd.Flags().BoolVarP(&flags.verbose, "verbose", "v", false,
		"also list the cases that pass, and what no case reaches")
	cmd.Flags().BoolVar(&flags.options.Update, "update", false,
		"write the expected objects that are files of their own")
	cmd.Flags().IntVar(&flags.options.Parallel, "parallel", 0,
		"play `N` groups of cases at a time; by default one for each processor")
	cmd.Flags().IntVar(&flags.coverage, "coverage", 0,
		"fail if less than `PERCENT` of the branches of rules are reached")
	cmd.Flags().StringVar(&flags.config, "config", "", "lead the requests by the gateway's configuration `FILE`")
	cmd.Flags().BoolVar(&flags.mutate, "mutate", false,
		"change the policies, and list the changes with which no test fails")
	cmd.Flags().IntVar(&flags.least, "min", 100, "with --mutate: fail if less than `PERCENT` of the changes are killed")
	cmd.Flags().BoolVar(&flags.watch, "watch", false, "play the tests again whenever a file changes")
	return cmd
}

func (f *testFlags) play(cmd *cobra.Command, paths []string) (err error) {
	switch {
	case !slices.Contains(policytest.Formats, f.format):
		return usageError("--output: must be '%s', not '%s'", strings.Join(policytest.Formats, "', '"), f.format)
	case f.coverage < 0 || f.coverage > 100:
		return usageError("--coverage: must be 0 to 100")
	case f.least < 0 || f.least > 100 || cmd.Flags().Changed("min") && !f.mutate:
		return usageError("--min: must be 0 to 100, and needs --mutate")
	case f.watch && f.options.Update:
		return usageError("--watch: must not be set with --update")
	}
	if f.run != "" {
		if f.options.Run, err = regexp.Compile(f.run); err != nil {
			return usageError("--run: must be a regular expression: %v", err)
		}
	}
	if f.options.Paths = paths; len(paths) == 0 {
		f.options.Paths = []string{"."}
	}
	if err := f.readService(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if f.watch {
		return f.rerun(ctx, cmd)
	}
	return f.once(ctx, cmd)
}

// once plays the tests, or those of each change.
func (f *testFlags) once(ctx context.Context, cmd *cobra.Command) error {
	if f.mutate {
		return f.survey(ctx, cmd)
	}
	s, err := policytest.Run(ctx, f.options)
	if err != nil {
		return mistakenTests(err)
	}
	if err := s.Write(inColor(cmd.OutOrStdout(), f.format, testColors()), f.format, f.verbose); err != nil {
		return err
	}
	switch reached := s.Coverage.Branches.Percent(); {
	case s.Failed > 0:
		return &failure{exitFailure, fmt.Errorf("%s failed", quote.Count(s.Failed, "case"))}
	case reached < f.coverage:
		return &failure{exitFailure, fmt.Errorf("the cases reach %d%% of the branches, less than %d%%", reached,
			f.coverage)}
	}
	return nil
}

// readService reads the configuration, if there is one.
func (f *testFlags) readService() error {
	if f.config == "" {
		return nil
	}
	c, err := loadForCheck(f.config)
	if err != nil {
		return &failure{exitUsage, err}
	}
	f.options.Service, err = serviceOf(c)
	return err
}

// serviceOf returns the gateway of a configuration, as the commands have it that serve no clients; nil: there is none.
func serviceOf(c *config.Configuration) (s policytest.Service, err error) {
	if c == nil {
		return s, nil
	}
	s.Config, s.Gateway = c, asked(c)
	s.Gateway.Bundles, err = fileBundles(c)
	return s, err
}

func (f *testFlags) survey(ctx context.Context, cmd *cobra.Command) error {
	s, err := policytest.Mutate(ctx, f.options)
	if err != nil {
		return mistakenTests(err)
	}
	if err := s.Write(inColor(cmd.OutOrStdout(), f.format, testColors()), f.format, f.verbose); err != nil {
		return err
	}
	if s.Percent() < f.least {
		return &failure{exitFailure, fmt.Errorf("%s, and %d%% are killed, less than %d%%", survive(s.Survived),
			s.Percent(), f.least)}
	}
	return nil
}

func survive(n int) string {
	if n == 1 {
		return "1 change survives"
	}
	return fmt.Sprintf("%d changes survive", n)
}

// mistakenTests returns the failure if tests cannot be played.
func mistakenTests(err error) error {
	var mistakes policytest.Errors
	if errors.As(err, &mistakes) {
		return &failure{exitUsage, fmt.Errorf("the tests have errors:\n%w", err)}
	}
	return &failure{exitUsage, err}
}
