package policies

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/resource"
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
		{Paths: []string{dir + "/b"}, Owner: "team-b",
			Concerns: &source.Concerns{Groups: []string{"b.example.com", "c.example.com"}}},
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

// TestFolders: the files of a folder that has errors hold back no other folder. Which folder is at fault follows from
// what has changed, and at first from the order of the configuration.
func TestFolders(t *testing.T) {
	common := denying("shared", "c.example.com")
	good := map[string]string{"common/p.yaml": common, "a/w.yaml": crdOf("a.example.com"),
		"b/w.yaml": crdOf("b.example.com"), "b/c.yaml": crdOf("c.example.com"), "shop/o.yaml": shopResource}
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
		{"all are good", []map[string]string{good,
			{"a/p.yaml": denying("more", "a.example.com") + bindingTo("more", "more")}}},
		{"one has errors at first", []map[string]string{with(map[string]string{"a/w.yaml": brokenFile}),
			{"b/p.yaml": denying("more", "b.example.com")}, {"a/w.yaml": good["a/w.yaml"]}}},
		{"one has errors later",
			[]map[string]string{good, {"a/p.yaml": brokenFile}, {"b/p.yaml": denying("more", "b.example.com")},
				{"a/p.yaml": ""}}},
		{"two have errors, one ships",
			[]map[string]string{good, {"a/p.yaml": brokenFile, "b/p.yaml": brokenFile, "shop/o.yaml": shopResource +
				"# new\n"}}},
		{"the common files have errors at first",
			[]map[string]string{with(map[string]string{"common/p.yaml": brokenFile})}},
		{"the common files have errors later",
			[]map[string]string{good, {"common/p.yaml": brokenFile, "a/p.yaml": denying("more", "a.example.com")}}},
		{"all owners have errors at first",
			[]map[string]string{{"common/p.yaml": denying("shared", "x.example.com"), "a/w.yaml": brokenFile,
				"b/w.yaml": brokenFile, "shop/w.yaml": brokenFile}}},
		{"a name twice at first",
			[]map[string]string{with(map[string]string{"a/z.yaml": denying("same", "a.example.com"),
				"b/a.yaml": denying("same", "b.example.com")})}},
		{"a name twice by the earlier one's change",
			[]map[string]string{with(map[string]string{"b/a.yaml": denying("same", "b.example.com")}),
				{"a/z.yaml": denying("same", "a.example.com")}, {"b/a.yaml": ""}}},
		{"a name twice by the change of both",
			[]map[string]string{good,
				{"a/z.yaml": denying("same", "a.example.com"), "b/a.yaml": denying("same", "b.example.com")}}},
		{"a binding to the policy of a folder that is held",
			[]map[string]string{with(map[string]string{"a/p.yaml": bindingTo("more", "theirs"),
				"b/p.yaml": denying("theirs", "b.example.com"), "b/x.yaml": brokenFile})}},
		{"a definition that the policies of another folder need",
			[]map[string]string{good, {"b/c.yaml": "", "a/p.yaml": denying("more", "a.example.com")}}},
		{"a definition moves to another folder",
			[]map[string]string{with(map[string]string{"common/c.yaml": crdOf("c.example.com"),
				"b/c.yaml": denying("more", "c.example.com")}),
				{"common/c.yaml": "", "b/c.yaml": crdOf("c.example.com"),
					"b/d.yaml": denying("more", "c.example.com")}}},
		{"a folder loses its files",
			[]map[string]string{good, {"a/w.yaml": "", "b/p.yaml": denying("more", "b.example.com")}}},
		{"a folder is not there at first",
			[]map[string]string{{"common/p.yaml": common, "b/c.yaml": crdOf("c.example.com"),
				"shop/o.yaml": shopResource}}},
		{"the same paths are described twice",
			[]map[string]string{good,
				{"common/s.yaml": strings.Replace(shopResource, "orders.shop", "sales.shop", 1)}}},
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

// TestFoldersThatNeedEachOther: folders whose files have no errors but together come into force together, beside one
// that has some.
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

// TestFolderBounds: files that reach beyond what their folder concerns are errors at their places, and others are not.
func TestFolderBounds(t *testing.T) {
	const own, shop = "a/x.yaml", "shop/x.yaml"
	rule := func(kind, name, more string) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy" + kind +
			"\nmetadata: {name: " + name + "}\nspec:\n" + more
	}
	matching := func(groups, resources string) string {
		return "  matchConstraints: {resourceRules: [{apiGroups: " + groups +
			", apiVersions: ['*'], operations: [CREATE], resources: " + resources +
			"}]}\n  validations: [{expression: 'true'}]\n"
	}
	limit := func(spec string) string {
		return "apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: l}\nspec: {requests: 1, periodSeconds: 1" + spec + "}\n"
	}
	resourceAt := func(path, spec string) string {
		return "apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: carts.shop.example.com}\n" +
			"spec: {group: shop.example.com, version: v1" + spec +
			", names: {plural: carts, kind: Cart}, paths: {collection: " + path + "}, envelope: Bare}\n"
	}
	document := func(scope string) string {
		return "openapi: 3.0.3\ninfo: {title: a, version: v1}\n" + scope +
			"paths: {/me: {get: {responses: {'200': {description: a}}}}}\n"
	}
	for _, c := range []struct{ file, text, want string }{
		{own, rule("", "p", matching("[a.example.com]", "['*']")), ""},
		{own, rule("", "p", matching("[a.example.com, b.example.com]", "[widgets]")), "a/x.yaml:5:66: spec.matchConstraints.resourceRules[0].apiGroups[1]: it matches the group 'b.example.com'"},
		{own, rule("", "p", matching("['*']", "[widgets]")), "a/x.yaml:5:51: spec.matchConstraints.resourceRules[0].apiGroups[0]: it matches all groups"},
		{own, rule("Binding", "b", "  policyName: shared\n  validationActions: [Deny]\n"), "a/x.yaml:5:3: spec.policyName: the ValidatingAdmissionPolicy 'shared' matches more, and `spec.matchResources.resourceRules` do not narrow that"},
		{own, rule("Binding", "b", "  policyName: shared\n  validationActions: [Deny]\n  matchResources: {resourceRules: [{apiGroups: [a.example.com], apiVersions: [v1], operations: ['*'], resources: [widgets]}]}\n"), ""},
		{own, "apiVersion: admission-gateway.io/v1alpha1\nkind: ConventionPolicy\nmetadata: {name: c}\nspec: {}\n", "a/x.yaml:4:1: spec.checks: Required value\na/x.yaml:4:1: spec.matchConstraints: it matches all resources"},
		{own, limit(""), "a/x.yaml:4:1: spec.match: it counts requests by the route 'cluster', which `spec.route`, `spec.hosts` and `spec.upstream` let in"},
		{own, limit(", match: {apiGroups: [a.example.com]}"), ""},
		{own, limit(", match: {apiGroups: [b.example.com], resources: [widgets]}"),
			"a/x.yaml:4:59: spec.match.apiGroups[0]: it matches the group 'b.example.com'"},
		{own, crdOf("d.example.com"), "a/x.yaml:6:3: spec.group: the route 'cluster' leads to 'widgets.d.example.com' too"},
		{own, resourceAt("/carts", ", route: shop"),
			"a/x.yaml:4:103: spec.paths.collection: the route 'shop' leads to '/carts' too"},
		{own, "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n",
			"a/x.yaml:1:1: policies of others select by its labels"},
		{own, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n",
			"a/x.yaml:1:1: an audit policy is about all requests"},
		{own, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: team, namespace: d}\ndata: {a: b}\n", ""},
		{shop, resourceAt("/carts", ", route: shop"), ""},
		{shop, resourceAt("/carts", ", hosts: [shop.example.com]"), ""},
		{shop, resourceAt("/carts", ""), "shop/x.yaml:4:90: spec.paths.collection: the route 'cluster' leads to '/carts' too"},
		{shop, strings.Replace(document(""), "/me: {", "/me: {x-admission-gateway-resource: {route: shop}, ", 1), ""},
		{shop, document(""), "shop/x.yaml:3:15: paths[/me].get: the route 'cluster' leads to '/me' too"},
		{shop, rule("", "p", matching("[shop.example.com]", "[orders]")), "shop/x.yaml:5:51: spec.matchConstraints.resourceRules[0].apiGroups[0]: the route 'cluster' leads to an API server, which may have the group 'shop.example.com'"},
		{shop, limit(", route: shop"), ""},
		{shop, limit(", hosts: [shop.example.com]"), ""},
	} {
		dir := t.TempDir()
		folder := teams(dir)
		writeStep(t, dir, map[string]string{"common/p.yaml": denying("shared", "'*'"),
			"a/w.yaml": crdOf("a.example.com"), "shop/o.yaml": shopResource, "b/c.yaml": crdOf("c.example.com"),
			c.file: c.text})
		folders := append([]source.Folder{{Paths: []string{dir + "/common"}}}, folder...)
		_, found := CompileFor(source.Join(folders, source.ReadFolders(folders, &source.Progress{})),
			Gateway{Routes: teamRoutes, Upstreams: []string{"cluster", "shop"}, AuditSinks: []string{"log"}})
		var got []string
		for _, f := range found {
			if f.Severity != Error {
				continue
			}
			words := f.Message
			if before, after, found := strings.Cut(f.Message, ": "); found &&
				strings.HasPrefix(before, "must keep to what the configuration lets the files of '"+
					filepath.Dir(filepath.Join(dir, c.file))+"' of 'team-") {
				words = after
			}
			at := fmt.Sprintf("%s:%d:%d: ", f.File, f.Line, f.Column)
			if f.Field != "" {
				at += f.Field + ": "
			}
			got = append(got, strings.TrimPrefix(at, dir+"/")+words)
		}
		if all := strings.Join(got, "\n"); all != c.want {
			t.Errorf("%s:\n%s\ngot\n%s\nwant\n%s", c.file, c.text, all, c.want)
		}
	}
}

