package paint_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/paint"
)

// TestLines: a line is painted by the first rule that matches it, in whatever pieces it comes.
func TestLines(t *testing.T) {
	rules := []paint.Rule{
		{Pattern: regexp.MustCompile(`^(FAIL) `), Colour: paint.Red},
		{Pattern: regexp.MustCompile(`^(?:(PASS) |note)`), Colour: paint.Green},
		{Pattern: regexp.MustCompile(`(FAIL)`), Colour: paint.Yellow},
	}
	const text = "FAIL a FAIL\nPASS b\n\nplain\nnote\n  FAIL c\n"
	const want = "\x1b[31mFAIL\x1b[0m a FAIL\n\x1b[32mPASS\x1b[0m b\n\nplain\nnote\n  \x1b[33mFAIL\x1b[0m c\n"
	for size := 1; size <= len(text); size++ {
		var b strings.Builder
		w := paint.Lines(&b, rules)
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if written, err := w.Write([]byte(rest[:n])); written != n || err != nil {
				t.Fatalf("wrote %d of %d, %v", written, n, err)
			}
			rest = rest[n:]
		}
		if b.String() != want {
			t.Errorf("in pieces of %d it is %q, want %q", size, b.String(), want)
		}
	}
}
