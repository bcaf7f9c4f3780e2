// Command bench measures the gateway beside its peers on one machine: nginx, haproxy, a minimal fasthttp proxy, the
// standard library's reverse proxy and the backend alone. It starts them all on loopback, sends them the same requests
// in interleaved rounds, and prints a Markdown table with throughput, latency and CPU time per request, and the ratios
// that hold on other machines too.
//
//	go run ./bench                       everything, about four minutes
//	go run ./bench -rounds 3 -targets nginx,fasthttp,gateway
//	go run ./bench -json raw.json        keeps the raw figures
//	go run ./bench -watches 2000         idle watches instead, about half a minute
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	rounds, connections int
	duration            time.Duration
	targets, loads      string
	jsonFile, gateway   string
	serverCPUs          string
	loadCPUs            string
	mustReach           bool
	watches             int

	peer, listen, backend string // run one of the peers instead
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 7, "rounds; in each, every target is measured once under every load")
	flag.DurationVar(&o.duration, "duration", 2*time.Second, "length of one measurement, whole seconds")
	flag.IntVar(&o.connections, "connections", 64, "keep-alive connections of the load generator")
	flag.StringVar(&o.targets, "targets", "", "what to measure, separated by commas (default all): "+strings.Join(targetNames(), ","))
	flag.StringVar(&o.loads, "loads", "", "requests to send, separated by commas (default all): "+strings.Join(loadNames(loads()), ","))
	flag.StringVar(&o.jsonFile, "json", "", "write the raw figures to this file")
	flag.StringVar(&o.gateway, "gateway", "", "the gateway's binary (default: build it)")
	flag.StringVar(&o.serverCPUs, "server-cpus", "", "CPUs of the server under test, as taskset reads them (default: the first)")
	flag.StringVar(&o.loadCPUs, "load-cpus", "", "CPUs of the load generator and the backend (default: the others)")
	flag.IntVar(&o.watches, "watches", 0, "measure so many idle watches instead: their memory, and the time that events take")
	flag.BoolVar(&o.mustReach, "hold", false, "exit with code 1 if a goal is missed")
	flag.StringVar(&o.peer, "peer", "", "serve as a peer (backend, backend-tls, fasthttp, net-http) and do nothing else")
	flag.StringVar(&o.listen, "listen", "", "with -peer: the address to listen on")
	flag.StringVar(&o.backend, "backend", "", "with -peer: the address of the backend")
	flag.Parse()

	err := fmt.Errorf("bench takes flags only, not %q", flag.Args())
	switch {
	case flag.NArg() > 0:
	case o.peer != "":
		err = servePeer(o.peer, o.listen, o.backend)
	default:
		// A peer has nothing to clean up: only the measuring program stops others first.
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
		if o.watches > 0 {
			err = runWatches(ctx, o)
		} else {
			err = run(ctx, o)
		}
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures what the options ask for and prints the report.
func run(ctx context.Context, o options) (err error) {
	if o.rounds < 1 || o.connections < 1 || o.duration < time.Second || o.duration%time.Second != 0 {
		return fmt.Errorf("-rounds and -connections must be at least 1, -duration a whole number of seconds")
	}
	server, load, err := allowedCPUs()
	if err != nil {
		return err
	}
	o.serverCPUs, o.loadCPUs = cmp.Or(o.serverCPUs, server), cmp.Or(o.loadCPUs, load)
	rows, err := chosen(list(o.targets))
	if err != nil {
		return err
	}
	requests, err := chosenLoads(list(o.loads))
	if err != nil {
		return err
	}
	packages := []string{"wrk"}
	for _, t := range rows {
		packages = append(packages, t.Packages...)
	}
	if err := install(ctx, packages); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "gateway-bench-")
	if err != nil {
		return err
	}
	defer func() {
		if e := os.RemoveAll(dir); err == nil {
			err = e
		}
	}()
	m, err := newMachine(ctx, o, dir, rows)
	if err != nil {
		return err
	}
	if err := m.issueToken(); err != nil {
		return err
	}
	defer m.issuer.Close()
	report, err := m.measure(ctx, o, rows, requests)
	if err != nil {
		return err
	}
	return print(report, o)
}

