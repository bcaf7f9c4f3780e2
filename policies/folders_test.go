package policies

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/lastgood"
	"github.com/admission-gateway/gateway/policies/source"
)

// crdOf returns the definition of a kind of a group.
func crdOf(group string) string { return strings.ReplaceAll(widgets, "example.com", group) }

// denying returns a policy for widgets of a group, and its binding.
func denying(name, group string) string {
	return fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %s}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [%s], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]}
  validations: [{expression: "object.spec.size < 5"}]
`, name, group)
}

func bindingTo(name, policy string) string {
	return fmt.Sprintf(`---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %s}
spec: {policyName: %s, validationActions: [Deny]}
`, name, policy)
}

// teams are three folders of owners, beside a common one, whose path is "common".
func teams(dir string) []source.Folder {
	return []source.Folder{
		{Paths: []string{dir + "/a"}, Owner: "team-a", Concerns: &source.Concerns{Groups: []string{"a.example.com"}}},
		{Paths: []string{dir + "/b"}, Owner: "team-b", Concerns: &source.Concerns{Groups: []string{"b.example.com", "c.example.com"}}},
		{Paths: []string{dir + "/shop"}, Owner: "team-shop", Concerns: &source.Concerns{Routes: []string{"shop"}}},
	}
}

// teamRoutes lead to an API server, and to an ordinary API.
var teamRoutes = []Route{
	{Name: "cluster", PathPrefix: "/", Upstream: "cluster", Kubernetes: true},
	{Name: "shop", Host: "shop.example.com", PathPrefix: "/", Upstream: "shop"},
}

const brokenFile = "kind: ["

const shopResource = `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: orders.shop.example.com}
spec: {group: shop.example.com, version: v1, route: shop, names: {plural: orders, kind: Order}, paths: {collection: /orders, item: '/orders/{name}'}, envelope: Bare, fields: {name: id}}
`

// write writes the files of a step. An empty text removes the file.
func writeStep(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if text == "" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		testutil.WriteFile(t, path, text)
	}
}

// account says how the folders are, and what was found.
func account(dir string, m *Manager, found []Finding) string {
	var b strings.Builder
	if m == nil {
		b.WriteString("not started\n")
	} else {
		fmt.Fprintf(&b, "%s, generation %d\n", m.LastReading().Outcome, m.Current().Generation())
		for _, f := range m.Folders() {
			switch {
			case f.FailingSince.IsZero() != (len(f.Found) == 0):
				fmt.Fprintf(&b, "%s fails since %s by %v\n", f.Name(), f.FailingSince, f.Found)
			case f.Hash == "":
				fmt.Fprintf(&b, "%s is held\n", f.Name())
			case len(f.Found) > 0:
				fmt.Fprintf(&b, "%s is older\n", f.Name())
			}
		}
		seen := map[string]bool{}
		for _, f := range m.Current().Files() {
			folder, _, _ := strings.Cut(strings.TrimPrefix(f.Name, dir+"/"), "/")
			seen[folder] = true
		}
		fmt.Fprintf(&b, "in force: %s\n", strings.Join(slices.Sorted(maps.Keys(seen)), " "))
	}
	for _, f := range found {
		if f.Severity == Error {
			b.WriteString(f.String() + "\n")
		}
	}
	return strings.ReplaceAll(b.String(), dir+"/", "")
}

// TestFolders: the files of a folder that has errors hold back no other folder. Which folder is at fault follows from what has
// changed, and at first from the order of the configuration.
func TestFolders(t *testing.T) {
	common := denying("shared", "c.example.com")
	good := map[string]string{"common/p.yaml": common, "a/w.yaml": crdOf("a.example.com"), "b/w.yaml": crdOf("b.example.com"), "b/c.yaml": crdOf("c.example.com"), "shop/o.yaml": shopResource}
	with := func(changes map[string]string) map[string]string {
		all := maps.Clone(good)
		maps.Copy(all, changes)
		return all
	}
	var got strings.Builder
	for _, c := range []struct {
		name  string
		steps []map[string]string
	}{
		{"all are good", []map[string]string{good, {"a/p.yaml": denying("more", "a.example.com") + bindingTo("more", "more")}}},
		{"one has errors at first", []map[string]string{with(map[string]string{"a/w.yaml": brokenFile}), {"b/p.yaml": denying("more", "b.example.com")}, {"a/w.yaml": good["a/w.yaml"]}}},
		{"one has errors later", []map[string]string{good, {"a/p.yaml": brokenFile}, {"b/p.yaml": denying("more", "b.example.com")}, {"a/p.yaml": ""}}},
		{"two have errors, one ships", []map[string]string{good, {"a/p.yaml": brokenFile, "b/p.yaml": brokenFile, "shop/o.yaml": shopResource + "# new\n"}}},
		{"the common files have errors at first", []map[string]string{with(map[string]string{"common/p.yaml": brokenFile})}},
		{"the common files have errors later", []map[string]string{good, {"common/p.yaml": brokenFile, "a/p.yaml": denying("more", "a.example.com")}}},
		{"all owners have errors at first", []map[string]string{{"common/p.yaml": denying("shared", "x.example.com"), "a/w.yaml": brokenFile, "b/w.yaml": brokenFile, "shop/w.yaml": brokenFile}}},
		{"a name twice at first", []map[string]string{with(map[string]string{"a/z.yaml": denying("same", "a.example.com"), "b/a.yaml": denying("same", "b.example.com")})}},
		{"a name twice by the earlier one's change", []map[string]string{with(map[string]string{"b/a.yaml": denying("same", "b.example.com")}), {"a/z.yaml": denying("same", "a.example.com")}, {"b/a.yaml": ""}}},
		{"a name twice by the change of both", []map[string]string{good, {"a/z.yaml": denying("same", "a.example.com"), "b/a.yaml": denying("same", "b.example.com")}}},
		{"a binding to the policy of a folder that is held", []map[string]string{with(map[string]string{"a/p.yaml": bindingTo("more", "theirs"), "b/p.yaml": denying("theirs", "b.example.com"), "b/x.yaml": brokenFile})}},
		{"a definition that the policies of another folder need", []map[string]string{good, {"b/c.yaml": "", "a/p.yaml": denying("more", "a.example.com")}}},
		{"a definition moves to another folder", []map[string]string{with(map[string]string{"common/c.yaml": crdOf("c.example.com"), "b/c.yaml": denying("more", "c.example.com")}), {"common/c.yaml": "", "b/c.yaml": crdOf("c.example.com"), "b/d.yaml": denying("more", "c.example.com")}}},
		{"a folder loses its files", []map[string]string{good, {"a/w.yaml": "", "b/p.yaml": denying("more", "b.example.com")}}},
		{"a folder is not there at first", []map[string]string{{"common/p.yaml": common, "b/c.yaml": crdOf("c.example.com"), "shop/o.yaml": shopResource}}},
		{"the same paths are described twice", []map[string]string{good, {"common/s.yaml": strings.Replace(shopResource, "orders.shop", "sales.shop", 1)}}},
	} {
		dir := t.TempDir()
		var m *Manager
		fmt.Fprintf(&got, "# %s\n\n", c.name)
		for i, step := range c.steps {
			writeStep(t, dir, step)
			var found []Finding
			if i == 0 {
				m, found = startTeams(t, dir, nil)
			} else {
				found = m.Reload()
			}
			fmt.Fprintln(&got, account(dir, m, found))
		}
	}
	if os.Getenv("UPDATE_FOLDERS") != "" {
		testutil.WriteFile(t, "testdata/folders.txt", got.String())
	}
	if want, err := os.ReadFile("testdata/folders.txt"); err != nil || got.String() != string(want) {
		t.Errorf("got\n%s\nwhich testdata/folders.txt does not say (UPDATE_FOLDERS=1 writes it): %v", &got, err)
	}
}

// startTeams begins with the files of teams.
func startTeams(t *testing.T, dir string, s *lastgood.Store) (*Manager, []Finding) {
	t.Helper()
	o := (&events{}).options()
	o.LastGood, o.Owned, o.Gateway = s, teams(dir), Gateway{Routes: teamRoutes, Upstreams: []string{"cluster", "shop"}}
	return NewManager([]string{dir + "/common"}, o)
}

// TestFoldersThatNeedEachOther: folders whose files have no errors but together come into force together, beside one that has
// some.
func TestFoldersThatNeedEachOther(t *testing.T) {
	exception := func(name, policy string) string {
		return fmt.Sprintf(`---
apiVersion: admission-gateway.io/v1alpha1
kind: PolicyException
metadata: {name: %s}
spec:
  policies: [{kind: ValidatingAdmissionPolicy, names: [%s]}]
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]}
  matchConditions: [{name: a, expression: object.spec.size == 1}]
  reason: because
  expires: '2100-01-01T00:00:00Z'
`, name, policy)
	}
	dir := testutil.WriteFiles(t, map[string]string{
		"x/a.yaml": denying("of-x", "example.com") + exception("x", "of-v"),
		"v/a.yaml": denying("of-v", "example.com") + exception("v", "of-x"),
		"z/a.yaml": brokenFile,
		"w/a.yaml": widgets,
	})
	o := (&events{}).options()
	for _, name := range []string{"x", "v", "z", "w"} {
		o.Owned = append(o.Owned, source.Folder{Paths: []string{dir + "/" + name}, Owner: "team-" + name})
	}
	m, found := NewManager(nil, o)
	want := `Partly, generation 1
z is held
in force: v w x
z: is refused: until the files of 'z' of 'team-z' are mended, requests for what they concern (all requests) are answered with 503
z/a.yaml:2: must be valid YAML: did not find expected node content
`
	if got := account(dir, m, found); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
