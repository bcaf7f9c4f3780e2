package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLayout compares the layout that docs/internals/architecture.md shows with the folders that there are.
func TestLayout(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(filepath.Join(root, "docs", "internals", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, layout, found := strings.Cut(string(page), "\n## Layout\n\n```\n")
	if !found {
		t.Fatal("there is no layout")
	}
	layout, _, _ = strings.Cut(layout, "```")
	var named []string
	room := ""
	first, folder := regexp.MustCompile(`^(?:  )?[a-z0-9]+/`), regexp.MustCompile(`\b[a-z0-9]+/`)
	for _, line := range strings.Split(layout, "\n") {
		if strings.HasPrefix(line, "cmd/gateway/") {
			continue
		}
		if at := first.FindString(line); at != "" && at[0] != ' ' {
			room = at
			named = append(named, room)
			continue
		}
		for _, name := range folder.FindAllString(line, -1) {
			named = append(named, room+name)
		}
	}
	for _, name := range named {
		below := strings.TrimPrefix(name, "internal/") // of a room within internal
		if !isFolder(root, name) && !isFolder(root, "internal/storage/"+below) &&
			!isFolder(root, "internal/ratelimit/"+below) {
			t.Errorf("there is no folder %s", name)
		}
	}
	for _, room := range []string{"proxy/", "policies/", "admission/", "internal/"} {
		entries, err := os.ReadDir(filepath.Join(root, room))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if name := room + e.Name() + "/"; e.IsDir() && e.Name() != "testdata" &&
				!strings.HasSuffix(e.Name(), "test") && !slices.Contains(named, name) {
				t.Errorf("the layout does not have %s", name)
			}
		}
	}
}

func isFolder(root, name string) bool {
	info, err := os.Stat(filepath.Join(root, name))
	return err == nil && info.IsDir()
}
