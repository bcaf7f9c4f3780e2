package apis

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestTutorial follows the tutorial for an OpenAPI document: its files and commands do what it says. The packages of
// npm are the ones that the other tests use, at their versions.
func TestTutorial(t *testing.T) {
	for _, name := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
	modules, err := filepath.EvalSymlinks(filepath.Join(nodeDir(t), "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	npm := filepath.Join(t.TempDir(), "npm")
	write(t, npm, "#!/bin/sh\nexec ln -s '"+modules+"' node_modules\n")
	if err := os.Chmod(npm, 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "run", "-C", "../..", "./internal/doctest/follow", "-gateway", gatewayProgram,
		"-command", "npm="+npm,
		"-command", "prometheus="+debian(t, "prometheus"), "-volatile",
		`after \d+ seconds|"retryAfterSeconds":\d+|\[[0-9.]+,`, "docs/tutorial-openapi.md").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
