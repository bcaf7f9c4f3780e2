package pattern

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

var pairs = flag.Int("pairs", 60_000, "how many pairs of a pattern and a text TestRandomPatterns compares")

// A source makes patterns and texts of bytes, the same of the same.
type source struct{ bytes []byte }

func (g *source) pick(n int) int {
	if len(g.bytes) == 0 {
		return 0
	}
	b := g.bytes[0]
	g.bytes = g.bytes[1:]
	return int(b) % n
}

func (g *source) of(choices ...string) string { return choices[g.pick(len(choices))] }

// alphabet has characters of one to four bytes: those whose other cases are of another length (k, s, ı, ß, ǆ), those at
// the ends of what UTF-8 writes in so many bytes, letters that look alike, and bytes that are no UTF-8.
var alphabet = []string{
	"a", "b", "k", "s", "z", "A", "K", "S", "0", "9", "-", ".", "_", "\n", " ", "\x00", "\x7f",
	"\u0080", "\u00a0", "é", "É", "ß", "ſ", "ı", "İ", "а", "р", "\u07ff", "\u0800", "日", "\u212a", "ẞ", "ǆ", "ǅ", "Ω",
	"Ω", "\ufffd", "\uffff",
	"\U00010000", "😀", "\U0010ffff", "\x80", "\xff", "\xc3", "\xe6\x97", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\xaf",
}

// character is a character as a pattern writes it.
func (g *source) character() string {
	for {
		c := g.of(alphabet...)
		if !utf8.ValidString(c) {
			continue // in a pattern it is an error
		}
		r, _ := utf8.DecodeRuneInString(c)
		switch g.pick(4) {
		case 0:
			return fmt.Sprintf(`\x{%x}`, r)
		default:
			return regexp.QuoteMeta(c)
		}
	}
}

// class is a set of characters.
func (g *source) class() string {
	if g.pick(4) == 0 {
		return g.of(`\d`, `\D`, `\w`, `\W`, `\s`, `\S`, `\pL`, `\PL`, `\p{Lu}`, `\p{Greek}`, `\P{Cyrillic}`,
			`[[:alpha:]]`, `[^[:ascii:]]`, `[[:^ascii:]]`, `\pN`)
	}
	text := "["
	if g.pick(2) == 0 {
		text += "^"
	}
	for range 1 + g.pick(3) {
		switch g.pick(4) {
		case 0:
			text += strings.ReplaceAll(g.character(), "-", `\-`)
		case 1:
			text += g.of(`\x00-\x7f`, `\x00-\x{ff}`, `\x{80}-\x{10ffff}`, `a-z`, `k-s`, `А-я`, `\x00-\x{7e}`,
				`\x{7f}-\x{80}`, `\d`, `\W`, `\pL`, `[:alpha:]`, `\x{fffd}`)
		default:
			low, high := g.of(alphabet...), g.of(alphabet...)
			l, _ := utf8.DecodeRuneInString(low)
			h, _ := utf8.DecodeRuneInString(high)
			text += fmt.Sprintf(`\x{%x}-\x{%x}`, min(l, h), max(l, h))
		}
	}
	return text + "]"
}

// pattern is an expression that mostly compiles.
func (g *source) pattern(depth int) string {
	if depth == 0 {
		return g.of(".", g.character(), g.character(), g.class(), g.class())
	}
	next := func() string { return g.pattern(depth - 1) }
	switch g.pick(14) {
	case 0, 1, 2, 3:
		return next() + next()
	case 4:
		return "(" + next() + "|" + next() + ")"
	case 5:
		return "(?:" + next() + ")" + g.of("*", "+", "?", "*?", "+?", "??")
	case 6:
		return "(?:" + next() + ")" + g.of("{0}", "{2}", "{0,3}", "{1,}", "{2,5}?")
	case 7:
		return "(?" + g.of("i", "i", "s", "m", "U", "is", "-i") + ":" + next() + ")"
	case 8:
		return "^" + next()
	case 9:
		return next() + "$"
	case 10:
		return "^" + next() + "$"
	case 11:
		return g.of(`\b`, `\B`, `\A`, `\z`, `(?m)^`, `(?m)$`, `$`, `^`) + next()
	}
	return next()
}

