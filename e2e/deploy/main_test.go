// Package deploy holds what deploy/ brings against the programs that read it: kustomize, Helm, a real kube-apiserver,
// the gateway itself and Prometheus.
package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/admission-gateway/gateway/e2e/testutil"
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
	if err := testutil.BuildProgram(gateway, "../..", "./cmd/gateway"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if kubectl, err = exec.LookPath("kubectl"); err != nil {
		kubectl = filepath.Join(scratch, "kubectl")
		if err := testutil.BuildProgram(kubectl, "..", "./kubectl"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	defer func() { end() }()
	return m.Run()
}
