package plain

import "testing"

// TestOtherVersion: an ETag that no object has looks like one that the backend could give.
func TestOtherVersion(t *testing.T) {
	for etag, want := range map[string]string{
		`"7"`: `"8"`, `"19"`: `"18"`, `"0af"`: `"0ae"`, `"a-Z"`: `"a-Y"`, `"x=="`: `"y=="`, `"=="`: `"0"`, `""`: `"0"`, `7`: `8`,
	} {
		if got := string(otherVersion([]byte(etag))); got != want {
			t.Errorf("in place of %s: %s, want %s", etag, got, want)
		}
	}
}
