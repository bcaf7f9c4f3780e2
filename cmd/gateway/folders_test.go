package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestTeams: two teams have folders of their own. One writes a file with errors, while the other ships a change; then a
// new process starts, without the files that were last good and with them.
func TestTeams(t *testing.T) {
	_, backend := startBackend(t)
	crd := func(group, size string) string {
		return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.` + group + `}
spec:
  group: ` + group + `
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer, maximum: ` + size + `}}}}}}}
`
	}
	const head = "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nupstreams: [{name: main, endpoints: [BACKEND]}]\nroutes: [{name: all, upstream: main}]\n"
	const paths = "policies: {paths: [{path: a, owner: team-a, concerns: {groups: [a.example.com]}}, {path: b, owner: team-b, concerns: {groups: [b.example.com]}}]"
	dir := testutil.WriteFiles(t, map[string]string{
		"gateway.yaml": strings.Replace(head, "BACKEND", "'http://"+backend+"'", 1) + paths + "}\n",
		"kept.yaml": strings.Replace(head, "BACKEND", "'http://"+backend+"'", 1) + paths +
			", lastGood: {path: kept, keyFile: key, maxAgeSeconds: 3600}}\n",
		"key": strings.Repeat("k", 32), "a/w.yaml": crd("a.example.com", "10"), "b/w.yaml": crd("b.example.com", "10"),
	})
	const broken = "kind: ["
	start := func(configuration string) *process {
		t.Helper()
		return startServe(t, "", "--config", filepath.Join(dir, configuration))
	}
	// write returns the answers to the creation of an object of size 20 in the group of each team, and in another one.
	made := 0
	write := func(p *process) (codes []int, last string) {
		t.Helper()
		for _, group := range []string{"a.example.com", "b.example.com", "c.example.com"} {
			made++
			body := `{"apiVersion":"` + group + `/v1","kind":"Widget","metadata":{"name":"` + fmt.Sprint("w", made) +
				`"},"spec":{"size":20}}`
			r, err := http.Post("http://"+p.listen+"/apis/"+group+"/v1/namespaces/team/widgets", "application/json",
				strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			text := make([]byte, 4096)
			n, _ := r.Body.Read(text)
			if r.StatusCode == http.StatusServiceUnavailable {
				last = r.Header.Get("Retry-After") + " " + string(text[:n])
			}
			if err := r.Body.Close(); err != nil {
				t.Fatal(err)
			}
			codes = append(codes, r.StatusCode)
		}
		return codes, last
	}
	expect := func(p *process, when string, want ...int) string {
		t.Helper()
		got, last := write(p)
		for i, code := range want {
			if got[i] != code {
				t.Fatalf("%s: got %v, want %v", when, got, want)
			}
		}
		return last
	}
	change := func(p *process, what, want string, files ...string) {
		t.Helper()
		for i := 0; i < len(files); i += 2 {
			testutil.WriteFile(t, filepath.Join(dir, files[i]), files[i+1])
		}
		p.signal(t, syscall.SIGHUP)
		testutil.Eventually(t, what, func() bool { return strings.Contains(p.get("/readyz?verbose").body, want) })
	}

	p := start("kept.yaml")
	expect(p, "all is good", 422, 422, 201)
	const older = "the newest policy files of 'DIR/a' of 'team-a' have errors, and those that were last in force stay"
	in := func(text string) string { return strings.ReplaceAll(text, "DIR", dir) }
	change(p, "team-b ships a change, and team-a writes an error", in(older), "b/w.yaml", crd("b.example.com", "30"),
		"a/w.yaml", broken)
	expect(p, "team-b ships a change, and team-a writes an error", 422, 201, 201)
	if ready := p.get("/readyz"); ready.code != 200 {
		t.Errorf("not ready: %+v", ready)
	}
	for _, want := range []string{
		`gateway_policy_folder_failing_since_timestamp_seconds{folder="DIR/a",owner="team-a"} 1`,
		`gateway_policy_folder_failing_since_timestamp_seconds{folder="DIR/b",owner="team-b"} 0`,
	} {
		testutil.Eventually(t, "the metrics have "+in(want),
			func() bool { return strings.Contains(p.get("/metrics").body, in(want)) })
	}

	fresh := start("gateway.yaml")
	last := expect(fresh, "a new process without what was last good", 503, 201, 201)
	want := `30 {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the policies of 'team-a' for this request have errors and are not in force","reason":"ServiceUnavailable","details":{"retryAfterSeconds":30},"code":503}`
	if last != want {
		t.Errorf("got  %s\nwant %s", last, want)
	}
	for _, want := range []string{
		`gateway_policy_folder_info{folder="DIR/a",hash="",owner="team-a"} 1`,
		`gateway_policy_folder_refused_requests_total{folder="DIR/a",owner="team-a"} 1`,
	} {
		testutil.Eventually(t, "the metrics have "+in(want),
			func() bool { return strings.Contains(fresh.get("/metrics").body, in(want)) })
	}
	if ready := fresh.get("/readyz?verbose"); ready.code != 200 ||
		!strings.Contains(ready.body, in("requests for what they concern (the group 'a.example.com') are refused")) {
		t.Errorf("got %+v", ready)
	}
	// kill ends a process, which may write what was last good until then.
	kill := func(p *process) {
		t.Helper()
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = p.Wait() // it was killed
	}
	// again starts another process in the place of one that was killed, whose configuration is the same.
	again := func(p *process) *process {
		t.Helper()
		next := startProcess(t, p.listen, p.admin, "--config", filepath.Join(dir, "kept.yaml"))
		testutil.Eventually(t, "ready", func() bool { return next.get("/readyz").code == 200 })
		return next
	}
	kill(p)
	p = again(p)
	expect(p, "a new process with what was last good", 422, 201, 201)

	change(fresh, "team-a mends its file", "[+]policies ok\n", "a/w.yaml", crd("a.example.com", "30"))
	expect(fresh, "team-a mends its file", 201, 201, 201)
	change(p, "team-b writes an error", "of 'team-b'", "b/w.yaml", broken)
	kill(p)
	if err := os.Remove(filepath.Join(dir, "kept")); err != nil {
		t.Fatal(err)
	}
	expect(again(p), "a new process whose kept files are gone", 201, 503, 201)
}

