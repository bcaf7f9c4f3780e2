package schema

import (
	"regexp"
	"testing"
)

var patternSeeds = []string{
	`^[a-z]+$`, `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, `a|b`, `^(\d+(\.\d+)?)?$`, ``, `^$`, `$`, `a{2,5}`, `^a{0,63}$`,
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`, `(?i)^abc$`, `\bword\b`, `(?m)^x$`, `.`, `^.*$`,
	`^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+$`, `^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`,
	`x*$`, `^(ab|a)(bc|c)?$`, `[^a]`, `^\p{L}+$`, `^([0-9]{1,5}(h|m|s|ms)){1,4}$`, `a.c`, `\A\z`, `(a*)*b`, `^[\x00-\x7f]$`,
}

func TestPatternTable(t *testing.T) {
	inputs := []string{"", "a", "abc", "a-b", "-a", "a.b.c", "12.5", "12.", "aaaaaa", "word", "a word b", "x\n", "\nx", "ABC", "ü", "aü", "\u212a",
		"/path/%2F", "*.example.com", "1h30m", "1h30", "b", "\x00", "ab", "abbc", "a\nc"}
	for _, text := range patternSeeds {
		p, err := newPattern(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range inputs {
			if got, want := p.matches(s), p.regexp.MatchString(s); got != want {
				t.Errorf("%q on %q: got %v, want %v", text, s, got, want)
			}
		}
	}
	for _, text := range []string{`^[a-z]+$`, `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, `^a{0,63}$`} {
		if p, _ := newPattern(text); p.dfa == nil {
			t.Errorf("%q: must have a table", text)
		}
	}
	for _, text := range []string{`\bword\b`, `(?m)^x$`, `^a{0,1000}$`} {
		if p, _ := newPattern(text); p.dfa != nil {
			t.Errorf("%q: must not have a table", text)
		}
	}
}

func FuzzPattern(f *testing.F) {
	for i, text := range patternSeeds {
		f.Add(text, patternSeeds[len(patternSeeds)-1-i])
		f.Add(text, "abc-123.def")
	}
	f.Fuzz(func(t *testing.T, text, s string) {
		if len(text) > 64 {
			return
		}
		re, err := regexp.Compile(text)
		if err != nil {
			return
		}
		p, err := newPattern(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := p.matches(s), re.MatchString(s); got != want {
			t.Errorf("%q on %q: got %v, want %v", text, s, got, want)
		}
	})
}