// text is what a pattern is matched against; often its first characters are ASCII and the others
// are not.
func (g *source) text() string {
	var b strings.Builder
	for range g.pick(8) {
		if g.pick(3) > 0 {
			b.WriteString(alphabet[g.pick(17)])
		} else {
			b.WriteString(g.of(alphabet...))
		}
	}
	return b.String()
}

// compare compares a pattern on each of the texts with package regexp, and returns how many pairs
// were compared and how many of them by the table alone.
func compare(t *testing.T, text string, subjects []string) (compared, byTable int) {
	re, err := regexp.Compile(text)
	p, ownErr := New(text)
	if (err == nil) != (ownErr == nil) {
		t.Fatalf("compiling %q: %v, package regexp %v", text, ownErr, err)
	}
	if err != nil {
		return 0, 0
	}
	for _, s := range subjects {
		if got, want := p.Match(s), re.MatchString(s); got != want {
			t.Errorf("%q on %q: got %v, want %v", text, s, got, want)
		}
		compared++
		if p.table != nil {
			if _, decided := p.table.match(s); decided {
				byTable++
			}
		}
	}
	return compared, byTable
}

// TestBeyondASCII proves that a pattern which needs a character beyond ASCII finds it after ASCII characters too.
func TestBeyondASCII(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{`[^\x00-\x7F]`, "pаypal.example", true}, // the а is Cyrillic
		{`[^\x00-\x7F]`, "paypal.example", false},
		{`😀`, "a😀b", true}, {`é`, "aé", true}, {`日`, "ab日", true}, {`(?i:é)`, "aÉ", true},
		{`(?i)^a?k$`, "aK", true}, {`^a*ſ`, "aaſ", true}, {`\p{Cyrillic}`, "abcд", true},
		{`\x{fffd}`, "a\xff", true}, {`^[a-z]+$`, "aé", false}, {`^é`, "aé", false},
	} {
		p, err := New(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Match(c.text); got != c.want || p.regexp.MatchString(c.text) != c.want {
			t.Errorf("%q on %q: got %v, package regexp %v, want %v", c.pattern, c.text, got,
				p.regexp.MatchString(c.text), c.want)
		}
	}
	// What no character leads out of is still refused at once: the rest of the string is not read.
	for _, text := range []string{`^[a-z]+$`, `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, `^é?a$`} {
		p, _ := New(text)
		if matched, decided := p.table.match("--é"); matched || !decided {
			t.Errorf("%q: the table does not decide that nothing matches: %v, %v", text, matched, decided)
		}
	}
}

// TestRandomPatterns compares patterns and texts of a fixed seed with package regexp.
func TestRandomPatterns(t *testing.T) {
	const texts = 20
	random := rand.New(rand.NewPCG(4, 7))
	seed := make([]byte, 100)
	compared, byTable := 0, 0
	for compared < *pairs && !t.Failed() {
		for i := range seed {
			seed[i] = byte(random.Uint32())
		}
		g := &source{seed}
		text := g.pattern(3)
		subjects := make([]string, texts)
		for i := range subjects {
			for j := range seed {
				seed[j] = byte(random.Uint32())
			}
			subjects[i] = (&source{seed[:24]}).text()
		}
		n, decided := compare(t, text, subjects)
		compared, byTable = compared+n, byTable+decided
	}
	t.Logf("%d pairs were compared, %d of them by the table", compared, byTable)
	if byTable < compared/4 {
		t.Errorf("only %d of %d pairs were decided by the table", byTable, compared)
	}
}

// FuzzGenerated compares patterns and texts that are made of bytes, so that nearly all of them compile.
func FuzzGenerated(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		seed := make([]byte, 120)
		for i := range seed {
			seed[i] = byte(random.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed []byte) {
		g := &source{seed}
		compare(t, g.pattern(3), []string{g.text(), g.text(), g.text()})
	})
}
