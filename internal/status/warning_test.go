package status

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// ERR-6
func TestWarningHeaders(t *testing.T) {
	got := WarningHeaders([]string{`unknown field "spec.z"`, "", `a \ b`, `unknown field "spec.z"`, "line\nbreak \xff"})
	want := []string{`299 - "unknown field \"spec.z\""`, `299 - "a \\ b"`, `299 - "line break ` + "\uFFFD" + `"`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := WarningHeaders(nil); got != nil {
		t.Errorf("got %q for no warnings", got)
	}
}

func TestWarningHeadersAreCut(t *testing.T) {
	var texts []string
	for i := range 30 {
		texts = append(texts, strings.Repeat("ä", 400)+string(rune('a'+i)))
	}
	fits := WarningHeaders(texts[:10])
	if len(fits) != 10 || utf8.RuneCountInString(fits[9]) != 401+len(`299 - ""`) {
		t.Errorf("within 4096 runes: %d headers, the last of %d runes", len(fits), utf8.RuneCountInString(fits[9]))
	}
	cut := WarningHeaders(texts)
	if len(cut) != 16 {
		t.Errorf("beyond 4096 runes: got %d headers, want 16 of 256 runes", len(cut))
	}
	for _, h := range cut {
		if n := utf8.RuneCountInString(h); n != 256+len(`299 - ""`) {
			t.Errorf("got a header of %d runes", n)
		}
	}
}

func FuzzWarningHeaderAgainstKubernetes(f *testing.F) {
	f.Add(`a "b" \c`)
	f.Fuzz(func(t *testing.T, text string) {
		got := warningHeader(text)
		parsed, errs := utilnet.ParseWarningHeaders([]string{got})
		if len(errs) > 0 || len(parsed) != 1 {
			t.Fatalf("%q does not parse: %v", got, errs)
		}
		if want, err := utilnet.NewWarningHeader(299, "-", text); err == nil && got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
