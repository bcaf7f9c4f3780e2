package testutil

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

func TestWriteFiles(t *testing.T) {
	want := map[string]string{"a.yaml": "a: 1\n", "b/c/d.yaml": ""}
	dir := WriteFiles(t, want)
	WriteFile(t, filepath.Join(dir, "a.yaml"), "a: 2\n")
	want["a.yaml"] = "a: 2\n"
	got := map[string]string{}
	for name := range want {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got[name] = string(text)
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
