package resource

import (
	"strings"
	"testing"
)

// TestChangeable: the subresources that updates may be about, which roles name.
func TestChangeable(t *testing.T) {
	for _, c := range []struct{ group, plural, named, want string }{
		{"", "pods", "", " ephemeralcontainers resize status"},
		{"", "pods", "eviction exec", " ephemeralcontainers resize status"},
		{"apps", "deployments", "scale", " scale status"},
		{"apps", "daemonsets", "", " status"},
		{"", "namespaces", "", " finalize status"},
		{"*", "pods", "", " ephemeralcontainers resize status"},
		{"example.com", "widgets", "", " scale status"},
		{"example.com", "widgets", "console *", " console scale status"},
		{"coordination.k8s.io", "leases", "", " status"},
		{"*", "*", "scale *", " scale"},
	} {
		if got := strings.Join(Changeable(c.group, c.plural, strings.Fields(c.named)), " "); got != c.want {
			t.Errorf("%s/%s with %q: %q, want %q", c.group, c.plural, c.named, got, c.want)
		}
	}
}
