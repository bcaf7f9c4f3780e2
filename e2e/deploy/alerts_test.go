package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// debian returns the path of a program of Debian; the test is skipped without it.
func debian(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed: 'make programs' does on Debian, as root", name)
	}
	return path
}

// rules are the alerts and the records as Prometheus reads them.
func rules(t *testing.T) (text string, names, records []string) {
	t.Helper()
	b, err := os.ReadFile(helm + "/files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Record string }
		}
	}
	if err := yaml.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert != "" {
				names = append(names, r.Alert)
			} else {
				records = append(records, r.Record)
			}
		}
	}
	return string(b), names, records
}

// promtool finds nothing wrong with the alerts, and each of them fires when it should, and only then.
func TestAlerts(t *testing.T) {
	promtool, dir := debian(t, "promtool"), t.TempDir()
	text, names, _ := rules(t)
	write(t, filepath.Join(dir, "alerts.yaml"), text)
	tests, err := os.ReadFile("testdata/alerts_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "alerts_test.yaml"), string(tests))
	for _, name := range names {
		if !strings.Contains(string(tests), `alertname="`+name+`"`) {
			t.Errorf("no test lets %s fire", name)
		}
	}
	for _, args := range [][]string{{"check", "rules", "--lint-fatal", "alerts.yaml"},
		{"test", "rules", "alerts_test.yaml"}} {
		command := exec.Command(promtool, args...)
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
