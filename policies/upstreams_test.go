package policies

import (
	"os"
	"path/filepath"
	"testing"
)

// TestUnknownUpstream: a StateSource that names an upstream which the configuration has not is an error with its line,
// when the files are checked, when the gateway starts, and in a change, which the set in force outlives.
func TestUnknownUpstream(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.yaml")
	write := func(upstream string) {
		text := "apiVersion: admission-gateway.io/v1alpha1\nkind: StateSource\nmetadata: {name: classes}\nspec:\n  path: /v2/classes\n  upstream: " + upstream + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g := Gateway{Upstreams: []string{"storage", "orders"}}
	want := file + ":6: spec.upstream: must be the name of an upstream of the configuration: 'orders', 'storage'\n"
	text := func(found []Finding) (lines string) {
		for _, f := range found {
			lines += f.String() + "\n"
		}
		return lines
	}
	write("strage")
	if found := CheckFor([]string{dir}, g); text(found) != want {
		t.Errorf("checked: %s", text(found))
	}
	if found := Check([]string{dir}); len(found) != 0 {
		t.Errorf("checked without a configuration: %s", text(found))
	}
	if m, found := NewManager([]string{dir}, Options{Upstreams: g.Upstreams}); m != nil || text(found) != want {
		t.Errorf("started: %s", text(found))
	}
	write("storage")
	m, found := NewManager([]string{dir}, Options{Upstreams: g.Upstreams})
	if m == nil {
		t.Fatal(text(found))
	}
	write("strage")
	if found := m.Reload(); text(found) != want || m.Current().Generation() != 1 {
		t.Errorf("changed: %s in generation %d", text(found), m.Current().Generation())
	}
}
