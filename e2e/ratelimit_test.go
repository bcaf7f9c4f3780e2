package e2e

import (
	"strings"
	"testing"
)

// ERR-3: kubectl gets a Retry-After, waits, and succeeds; its user does not notice.
func TestKubectlWaitsForRateLimit(t *testing.T) {
	limited := startGateway(t, "testdata/limit.yaml")
	object := strings.ReplaceAll(manifest, "NAME", "limited")
	if out, ok := kubectl(t, limited.url, object, "create", "-f", "-"); !ok {
		t.Fatal(out)
	}
	get := []string{"get", "widget", "limited", "-n", "team-a", "-o", "jsonpath={.spec.image}"}
	if out, ok := kubectl(t, limited.url, "", get...); !ok || out != "a" {
		t.Fatalf("the first: %v, %s", ok, out)
	}
	out, ok := kubectl(t, limited.url, "", append(get, "-v=6")...)
	if !ok || !strings.HasSuffix(strings.TrimSpace(out), "a") {
		t.Errorf("the second: %v, %s", ok, out)
	}
	if !strings.Contains(out, "429") || !strings.Contains(out, "200 OK") {
		t.Errorf("kubectl was not told to wait first: %s", out)
	}
}
