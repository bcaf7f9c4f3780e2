// Package loadtest gives the tests of linters a module on disk.
package loadtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/admission-gateway/gateway/tools/load"
)

// Dir writes the files, by their paths, to a new directory.
func Dir(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Module loads the files as the module example.com/m.
func Module(t testing.TB, files map[string]string) []load.Package {
	t.Helper()
	files["go.mod"] = "module example.com/m\n\ngo 1.26.0\n"
	packages, err := load.Module(Dir(t, files))
	if err != nil {
		t.Fatal(err)
	}
	return packages
}
