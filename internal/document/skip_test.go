package document

import (
	"encoding/json"
	"strings"
	"testing"
)

// skipSlowly is skip, a byte at a time.
func skipSlowly(src []byte, i int) int {
	open := 0
	for inString := false; i < len(src); i++ {
		switch c := src[i]; {
		case inString:
			if c == '\\' {
				i++
			}
			inString = c != '"'
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			open++
		case c == '}' || c == ']':
			if open--; open == 0 {
				return i + 1
			}
		}
	}
	return broken
}

// FuzzSkip compares the ends of containers with the ones that a look at each byte finds, if they are
// JSON: else backslashes may stand outside of strings, where they have no meaning.
func FuzzSkip(f *testing.F) {
	for _, text := range outlineTexts {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"` + strings.Repeat(" ", 61) + `\\":"\\` + strings.Repeat(`\\`, 64) + `\""}{`))
	f.Add([]byte(strings.Repeat(`{"a":[[],"`+strings.Repeat("x", 50)+`"]},`, 100)))
	var s skipper
	f.Fuzz(func(t *testing.T, text []byte) {
		text = append([]byte("[["), append(text, "]]"...)...)
		s.forget()
		for i, c := range text {
			if i > 200 || c != '[' && c != '{' {
				continue
			}
			if got, want := s.skip(text, i), skipSlowly(text, i); got != want && json.Valid(text[i:max(i, got, want)]) {
				t.Fatalf("%q from %d: %d, want %d", text, i, got, want)
			}
		}
	})
}
