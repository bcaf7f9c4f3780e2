// Package gatewayapi holds the gateway against Gateway API's own conformance suite, in a cluster.
package gatewayapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/admission-gateway/gateway/e2e/gatewayapi/cluster"
	"github.com/admission-gateway/gateway/e2e/testutil"
)

// programs are the files that the tests run, and where they find what they read.
type programs struct {
	Gateway, Echo, APIServer, ControllerManager, Follow string
	// Definitions is the folder with Gateway API's CustomResourceDefinitions.
	Definitions string
	// Scratch is a folder for the time of the tests.
	Scratch string
}

// The programs, and the cluster that all tests share.
var (
	built  programs
	shared *cluster.Cluster
)

// variable has the programs for the tests inside of the network namespace, which builds none.
const variable = "GATEWAYAPI_PROGRAMS"

func TestMain(m *testing.M) {
	cluster.BecomeContainer()
	run := outside
	if cluster.IsInside() {
		run = func() (int, error) { return insideOf(m) }
	}
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// outside builds the programs, and runs the tests in a network of their own.
func outside() (int, error) {
	scratch, err := os.MkdirTemp("", "gateway-api-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	p := programs{Scratch: scratch, Gateway: filepath.Join(scratch, "gateway"),
		Follow: filepath.Join(scratch, "follow")}
	if err := testutil.BuildProgram(p.Gateway, "../..", "./cmd/gateway"); err != nil {
		return 1, err
	}
	if err := testutil.BuildProgram(p.Follow, "../..", "./internal/doctest/follow"); err != nil {
		return 1, err
	}
	for name, file := range map[string]*string{"kube-apiserver": &p.APIServer,
		"kube-controller-manager": &p.ControllerManager} {
		if *file, err = command("-C", "..", "tool", "-n", name); err != nil { // of the versions that e2e tests
			return 1, err
		}
	}
	if p.Echo, err = command("tool", "-n", "echo-basic"); err != nil {
		return 1, err
	}
	folder, err := command("list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api")
	if err != nil {
		return 1, err
	}
	p.Definitions = filepath.Join(folder, "config", "crd", "experimental")
	text, err := json.Marshal(p)
	if err != nil {
		return 1, err
	}
	code, err := cluster.Enter(variable + "=" + string(text))
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		// there is no namespace for users, or for networks
		fmt.Fprintln(os.Stderr, "skipped: this machine gives no process a network of its own")
		return 0, nil
	}
	return code, err
}

// command returns what the go command answers.
func command(args ...string) (string, error) {
	var said strings.Builder
	c := exec.Command("go", args...)
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, said.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// insideOf starts the cluster, and runs the tests.
func insideOf(m *testing.M) (code int, err error) {
	if err := json.Unmarshal([]byte(os.Getenv(variable)), &built); err != nil {
		return 1, err
	}
	shared, err = cluster.Start(cluster.Options{
		Dir: built.Scratch, APIServer: built.APIServer, ControllerManager: built.ControllerManager,
		Images: map[string]string{
			"registry.k8s.io/gateway-api/echo-basic": built.Echo, "gateway": built.Gateway,
			// for tests of UDPRoute, which is of no profile that the gateway has
			"registry.k8s.io/coredns/coredns": cluster.Pause,
		},
	})
	if err != nil {
		return 1, err
	}
	defer shared.Stop()
	if err := cluster.AddBlock("10.100.0.0/16"); err != nil { // the addresses of Gateways
		return 1, err
	}
	if _, err := envtest.InstallCRDs(shared.Config,
		envtest.CRDInstallOptions{Paths: []string{built.Definitions}}); err != nil {
		return 1, err
	}
	log.SetLogger(logr.Discard()) // of clients, whose errors the tests say
	code = m.Run()
	if code != 0 {
		fmt.Fprintln(os.Stderr, shared.Logs())
	}
	return code, nil
}
