package main

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/admission-gateway/gateway/internal/identity/identitytest"
)

//go:embed peers/*.conf peers/haproxy.cfg
var peerConfigs embed.FS

// Names of the targets that others are compared with.
const (
	nginxTarget     = "nginx"
	fasthttpTarget  = "fasthttp"
	turnsTarget     = "fasthttp-turns"
	netTarget       = "net-http"
	admissionTarget = "gateway-admission"
	gatewayTarget   = "gateway"
	emulationTarget = "gateway-emulation"
	identityTarget  = "gateway-identity"
	contestedTarget = "gateway-contested"
	// undescribedTarget has policy files about other paths, validatedTarget some about patches, and etagsTarget one
	// that has the gateway make ETags.
	undescribedTarget = "gateway-undescribed"
	validatedTarget   = "gateway-validated"
	etagsTarget       = "gateway-etags"
	// documentedTarget has an OpenAPI document whose schema the POST is validated by.
	documentedTarget = "gateway-documented"
)

// A Target is a row of the table: a server that is measured.
type Target struct {
	Name  string // for -targets and the raw figures
	Title string // in the table
	// Packages are the Debian packages that it needs.
	Packages []string
	// Command returns the command that serves on one address in front of a backend on another.
	Command func(m *Machine, listen string) ([]string, error)
	// Check makes sure that the server does the work to be measured.
	Check func(address string) error
	// KnowsUsers says that the server identifies users by the tokens of the machine's issuer, and
	// limits each.
	KnowsUsers bool
	// OfGateway says that the command needs the gateway's binary.
	OfGateway bool
	// IsUnmeasured says that it needs the gateway that counts nothing.
	IsUnmeasured bool
	// BesideLoad puts the server on the CPUs of the load generator instead of the CPUs of the servers under test.
	BesideLoad bool
	// Ready is the path of the GET by which the server says that it serves; empty is an object of the backend's.
	Ready string
	// Secure says that the server speaks TLS, IsHTTP2 that it is asked by HTTP/2 alone.
	Secure, IsHTTP2 bool
}

// A Goal is a ratio of CPU time per request, or of another figure, that a target may not exceed, as a median over the
// rounds.
type Goal struct {
	Load, Target, Reference string
	AtMost                  float64
	// Of are the loads whose time the reference needs together; empty is the same load.
	Of []string
	// Beyond, if set, is a target whose time for the same loads is taken off on both sides, so that the goal is about
	// the rest.
	Beyond string
	// Figure is what is compared; the zero value is CPU time.
	Figure figure
}

// A figure of a sample.
type figure struct {
	name string
	of   func(Sample) float64
}

var (
	p50 = figure{"median latency", func(s Sample) float64 { return s.P50 }}
	p99 = figure{"99th percentile of latency", func(s Sample) float64 { return s.P99 }}
)

// A Machine describes the machine on which the targets run.
type Machine struct {
	Root    string // of the repository
	Dir     string // for configurations, logs and binaries
	Self    string // this program
	Gateway string // the gateway's binary
	// Unmeasured is the gateway's binary without its metrics of requests.
	Unmeasured string
	Backend    string // the backend's address
	// SecureBackend is the address of the backend that speaks TLS.
	SecureBackend string
	// GRPCBackend is the address of the backend of calls of gRPC.
	GRPCBackend string
	// Certificate is the name, without .crt and .key, of the files of the certificate that targets show.
	Certificate string
	Listen      string // of the target whose configuration is rendered

	serverCPUs, loadCPUs string
	issuer               *identitytest.Issuer // of tokens, if a target knows users
	token                string               // of a user
}

func (m *Machine) peer(name, listen string) []string {
	return []string{m.Self, "-peer", name, "-listen", listen, "-backend", m.Backend}
}

func (m *Machine) gateway(listen string, more ...string) ([]string, error) {
	admin, err := freeAddress()
	return append([]string{m.Gateway, "serve", "--listen", listen, "--upstream", "http://" + m.Backend, "--dialect",
		"Plain", "--admin", admin}, more...), err
}

// render writes a peer's configuration and returns the file.
func (m *Machine) render(name, listen string) (string, error) {
	t, err := template.ParseFS(peerConfigs, "peers/"+name)
	if err != nil {
		return "", err
	}
	file := filepath.Join(m.Dir, name)
	out, err := os.Create(file)
	if err != nil {
		return "", err
	}
	with := *m
	with.Listen = listen
	if err := t.Execute(out, with); err != nil {
		_ = out.Close()
		return "", err
	}
	return file, out.Close()
}

// A Running target has an address to send requests to.
type Running struct {
	*Target
	Process *Process
	Address string
}

// base is the URL of the server.
func (t *Target) base(address string) string {
	if t.Secure {
		return "https://" + address
	}
	return "http://" + address
}

