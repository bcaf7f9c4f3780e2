package storage

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestShort shows that what a message repeats stays text, wherever it is cut.
func TestShort(t *testing.T) {
	if got := Short("w1"); got != "w1" {
		t.Errorf("w1 is shown as %s", got)
	}
	for n := range 4 {
		got := Short(strings.Repeat("a", n) + strings.Repeat("€", 100))
		if !utf8.ValidString(got) || len(got) < 128 || len(got) > 131 || !strings.HasSuffix(got, "...") {
			t.Errorf("after %d letters it is shown as %q", n, got)
		}
	}
}
