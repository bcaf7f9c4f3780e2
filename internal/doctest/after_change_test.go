package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAfterAChange: the folders, packages, tests and targets of make that docs/internals/after-a-change.md names are
// there.
func TestAfterAChange(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(filepath.Join(root, "docs", "internals", "after-a-change.md"))
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, m := range regexp.MustCompile("`[^`]+`").FindAllString(string(page), -1) {
		words := strings.Fields(strings.Trim(m, "`"))
		switch {
		case words[0] == "make":
			if !regexp.MustCompile(`(?m)^` + words[1] + `:`).Match(makefile) {
				t.Errorf("there is no 'make %s'", words[1])
			}
		case words[0] == "go":
			rows++
			checkGoTest(t, root, words)
		case words[0] == "gateway":
		case !isFolder(root, words[0]):
			t.Errorf("there is no folder %s", words[0])
		}
	}
	if rows < 15 {
		t.Errorf("the page has %d commands", rows)
	}
}

// checkGoTest looks for the packages of a command, and for the tests that it runs.
func checkGoTest(t *testing.T, root string, words []string) {
	t.Helper()
	tests := ""
	var packages []string
	for i, w := range words {
		switch {
		case strings.HasPrefix(w, "./"):
			packages = append(packages, strings.TrimSuffix(w, "/..."))
		case w == "-run":
			tests = strings.Trim(words[i+1], "'")
		}
	}
	for _, p := range packages {
		var all strings.Builder
		files, err := filepath.Glob(filepath.Join(root, p, "*_test.go"))
		if err != nil || !isFolder(root, p) {
			t.Errorf("there is no package %s: %v", p, err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
		for _, name := range strings.Split(tests, `\|`) {
			if !regexp.MustCompile(`(?m)^func `+name).MatchString(all.String()) && name != "" {
				t.Errorf("%s has no test %s", p, name)
			}
		}
	}
}
