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
	target, folder := regexp.MustCompile("`(Fuzz\\w+)`"), regexp.MustCompile("`([^`]+)`")
	for _, row := range strings.Split(table, "\n") {
		names := target.FindAllStringSubmatch(row, -1)
		folders := folder.FindAllStringSubmatch(row[strings.LastIndex(row, " in `")+1:], -1)
		if len(names) == 0 || len(folders) == 0 {
			t.Errorf("%s: no fuzz target", row)
			continue
		}
		for _, in := range folders {
			tests := testsIn(t, filepath.Join(root, in[1]))
			for _, name := range names {
				if !strings.Contains(tests, "\nfunc "+name[1]+"(f *testing.F) {") {
					t.Errorf("%s: %s has no %s", row, in[1], name[1])
				}
			}
		}
	}
}

// testsIn returns the text of the tests in a folder.
func testsIn(t *testing.T, folder string) string {
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
	return tests.String()
}
