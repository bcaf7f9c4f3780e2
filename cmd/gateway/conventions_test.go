package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestConventionsAreTested holds the table of conventions in docs/differences.md to the tests: what it claims, a test
// names.
func TestConventionsAreTested(t *testing.T) {
	page, err := os.ReadFile("../../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	claimed := regexp.MustCompile(`(?m)^\| ([A-Z]+-[0-9]+) \|`).FindAllStringSubmatch(string(page), -1)
	if len(claimed) < 20 {
		t.Fatalf("docs/differences.md claims %d conventions; its table has moved", len(claimed))
	}
	named := map[string]bool{}
	id := regexp.MustCompile(`\b[A-Z]+-[0-9]+\b`)
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, ".txtar") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, name := range id.FindAllString(string(text), -1) {
			named[name] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claimed {
		if !named[c[1]] {
			t.Errorf("docs/differences.md claims %s, and no test names it", c[1])
		}
	}
}
