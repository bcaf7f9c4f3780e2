package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// `gateway check` accepts every configuration that is rendered, with the policies beside it, and warns of nothing.
func TestContainedConfigurations(t *testing.T) {
	for name, text := range renderings(t) {
		t.Run(name, func(t *testing.T) {
			dir := contained(t, text)
			out, err := exec.Command(gateway, "check", "--strict", "--config",
				filepath.Join(dir, "config", "gateway.yaml"), filepath.Join(dir, "policies")).CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// contained writes the configuration and the policies of what is rendered, and returns the folder with theirs.
func contained(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for key, o := range objects(t, text) {
		if !strings.HasPrefix(key, "ConfigMap gateway-") {
			continue
		}
		var files corev1.ConfigMap
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &files); err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(dir, strings.Split(files.Name, "-")[1]) // config, policies
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range files.Data {
			write(t, filepath.Join(folder, file), text)
		}
	}
	return dir
}
