package apis

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// An expected has the code and a text that the answer to a request must have.
type expected struct {
	request
	code int
	text string
}

func proveExpected(t *testing.T, address string, list []expected) {
	t.Helper()
	for _, e := range list {
		prove(t, e.name, func(t *proof) {
			if a := e.mustSend(t, address); a.code != e.code || !strings.Contains(a.body, e.text) {
				t.Errorf("%s %s: %d %q, want %d with %q", e.method, e.target, a.code, a.body, e.code, e.text)
			}
		})
	}
}

const jsonServerPosts = `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: posts.blog.example.com}
spec:
  group: blog.example.com
  version: v1
  names: {plural: posts, kind: Post}
  paths: {collection: /posts, item: "/posts/{name}"}
  fields: {name: id}
  schema:
    openAPIV3Schema:
      type: object
      required: [title]
      properties:
        id: {type: string}
        title: {type: string, minLength: 1}
        views: {type: integer, minimum: 0, default: 0}
        status: {type: string, enum: [draft, live], default: draft}
`

// TestJSONServerWithFiles: an APIResource adds defaults and validation, whatever the server makes of ETags.
func TestJSONServerWithFiles(t *testing.T) {
	for name, script := range map[string]string{"0": "json-server-0/lib/cli/bin.js", "1": "json-server-1/lib/bin.js"} {
		t.Run(name, func(t *testing.T) {
			api := startJSONServer(t, script, "--host", "127.0.0.1")
			proveExpected(t, startGateway(t, api.url(), jsonServerPosts).address, []expected{
				{withJSON("create", "POST", "/posts", `{"id":"3","title":"three"}`), 201, `"views": 0`},
				{without("status-is-the-API's-own", "GET", "/posts/3"), 200, `"status": "draft"`},
				{withJSON("create-invalid", "POST", "/posts", `{"id":"4","title":"","views":-1}`), 422, "views"},
				{withJSON("update", "PUT", "/posts/3", `{"id":"3","title":"drei","status":"live"}`), 200,
					`"status": "live"`},
				{withJSON("update-invalid", "PUT", "/posts/3", `{"id":"3"}`), 422, "title"},
				{withJSON("patch", "PATCH", "/posts/3", `{"views":7}`), 200, `"views": 7`},
				{withJSON("patch-invalid", "PATCH", "/posts/3", `{"views":-7}`), 422, "views"},
				{without("patched", "GET", "/posts/3"), 200, `"title": "drei"`},
				{without("read-missing", "GET", "/posts/99"), 404, ""},
				{withJSON("undescribed", "PATCH", "/profile", `{"name":"cleo"}`), 200, "cleo"},
				{without("delete", "DELETE", "/posts/3"), 200, ""},
			})
		})
	}
}

const pocketBasePosts = `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: posts.blog.example.com}
spec:
  group: blog.example.com
  version: v1
  names: {plural: posts, kind: Post}
  paths: {collection: /api/collections/posts/records, item: "/api/collections/posts/records/{name}"}
  fields: {items: items}
  schema:
    openAPIV3Schema:
      type: object
      x-kubernetes-preserve-unknown-fields: true
      properties:
        title: {type: string, maxLength: 20}
        views: {type: number, maximum: 1000}
        status: {type: string}
`

// TestPocketBaseWithFiles: with a file about the records of one collection, the SDK's session is the same but for
// bodies that are no JSON, and what the file forbids is refused.
func TestPocketBaseWithFiles(t *testing.T) {
	dir, file := nodeDir(t), pocketBase(t)
	direct, api := startPocketBase(t, file), startPocketBase(t, file)
	gateway := startGateway(t, api.url(), pocketBasePosts)
	session := func(address string) transcript {
		return runClient(t, dir, "node", "pocketbase.mjs", "http://"+address, pocketBaseUser, pocketBasePassword,
			"JSON")
	}
	t.Run("session", func(t *testing.T) {
		a, b := withoutMadeETags(session(direct.address), session(gateway.address))
		proveSameTranscript(t, a, b, func(s string) string {
			return pocketBaseVaries(strings.NewReplacer(direct.address, "ADDRESS", gateway.address,
				"ADDRESS").Replace(s))
		})
	})
	proveExpected(t, gateway.address, []expected{
		{withJSON("create-invalid", "POST", "/api/collections/posts/records", `{"title":"a","views":1001}`), 422,
			"views"},
		{withJSON("patch-invalid", "PATCH", "/api/collections/posts/records/x", `{"views":1001}`), 404, ""},
		{request{name: "create-form", method: "POST", target: "/api/collections/posts/records",
			header: []string{"Content-Type: application/x-www-form-urlencoded"},
			body:   "views=1001"}, 415, ""},
	})
}

// alertmanagerDocument returns Alertmanager's own document, which is Swagger 2.0.
func alertmanagerDocument(t testing.TB) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command("go", "mod", "download", "-json", "github.com/prometheus/alertmanager@v0.25.0")
	cmd.Dir, cmd.Stderr = t.TempDir(), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, stderr.String())
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(module.Dir, "api", "v2", "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAlertmanagerWithItsDocument: amtool does all that it does without the gateway, and what the document forbids is
// refused.
func TestAlertmanagerWithItsDocument(t *testing.T) {
	tool := debian(t, "amtool")
	direct, api := startAlertmanager(t), startAlertmanager(t)
	var gateway *program
	prove(t, "loads", func(p *proof) { gateway = startGateway(subtestOf{p, t}, api.url(), alertmanagerDocument(p)) })
	if gateway == nil {
		skipped = append(skipped, t.Name())
		return
	}
	t.Run("amtool", func(t *testing.T) {
		proveSameOutput(t, direct.address, gateway.address, alertmanagerVaries, tool, amtoolCommands())
	})
	proveExpected(t, gateway.address, []expected{
		{withJSON("alerts", "POST", "/api/v2/alerts", alerts), 200, ""},
		{withJSON("alert-without-labels", "POST", "/api/v2/alerts", `[{"labels":{"alertname":"a"}},{}]`), 422,
			"[1].labels"},
		{withJSON("alerts-no-array", "POST", "/api/v2/alerts", `{}`), 422, ""},
		{withJSON("silence", "POST", "/api/v2/silences", silence), 200, "silenceID"},
		{withJSON("silence-without-comment", "POST", "/api/v2/silences", `{"matchers":[{"name":"a","value":"b","isRegex":false}],"startsAt":"2080-01-01T00:00:00Z","endsAt":"2090-01-01T00:00:00Z","createdBy":"ann"}`), 422, "comment"},
		{without("query", "GET", "/api/v2/alerts?active=perhaps"), 422, "query.active"},
		{without("method", "DELETE", "/api/v2/alerts"), http.StatusMethodNotAllowed, ""},
		{request{name: "media-type", method: "POST", target: "/api/v2/alerts",
			header: []string{"Content-Type: text/csv"}, body: "a"}, 415, ""},
		{without("undescribed", "GET", "/metrics"), 200, "alertmanager_build_info"},
	})
}

// A subtestOf is a proof whose processes live as long as the test that it is part of.
type subtestOf struct {
	*proof
	whole *testing.T
}

func (s subtestOf) Cleanup(f func()) { s.whole.Cleanup(f) }
func (s subtestOf) TempDir() string  { return s.whole.TempDir() }
