package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The code writes the files of deploy/ as they are.
func TestFiles(t *testing.T) {
	files, err := render()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		got, err := os.ReadFile(filepath.Join("../..", path))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not what tools/monitoring says: run 'make monitoring'", path)
		}
	}
}

// Each alert has its section among the runbooks, in this order, and leads to it.
func TestRunbooks(t *testing.T) {
	page, err := os.ReadFile("../../docs/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	var sections, names []string
	for _, m := range regexp.MustCompile(`(?m)^## (Gateway\w+)$`).FindAllStringSubmatch(string(page), -1) {
		sections = append(sections, m[1])
	}
	for _, r := range ruleGroups().Groups[1].Rules {
		names = append(names, r.Alert)
		if got, want := r.Annotations["runbook_url"], "docs/runbooks.md#"+
			strings.ToLower(r.Alert); !strings.HasSuffix(got, want) {
			t.Errorf("%s leads to %s, want %s", r.Alert, got, want)
		}
	}
	if !slices.Equal(sections, names) {
		t.Errorf("docs/runbooks.md has the sections %q\nthere are the alerts %q", sections, names)
	}
}

// Panels lie beside each other, within the grid, and every one says in which unit it counts.
func TestPanels(t *testing.T) {
	taken := map[[2]int]string{}
	for _, p := range gatewayDashboard().Panels {
		at := p.GridPos
		if at.X+at.W > columns {
			t.Errorf("%s is wider than the grid", p.Title)
		}
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s lies over %s", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type != "row" && (len(p.Targets) == 0 || p.FieldConfig.Defaults.Unit == "") {
			t.Errorf("%s has no queries or no unit", p.Title)
		}
	}
}
