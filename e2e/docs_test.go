package e2e

import (
	"os/exec"
	"testing"
)

// TestTutorial follows the pages about Kubernetes, with kubectl and the API server as the cluster.
func TestTutorial(t *testing.T) {
	for _, program := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	for _, page := range []string{"docs/tutorial-kubernetes.md", "docs/policies/from-gatekeeper.md"} {
		out, err := exec.Command("go", "run", "-C", "..", "./internal/doctest/follow", "-gateway", gateway, "-command",
			"kubectl="+client,
			"-env", "KUBECONFIG="+writeKubeconfig(t, server.HTTPS, server.CA, "of-alice"), page).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", page, err, out)
		}
	}
}
