package manifest

import (
	"runtime"
	"strings"
	"testing"
)

// The body of a request is one object of any kind, read in one way only.
func TestReadBody(t *testing.T) {
	for _, c := range []struct{ name, in, want, err string }{
		{"any object", "# a comment\nspec:\n  size: 5\n  words: [on, 'y', \"1\", 1.50]\n  empty:\n",
			`{"spec":{"size":5,"words":[true,"y","1",1.5],"empty":null}}`, ""},
		{"a list stays one", "kind: List\napiVersion: v1\nitems: [{kind: Widget, apiVersion: v1}]\n", `{"kind":"List","apiVersion":"v1","items":[{"kind":"Widget","apiVersion":"v1"}]}`, ""},
		{"exact numbers", "a: 9007199254740993\n", `{"a":9007199254740993}`, ""},
		{"a marker before it", "---\na: b\n", `{"a":"b"}`, ""},
		{"nothing", "", "", "the body: must not be empty"},
		{"comments", "# nothing\n", "", "the body: must not be empty"},
		{"no object", "- a\n", "", "the body:1: must be an object"},
		{"two documents", "a: b\n---\nc: d\n", "", "the body:2: must be one document"},
		{"a key twice", "a: b\nc: {d: e, d: f}\n", "",
			"the body:2: c.d: must not be set twice; it is set on line 2 already"},
		{"an alias", "a: &x {b: c}\nd: *x\n", "", "the body:1: a: must not use anchors, such as '&x'"},
		{"an alias as a key", "a: &x b\n*x : c\n", "", "the body:1: a: must not use anchors, such as '&x'"},
		{"a key with an anchor", "&x a: b\n", "", "the body:1: must not use anchors, such as '&x'"},
		{"a tag", "a: !!binary aGk=\n", "", "the body:1: a: must not have the tag '!!binary'"},
		{"no YAML", "a: [\n", "", "the body:2: must be valid YAML: did not find expected node content"},
		{"no UTF-8", "a: \xff\n", "", "the body:1: must be valid UTF-8"},
		{"a broken second document", "a: b\n---\n\"\n", "",
			"the body:3: must be valid YAML: found unexpected end of stream"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadBody([]byte(c.in))
			message := ""
			if err != nil {
				message = err.Error()
			}
			if string(got) != c.want || message != c.err {
				t.Errorf("got %s, %q, want %s, %q", got, message, c.want, c.err)
			}
		})
	}
}

// No body takes more than 80 times its size in memory, besides what any takes.
func TestReadBodyIsBounded(t *testing.T) {
	const size = 400_000
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for name, in := range map[string]string{
		"flow": "a: [" + fill("b,") + "]", "sparse flow": "a: [" + strings.Repeat("b,", size/13) + fill(" ") + "]",
		"block": "a:\n" + fill("- b\n"), "objects": "a: [" + strings.Repeat("{a},", size/40) + fill(" ") + "]",
		"deep": fill("["), "keys": "a: {" + fill("? ,") + "}",
		"quoted keys": "a: [" + fill(`{"":""},`) + "]", "anchors": "a: [" + fill("&a b,") + "]",
		"comments": fill("#\n") + "a: b", "lines": "a: |\n" + fill(" \n"),
		"spaces": "a: b" + fill(" "), "escapes": `a: "` + fill(`\0`) + `"`, "text": "a: " + fill("b "),
		"documents": fill("---\n"), "tags": "a: [" + fill("! b,") + "]",
		"merges": "a: {" + fill("<<: {},") + "}",
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := ReadBody([]byte(in))
			runtime.ReadMemStats(&after)
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 80*uint64(len(in))+512<<10 {
				t.Errorf("%d bytes took %d: %.100v", len(in), allocated, err)
			}
		})
	}
}
