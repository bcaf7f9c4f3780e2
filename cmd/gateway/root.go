package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit codes.
const (
	exitFailure = 1 // something went wrong while running, or `check` found an error
	exitUsage   = 2 // the flags or the files are wrong
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "gateway",
		Short: "Kubernetes' API conventions in front of any JSON API",
		Long: `The Admission Gateway stands in front of an API backend and gives it what kube-apiserver gives its own resources:
defaults, validation with good messages, a protected status, errors as Status objects and fair rate limits. What it
does is said in policy files, in formats that platform teams already have: CustomResourceDefinitions,
OpenAPI documents, ValidatingAdmissionPolicies and MutatingAdmissionPolicies, and a few kinds of its own.

The backend may be a Kubernetes API server or an ordinary JSON API.`,
		Example: `  gateway demo                                  try it: everything in one process, with commands to paste
  gateway check policies/                       see what is wrong with policy files
  gateway serve --upstream http://127.0.0.1:9000 --policies policies/`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetOut(os.Stdout)
	root.SetErr(os.Stderr)
	root.SetFlagErrorFunc(flagError)
	printVersion := root.Flags().Bool("version", false, "print the version of this gateway")
	root.SetHelpFunc(helpOrVersion(root.HelpFunc(), printVersion))
	root.SetHelpCommand(newHelp(root))
	root.CompletionOptions.HiddenDefaultCmd = false
	return root
}

// helpOrVersion returns the function that cobra calls to print help, and for "gateway --version", since a command that
// cannot run itself has help to print only.
func helpOrVersion(help func(*cobra.Command, []string), printVersion *bool) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, args []string) {
		if wantsHelp, err := cmd.Flags().GetBool("help"); *printVersion && !cmd.HasParent() && err == nil &&
			!wantsHelp {
			_, _ = io.WriteString(cmd.OutOrStdout(), versionLine()) // as help is written
			return
		}
		help(cmd, args)
	}
}

// newHelp returns the command that prints the help of another one. Cobra's own succeeds even if no command has that
// name.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Print the help of a command",
		ValidArgsFunction: func(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
			for _, c := range root.Commands() {
				if c.IsAvailableCommand() {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			about, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return usageError("there is no command '%s'; '%s --help' lists them", strings.Join(args, " "),
					root.Name())
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// execute runs the command that the arguments name and returns the process's exit code. Errors are one sentence on
// stderr, without the usage: it would bury them.
func execute(root *cobra.Command, args []string) int {
	nameShells(root)
	markRuntimeErrors(root)
	if len(args) > 0 && args[0] == "test" {
		if i := slices.Index(args, "-run"); i > 0 { // as 'go test' has it
			args = slices.Clone(args)
			args[i] = "--run"
		}
	}
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	if err == nil {
		return 0
	}
	var failed *failure
	if !errors.As(err, &failed) {
		failed = usageError("%s", firstLine(err)) // cobra's own: unknown commands, wrong flags
	}
	if failed.err != nil {
		cmd.PrintErrf("%s: %v\n", cmd.CommandPath(), failed.err)
	}
	return failed.code
}

// nameShells lets the command for completion refuse a shell that it does not know. Cobra's own prints its help instead.
func nameShells(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Args = cobra.ArbitraryArgs
			c.RunE = func(cmd *cobra.Command, args []string) error {
				if len(args) > 0 {
					return usageError("there is no completion for the shell '%s'; '%s --help' lists the shells",
						args[0], cmd.CommandPath())
				}
				return cmd.Help()
			}
		}
	}
}

// failure is an error with an exit code; without err there is nothing left to say.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return fmt.Sprint(f.err) }
func (f *failure) Unwrap() error { return f.err }

// usageError is a mistake in flags or files.
func usageError(format string, args ...any) *failure {
	return &failure{exitUsage, fmt.Errorf(format, args...)}
}

// markRuntimeErrors gives every error that a command returns while it runs, and that is not a
// failure already, the exit code for that: errors that cobra itself returns concern the command
// line.
func markRuntimeErrors(root *cobra.Command) {
	for _, c := range root.Commands() {
		run := c.RunE
		if run == nil {
			continue
		}
		c.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			var failed *failure
			if err == nil || errors.As(err, &failed) {
				return err
			}
			return &failure{exitFailure, err}
		}
	}
}

// flagError says which flag may have been meant.
func flagError(cmd *cobra.Command, err error) error {
	var wrong *pflag.InvalidValueError
	if errors.As(err, &wrong) {
		wanted := map[string]string{"int": "a whole number", "float64": "a number",
			"bool": "'true' or 'false'"}[wrong.GetFlag().Value.Type()]
		if wanted != "" {
			return usageError("--%s: must be %s, not '%s'", wrong.GetFlag().Name, wanted, wrong.GetValue())
		}
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return usageError("%s", firstLine(err))
	}
	name := unknown.GetSpecifiedName()
	best, bestDistance := "", 3 // a flag with more mistakes is another flag
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		d := distance(name, f.Name)
		if len(name) > 1 && strings.HasPrefix(f.Name, name) {
			d = 1
		}
		if d < bestDistance {
			best, bestDistance = f.Name, d
		}
	})
	if best == "" {
		return usageError("%v; '%s --help' lists the flags", err, cmd.CommandPath())
	}
	return usageError("%v; did you mean --%s?", err, best)
}

// distance is the number of letters to insert, delete or replace to make one word the other (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// noArgs refuses arguments, for commands with flags only.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") }); i >= 0 {
		args = args[i:]
	}
	return usageError("unexpected argument '%s'; '%s --help' shows what can be given", args[0], cmd.CommandPath())
}

// firstLine cuts cobra's longer messages, such as suggestions in a list, down to a sentence.
func firstLine(err error) string {
	text, rest, _ := strings.Cut(err.Error(), "\n")
	if _, suggested, ok := strings.Cut(rest, "Did you mean this?"); ok {
		if words := strings.Fields(suggested); len(words) > 0 {
			text += "; did you mean '" + strings.Join(words, "' or '") + "'?"
		}
	}
	return text
}
