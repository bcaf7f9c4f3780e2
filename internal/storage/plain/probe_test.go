package plain

import (
	"regexp"
	"testing"
)

// TestProbeETag: a probe names a strong ETag that is another one each time, and nothing that a
// backend could read as a number, digits or a time of its own.
func TestProbeETag(t *testing.T) {
	form := regexp.MustCompile(`^"admission-gateway-probe-[A-Z2-7]{26}"$`)
	seen := map[string]bool{}
	for range 1000 {
		etag := string(ProbeETag())
		if !form.MatchString(etag) || len(strong([]byte(etag))) == 0 || seen[etag] {
			t.Fatalf("%s after %d others", etag, len(seen))
		}
		seen[etag] = true
	}
}
