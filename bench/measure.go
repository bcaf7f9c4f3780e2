package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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
	areSizesAsked       bool
	areStepsAsked       bool
	isTable             bool // the table of all rows: what is beside it is measured too
	isSetAsked          bool

	peer, listen, backend, certificate string // run one of the peers instead
}

// prepare installs and builds what the rows need, and starts the issuer of tokens. It returns the options with the CPUs
// that servers and load get; closeAll removes what was made.
func prepare(ctx context.Context, o options, rows []Target) (_ *Machine, _ options, closeAll func(), err error) {
	if o.rounds < 1 || o.connections < 1 || o.duration < time.Second || o.duration%time.Second != 0 {
		return nil, o, nil, fmt.Errorf("-rounds and -connections must be at least 1, -duration a whole number of seconds")
	}
	server, load, err := allowedCPUs()
	if err != nil {
		return nil, o, nil, err
	}
	o.serverCPUs, o.loadCPUs = cmp.Or(o.serverCPUs, server), cmp.Or(o.loadCPUs, load)
	packages := []string{"wrk", "h2load:nghttp2-client"}
	for _, t := range rows {
		packages = append(packages, t.Packages...)
	}
	if err := install(ctx, packages); err != nil {
		return nil, o, nil, err
	}
	dir, err := os.MkdirTemp("", "gateway-bench-")
	if err != nil {
		return nil, o, nil, err
	}
	remove := func() { _ = os.RemoveAll(dir) } // what is left of it is in the system's folder for that
	m, err := newMachine(ctx, o, dir, rows)
	if err == nil {
		err = m.issueToken()
	}
	if err != nil {
		remove()
		return nil, o, nil, err
	}
	return m, o, func() {
		m.issuer.Close()
		remove()
	}, nil
}

// newMachine prepares a folder for the run and builds the gateway if a row needs it.
func newMachine(ctx context.Context, o options, dir string, rows []Target) (*Machine, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/admission-gateway/gateway").Output()
	if err != nil {
		return nil, fmt.Errorf("bench must be run in its own folder: %w", err)
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
	if err := m.writeCertificate(); err != nil {
		return nil, err
	}
	if m.Gateway == "" && slices.ContainsFunc(rows, func(t Target) bool { return t.OfGateway }) {
		m.Gateway = filepath.Join(dir, "gateway")
		if err := m.build(ctx, m.Gateway, "grpcnotrace"); err != nil {
			return nil, err
		}
	}
	if isUnmeasured(rows) {
		m.Unmeasured = filepath.Join(dir, "gateway-unmeasured")
		if err := m.build(ctx, m.Unmeasured, "grpcnotrace,unmeasured"); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// build builds the gateway.
func (m *Machine) build(ctx context.Context, binary, tags string) error {
	build := exec.CommandContext(ctx, "go", "build", "-tags", tags, "-o", binary, "./cmd/gateway")
	build.Dir, build.Stderr = m.Root, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building the gateway: %w", err)
	}
	return nil
}

// measure starts the backend and the targets and takes one sample of each under each load in every round. Every round
// starts with another target, so that none always has the same neighbour.
func (m *Machine) measure(ctx context.Context, o options, rows []Target, requests []Load) (*Report, error) {
	report := &Report{Rounds: o.rounds, Seconds: o.duration.Seconds(), Connections: o.connections}
	backend, err := m.start(ctx, &Target{Name: "backend", BesideLoad: true, Check: checkPassThrough,
		Command: targets()[0].Command})
	if err != nil {
		return nil, err
	}
	defer backend.Process.stop()
	m.Backend = backend.Address
	secure, err := m.start(ctx, &Target{
		Name: "backend-tls", BesideLoad: true, Secure: true,
		Check:   func(address string) error { return checkForms("https://" + address) },
		Command: func(m *Machine, listen string) ([]string, error) { return m.peer("backend-tls", listen), nil },
	})
	if err != nil {
		return nil, err
	}
	defer secure.Process.stop()
	m.SecureBackend = secure.Address
	calls, err := m.start(ctx, &Target{
		Name: "backend-grpc", BesideLoad: true, IsHTTP2: true, Check: checkGRPC,
		Command: func(m *Machine, listen string) ([]string, error) { return m.peer("backend-grpc", listen), nil },
	})
	if err != nil {
		return nil, err
	}
	defer calls.Process.stop()
	m.GRPCBackend = calls.Address
	if m.Gateway != "" && o.isTable {
		if report.Footprint, err = m.measureFootprint(ctx); err != nil {
			return nil, fmt.Errorf("starting the gateway with the demo's policies: %w", err)
		}
		if o.targets == "" && o.loads == "" {
			if report.Set, err = m.measureSet(ctx); err != nil {
				return nil, fmt.Errorf("starting the gateway with a large set: %w", err)
			}
		}
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
	if o.areSizesAsked {
		time.Sleep(2 * time.Second) // until what only the start needed is given back
	}
	for _, l := range requests {
		for _, t := range running {
			if !l.sentTo(t.Name) {
				continue
			}
			idle, err := t.Process.resident()
			if err != nil {
				return nil, err
			}
			report.Results = append(report.Results, Result{Load: l.Name, Target: t.Name, Title: t.Title, IdleMiB: idle})
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
				rate := 0.0
				if l.PacedBy != "" {
					samples := report.find(l.PacedBy, running[at].Name)
					if len(samples) <= round {
						continue // the load whose throughput counts is not measured
					}
					rate = pace * samples[round].Throughput
				}
				sample, err := g.run(ctx, rate, script, running[at].base(running[at].Address), l, running[at].Process)
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w\n%s", running[at].Name, l.Name, err,
						running[at].Process.output())
				}
				result.Samples = append(result.Samples, sample)
			}
		}
	}
	return report, nil
}
