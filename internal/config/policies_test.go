package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestPolicies(t *testing.T) {
	const head = "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nupstreams: [{name: a, endpoints: [http://a]}]\n"
	const routes = "\nroutes: [{name: orders, host: b.example.com, upstream: a}, {upstream: a}]"
	for _, c := range []struct {
		text, problem string
		want          Policies
	}{
		{"policies: []", "", Policies{Paths: []PolicyPath{}}},
		{"policies: [a, /b]", "", Policies{Paths: PolicyPaths("DIR/a", "/b")}},
		{"policies: {paths: [a]}", "", Policies{Paths: PolicyPaths("DIR/a")}},
		{"policies: {paths: [a], lastGood: {path: last, keyFile: /key, maxAgeSeconds: 3600}}", "",
			Policies{Paths: PolicyPaths("DIR/a"), LastGood: &LastGood{"DIR/last", "/key", 3600}}},
		{"policies: a", "DIR/c.yaml:4: policies: must be a list of files and directories, or an object with `paths`", Policies{}},
		{"policies: {path: [a]}", "DIR/c.yaml:4: policies.path: unknown field; did you mean `paths`?", Policies{}},
		{"policies: [1]", "DIR/c.yaml:4: policies[0]: must be a file or directory, or an object with `path` and `owner`", Policies{}},
		{"policies: ['']", "DIR/c.yaml:4: policies[0]: must name a file or directory", Policies{}},
		{"policies: {paths: ['']}", "DIR/c.yaml:4: policies.paths[0]: must name a file or directory", Policies{}},
		{"policies: {paths: [a], lastGood: {}}", "DIR/c.yaml:4: policies.lastGood.path: Required value\n" +
			"DIR/c.yaml:4: policies.lastGood.keyFile: Required value\n" +
			"DIR/c.yaml:4: policies.lastGood.maxAgeSeconds: must be between 1 and 2592000, inclusive, not 0", Policies{}},
		{"policies: [common, {path: team-a, owner: team-a}, {path: /b, owner: b@example.com, concerns: {routes: [orders], hosts: [b.example.com], groups: ['', b.example.com]}}]" + routes, "",
			Policies{Paths: []PolicyPath{{Path: "DIR/common"}, {Path: "DIR/team-a", Owner: "team-a"},
				{"/b", "b@example.com", &Concerns{[]string{"orders"}, []string{"b.example.com"},
					[]string{"", "b.example.com"}}}}}},
		{"policies: {paths: [{path: team-a, owner: team-a}]}", "",
			Policies{Paths: []PolicyPath{{Path: "DIR/team-a", Owner: "team-a"}}}},
		{"policies: [{path: team-a}]", "DIR/c.yaml:4: policies[0].owner: Required value", Policies{}},
		{"policies: [{owner: a}]", "DIR/c.yaml:4: policies[0].path: Required value", Policies{}},
		{"policies: [{path: a, owner: a, concern: {}}]",
			"DIR/c.yaml:4: policies[0].concern: unknown field; did you mean `concerns`?", Policies{}},
		{"policies: [{path: a, owner: \"a'b\"}]", "DIR/c.yaml:4: policies[0].owner: must have at most 63 characters, all of them letters, digits, '-', '.', '_', '~' or '@'", Policies{}},
		{"policies: [{path: a, owner: a, concerns: {}}]", "DIR/c.yaml:4: policies[0].concerns: must have `routes`, `hosts` or `groups`; without `concerns` the files may concern all requests", Policies{}},
		{"policies: {paths: [{path: a, owner: a, concerns: {routes: [other, ''], hosts: [b], groups: ['*']}}]}" + routes, "DIR/c.yaml:4: policies.paths[0].concerns.routes[0]: must be the `name` of a route\n" +
			"DIR/c.yaml:4: policies.paths[0].concerns.routes[1]: must be the `name` of a route\n" +
			"DIR/c.yaml:4: policies.paths[0].concerns.hosts[0]: must be the `host` of a route\n" +
			"DIR/c.yaml:4: policies.paths[0].concerns.groups[0]: must be the name of an API group, or '' for the core group, not '*'", Policies{}},
		{"policies: [a, {path: a/b/../c, owner: c}, {path: a2, owner: d}, {path: a2, owner: e}, a2/x.yaml]", "DIR/c.yaml:4: policies[1]: must be apart from 'a': a file has one owner\n" +
			"DIR/c.yaml:4: policies[3]: must be apart from 'a2': a file has one owner\n" +
			"DIR/c.yaml:4: policies[4]: must be apart from 'a2': a file has one owner", Policies{}},
	} {
		dir := t.TempDir()
		name := filepath.Join(dir, "c.yaml")
		if err := os.WriteFile(name, []byte(head+c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		in := func(s string) string { return strings.ReplaceAll(s, "DIR", dir) }
		got, err := Load(name, Flags{})
		if c.problem != "" || err != nil {
			if err == nil || err.Error() != in(c.problem) {
				t.Errorf("%s: got %v, want %s", c.text, err, in(c.problem))
			}
			continue
		}
		for _, path := range c.want.files() {
			*path = in(*path)
		}
		if !reflect.DeepEqual(got.Policies, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.text, got.Policies, c.want)
		}
	}
}

// TestHash: the hash is one of what is in force, and not of how it is written or of the machine.
func TestHash(t *testing.T) {
	hash := func(text string, flags Flags) string {
		t.Helper()
		c, problem, _ := load(t, "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\n"+text, flags)
		if problem != "" {
			t.Fatal(problem)
		}
		return c.Hash()
	}
	plain := hash("upstreams: [{name: default, endpoints: [http://a]}]", Flags{})
	for text, isSame := range map[string]bool{
		"upstreams:\n- endpoints: ['http://a'] # one\n  name: default":                    true,
		"drainSeconds: 10\nupstreams: [{name: default, endpoints: [http://a]}]":           true,
		"drainSeconds: 11\nupstreams: [{name: default, endpoints: [http://a]}]":           false,
		"upstreams: [{name: default, endpoints: [http://b]}]":                             false,
		"upstreams: [{name: default, endpoints: [http://a]}]\ntrustedProxies: [10.0.0.1]": false,
	} {
		if got := hash(text, Flags{}); (got == plain) != isSame {
			t.Errorf("%s: got %s beside %s, want equal %v", text, got, plain, isSame)
		}
	}
	if hash("upstreams: [{name: default, endpoints: [http://a]}]", Flags{Listen: ":1"}) == plain {
		t.Error("a flag does not change the hash")
	}
}
