package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/admission-gateway/gateway/internal/quote"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/lint"
	"github.com/admission-gateway/gateway/policies/source"
)

// defaultExceptions is the file of exceptions that is read if it exists.
const defaultExceptions = ".gateway-lint.yaml"

// lintFlags are the flags of the command.
type lintFlags struct {
	output     output
	against    []string
	exceptions string
	fix        bool
	rules      bool
}

func newLint() *cobra.Command {
	flags := lintFlags{output: output{checks: lint.Checks(), summarize: lint.Summarized}}
	cmd := &cobra.Command{
		Use:   "lint PATH...",
		Short: "Compare definitions of APIs with the API conventions",
		Long: `Compare CustomResourceDefinitions, APIResources and OpenAPI documents with the API conventions, and print each
finding on a line of its own, as 'gateway check' does. --rules lists the rules, why they are, and in which section of
the conventions they stand.

With --against OLD the files are compared with an old version of them: what clients and stored objects of the old
version do not survive is an error.

An OpenAPI document and an APIResource have conventions of their own: their names must be written in one way throughout, what
is a choice of Kubernetes is advice, and each rule has one finding for the file, which counts the places. Advice that there
may be good reasons not to follow is counted for each file. -v lists all of it. --fix mends what takes no
decision: the wording of messages, and lists without a type. Exceptions are in a file, each with its reason:

  exceptions:
  - {rule: LINT-4/float, field: "*.latitude", reason: coordinates are measured}

The exit code is 0 if nothing is broken, 1 if something is, or with --strict if there is any warning, 2 if the command
line is wrong.`,
		Example: `  gateway lint crds/
  gateway lint --strict -o sarif crds/ > findings.sarif
  gateway lint --against old/crds crds/`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !flags.rules {
				return usageError("name at least one file or directory to lint")
			}
			return flags.output.validate(cmd)
		},
		RunE: func(cmd *cobra.Command, paths []string) error { return flags.lint(cmd, paths) },
	}
	flags.output.register(cmd)
	cmd.Flags().StringSliceVar(&flags.against, "against", nil, "compare with the old version of the files in `PATH`")
	cmd.Flags().StringVar(&flags.exceptions, "exceptions", defaultExceptions,
		"let the findings pass that `FILE` has reasons for")
	cmd.Flags().BoolVar(&flags.fix, "fix", false, "mend what takes no decision")
	cmd.Flags().BoolVar(&flags.rules, "rules", false, "list the rules")
	return cmd
}

func (f *lintFlags) lint(cmd *cobra.Command, paths []string) error {
	if f.rules {
		for _, r := range lint.Checks() {
			cmd.Printf("%-22s %s (%s)\n", r.ID, r.Why, r.Section)
		}
		return nil
	}
	exceptions, err := f.readExceptions(cmd)
	if err != nil {
		return &failure{exitUsage, err}
	}
	read := source.Read(paths, &source.Progress{})
	found := f.find(read)
	if f.fix {
		if err := fixAll(cmd, read.Files, found); err != nil {
			return err
		}
		read = source.Read(paths, &source.Progress{})
		found = f.find(read)
	}
	found = lint.Except(found, exceptions, f.exceptions)
	if !f.output.verbose {
		found = lint.Gathered(found)
	}
	return f.output.write(cmd.OutOrStdout(), lint.Refine(found, read.Files))
}

// find returns what there is to say of files.
func (f *lintFlags) find(read *source.Source) []finding.Finding {
	found := append(read.Found, lint.Of(read.Files)...)
	if len(f.against) > 0 {
		old := source.Read(f.against, &source.Progress{})
		found = append(append(found, old.Found...), lint.Against(old.Files, read.Files)...)
	}
	return finding.Sort(found)
}

func (f *lintFlags) readExceptions(cmd *cobra.Command) ([]lint.Exception, error) {
	data, err := os.ReadFile(f.exceptions)
	if errors.Is(err, fs.ErrNotExist) && !cmd.Flags().Changed("exceptions") {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return lint.ReadExceptions(f.exceptions, data)
}

// fixAll mends the files.
func fixAll(cmd *cobra.Command, files []source.File, found []finding.Finding) error {
	total := 0
	for _, file := range files {
		data, fixed := lint.Fix(file, found)
		if fixed == 0 {
			continue
		}
		total += fixed
		if err := os.WriteFile(file.Name, data, 0o644); err != nil {
			return err
		}
	}
	cmd.PrintErrln(fmt.Sprintf("%s mended", quote.Count(total, "finding")))
	return nil
}
