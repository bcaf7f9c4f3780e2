package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFastPathsHaveTargets proves that each fuzz target which the page on the architecture names exists, and that no row of
// its table is without one.
func TestFastPathsHaveTargets(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| fast | slow | fuzz target |\n|---|---|---|\n")
	if !found {
		t.Fatal("there is no table of fast paths")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	target, folder := regexp.MustCompile("`(Fuzz\\w+)`"), regexp.MustCompile("in `([^`]+)` \\|$")
	for _, row := range strings.Split(table, "\n") {
		names, in := target.FindAllStringSubmatch(row, -1), folder.FindStringSubmatch(row)
		if len(names) == 0 || in == nil {
			t.Errorf("%s: no fuzz target", row)
			continue
		}
		var tests strings.Builder
		files, err := filepath.Glob(filepath.Join(root, in[1], "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(text)
		}
		for _, name := range names {
			if !strings.Contains(tests.String(), "\nfunc "+name[1]+"(f *testing.F) {") {
				t.Errorf("%s: %s has no %s", row, in[1], name[1])
			}
		}
	}
}
