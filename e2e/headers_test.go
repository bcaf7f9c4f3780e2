package e2e

import (
	"net/http"
	"testing"
)

// Errors have the same header fields about caches and sniffing with and without the gateway, also
// the errors that it answers itself (ERR-1).
func TestHeadersOfErrors(t *testing.T) {
	through := startGateway(t)
	for _, c := range []struct {
		name, target string
		code         int
	}{
		{"a Status of the server", widgets + "/nothing", http.StatusNotFound},
		{"another error of the server", "/nothing", http.StatusNotFound},
		{"an error that the gateway tells itself", widgets + "?timeout=soon", http.StatusBadRequest},
	} {
		direct, got := ask(t, "GET", server.HTTP+c.target, "", ""), ask(t, "GET", through.url+c.target, "", "")
		if direct.code != c.code || got.code != c.code {
			t.Errorf("%s: %d without and %d with the gateway", c.name, direct.code, got.code)
		}
		for _, name := range []string{"Cache-Control", "X-Content-Type-Options"} {
			if direct.header.Get(name) != got.header.Get(name) {
				t.Errorf("%s: %s is %q without and %q with the gateway", c.name, name, direct.header.Get(name),
					got.header.Get(name))
			}
		}
	}
}

// What the table of differences says of queries and of the old paths of watches.
func TestQueries(t *testing.T) {
	through := startGateway(t)
	for _, c := range []struct {
		target          string
		native, gateway int
	}{
		{widgets + "?timeout=-1s", 200, 200},
		{widgets + "?timeout=0s", 200, 200},
		{widgets + "?watch=maybe&timeoutSeconds=1", 200, 400},
		{widgets + "?watch=&timeoutSeconds=1", 200, 400},
		{widgets + "?limit=1&limit=2", 200, 400},
		{widgets + "?limit=1;watch=true", 200, 400},
		{widgets + "?labelSelector=%zz", 200, 400},
		{"/version?x=%zz;y=1&z=100%", 200, 200},
		{"/apis/e2e.example.com/v1/watch/namespaces/team-a/widgets?timeoutSeconds=1", 200, 400},
	} {
		native, got := ask(t, "GET", server.HTTP+c.target, "", ""), ask(t, "GET", through.url+c.target, "", "")
		if native.code != c.native || got.code != c.gateway {
			t.Errorf("%s: %d without and %d with the gateway, want %d and %d: %s", c.target, native.code, got.code,
				c.native, c.gateway, native.body)
		}
	}
}
