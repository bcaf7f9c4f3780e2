package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestLastGoodStart: while the files have errors, a new process begins with those that were in force, enforces them,
// and shows the errors. One without the volume, or with another key, does not start.
func TestLastGoodStart(t *testing.T) {
	t.Parallel()
	_, backend := startBackend(t)
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("key", strings.Repeat("k", 32))
	put("policies.yaml", limitPolicy)
	put("gateway.yaml", fmt.Sprintf(`apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
upstreams: [{name: orders, endpoints: ["http://%s"], dialect: Plain}]
policies:
  paths: [policies.yaml]
  lastGood: {path: last, keyFile: key, maxAgeSeconds: 3600}
drainSeconds: 0
`, backend))
	configuration := filepath.Join(dir, "gateway.yaml")
	listen, admin := testutil.FreeAddress(t), testutil.FreeAddress(t)
	begin := func() *process {
		p := startProcess(t, listen, admin, "--config", configuration)
		testutil.Eventually(t, "ready", func() bool { return p.get("/readyz").code == 200 })
		return p
	}
	end := func(p *process) {
		t.Helper()
		if err := p.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := p.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, p.log.String())
		}
	}
	first := begin()
	before := first.get("/policies").body
	end(first)

	put("policies.yaml", "kind: [")
	second := begin()
	if !strings.Contains(second.log.String(), "so that the gateway began with the policy files that were in force at") {
		t.Errorf("the log says\n%s", second.log.String())
	}
	after := second.get("/policies").body
	if hash := between(before, `"hash":"`, `"`); hash == "" || between(after, `"hash":"`, `"`) != hash {
		t.Errorf("got policies\n%s\nbefore\n%s", after, before)
	}
	if !strings.Contains(after, "policies.yaml:2: must be valid YAML") {
		t.Errorf("the errors are not shown:\n%s", after)
	}
	end(second)

	for _, c := range []struct{ name, text, want string }{
		{"key", strings.Repeat("x", 32), "may not be used: it was not written with the key of `keyFile`"},
		{"key", "short", "policies.lastGood.keyFile: the key in " + filepath.Join(dir, "key") +
			" must have at least 32 bytes"},
	} {
		put(c.name, c.text)
		if got := run("serve", "--config", configuration, "--listen", listen, "--admin", admin); got.code != 2 ||
			!strings.Contains(got.stderr, c.want) {
			t.Errorf("got %+v, want %s", got, c.want)
		}
	}
}

// between returns what is between two marks, without white space; empty if they are not there.
func between(text, from, to string) string {
	text = strings.NewReplacer(" ", "", "\n", "").Replace(text)
	_, rest, _ := strings.Cut(text, from)
	found, _, ok := strings.Cut(rest, to)
	if !ok {
		return ""
	}
	return found
}
