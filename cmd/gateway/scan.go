package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/scan"
)

// scanFlags are the flags of the command.
type scanFlags struct {
	options  scan.Options
	backend  config.Flags
	config   string
	upstream string
	old      []string
	as       string
	format   string
	fails    bool
}

func newScan() *cobra.Command {
	var flags scanFlags
	cmd := &cobra.Command{
		Use:   "scan [POLICIES...]",
		Short: "Judge objects that exist by policies that are not enforced yet",
		Long: `Judge the objects of a backend or of files, or the writes of an audit log or a recorded HAR, by a set of policies, and
say which would be refused, warned of or changed. Each object takes the steps of a request through the gateway, in this
process, as if somebody created it; with --as update, as if somebody wrote it back unchanged. Nothing is written to any
backend.

The objects are read from --files (JSON, a value or a line each, lists, YAML, folders; '-' is the standard input), or of
the backend that --backend, --kubeconfig or --config names. There it reads the resources that the policies match, or
what --resource names, page by page. --audit-log and --har replay recorded writes, with their verbs and users.

What policies refer to (namespaces, parameters, collections) is asked of the backend. Without a backend collections are
empty, and a namespace that no policy file has exists without labels.

With --diff OLD the objects are judged by the policies OLD too, and the report says which verdicts differ.

The exit code is 0, or with --fail 1 if an object would be refused or cannot be judged (with --diff, if one would be
refused that was not); 1 also if the scan cannot be done; 2 if the command line, the policies or the files' names are wrong.`,
		Example: `  gateway scan policies/ --kubeconfig ~/.kube/config
  gateway scan policies/ --files dump.ndjson --group-by label=team -o html > report.html
  gateway scan --diff policies/old policies/new --audit-log audit.log
  gateway scan policies/ --kubeconfig ~/.kube/config --state scan.state --qps 5 -o policyreport`,
		RunE: func(cmd *cobra.Command, paths []string) error { return flags.run(cmd, paths) },
	}
	f, o := cmd.Flags(), &flags.options
	f.SortFlags = false
	f.StringArrayVar(&o.Files, "files", nil, "judge the objects of `PATH`, a file, a folder or '-'; may be repeated")
	f.StringVar(&flags.backend.Upstream, "backend", "", "judge the objects of the backend at `URL`; with --files, ask it for what policies refer to")
	f.StringVar(&flags.backend.Kubeconfig, "kubeconfig", "",
		"judge the objects of the API server that `FILE` names, as its user")
	f.StringVar(&flags.backend.Context, "context", "",
		"take the context `NAME` of the kubeconfig instead of the current one")
	f.StringVar(&flags.backend.Dialect, "dialect", "", "the backend's `DIALECT`: Kubernetes or Plain (default Plain with --backend, Kubernetes with --kubeconfig)")
	f.StringVar(&flags.config, "config", "", "judge the objects of the backend of the gateway's configuration `FILE`, and by its policies unless others are named")
	f.StringVar(&flags.upstream, "upstream", "", "read the upstream `NAME` of a configuration that has several")
	f.StringArrayVar(&o.AuditLogs, "audit-log", nil, "judge the writes of the audit log `PATH`, a JSON event in each line; may be repeated")
	f.StringArrayVar(&o.HARs, "har", nil, "judge the writes of the recorded HAR `PATH`; may be repeated")
	f.StringArrayVar(&flags.old, "diff", nil, "judge by the policies `OLD` too, and report how the verdicts differ; may be repeated")
	f.StringVar(&flags.as, "as", string(scan.Create), "judge objects as a `VERB`: create, or update to itself")
	f.StringVar(&o.User.Name, "user", "gateway-scan", "who sends the objects is `NAME`, where a record does not say it")
	f.StringArrayVar(&o.User.Groups, "group", []string{"system:authenticated"}, "`GROUP` of that user; may be repeated")
	f.StringArrayVar(&o.Resources, "resource", nil, "read the resource `PLURAL[.GROUP]` alone; of --files, the resource of objects without a kind; may be repeated")
	f.StringVar(&o.Namespace, "namespace", "", "read the namespace `NAME` of the backend alone; objects that have no namespace themselves are in it")
	f.IntVar(&o.Workers, "workers", 0, "judge `N` objects at a time; by default one for each processor")
	f.Float64Var(&o.Rate, "qps", 0, "ask the backend for at most `N` pages a second; by default as fast as it answers")
	f.StringVar(&o.StateFile, "state", "", "remember in `FILE` how far the scan is, and go on from there")
	f.StringVar(&o.GroupBy, "group-by", "", "count by `WHAT` too: namespace, or label=KEY")
	f.IntVar(&o.List, "list", 1000, "list the first `N` findings; all are counted")
	f.StringVarP(&flags.format, "output", "o", "text", "write the report as `FORMAT`: text, json, html or policyreport")
	f.BoolVar(&flags.fails, "fail", false, "exit with 1 if an object would be refused or cannot be judged")
	choices(cmd, "dialect", dialectNames()...)
	choices(cmd, "output", scan.Formats...)
	choices(cmd, "as", string(scan.Create), string(scan.Update))
	return cmd
}

