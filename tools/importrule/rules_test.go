package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "example.com/gateway"

func TestViolations(t *testing.T) {
	for _, c := range []struct{ from, imports, want string }{
		{"cmd/gateway", module + "/proxy", ""},
		{"proxy", module + "/internal/status", ""},
		{"policies/library", module + "/policies", ""},
		{"internal/schema", module + "/internal/cel", ""},
		{"internal/schema", "fmt", ""},
		{"internal/config", module + "/internal/manifest", ""},
		{"internal/manifest", module + "/internal/document", ""},
		{"proxy", module + "/internal/message", ""},
		{"internal/admin", "github.com/valyala/fasthttp/fasthttpadaptor", ""},
		{"internal/cel/plan", "github.com/google/cel-go/common/ast", ""},
		{"internal/cel", module + "/internal/cel/plan", ""},
		{"internal/cel/explain", module + "/internal/cel", ""},
		{"internal/cel/plan", module + "/internal/cel/value", ""},
		{"internal/schema", module + "/internal/cel/value", ""},
		{"internal/cases", module + "/proxy", ""},

		{"internal/status", module + "/internal/document", "internal/status: must not import internal/document: internal/document stands above internal/status or beside it, and imports only point down"},
		{"proxy", module + "/internal/admin", "proxy: must not import internal/admin: internal/admin stands above proxy or beside it, and imports only point down"},
		{"admission", module + "/admission/vap", "admission: must not import admission/vap: admission/vap stands above admission or beside it, and imports only point down"},
		{"admission/vap", module + "/admission/mutate", "admission/vap: must not import admission/mutate: admission/mutate stands above admission/vap or beside it, and imports only point down"},
		{"internal/manifest", module + "/internal/schema", "internal/manifest: must not import internal/schema: internal/manifest may import of ours only internal/document, internal/file, internal/quote"},
		{"internal/telemetry", module + "/internal/document", "internal/telemetry: must not import internal/document: internal/telemetry may import of ours only internal/linewriter, internal/octets, internal/status, internal/resource, internal/outbound, internal/quote"},
		{"internal/schema", module + "/internal/telemetry", "internal/schema: must not import internal/telemetry: only cmd, internal/policytest, internal/scan, proxy, internal/admin may"},
		{"internal/schema", module + "/internal/cel/plan", "internal/schema: must not import internal/cel/plan: only internal/cel, internal/cel/celtest, internal/cel/explain may"},
		{"internal/cel/plan", module + "/internal/cel", "internal/cel/plan: must not import internal/cel: internal/cel/plan may import of ours only internal/cel/value, internal/document, internal/pattern"},
		{"internal/cel", module + "/internal/cel/explain", "internal/cel: must not import internal/cel/explain: internal/cel/explain stands above internal/cel or beside it, and imports only point down"},
		{"internal/cel/value", module + "/internal/cel", "internal/cel/value: must not import internal/cel: internal/cel stands above internal/cel/value or beside it, and imports only point down"},
		{"proxy", module + "/internal/cases", "proxy: must not import internal/cases: only tests may"},
		{"proxy", "github.com/valyala/fasthttp", "proxy: must not import github.com/valyala/fasthttp: only internal/admin, internal/compress may"},
		{"internal/schema", "github.com/google/cel-go/cel", "internal/schema: must not import github.com/google/cel-go/cel: only internal/cel, internal/cel/celtest, internal/cel/explain, internal/cel/plan, internal/cel/value may"},
		{"internal/misc", "fmt", "internal/misc: the import rules name no room for it; add it to tools/importrule/rules.go"},
	} {
		p := pkg{ImportPath: module + "/" + c.from, Imports: []string{c.imports}}
		p.Module.Path = module
		if got := strings.Join(violations([]pkg{p}), "\n"); got != c.want {
			t.Errorf("%s imports %s: %q, want %q", c.from, c.imports, got, c.want)
		}
	}
}

// A module on disk, read by the go command as the linter does it.
func TestListFindsAViolation(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                      "module " + module + "\n\ngo 1.26.0\n",
		"cmd/gateway/main.go":         "package main\n\nimport _ \"" + module + "/proxy\"\n\nfunc main() {}\n",
		"proxy/proxy.go":              "package proxy\n",
		"internal/status/status.go":   "package status\n\nimport _ \"" + module + "/proxy\"\n",
		"internal/status/any_test.go": "package status_test\n\nimport _ \"" + module + "/cmd/gateway\"\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	packages, err := list(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"internal/status: must not import proxy: proxy stands above internal/status or beside it, and imports only point down"}
	if got := violations(packages); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
