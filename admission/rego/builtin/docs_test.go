package builtin

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of the documentation")

// TestDocs: the documentation has the table. Written by: go test ./admission/rego/builtin -run
// TestDocs -update
func TestDocs(t *testing.T) {
	const begin, end = "<!-- built-in functions of admission/rego/builtin -->\n", "<!-- end of built-in functions -->\n"
	page := filepath.Join("..", "..", "..", "docs", "policies", "regopolicy.md")
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, isEnded := strings.Cut(rest, end)
	if !ok || !isEnded {
		t.Fatalf("%s has no place for the table", page)
	}
	want := before + begin + table() + end + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(b) {
		t.Errorf("%s has not the table of the code: go test ./admission/rego/builtin -run TestDocs -update", page)
	}
}

// table returns the table of the documentation.
func table() string {
	var made strings.Builder
	made.WriteString("\n| functions | at most | kept by |\n|---|---|---|\n")
	for _, c := range Table() {
		names := slices.Clone(c.Names)
		for i := range names {
			names[i] = "`" + names[i] + "`"
		}
		takes := c.Takes
		switch {
		case c.Keeper == Refused && takes == "":
			takes = c.Why
		case c.Why != "":
			takes += "; " + c.Why
		}
		fmt.Fprintf(&made, "| %s | %s | %s |\n", strings.Join(names, ", "), takes, c.Keeper)
	}
	made.WriteString("\n")
	return made.String()
}