// start runs a target and makes sure that it works.
func (m *Machine) start(ctx context.Context, t *Target) (_ *Running, err error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	command, err := t.Command(m, address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	cpus := m.serverCPUs
	if t.BesideLoad {
		cpus = m.loadCPUs
	}
	p, err := startProcess(m.Dir, t.Name, cpus, command...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	client := insecureClient(time.Second)
	if t.IsHTTP2 {
		client = http2Client(time.Second)
	}
	if _, err = p.waitReadyBy(ctx, client, t.base(address)+cmp.Or(t.Ready, collection+"/"+objectName)); err == nil {
		err = t.Check(address)
	}
	if err == nil && t.KnowsUsers {
		err = checkIdentity(address, m.token)
	}
	if err != nil {
		p.stop()
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	return &Running{Target: t, Process: p, Address: address}, nil
}

func regoRows() []Target {
	return []Target{
		{
			Name: regoTarget, Title: "**gateway**", OfGateway: true,
			Check: func(address string) error { return checkRego(address, postRego) },
			Command: func(m *Machine, listen string) ([]string, error) {
				return m.gateway(listen, "--policies", filepath.Join(m.Root, "bench", "rego"))
			},
		},
		{
			Name: opaTarget, Title: "`opa run --server`", Ready: "/health",
			Check: func(address string) error { return checkRego(address, askOPA) },
			Command: func(m *Machine, listen string) ([]string, error) {
				opa, err := m.buildOPA(context.Background())
				if err != nil {
					return nil, err
				}
				modules, err := filepath.Glob(filepath.Join(m.Root, "bench", "rego", "*", "*.rego"))
				return append([]string{opa, "run", "--server", "--addr", listen, "--log-level", "error",
					"--skip-version-check",
					filepath.Join(m.Root, "bench", "opa", "decision.rego")}, modules...), err
			},
		},
	}
}

// buildOPA builds OPA's own program, in the version that the gateway has.
func (m *Machine) buildOPA(ctx context.Context) (string, error) {
	const module = "github.com/open-policy-agent/opa"
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", module)
	list.Dir = m.Root
	version, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("the version of OPA: %w", err)
	}
	build := exec.CommandContext(ctx, "go", "install", module+"@"+strings.TrimSpace(string(version)))
	build.Dir, build.Stderr, build.Env = m.Dir, os.Stderr, append(os.Environ(), "GOBIN="+m.Dir)
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("building OPA: %w", err)
	}
	return filepath.Join(m.Dir, "opa"), nil
}

// featureRows are the targets of features.
func featureRows(all []Feature) []Target {
	var rows []Target
	for _, f := range all {
		title := "**gateway, full admission, " + f.Title + "**"
		if f.Name == quietTarget {
			title = "**gateway, " + f.Title + "**"
		}
		rows = append(rows, Target{
			Name: f.Name, Title: title, OfGateway: true, IsUnmeasured: !f.IsMeasured, KnowsUsers: f.KnowsUsers,
			Check:   checkAdmission,
			Command: func(m *Machine, listen string) ([]string, error) { return m.featured(&f, listen) },
		})
	}
	return rows
}

// featured returns the command of a gateway with a feature.
func (m *Machine) featured(f *Feature, listen string) ([]string, error) {
	config, err := m.featureConfig(f)
	if err != nil {
		return nil, err
	}
	flags := []string{"--config", config, "--policies", filepath.Join(m.Root, "bench", "policies")}
	for _, path := range f.Policies {
		flags = append(flags, "--policies", filepath.Join(m.Root, path))
	}
	if f.IsAudited {
		flags = append(flags, "--policies", filepath.Join(m.Root, "bench", "audit"))
	}
	command, err := m.gateway(listen, flags...)
	if err == nil && !f.IsMeasured {
		command[0] = m.Unmeasured
	}
	return command, err
}

// featureConfig writes the configuration of a feature.
func (m *Machine) featureConfig(f *Feature) (file string, err error) {
	log := map[string]any{"requests": "None"}
	if f.Logs != "" {
		log["requests"] = f.Logs
	}
	telemetry := map[string]any{"log": log}
	if f.IsAudited {
		telemetry["audit"] = map[string]any{"log": map[string]any{"path": filepath.Join(m.Dir, f.Name+".audit")}}
	}
	if f.Traces >= 0 {
		// No server has to listen there: spans that cannot be sent are dropped.
		telemetry["tracing"] = map[string]any{"endpoint": "http://" + m.Backend, "samplingRatePerMillion": f.Traces}
	}
	config := map[string]any{"apiVersion": "admission-gateway.io/v1alpha1", "kind": "GatewayConfiguration",
		"telemetry": telemetry}
	if f.KnowsUsers {
		config["identity"] = m.identity()
	}
	text, err := json.Marshal(config)
	if err != nil {
		return "", err
	}
	file = filepath.Join(m.Dir, f.Name+".json")
	return file, os.WriteFile(file, text, 0o600)
}

// featureGoals bound the cost of reporting requests.
func featureGoals() []Goal {
	return []Goal{
		{Load: postLoad, Target: "gateway-traces", Reference: quietTarget, AtMost: 1.01},
		{Load: postLoad, Target: "gateway-told", Reference: quietTarget, AtMost: 1.05},
	}
}

// isUnmeasured reports whether a row needs the gateway that counts nothing.
func isUnmeasured(rows []Target) bool {
	return slices.ContainsFunc(rows, func(t Target) bool { return t.IsUnmeasured })
}
