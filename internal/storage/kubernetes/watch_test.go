package kubernetes

import (
	"fmt"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// TestWatchTarget: a watch lasts for the period at most, or for the time that the client asks for if that is less.
func TestWatchTarget(t *testing.T) {
	for query, want := range map[string]string{
		"watch=1":                      "/pods?watch=1&timeoutSeconds=1",
		"watch=1&timeoutSeconds=7":     "/pods?watch=1&timeoutSeconds=1",
		"timeoutSeconds=0&watch=1":     "/pods?watch=1&timeoutSeconds=1",
		"timeoutSeconds=x&watch=1&a=b": "/pods?watch=1&a=b&timeoutSeconds=1",
		"timeoutSeconds=-1&watch=1":    "/pods?watch=1&timeoutSeconds=1",
		"":                             "/pods?timeoutSeconds=1",
	} {
		i := &resource.Info{Path: "/pods", Query: query}
		if got := string(watchTarget(new(storage.Exchanges), i, time.Second)); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	i := &resource.Info{Path: "/pods", Query: "timeoutSeconds=1"}
	if got := string(watchTarget(new(storage.Exchanges), i, time.Hour)); got != "/pods?timeoutSeconds=1" {
		t.Errorf("a second of an hour: %s", got)
	}
	i.Query = ""
	for range 20 {
		var seconds int
		if _, err := fmt.Sscanf(string(watchTarget(new(storage.Exchanges), i, time.Hour)), "/pods?timeoutSeconds=%d",
			&seconds); err != nil {
			t.Fatal(err)
		}
		if seconds < 3000 || seconds > 3600 {
			t.Errorf("%d seconds of an hour", seconds)
		}
	}
}