// TestHeld: requests that a folder without files concerns are known by their route, their host or their group.
func TestHeld(t *testing.T) {
	folders := []source.Folder{
		{Paths: []string{"r"}, Owner: "r",
			Concerns: &source.Concerns{Routes: []string{"orders"}, Hosts: []string{"shop.example.com"}}},
		{Paths: []string{"g"}, Owner: "g", Concerns: &source.Concerns{Groups: []string{"apps", "events.k8s.io"}}},
		{Paths: []string{"good"}, Owner: "good"},
	}
	set, found := CompileFor(source.Join(folders, []*source.Source{nil, nil, source.Of(nil)}), Gateway{})
	if set == nil {
		t.Fatal(found)
	}
	for _, c := range []struct {
		place resource.RouteRef
		info  resource.Info
		want  string
	}{
		{resource.RouteRef{Route: "orders"}, resource.Info{}, "r"},
		{resource.RouteRef{Route: "others", Host: "shop.example.com"}, resource.Info{}, "r"},
		{resource.RouteRef{Route: "others"}, resource.Info{}, ""},
		{resource.RouteRef{}, resource.Info{IsResource: true, Group: "apps", Resource: "deployments"}, "g"},
		{resource.RouteRef{}, resource.Info{IsResource: true, Group: "batch", Resource: "jobs"}, ""},
		{resource.RouteRef{}, resource.Info{IsResource: true, Group: "", Resource: "events"}, "g"},
		{resource.RouteRef{}, resource.Info{IsResource: true, Group: "", Resource: "pods"}, ""},
		{resource.RouteRef{}, resource.Info{Group: "apps"}, ""},
	} {
		got := ""
		if f := set.Held(&c.place, &c.info); f != nil {
			got = f.Owner
		}
		if got != c.want {
			t.Errorf("%+v, %+v: got %q, want %q", c.place, c.info, got, c.want)
		}
	}
	all, _ := CompileFor(source.Join(folders[2:], []*source.Source{nil}), Gateway{})
	if f := all.Held(&resource.RouteRef{}, &resource.Info{}); f == nil || f.Owner != "good" {
		t.Errorf("got %v for a folder that concerns all requests", f)
	}
}

