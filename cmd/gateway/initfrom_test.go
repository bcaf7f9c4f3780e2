package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestInitFromURL writes policies for documents that a server has.
func TestInitFromURL(t *testing.T) {
	const document = `{"openapi": "3.1.0", "info": {"title": "Desks", "version": "1"}, "servers": [{"url": "/v1"}], "paths": {"/desks": {"post": {
		"requestBody": {"content": {"application/json": {"schema": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}}}},
		"responses": {"201": {"description": "made"}}}}}}`
	answers := map[string]string{
		"/api-docs": document, "/openapi.yaml": document, "/broken.json": `{"openapi": "3.1.0"`,
		"/page":       "<html></html>",
		"/large.json": strings.Repeat(" ", 16<<20+1),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, found := answers[r.URL.Path]
		switch {
		case r.URL.Path == "/moved.json":
			http.Redirect(w, r, "/api-docs", http.StatusFound)
		case !found:
			http.NotFound(w, r)
		default:
			_, _ = io.WriteString(w, text) // the client may be gone
		}
	}))
	defer server.Close()
	t.Chdir(t.TempDir())
	for _, tt := range []struct {
		path, base, document string
	}{{"/api-docs", "api-docs", "api-docs.json"}, {"/openapi.yaml", "openapi", "openapi.yaml"},
		{"/moved.json", "moved", "moved.json"}} {
		dir := filepath.Join("made", tt.base)
		want := []string{tt.base + ".limit.yaml", tt.base + ".overlay.yaml", tt.base + ".rollout.yaml",
			tt.base + "_test.yaml", tt.document}
		slices.Sort(want)
		r := run("init", "--from", server.URL+tt.path, dir)
		for i := range want {
			want[i] = filepath.Join(dir, want[i])
		}
		said := strings.Join(want, "\n") +
			"\n5 files written, 2 test cases among them.\n\n  gateway check --strict=false " + dir +
			"\n  gateway test " + dir +
			"\n  gateway serve --upstream " + server.URL + " --policies " + dir + "\n"
		if r.code != 0 || r.stdout != said {
			t.Errorf("%s: exit %d, %q, %q, want %q", tt.path, r.code, r.stdout, r.stderr, said)
		}
		copied, err := os.ReadFile(filepath.Join(dir, tt.document))
		if err != nil || string(copied) != document {
			t.Errorf("%s: the copy is %q, %v", tt.path, copied, err)
		}
		for _, command := range []string{"check", "test"} {
			if r := run(command, dir); r.code != 0 {
				t.Errorf("%s: %s: exit %d\n%s%s", tt.path, command, r.code, r.stdout, r.stderr)
			}
		}
	}
	for path, want := range map[string]string{
		"/nothing.json": "gateway init: --from: '" + server.URL + "/nothing.json' is answered with '404 Not Found'\n",
		"/large.json": "gateway init: --from: '" + server.URL +
			"/large.json' is a document of more than 16777216 bytes\n",
		"/page":        "must be",
		"/broken.json": server.URL + "/broken.json:1:20: ",
	} {
		r := run("init", "--from", server.URL+path, "other")
		if r.code == 0 || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: exit %d, %q, want %q", path, r.code, r.stderr, want)
		}
		if _, err := os.Stat("other"); err == nil {
			t.Fatalf("%s: something is written", path)
		}
	}
}
