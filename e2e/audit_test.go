package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// auditedRequests are requests about a widget from its creation to its end, and what goes wrong with them.
var auditedRequests = []struct {
	name, method, path, contentType, body string
	headers                               []string
}{
	{name: "create", method: "POST", path: widgets, contentType: "application/json", body: `{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":"audited","labels":{"a":"<b>"}},"spec":{"image":"x"}}`},
	{name: "create, dry run", method: "POST", path: widgets + "?dryRun=All&fieldManager=m", contentType: "application/json", body: `{"metadata":{"generateName":"dry-"},"apiVersion":"e2e.example.com/v1","kind":"Widget"}`},
	{name: "create, again", method: "POST", path: widgets, contentType: "application/json", body: `{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":"audited"}}`},
	{name: "create, invalid", method: "POST", path: widgets, contentType: "application/json", body: `{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":"wrong"},"spec":{"replicas":-1}}`},
	{name: "create, no JSON", method: "POST", path: widgets, contentType: "application/json", body: `{"apiVersion":`},
	{name: "get", method: "GET", path: widgets + "/audited"},
	{name: "get, as a table", method: "GET", path: widgets + "/audited",
		headers: []string{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}},
	{name: "get, not there", method: "GET", path: widgets + "/nothing"},
	{name: "list", method: "GET", path: widgets + "?labelSelector=a%3Db&limit=5"},
	{name: "list, of all namespaces", method: "GET",
		path: "/apis/e2e.example.com/v1/widgets?fieldSelector=metadata.name%3Daudited"},
	{name: "watch", method: "GET",
		path: widgets + "?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Daudited"},
	{name: "update", method: "PUT", path: widgets + "/audited", contentType: "application/json", body: `{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":"audited","resourceVersion":"RV"},"spec":{"replicas":2}}`},
	{name: "update, conflict", method: "PUT", path: widgets + "/audited", contentType: "application/json", body: `{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":"audited","resourceVersion":"1"},"spec":{"replicas":2}}`},
	{name: "update, of the status", method: "PUT", path: widgets + "/audited/status", contentType: "application/json", body: `{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":"audited","resourceVersion":"RV"},"status":{"phase":"Ready"}}`},
	{name: "update, of the scale", method: "PUT", path: widgets + "/audited/scale", contentType: "application/json", body: `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"audited","namespace":"team-a"},"spec":{"replicas":3}}`},
	{name: "merge patch", method: "PATCH", path: widgets + "/audited", contentType: mergePatch,
		body: `{"spec":{"image":"y"}}`},
	{name: "JSON patch", method: "PATCH", path: widgets + "/audited?fieldManager=m", contentType: jsonPatch,
		body: `[{"op":"replace","path":"/spec/image","value":"z"}]`},
	{name: "apply", method: "PATCH", path: widgets + "/audited?fieldManager=m&force=true", contentType: applyPatch, body: `{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":"audited"},"spec":{"image":"a"}}`},
	{name: "apply, in YAML", method: "PATCH", path: widgets + "/audited?fieldManager=m&force=true", contentType: applyPatch, body: "apiVersion: e2e.example.com/v1\nkind: Widget\nmetadata: {name: audited}\nspec: {image: b}\n"},
	{name: "delete", method: "DELETE", path: widgets + "/audited", contentType: "application/json",
		body: `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}`},
	{name: "delete, not there", method: "DELETE", path: widgets + "/audited"},
	{name: "delete, a collection", method: "DELETE", path: widgets + "?labelSelector=a%3Dnothing"},
	{name: "no resource", method: "GET", path: "/version?timeout=1s"},
	{name: "discovery", method: "GET", path: "/apis/e2e.example.com/v1"},
	{name: "a resource that is not there", method: "GET", path: "/apis/e2e.example.com/v1/namespaces/team-a/things/t"},
	{name: "level None", method: "GET", path: "/healthz"},
	{name: "level None, of a user", method: "GET", path: widgets,
		headers: []string{"Authorization", "Bearer quiet", "X-Remote-User", "quiet"}},
	{name: "a long User-Agent", method: "GET", path: "/version",
		headers: []string{"User-Agent", strings.Repeat("agent ", 300)}},
	{name: "no User-Agent", method: "GET", path: "/version", headers: []string{"User-Agent", ""}},
	{name: "through a proxy that nobody trusts", method: "GET", path: "/version",
		headers: []string{"X-Forwarded-For", "192.0.2.7, 192.0.2.8"}},
}

