package manifest

import (
	"slices"
	"testing"
)

// TestSuggest proves that no name is suggested that is the one which was written.
func TestSuggest(t *testing.T) {
	for _, c := range []struct {
		key   string
		known []string
		want  string
	}{
		{"oidcClients", []string{"oidcClients", "oidcProviders"}, ""},
		{"oidcClients", []string{"oidcClients", "oidcClient"}, "; did you mean `oidcClient`?"},
		{"oidcClient", []string{"oidcClients"}, "; did you mean `oidcClients`?"},
	} {
		if got := Suggest(c.key, slices.Values(c.known)); got != c.want {
			t.Errorf("%s among %v: got %q, want %q", c.key, c.known, got, c.want)
		}
	}
}
