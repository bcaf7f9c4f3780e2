package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/tools/load/loadtest"
)

const someList = `
# A comment.
text: fain would -> would like to
text: forsooth   -> nothing

name: steed steeds -> horse
except: steed lane
`

func TestSearch(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		want             []string
	}{
		{
			name: "a comment", file: "a/b.go", text: "package b\n\n// B fain would\n// rest. And fain\n// would go, Forsooth.\nvar b int\n",
			want: []string{
				`a/b.go:3: "fain would": write would like to`,
				`a/b.go:4: "fain // would": write would like to`,
				`a/b.go:5: "forsooth": write nothing`,
			},
		},
		{
			name: "a comment behind code and within slashes and stars", file: "b.go",
			text: "package b\n\nvar b int // fain would\n\n/* so fain\n * would */\n",
			want: []string{`b.go:3: "fain would": write would like to`, `b.go:5: "fain * would": write would like to`},
		},
		{
			name: "strings", file: "b.go", text: "package b\n\nvar b = \"fain would\" + `line\nforsooth`\n",
			want: []string{`b.go:3: "fain would": write would like to`, `b.go:4: "forsooth": write nothing`},
		},
		{name: "parts of words, and code", file: "b.go", text: "package b\n\n// refain would, fain wouldn, forsoothly\nfunc forsooth() { forsooth() }\n"},
		{
			name: "names", file: "b.go",
			text: "package b\n\nfunc (steed T) OldSteeds(steeds, instead int) (steed2 int) {\n\tsteedA, _ := 1, OldSteeds\n\tfor theSteed := range 3 {\n\t}\n\tsteed = 2\n}\n\n" +
				"type T struct{ HTTPSteed, steedLane int }\n\nconst STEED, steed_b = 1, 2\n\nvar Steeds2 interface{ Steed() }\n",
			want: []string{
				"b.go:3: steeds in the name OldSteeds: write horse",
				"b.go:3: steed in the name steed: write horse",
				"b.go:3: steeds in the name steeds: write horse",
				"b.go:3: steed in the name steed2: write horse",
				"b.go:4: steed in the name steedA: write horse",
				"b.go:5: steed in the name theSteed: write horse",
				"b.go:10: steed in the name HTTPSteed: write horse",
				"b.go:12: steed in the name STEED: write horse",
				"b.go:12: steed in the name steed_b: write horse",
				"b.go:14: steeds in the name Steeds2: write horse",
				"b.go:14: steed in the name Steed: write horse",
			},
		},
		{
			name: "a file's name", file: "a/old_steed_test.go", text: "package b\n",
			want: []string{"a/old_steed_test.go:1: steed in the name old_steed_test: write horse"},
		},
		{
			name: "Markdown", file: "docs/a.md", text: "# Steed\n\n> He fain\n> would, `forsooth`.\n",
			want: []string{`docs/a.md:3: "fain > would": write would like to`, `docs/a.md:4: "forsooth": write nothing`},
		},
		{name: "data of tests", file: "a/testdata/b.go", text: "no Go, forsooth"},
		{name: "another file", file: "a/b.sh", text: "# forsooth"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := parseList(someList)
			if err != nil {
				t.Fatal(err)
			}
			hits, err := l.search(loadtest.Dir(t, map[string]string{c.file: c.text}))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range hits {
				got = append(got, h.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("hits\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestParseListFaults(t *testing.T) {
	const form = `: must be "text: WORDS -> INSTEAD", "name: WORDS -> INSTEAD" or "except: WORDS"`
	for _, c := range []struct{ text, want string }{
		{"\nword", `line 2: "word"` + form},
		{"text: a b", `line 1: "text: a b"` + form},
		{"text: -> c", `line 1: "text: -> c"` + form},
		{"except: a -> b", `line 1: "except: a -> b"` + form},
		{"some: a -> b", `line 1: "some" is not text, name or except`},
	} {
		if _, err := parseList(c.text); err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

func TestWordsOf(t *testing.T) {
	for name, want := range map[string]string{
		"a": "a", "holdTo": "hold to", "HTTPServer": "http server", "aB": "a b", "old_test": "old test",
		"x509Name": "x name", "ID": "id", "userIDs": "user i ds", "_": "",
	} {
		if got := strings.Join(wordsOf(name), " "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