// An auditDifference is where the gateway's events are others than the API server's, on purpose. A request of "" is
// any, and a field that ends in "*" all that begin so; values of "*" are any two.
type auditDifference struct{ request, field, server, gateway, why string }

// auditDifferences are the ones that docs/observability/audit.md and docs/differences.md have. Of each row there has to
// be an example.
var auditDifferences = []auditDifference{
	{"", "annotations.authorization.k8s.io/decision", `"allow"`, "", "the API server decides that"},
	{"", "annotations.authorization.k8s.io/reason", `""`, "", "the same"},
	{"create", "requestObject.spec.replicas", "1", "",
		"the API server has set the default before it records what was sent"},
	{"through a proxy that nobody trusts", "sourceIPs*", "*", "*", "what anybody may say of addresses is not believed"},
	{"delete", "requestObject.apiVersion", `"meta.k8s.io/__internal"`, `"v1"`,
		"what the client sent, and not a name inside of the API server"},
	{"a resource that is not there", "responseStatus*", "", "*", "an error that is no Status becomes one (ERR-1)"},
	{"a resource that is not there", "responseObject*", "", "*", "the same"},
}

func (k *auditDifference) covers(request string, d fieldDifference) bool {
	prefix, isPrefix := strings.CutSuffix(k.field, "*")
	matches := func(want, got string) bool { return want == "*" || want == got }
	return (k.request == "" || k.request == request) &&
		(k.field == d.field || isPrefix && strings.HasPrefix(d.field, prefix)) &&
		matches(k.server, d.server) && matches(k.gateway, d.gateway)
}

// TestAuditAsByTheServer: the same requests with the same audit Policy have the same events as by the API server, field
// by field, but for what is listed.
func TestAuditAsByTheServer(t *testing.T) {
	for _, user := range []string{"auditor", "quiet"} {
		server.Allow(user, "*")
	}
	if err := server.Audit("testdata/audit.yaml"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "audit.log")
	through := startGatewayWith(t, "upstreams: [{name: main, endpoints: ['"+server.Guarded+
		"'], dialect: Kubernetes}]\n"+
		"identity: {anonymous: Allow, authenticators: [{requestHeader: {addresses: [127.0.0.0/8]}}]}\n"+
		"telemetry: {audit: {mode: Batch, log: {path: '"+file+"'}}}\n", nil, "testdata/audit.yaml")
	played := map[string][]string{}
	run := time.Now().UnixNano() // the API server serves all runs of the test
	idOf := func(side string, i int) string { return fmt.Sprint(side, "-", run, "-", i) }
	for side, url := range map[string]string{"server": server.Guarded, "gateway": through.url} {
		for i, r := range auditedRequests {
			body := r.body
			if strings.Contains(body, `"RV"`) {
				var stored struct {
					Metadata struct{ ResourceVersion string }
				}
				if err := json.Unmarshal([]byte(ask(t, "GET", server.HTTP+widgets+"/audited", "", "").body),
					&stored); err != nil {
					t.Fatal(err)
				}
				body = strings.Replace(body, `"RV"`, `"`+stored.Metadata.ResourceVersion+`"`, 1)
			}
			headers := append([]string{"User-Agent", "test/1", "Authorization", "Bearer auditor", "X-Remote-User",
				"auditor", "Audit-ID", idOf(side, i)}, r.headers...)
			got := ask(t, r.method, url+r.path, r.contentType, body, headers...)
			played[r.name] = append(played[r.name], fmt.Sprint(got.code))
		}
	}
	for name, codes := range played {
		if codes[0] != codes[1] {
			t.Errorf("%s: answered %v", name, codes)
		}
	}
	var want, got map[string][]map[string]any
	last := len(auditedRequests) - 1
	eventually(t, "all events are written", func() bool {
		log, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		want, got = eventsOf(t, server.AuditLog()), eventsOf(t, log)
		return len(want[idOf("server", last)]) == 2 && len(got[idOf("gateway", last)]) == 2
	})
	seen := map[int]bool{}
	for i, r := range auditedRequests {
		for _, d := range differencesOf(want[idOf("server", i)], got[idOf("gateway", i)]) {
			known := slices.IndexFunc(auditDifferences, func(k auditDifference) bool { return k.covers(r.name, d) })
			if known < 0 {
				t.Errorf("{%q, %q, %q, %q, \"\"},", r.name, d.field, d.server, d.gateway)
			}
			seen[known] = true
		}
	}
	for i, k := range auditDifferences {
		if !seen[i] {
			t.Errorf("no request shows the difference %+v", k)
		}
	}
}