// TestLastGoodOfFolders: each folder has older files of its own, with an age of its own.
func TestLastGoodOfFolders(t *testing.T) {
	dir := t.TempDir()
	writeStep(t, dir, map[string]string{
		"common/p.yaml": denying("shared", "c.example.com"), "a/w.yaml": crdOf("a.example.com"),
		"b/w.yaml": crdOf("c.example.com"), "shop/o.yaml": shopResource,
		"key": strings.Repeat("k", 32),
	})
	store := func(configuration string) *lastgood.Store {
		t.Helper()
		s, err := lastgood.New(lastgood.Options{Path: dir + "/kept", KeyFile: dir + "/key", MaxAge: time.Hour,
			Configuration: configuration})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if m, found := startTeams(t, dir, store("c")); m == nil {
		t.Fatal(found)
	}
	writeStep(t, dir, map[string]string{"a/w.yaml": brokenFile, "b/p.yaml": denying("more", "b.example.com")})
	for _, c := range []struct{ configuration, want string }{
		{"c", "Partly, generation 1\na is older\nin force: a b common shop\n"},
		{"another", "Partly, generation 1\na is held\nin force: b common shop\n"},
	} {
		m, found := startTeams(t, dir, store(c.configuration))
		if got := account(dir, m, nil); got != c.want {
			t.Errorf("got\n%s\nwant\n%s\n%v", got, c.want, found)
		}
		if m.Folders()[1].Hash != "" && m.Folders()[1].GoodAt.IsZero() {
			t.Error("the older files have no time")
		}
	}
}
