package pattern

import (
	"regexp"
	"strings"
	"testing"
)

var patternSeeds = []string{
	`^[a-z]+$`, `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, `a|b`, `^(\d+(\.\d+)?)?$`, ``, `^$`, `$`, `a{2,5}`, `^a{0,63}$`,
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`, `(?i)^abc$`, `\bword\b`, `(?m)^x$`, `.`,
	`^.*$`,
	`^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+$`,
	`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`,
	`x*$`, `^(ab|a)(bc|c)?$`, `[^a]`, `^\p{L}+$`, `^([0-9]{1,5}(h|m|s|ms)){1,4}$`, `a.c`, `\A\z`, `(a*)*b`,
	`^[\x00-\x7f]$`,
}

func TestPatternTable(t *testing.T) {
	inputs := []string{"", "a", "abc", "a-b", "-a", "a.b.c", "12.5", "12.", "aaaaaa", "word", "a word b", "x\n", "\nx",
		"ABC", "ü", "aü", "\u212a",
		"/path/%2F", "*.example.com", "1h30m", "1h30", "b", "\x00", "ab", "abbc", "a\nc"}
	for _, text := range patternSeeds {
		p, err := New(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range inputs {
			if got, want := p.Match(s), p.regexp.MatchString(s); got != want {
				t.Errorf("%q on %q: got %v, want %v", text, s, got, want)
			}
		}
	}
	var runs []string // of each character, so that every one is a class of its own
	for c := '!'; c <= '~'; c++ {
		runs = append(runs, regexp.QuoteMeta(string(c))+"+")
	}
	classes, err := New("^(" + strings.Join(runs, "|") + ")$")
	if err != nil || classes.table == nil {
		t.Fatal(classes, err)
	}
	for c := '!'; c <= '~'; c++ {
		for _, s := range []string{string(c), string([]rune{c, c, c}), string([]rune{c, c, 'a'}),
			string([]rune{c, c, c ^ 64}), string([]rune{c, c, 1}), string([]rune{c, '\u00e9'})} {
			if got, want := classes.Match(s), classes.regexp.MatchString(s); got != want {
				t.Errorf("a run of any character on %q: got %v, want %v", s, got, want)
			}
		}
	}
	for _, text := range []string{`^[a-z]+$`, `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, `^a{0,63}$`} {
		if p, _ := New(text); p.table == nil {
			t.Errorf("%q: must have a table", text)
		}
	}
	for _, text := range []string{`\bword\b`, `(?m)^x$`, `^a{0,1000}$`} {
		if p, _ := New(text); p.table != nil {
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
		p, err := New(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := p.Match(s), re.MatchString(s); got != want {
			t.Errorf("%q on %q: got %v, want %v", text, s, got, want)
		}
	})
}