// newMachine prepares a folder for the run and builds the gateway if a row needs it.
func newMachine(ctx context.Context, o options, dir string, rows []Target) (*Machine, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, fmt.Errorf("bench must be run inside the gateway's module: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	// Workers of the peers run as other users.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	m := &Machine{
		Root: strings.TrimSpace(string(root)), Dir: dir, Self: self, Gateway: o.gateway,
		serverCPUs: o.serverCPUs, loadCPUs: o.loadCPUs,
	}
	if m.Gateway == "" && slices.ContainsFunc(rows, func(t Target) bool { return t.OfGateway }) {
		m.Gateway = filepath.Join(dir, "gateway")
		build := exec.CommandContext(ctx, "go", "build", "-o", m.Gateway, "./cmd/gateway")
		build.Dir, build.Stderr = m.Root, os.Stderr
		if err := build.Run(); err != nil {
			return nil, fmt.Errorf("building the gateway: %w", err)
		}
	}
	return m, nil
}

// measure starts the backend and the targets and takes one sample of each under each load in every round. Every round
// starts with another target, so that none always has the same neighbour.
func (m *Machine) measure(ctx context.Context, o options, rows []Target, requests []Load) (*Report, error) {
	report := &Report{Rounds: o.rounds, Seconds: o.duration.Seconds(), Connections: o.connections}
	backend, err := m.start(ctx, &Target{Name: "backend", BesideLoad: true, Check: checkPassThrough, Command: targets()[0].Command})
	if err != nil {
		return nil, err
	}
	defer backend.Process.stop()
	m.Backend = backend.Address
	secure, err := m.start(ctx, &Target{
		Name: "backend-tls", BesideLoad: true, Secure: true, Check: func(address string) error { return checkForms("https://" + address) },
		Command: func(m *Machine, listen string) ([]string, error) { return m.peer("backend-tls", listen), nil },
	})
	if err != nil {
		return nil, err
	}
	defer secure.Process.stop()
	m.SecureBackend = secure.Address
	if m.Gateway != "" {
		footprint, err := m.measureFootprint(ctx)
		if err != nil {
			return nil, fmt.Errorf("starting the gateway with the demo's policies: %w", err)
		}
		report.Footprint = footprint
	}
	running := make([]*Running, 0, len(rows))
	for i := range rows {
		t, err := m.start(ctx, &rows[i])
		if err != nil {
			return nil, err
		}
		defer t.Process.stop()
		running = append(running, t)
	}
	for _, l := range requests {
		for _, t := range running {
			if l.sentTo(t.Name) {
				report.Results = append(report.Results, Result{Load: l.Name, Target: t.Name, Title: t.Title})
			}
		}
	}
	g := Generator{dir: m.Dir, cpus: o.loadCPUs, token: m.token, connections: o.connections, duration: o.duration}
	for round := range o.rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, o.rounds)
		for _, l := range requests {
			script, err := g.script(l)
			if err != nil {
				return nil, err
			}
			for j := range running {
				at := (j + round) % len(running)
				result := report.result(l.Name, running[at].Name)
				if result == nil {
					continue
				}
				sample, err := g.run(ctx, script, running[at].base(running[at].Address), l, running[at].Process)
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w\n%s", running[at].Name, l.Name, err, running[at].Process.output())
				}
				result.Samples = append(result.Samples, sample)
			}
		}
	}
	return report, nil
}

// print writes the table to the standard output and the raw figures to their file.
func print(report *Report, o options) error {
	if err := report.table(os.Stdout); err != nil {
		return err
	}
	fmt.Println()
	reached, err := report.verdict(os.Stdout)
	if err != nil {
		return err
	}
	if o.jsonFile != "" {
		raw, err := json.MarshalIndent(report, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(o.jsonFile, append(raw, '\n'), 0o644); err != nil {
			return err
		}
	}
	if o.mustReach && !reached {
		return fmt.Errorf("a goal is missed")
	}
	return nil
}

func list(commaSeparated string) []string {
	if commaSeparated == "" {
		return nil
	}
	return strings.Split(commaSeparated, ",")
}

func targetNames() []string {
	var names []string
	for _, t := range targets() {
		names = append(names, t.Name)
	}
	return names
}

func loadNames(loads []Load) []string {
	var names []string
	for _, l := range loads {
		names = append(names, l.Name)
	}
	return names
}

func chosenLoads(names []string) ([]Load, error) {
	all := loads()
	for _, name := range names {
		if !slices.Contains(loadNames(all), name) {
			return nil, fmt.Errorf("no load is named %q", name)
		}
	}
	if len(names) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(all, func(l Load) bool { return !slices.Contains(names, l.Name) }), nil
}
