package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// left are folders of the repository that no build needs.
var left = []string{".git", "bin", "e2e", "tools", "docs"}

// The gateway is built twice, in folders with other names, and is the same. Its bill lists its parts.
func TestBuildIsReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("two builds")
	}
	dir := t.TempDir()
	var sums [][]byte
	for _, name := range []string{"one", filepath.Join("another", "folder")} {
		to := filepath.Join(dir, name)
		copyModule(t, "../..", to)
		build := exec.Command("make", "build", "VERSION=v0.1.0")
		build.Dir = to
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		binary, err := os.Open(filepath.Join(to, "bin", "gateway"))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, binary); err != nil {
			t.Fatal(err)
		}
		if err := binary.Close(); err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sum.Sum(nil))
	}
	if !bytes.Equal(sums[0], sums[1]) {
		t.Errorf("two builds have the sums %x and %x", sums[0], sums[1])
	}
	info, err := buildinfo.ReadFile(filepath.Join(dir, "one", "bin", "gateway"))
	if err != nil {
		t.Fatal(err)
	}
	bom := bill(info, "v0.1.0")
	if ref := bom.Metadata.Component.BOMRef; ref != "pkg:golang/github.com/admission-gateway/gateway@v0.1.0" {
		t.Errorf("the bill is of %s", ref)
	}
	if n := len(*bom.Components); n != len(info.Deps)+1 || n < 50 {
		t.Errorf("the bill has %d components, the binary %d modules", n, len(info.Deps))
	}
}

// copyModule copies what a build of the module in a folder needs.
func copyModule(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && slices.Contains(left, name):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		case !d.Type().IsRegular() || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}