// eventsOf returns the events in a log by their auditID.
func eventsOf(t *testing.T, log []byte) map[string][]map[string]any {
	t.Helper()
	all := map[string][]map[string]any{}
	for line := range bytes.Lines(log) {
		var e map[string]any
		if err := json.Unmarshal(line, &e); err != nil {
			return nil // the rest of it is not written yet
		}
		if annotations, ok := e["annotations"].(map[string]any); ok { // of requests that take long there are more
			maps.DeleteFunc(annotations, func(key string, _ any) bool {
				return strings.HasPrefix(key, "apiserver.latency.k8s.io/") ||
					key == "admission-gateway.io/configuration" || key == "admission-gateway.io/policies"
			})
			if len(annotations) == 0 {
				delete(e, "annotations")
			}
		}
		id, _ := e["auditID"].(string)
		if strings.HasPrefix(id, "server-") || strings.HasPrefix(id, "gateway-") {
			all[id] = append(all[id], e)
		}
	}
	return all
}

// A fieldDifference is a field of an event that has two values, as JSON; "" is none.
type fieldDifference struct{ field, server, gateway string }

// differencesOf compares the events of one request at its stages.
func differencesOf(server, gateway []map[string]any) (all []fieldDifference) {
	stages := func(of []map[string]any) (names []string) {
		for _, e := range of {
			names = append(names, fmt.Sprint(e["stage"]))
		}
		return names
	}
	if a, b := strings.Join(stages(server), " "), strings.Join(stages(gateway), " "); a != b {
		return []fieldDifference{{"stages", a, b}}
	}
	for i := range server {
		a, b := map[string]string{}, map[string]string{}
		flatten(a, "", server[i])
		flatten(b, "", gateway[i])
		both := maps.Clone(a)
		maps.Copy(both, b)
		for _, field := range slices.Sorted(maps.Keys(both)) {
			if d := (fieldDifference{field, a[field], b[field]}); a[field] != b[field] && !slices.Contains(all, d) {
				all = append(all, d)
			}
		}
	}
	return all
}

// unlikeFields have other values in any two runs. They are compared by whether they are there.
var unlikeFields = []string{"auditID", "requestReceivedTimestamp", "stageTimestamp", "uid", "resourceVersion",
	"creationTimestamp", "generateName", "time"}

// generated is the name that a server makes for an object.
var generated = regexp.MustCompile(`dry-[0-9a-z]{5}\b`)

// flatten writes the fields of an event by their paths.
func flatten(to map[string]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			to[path] = "{}"
		}
		for key, member := range v {
			name := key
			if path != "" {
				name = path + "." + key
			}
			if slices.Contains(unlikeFields, key) && member != "" && member != nil {
				to[name] = "there"
				continue
			}
			flatten(to, name, member)
		}
	case []any:
		if len(v) == 0 {
			to[path] = "[]"
		}
		for i, item := range v {
			flatten(to, fmt.Sprintf("%s[%d]", path, i), item)
		}
	default:
		text, _ := json.Marshal(v)
		to[path] = generated.ReplaceAllString(string(text), "dry-…")
	}
}
