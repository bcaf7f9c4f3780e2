package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFastPathsHaveTargets proves that each fuzz target or test which the page on the architecture names exists, and
// that no row of its table is without one.
func TestFastPathsHaveTargets(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(filepath.Join(root, "docs", "internals", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| fast | slow | compared by |\n|---|---|---|\n")
	if !found {
		t.Fatal("there is no table of fast paths")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	target, folders := regexp.MustCompile("`((?:Fuzz|Test)\\w+)`"),
		regexp.MustCompile("in ((?:`[^`]+`(?:, | and )?)+) \\|$")
	for _, row := range strings.Split(table, "\n") {
		names, in := target.FindAllStringSubmatch(row, -1), folders.FindStringSubmatch(row)
		if len(names) == 0 || in == nil {
			t.Errorf("%s: no fuzz target and no test", row)
			continue
		}
		for _, folder := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(in[1], -1) {
			hasTests(t, filepath.Join(root, folder[1]), names)
		}
	}
}

// hasTests proves that a folder has tests or fuzz targets of some names.
func hasTests(t *testing.T, folder string, names [][]string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(text)
	}
	for _, name := range names {
		if !strings.Contains(tests.String(), "\nfunc "+name[1]+"("+strings.ToLower(name[1][:1])+" *testing."+
			name[1][:1]+") {") {
			t.Errorf("%s has no %s", folder, name[1])
		}
	}
}
