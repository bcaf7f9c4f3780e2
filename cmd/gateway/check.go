package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/applicability"
	"github.com/admission-gateway/gateway/policies/finding"
)

// checkFlags are the flags of the command.
type checkFlags struct {
	output output
	config string
	probed string
	stdin  stdinFlags
	plans  bool
	times  bool
	rbac   bool
	list   bool
}

func newCheck() *cobra.Command {
	flags := checkFlags{output: output{checks: applicability.Checks(), strict: true}}
	flags.output.summarize = flags.output.withAdvice
	cmd := &cobra.Command{
		Use:   "check [PATH...]",
		Short: "Say what is wrong with policy files",
		Long: `Load policy files and directories exactly as 'gateway serve' would, compile everything in them, and print each
finding on a line of its own:

  file:line:column: field.path: message

What is wrong with an expression is printed with its column, its line and a caret. Errors come first. Findings marked
'warning' do not keep the gateway from starting, but fail the check: something does not do what it seems to. With
--strict=false they do not. Findings marked 'note' do not fail the check. What an OpenAPI document rightly asks for, and the
gateway cannot enforce, is a note; --strict makes it a warning. What documents say of answers comes last, counted for each
file, and -v lists it. --advice also lists what the API conventions say about the wording of messages, which never fails.
The exit code is 0 if there is nothing to mend, 1 if there is, 2 if the command line is wrong.

What can never apply is an error if the files and the configuration alone prove it: a description whose paths no route
leads to, a resource that is spelled otherwise, a selector of labels that no object has. It is a warning if an API server
decides that. 'admission-gateway.io/unused: Allow', an annotation or a label, says that it is meant; for all files of a
folder the line 'unused: Allow' in a file '.admission-gateway.yaml' does.

Beside what the gateway itself refuses or warns of, it warns of what compiles and still cannot be meant: rules that by
the schema no object can break, or that none can keep; conditions that decide nothing; expressions that fail for an operation because
there is no such object; texts that a value never is; variables and collections that no expression reads.

With -o json, sarif or github the findings are written for other programs: SARIF for code scanning, and commands of
GitHub's workflows that annotate the lines of a pull request.

With --config they are also checked against a configuration, once nothing is wrong with its own file: against its
upstreams and their dialects, and whether gateways share limits. A warning says if the largest body that the configuration allows does not fit the memory that it
gives to requests; if the configuration does not say how much that is, it is derived from the memory of the machine
that runs the check.
Without a PATH the policy files of the configuration are checked, or else those of the current folder.

Whether a backend compares If-Match with its ETags no file says; --probe URL finds out, by one object of it. Before one that does not, a gateway loses no update that
comes through it, but several gateways, or others who write to the backend, may.

With --stdin it reads a file that is not saved yet from its standard input, beside the files of the paths; with --watch
it goes on reading: each version of the file ends with a zero byte, and is answered with one line of JSON.

With --rbac it prints the least ClusterRole of the gateway's own account that the files and the configuration need at each
Kubernetes upstream, as YAML. Comments say what needs each rule; findings go to the standard error.

With --plans it also says how each CEL expression and each rule in Rego runs: natively, or by cel-go
or OPA, and why.

With --list it prints the operations that the files describe, each method of each path, the resource by whose name
policies match it, and what holds for its requests; findings go to the standard error. With --config it says by which routes
they come.

With --times it also says how long each stage of the load took: reading the files, taking and
compiling their objects, by kind, and so on.`,
		Example: `  gateway check policies/
  gateway check -o sarif policies/ > findings.sarif
  gateway check --plans policies/
  gateway check --list --config /etc/gateway/gateway.yaml
  gateway check --config /etc/gateway/gateway.yaml
  gateway check --rbac --config /etc/gateway/gateway.yaml | kubectl apply -f -`,
		Args: func(cmd *cobra.Command, args []string) error {
			if flags.rbac && flags.config == "" {
				return usageError("--rbac: name the configuration with --config, which says what the upstreams are")
			}
			return flags.output.validate(cmd)
		},
		RunE: func(cmd *cobra.Command, paths []string) error { return flags.run(cmd, paths) },
	}
	cmd.Flags().StringVar(&flags.probed, "probe", "", "write the object at the `URL` back unchanged with a wrong If-Match, and say whether the backend refuses it")
	cmd.Flags().StringVar(&flags.config, "config", "", "check the files against the gateway's configuration `FILE`")
	flags.output.register(cmd)
	cmd.Flags().BoolVar(&flags.output.advice, "advice", false, "also list advice about the wording of messages")
	flags.stdin.register(cmd)
	cmd.Flags().BoolVar(&flags.plans, "plans", false, "also say which CEL expressions and rules in Rego run natively, and why others do not")
	cmd.Flags().BoolVar(&flags.list, "list", false,
		"list the operations that the files describe, and what holds for each")
	cmd.Flags().BoolVar(&flags.times, "times", false, "also say how long each stage of the load took")
	cmd.Flags().BoolVar(&flags.rbac, "rbac", false, "print the least ClusterRole of the gateway's own account")
	return cmd
}

func (f *checkFlags) run(cmd *cobra.Command, paths []string) error {
	if f.probed != "" {
		said, err := probe(cmd.Context(), f.probed)
		if err != nil {
			return &failure{exitFailure, err}
		}
		cmd.Println(said)
		if len(paths) == 0 && f.config == "" {
			return nil
		}
	}
	if f.stdin.on {
		return f.stdin.check(cmd, paths, f.config, &f.output)
	}
	if len(paths) == 0 && f.config == "" {
		paths = []string{"."}
	}
	var times []policies.StageTime
	found, paths := check(paths, f.config, func(all []policies.StageTime) { times = all })
	if f.rbac && !finding.HasErrors(found) {
		if err := finding.Write(cmd.ErrOrStderr(), finding.Text, f.output.summarize(found),
			f.output.checks); err != nil {
			return err
		}
		return writeRoles(cmd, paths, f.config)
	}
	to := cmd.OutOrStdout()
	if f.list {
		to = cmd.ErrOrStderr()
	}
	failed := f.output.write(to, found)
	if f.plans {
		for _, p := range policies.Plans(paths) {
			cmd.Println(p)
		}
	}
	if f.list && !finding.HasErrors(found) {
		if err := writeList(cmd, paths, f.config); err != nil {
			return err
		}
	}
	if f.times {
		writeTimes(cmd, times)
	}
	return failed
}

// writeTimes writes the time of each stage, and below it the time of each kind that took long
// enough to be seen.
func writeTimes(cmd *cobra.Command, times []policies.StageTime) {
	for _, stage := range times {
		if stage.Kind != "" {
			continue
		}
		cmd.Printf("%-34s %10s\n", stage.Stage, stage.Took.Round(time.Microsecond))
		for _, kind := range times {
			if kind.Stage == stage.Stage && kind.Kind != "" && kind.Took >= 100*time.Microsecond {
				cmd.Printf("  %-32s %10s\n", kind.Kind, kind.Took.Round(time.Microsecond))
			}
		}
	}
}
