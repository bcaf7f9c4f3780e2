package policies

import (
	"slices"
	"testing"

	"github.com/admission-gateway/gateway/policies/source"
)

// TestNextKeepsFolders: with another configuration each folder keeps the files that it has in force while newer ones
// have errors. One that is new and has errors is held. New paths without an owner that have errors are refused.
func TestNextKeepsFolders(t *testing.T) {
	dir := t.TempDir()
	writeStep(t, dir, map[string]string{
		"common/p.yaml": denying("shared", "c.example.com"), "a/w.yaml": crdOf("a.example.com"),
		"b/w.yaml": crdOf("b.example.com"),
		"b/c.yaml": crdOf("c.example.com"), "shop/o.yaml": shopResource,
	})
	m, found := startTeams(t, dir, nil)
	if m == nil {
		t.Fatal(found)
	}
	options := func(more ...source.Folder) Options {
		o := (&events{}).options()
		o.Owned, o.Gateway = append(teams(dir), more...),
			Gateway{Routes: slices.Clone(teamRoutes), Upstreams: []string{"cluster", "shop", "new"}}
		o.Gateway.Routes = append(o.Gateway.Routes, Route{Name: "new", Host: "new.example.com", PathPrefix: "/",
			Upstream: "new"})
		return o
	}
	extra := source.Folder{Paths: []string{dir + "/d"}, Owner: "team-d",
		Concerns: &source.Concerns{Routes: []string{"new"}}}
	for _, c := range []struct {
		name  string
		files map[string]string
		more  []source.Folder
		want  string
	}{
		{"nothing but the configuration changes", nil, nil, `Loaded, generation 2
in force: a b common shop
`},
		{"one has errors", map[string]string{"a/p.yaml": brokenFile, "b/p.yaml": denying("more", "b.example.com")}, nil, `Partly, generation 3
a is older
in force: a b common shop
a: is refused: the files of 'a' of 'team-a' that were last in force stay
a/p.yaml:2: must be valid YAML: did not find expected node content
`},
		{"a new one has errors too", map[string]string{"d/p.yaml": brokenFile}, []source.Folder{extra}, `Partly, generation 4
a is older
d is held
in force: a b common shop
a: is refused: the files of 'a' of 'team-a' that were last in force stay
a/p.yaml:2: must be valid YAML: did not find expected node content
d: is refused: until the files of 'd' of 'team-d' are mended, requests for what they concern (the route 'new') are answered with 503
d/p.yaml:2: must be valid YAML: did not find expected node content
`},
		{"the files are mended", map[string]string{"a/p.yaml": "", "d/p.yaml": ""}, []source.Folder{extra}, `Loaded, generation 5
in force: a b common shop
`},
	} {
		writeStep(t, dir, c.files)
		next, found := m.Next([]string{dir + "/common"}, options(c.more...))
		if next == nil {
			t.Fatalf("%s: refused: %v", c.name, found)
		}
		if before := m.Current(); len(next.Folders()) == 0 || before == next.Current() {
			t.Errorf("%s: the next set is in force before it begins", c.name)
		}
		next.Begin(m)
		if got := account(dir, next, found); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
		m = next
	}
	writeStep(t, dir, map[string]string{"common/p.yaml": brokenFile})
	if next, _ := m.Next([]string{dir + "/common", dir + "/a"}, options()); next != nil {
		t.Error("paths without an owner that are new, and have errors, are accepted")
	}
	if next, found := m.Next([]string{dir + "/common"}, options(extra)); next == nil {
		t.Errorf("the common files have errors: refused: %v", found)
	} else if got := next.Folders()[0]; got.FailingSince.IsZero() || got.Hash == "" {
		t.Errorf("got %+v of the common files, which keep those in force", got)
	}
}
