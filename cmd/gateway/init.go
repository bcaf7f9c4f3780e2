package main

import (
	"bufio"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admission-gateway/gateway/internal/quote"
	"github.com/admission-gateway/gateway/policies/library"
)

// initFlags are the answers to the command's questions, or the description of an API that exists.
type initFlags struct {
	backend, enforce string
	from             string
	isVendors        bool
}

func newInit() *cobra.Command {
	var flags initFlags
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write policies to start from, with tests and a workflow",
		Long: `Write a working set of policies from the library that the gateway carries into a folder, by default the current one, with
the tests of the policies, a workflow for GitHub that runs them, and a configuration that serves the policies. Nothing
that exists is overwritten.

It asks what the policies are for and whether they shall refuse anything yet; the flags answer beforehand.

With --from it writes what an OpenAPI document needs beside it, into the folder: a limit, and a test of requests that are
admitted and refused, each of which was played before. A document that is not in the folder is copied there. One that is
fetched by its URL, or that --vendor says is not the team's own, stays as it is: an overlay leaves its defaults to the
API, and a second one has it observed before it is enforced.

The file may also be an HTTP archive (.har), which browsers, proxies and test tools write. An OpenAPI document is made
of the calls of the API in it that succeeded. It too is observed before it is enforced, and its test sends recorded
requests.`,
		Example: `  gateway init
  gateway init --backend Kubernetes --enforce Warn team-policies
  gateway init --from openapi.yaml policies
  gateway init --from https://api.example.com/openapi.json policies
  gateway init --from recorded.har policies`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("name at most one folder")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			if flags.from != "" {
				return flags.writeFrom(cmd, dir)
			}
			if flags.isVendors {
				return usageError("--vendor: name the document with --from")
			}
			return flags.write(cmd, dir)
		},
	}
	cmd.Flags().StringVar(&flags.backend, "backend", "", "write policies for a backend of the `DIALECT` Kubernetes, or Plain for an ordinary API")
	cmd.Flags().StringVar(&flags.enforce, "enforce", "", "let the policies `ACTION`: Warn, or Deny")
	choices(cmd, "backend", dialectNames()...)
	choices(cmd, "enforce", "Warn", "Deny")
	cmd.Flags().StringVar(&flags.from, "from", "", "write policies for the OpenAPI document or the HTTP archive in the `FILE`, or the document at the URL")
	cmd.Flags().BoolVar(&flags.isVendors, "vendor", false,
		"the document of --from is not the team's own; that of a URL never is")
	return cmd
}

func (f *initFlags) write(cmd *cobra.Command, dir string) error {
	in := bufio.NewReader(cmd.InOrStdin())
	backend, err := choose(cmd, in, f.backend, "--backend",
		"Is the backend a Kubernetes API server, or an ordinary (plain) API?", "Kubernetes", "Plain")
	if err != nil {
		return err
	}
	action := "Deny"
	if backend == "Kubernetes" || f.enforce != "" {
		if action, err = choose(cmd, in, f.enforce, "--enforce", "Shall the policies warn at first, or deny?", "Warn",
			"Deny"); err != nil {
			return err
		}
	}
	start := library.Start{IsKubernetes: backend == "Kubernetes", Warns: action == "Warn", Version: version()}
	files, err := start.Files()
	if err != nil {
		return err
	}
	if err := writeAll(dir, files); err != nil {
		return err
	}
	tests := 0
	for name := range files {
		if strings.HasSuffix(name, "_test.yaml") {
			tests++
		}
	}
	at, configuration, flag := filepath.Join(dir, "policies"), filepath.Join(dir, "gateway.yaml"), "--upstream URL"
	if start.IsKubernetes {
		flag = "--kubeconfig FILE"
	}
	cmd.Printf("%s written, %s among them.\n\n  gateway test %s\n  gateway check %s\n  gateway serve --config %s %s\n",
		quote.Count(len(files), "file"), quote.Count(tests, "test"), at, at, configuration, flag)
	return nil
}

// writeAll writes files into a folder, unless one of them exists.
func writeAll(dir string, files map[string][]byte) error {
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return usageError("'%s' exists already, and nothing is overwritten: name another folder",
				filepath.Join(dir, name))
		}
	}
	for _, name := range names {
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// choose returns the answer to a question: the flag's, or the one that is typed. The first letter will do.
func choose(cmd *cobra.Command, in *bufio.Reader, given, flag, question, first, second string) (string, error) {
	text := given
	if text == "" {
		cmd.Printf("%s [%s/%s] ", question, first, second)
		line, err := in.ReadString('\n')
		if text = strings.TrimSpace(line); err != nil && text == "" {
			return "", usageError("%s must be given if nobody is there to ask: '%s' or '%s'", flag, first, second)
		}
	}
	for _, one := range []string{first, second} {
		if text != "" && len(text) <= len(one) && strings.EqualFold(one[:len(text)], text) {
			return one, nil
		}
	}
	return "", usageError("%s: must be '%s' or '%s', not '%s'", flag, first, second, text)
}
