package main

import (
	"errors"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/descriptors"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/telemetry"
)

func newServe() *cobra.Command {
	var file string
	flags := config.Flags{Pod: config.ThisPod()}
	defaults := config.Default()
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve clients in front of a backend",
		Long: `Serve clients on one address or several, and forward what the policies admit to backends.

Settings come from a configuration file (kind GatewayConfiguration, admission-gateway.io/v1alpha1), from flags, or from
both; a flag overrides the file. One backend is enough to start: --upstream names it, or --kubeconfig. In a pod the API
server of its cluster is the backend where neither they nor the file name one.

A backend that is named by its URL is taken for an ordinary JSON API unless --dialect or the file says more. It is asked
for its version first: if a Kubernetes API server answers, the gateway does not start without a stated dialect.

The configuration file, policy files, certificates and tokens are read again when they change, and on SIGHUP. Files with
errors never replace what is in force. Some settings need a restart: the log and 'gateway status' name them. SIGTERM
drains: /readyz on the admin listener fails, requests are still served for drainSeconds and until those in progress
finish, then the process exits with 0. A second SIGTERM does not wait for drainSeconds to pass.

The exit code is 2 if a flag or a file is wrong, 1 if the gateway cannot run.`,
		Example: `  gateway serve --upstream http://127.0.0.1:9000 --policies policies/
  gateway serve --config /etc/gateway/gateway.yaml --admin 0.0.0.0:8081
  gateway serve --kubeconfig ~/.kube/config --policies policies/
  curl http://127.0.0.1:8081/readyz?verbose`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(file, flags)
			if err != nil {
				return &failure{exitUsage, err}
			}
			log, closeLog, err := openLog(cmd.ErrOrStderr(), &c.Telemetry.Log)
			if err != nil {
				return err
			}
			defer closeLog()
			return inLog(log, c, serve(c, log, file, &flags))
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&file, "config", "", "configuration `FILE`, YAML or JSON")
	f.StringVar(&flags.Listen, "listen", "", "serve clients on `ADDR`, a host and a port (default "+defaults.Listen+")")
	f.StringVar(&flags.Upstream, "upstream", "", "forward to the backend at `URL`, such as http://127.0.0.1:9000")
	f.StringVar(&flags.Kubeconfig, "kubeconfig", "", "forward to the API server that `FILE` names, by what it says of certificates; the gateway's own account is its user's")
	f.StringVar(&flags.Context, "context", "", "take the context `NAME` of the kubeconfig instead of the current one")
	f.StringVar(&flags.Dialect, "dialect", "", "the backend's `DIALECT`: Kubernetes for a kube-apiserver or what behaves like one, Plain for an ordinary JSON API (default Plain with --upstream, Kubernetes with --kubeconfig and in a pod)")
	choices(cmd, "dialect", dialectNames()...)
	f.StringArrayVar(&flags.Policies, "policies", nil,
		"read policies from `PATH`, a file or a directory; may be repeated")
	f.StringVar(&flags.Admin, "admin", "", "serve health, metrics and the active policies on `ADDR` (default "+
		defaults.Admin.Listen+")")
	return cmd
}

// serve serves until a signal ends it.
func serve(c *config.Configuration, log *telemetry.Log, file string, flags *config.Flags) error {
	signals, ignore := serveSignals()
	defer ignore()
	n, err := startNode(c, log)
	if err != nil || n == nil {
		return err
	}
	n.reloads.file, n.reloads.flags = file, flags
	tellMemory(&c.Limits, log.Messages)
	tellDescriptors(c, log.Messages)
	return n.run(signals)
}

// inLog writes why a gateway ended to its log if that is read by programs, to which a line of text would be none. What
// is left of the error is its exit code.
func inLog(log *telemetry.Log, c *config.Configuration, err error) error {
	if err == nil || telemetry.LogFormat(c.Telemetry.Log.Format) != telemetry.LogJSON {
		return err
	}
	ended := &failure{exitFailure, nil}
	var known *failure
	if errors.As(err, &known) {
		ended.code = known.code
	}
	log.Messages.Error("the gateway ends", "cause", err.Error())
	return ended
}

// tellMemory keeps the process within the memory that it may use, and says what requests may take of it.
func tellMemory(l *config.Limits, log *slog.Logger) {
	machine, by := memory.Machine()
	log.Info("memory for requests", "bodiesInFlightBytes", l.BodiesInFlightBytes, "heavyRequests", l.HeavyRequests,
		"available", machine, "availableBy", by, "collectorLimit", memory.Keep())
	if shortage := l.Shortage(); shortage != "" {
		log.Warn("the memory for requests is short", "problem", shortage)
	}
}

// tellDescriptors says if the process may not open as many file descriptors as its connections may take.
func tellDescriptors(c *config.Configuration, log *slog.Logger) {
	budget, backends := descriptors.Now(), c.BackendConnections()
	connections := int(c.Limits.Connections)
	if connections+backends+budget.Reserved <= budget.Limit {
		return
	}
	log.Warn("fewer file descriptors may be open than connections are configured", "descriptors", budget.Limit,
		"reserved", budget.Reserved,
		"limits.connections", connections, "backendConnections", backends, "clientsServed",
		budget.Clients(connections, backends))
}

// refusedPolicies is an error that shows findings, a line each.
func refusedPolicies(lines []string) error {
	return usageError("the policy files have errors:\n%s", strings.Join(lines, "\n"))
}
