package e2e

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "record the agreement with the recorded answers where it has risen")

// TestRecordedCases plays what was recorded of servers that enforce policies themselves through the gateway, which
// enforces them before a server that knows nothing of them. The player is from internal/cases, which says what it
// compares.
func TestRecordedCases(t *testing.T) {
	suites := os.Getenv("SUITES_DIR")
	if suites == "" {
		suites = "../shared/suites"
	}
	if !filepath.IsAbs(suites) {
		suites = filepath.Join("..", suites) // it is relative to the root of the repository
	}
	definitions := filepath.Join(suites, "cases/policies/widgets-crd.yaml")
	if _, err := os.Stat(definitions); err != nil {
		t.Skipf("no recorded cases in %s: set SUITES_DIR to the folder that holds them", suites)
	}
	if err := define(definitions); err != nil {
		t.Fatal(err)
	}
	// To kubectl they are other resources of the same names as in the other tests.
	defer func() {
		if out, err := exec.Command(client, "--server", server.HTTP, "delete", "--timeout=60s", "-f",
			definitions).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}()
	args := []string{"test", "-C", "..", "-vet=off", "-ldflags=-s -w", "-count=1", "-v", "-run",
		"^TestAgreementBeforeKubernetes$", "./internal/cases"}
	if *update {
		args = append(args, "-update")
	}
	command := exec.Command("go", args...)
	command.Env = append(os.Environ(), "APISERVER="+server.HTTP)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
