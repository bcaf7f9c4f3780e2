package proxy

import (
	"net/http"
	"testing"
)

// TestUnrouted: a request that no route takes is answered 404 with a Status. A HEAD has no type, because some clients
// read the body of each answer in JSON.
func TestUnrouted(t *testing.T) {
	_, address := tabled(t, tableOf(services(t), ruleOf("v1", prefix("/v1"), 0)))
	for method, want := range map[string]string{http.MethodGet: "application/json", http.MethodPut: "application/json",
		http.MethodHead: ""} {
		a := askTable(t, address, method, "", "/v2")
		if got := a.Header.Get("Content-Type"); a.StatusCode != http.StatusNotFound || got != want ||
			a.ContentLength <= 0 {
			t.Errorf("%s is answered %s with %d bytes of the type %q, want 404 and %q", method, a.Status,
				a.ContentLength, got, want)
		}
	}
}
