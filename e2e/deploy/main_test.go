// Package deploy holds what deploy/ brings against the programs that read it: kustomize, Helm, a real kube-apiserver, the
// gateway itself and Prometheus.
package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The programs, and a folder for the time of the tests.
var (
	gateway string
	kubectl string
	scratch string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if scratch, err = os.MkdirTemp("", "gateway-deploy-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	gateway = filepath.Join(scratch, "gateway")
	if err := build("-C", "../..", "-tags", "grpcnotrace", "-o", gateway, "./cmd/gateway"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if kubectl, err = exec.LookPath("kubectl"); err != nil {
		kubectl = filepath.Join(scratch, "kubectl")
		if err := build("-o", kubectl, "../kubectl"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

func build(args ...string) error {
	out, err := exec.Command("go", append([]string{"build"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}
