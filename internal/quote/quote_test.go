package quote

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/octets"
)

// TestClip: what is cut ends between runes, and says that it was cut.
func TestClip(t *testing.T) {
	for _, c := range []struct {
		s          string
		limit      int
		clip, dots string
	}{
		{"", 3, "", ""},
		{"abc", 3, "abc", "abc"},
		{"abcd", 3, "abc…", "abc..."},
		{"aé", 2, "a…", "a..."},
		{"aéb", 3, "aé…", "aé..."},
		{"😀", 3, "…", "..."},
		{"\x80\x80\x80", 2, "…", "..."},
	} {
		if got := Clip(c.s, c.limit); got != c.clip {
			t.Errorf("Clip(%q, %d): got %q, want %q", c.s, c.limit, got, c.clip)
		}
		if got := ClipDots(c.s, c.limit); got != c.dots {
			t.Errorf("ClipDots(%q, %d): got %q, want %q", c.s, c.limit, got, c.dots)
		}
	}
}

// TestAppendAllocatesNothing: strings are written into the room that there is.
func TestAppendAllocatesNothing(t *testing.T) {
	buf := make([]byte, 0, 256)
	s := "team-a \"é\"\u2028<\x01\xff"
	if n := testing.AllocsPerRun(100, func() { AppendHTML(AppendJSON(buf, s), s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestIsPlain: the bytes of a plain word stand for themselves in both ways of escaping, whatever byte is at which place
// of it, and nearly all of those that do are plain.
func TestIsPlain(t *testing.T) {
	for place := range 8 {
		for c := range 256 {
			for _, other := range []byte{' ', 'a', '}', 0x7f} {
				text := []byte(strings.Repeat(string([]byte{other}), 8))
				text[place] = byte(c)
				want := html.asIs[c] && !strings.ContainsRune("^|~", rune(c))
				if got := isPlain(octets.WordOf(string(text))); got != want || got && !minimal.asIs[c] {
					t.Errorf("%q: got %v, want %v", text, got, want)
				}
			}
		}
	}
}

// FuzzAppend: AppendHTML writes what encoding/json writes, and AppendJSON what reads the same.
func FuzzAppend(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\/\b\f\n\r\t\x00\x1f\x7f", "<a href='x'>&</a>", "é€😀\u2028\u2029\ufffd",
		"\xff\xc3(\xe2\x82", "\xed\xa0\x80"} {
		f.Add(s)
	}
	for c := range 256 { // each byte at each place of a word
		f.Add("0123456789ab"[:c%9] + string([]byte{byte(c)}) + "0123456789")
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(AppendHTML([]byte("x"), s)); got != "x"+string(want) {
			t.Errorf("got  %s\nwant x%s", got, want)
		}
		got := AppendJSON(nil, s)
		var back string
		if err := json.Unmarshal(got, &back); err != nil || back != strings.ToValidUTF8(s, "\uFFFD") &&
			back != string([]rune(s)) {
			t.Errorf("%s reads as %q, %v", got, back, err)
		}
	})
}