// TestCheckShowsOwners: findings name who mends the file, and the list has the folders with their owners.
func TestCheckShowsOwners(t *testing.T) {
	dir := testutil.WriteFiles(t, map[string]string{
		"gateway.yaml": "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nupstreams: [{name: api, endpoints: ['http://127.0.0.1:9'], dialect: Plain}]\n" +
			"policies: [common, {path: teams/a, owner: team-a, concerns: {groups: [a.example.com]}}]\n",
		"common/limit.yaml":   limitPolicy,
		"teams/a/limit.yaml":  strings.Replace(limitPolicy, "per-client", "of-all", 1),
		"teams/a/other.yaml":  "apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: other}\nspec: {key: Nobody}\n",
		"common/another.yaml": "apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: another}\nspec: {key: Nobody}\n",
	})
	file := filepath.Join(dir, "gateway.yaml")
	found := run("check", "--config", file)
	if found.code != 1 {
		t.Fatalf("%+v", found)
	}
	for line := range strings.Lines(found.stdout) {
		if isOwned := strings.HasSuffix(strings.TrimSpace(line), " (team-a)"); strings.HasPrefix(line, dir) &&
			isOwned != strings.HasPrefix(line, filepath.Join(dir, "teams")) {
			t.Errorf("got %s", line)
		}
	}
	if !strings.Contains(found.stdout, filepath.Join(dir, "teams/a/other.yaml")) ||
		!strings.Contains(found.stdout, filepath.Join(dir, "common/another.yaml")) {
		t.Errorf("got\n%s", found.stdout)
	}
	for _, name := range []string{"teams/a/limit.yaml", "teams/a/other.yaml", "common/another.yaml"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	testutil.WriteFile(t, filepath.Join(dir, "teams/a/right.yaml"), ofTeam)
	list := run("check", "--list", "--config", file)
	if want := regexp.MustCompile(`(?m)^FOLDER +OWNER +CONCERNS\n` + regexp.QuoteMeta(filepath.Join(dir, "teams/a")) +
		` +team-a +the group 'a\.example\.com'$`); !want.MatchString(list.stdout) {
		t.Errorf("got %d\n%s\n%s", list.code, list.stdout, list.stderr)
	}
}

const ofTeam = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.a.example.com}
spec:
  group: a.example.com
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}}
`
