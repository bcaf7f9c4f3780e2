package testutil

import (
	"os"
	"path/filepath"
	"testing"
)

// WriteFiles writes files into a new folder, and returns the folder. A name may have folders of its
// own.
func WriteFiles(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		WriteFile(t, filepath.Join(dir, name), text)
	}
	return dir
}

// WriteFile writes a file, and the folders that it lies in if there are none. It returns the path.
func WriteFile(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