func (f *scanFlags) run(cmd *cobra.Command, paths []string) error {
	o := &f.options
	if !slices.Contains(scan.Formats, f.format) {
		return usageError("--output: must be '%s', not '%s'", strings.Join(scan.Formats, "', '"), f.format)
	}
	if o.As = scan.Operation(f.as); o.As != scan.Create && o.As != scan.Update {
		return usageError("--as: must be 'create' or 'update', not '%s'", f.as)
	}
	if o.List < 0 || o.Workers < 0 || o.Rate < 0 {
		return usageError("--list, --workers and --qps: must not be negative")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	report, err := f.scan(ctx, cmd, paths)
	var mistake scan.UsageError
	var known *failure
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &mistake):
		return &failure{exitUsage, err}
	case errors.Is(err, scan.ErrInterrupted) && o.StateFile != "":
		return &failure{exitFailure, fmt.Errorf("%w; the same command goes on from '%s'", err, o.StateFile)}
	case err != nil:
		return &failure{exitFailure, err}
	}
	if err := report.Write(inColor(cmd.OutOrStdout(), f.format, scanColors()), f.format); err != nil {
		return err
	}
	if f.fails && report.Fails() {
		return &failure{exitFailure, errors.New("objects would be refused, or cannot be judged")}
	}
	return nil
}

// scan makes the gateways, and scans.
func (f *scanFlags) scan(ctx context.Context, cmd *cobra.Command, paths []string) (*scan.Report, error) {
	o, c, err := &f.options, (*config.Configuration)(nil), error(nil)
	if f.config != "" || f.backend.Upstream != "" || f.backend.Kubeconfig != "" {
		if c, err = config.Load(f.config, f.backend); err != nil {
			if rest, is := strings.CutPrefix(err.Error(), "--upstream:"); is && f.backend.Upstream != "" {
				err = errors.New("--backend:" + rest) // as the flag is called here
			}
			return nil, scan.UsageError{Err: err}
		}
		if len(paths) == 0 {
			paths = c.Policies.Names()
		}
	}
	if len(paths) == 0 {
		return nil, usageError("name the policies to judge by")
	}
	var end func()
	if o.New, end, err = f.side(ctx, paths, c); err != nil {
		return nil, err
	}
	defer end()
	if len(f.old) > 0 {
		if o.Old, end, err = f.side(ctx, f.old, c); err != nil {
			return nil, err
		}
		defer end()
	}
	if o.Upstream, err = scan.UpstreamOf(c, f.upstream); err != nil {
		return nil, err
	}
	if c != nil {
		o.Backend = o.New.Gateway.Backend(o.Upstream, "")
		at := slices.IndexFunc(c.Upstreams, func(u config.UpstreamSpec) bool { return u.Name == o.Upstream })
		o.BasePath = c.Upstreams[at].BasePath()
	}
	o.Input = cmd.InOrStdin()
	if isTerminal(cmd.ErrOrStderr()) {
		bar := scan.NewBar(cmd.ErrOrStderr())
		defer bar.End()
		o.Progress = bar.Show
	}
	return scan.Run(ctx, *o)
}

// side compiles policies, and makes a gateway in front of the backend if there is one.
func (f *scanFlags) side(ctx context.Context, paths []string, c *config.Configuration) (*scan.Side, func(), error) {
	service, err := serviceOf(c)
	if err != nil {
		return nil, nil, err
	}
	set, err := scan.Compile(paths, &service.Gateway)
	if err != nil {
		return nil, nil, err
	}
	if c == nil {
		return scan.Offline(set)
	}
	return scan.Before(ctx, set, c)
}
