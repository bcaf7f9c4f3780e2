package manifest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// asked counts what is asked for.
type asked struct{ held, most int }

func (a *asked) Grow(bytes int) bool {
	a.held += bytes
	a.most = max(a.most, a.held)
	return true
}

func (a *asked) Shrink(bytes int) { a.held -= bytes }

// TestWeight: what the objects of a file take is at most what was asked for.
func TestWeight(t *testing.T) {
	const n = 1 << 16
	head := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: "
	var members, jsonMembers strings.Builder
	for i := range n {
		fmt.Fprintf(&members, "  k%d: v\n", i)
		fmt.Fprintf(&jsonMembers, `"k%d":1,`, i)
	}
	object := func(data string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":` + data + "}"
	}
	for name, text := range map[string]string{
		"flow": head + "[" + strings.Repeat("a,", n) + "a]\n", "block": head + "\n" + strings.Repeat("  - a\n", n),
		"empties": head + "[" + strings.Repeat("[],", n) + "a]\n",
		"members": head + "\n" + members.String(), "string": head + strings.Repeat("a b ", n) + "\n",
		"comments": strings.Repeat("# a\n", n) + head + "a\n",
		"tags":     head + "[" + strings.Repeat("!!str a,", n) + "a]\n", "long lines": head + "\n" +
			strings.Repeat("  - "+strings.Repeat("a", 60)+"\n", n/8),
		"documents": strings.Repeat(head+"a\n---\n", n/16), "JSON list": object("[" + strings.Repeat("1,", n) + "1]"),
		"JSON empties": object("[" + strings.Repeat("{},", n) + "1]"),
		"JSON members": object("{" + jsonMembers.String() + `"x":1}`),
		"JSON string":  object(`"` + strings.Repeat("a", n) + `"`),
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		foreseen := &asked{}
		objects, errs := ReadWithin("a.yaml", []byte(text), foreseen)
		if len(errs) > 0 {
			t.Fatalf("%s: %v", name, errs[0])
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if took := int(after.HeapAlloc) - int(before.HeapAlloc); took > foreseen.held+64<<10 {
			t.Errorf("%s: %d bytes were asked for, and %d are taken", name, foreseen.held, took)
		}
		runtime.KeepAlive(objects)
	}
}

// TestTooManyValues: a file that would keep the loader busy is refused by its characters, before it is parsed.
func TestTooManyValues(t *testing.T) {
	head := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for _, test := range []struct{ name, file, text, want string }{
		{"a flow list of 14 MB", "a.yaml", head + "data: [" + strings.Repeat("a,", 7<<20) + "a]\n",
			"a.yaml: must have at most 4194304 keys and values"},
		{"a flow mapping", "a.yaml", head + "data: {" + strings.Repeat("a,", 7<<20) + "a}\n",
			"a.yaml: must have at most 4194304 keys and values"},
		{"a block list", "a.yaml", head + "data:\n" + strings.Repeat("- - a\n", 2<<20+1),
			"a.yaml: must have at most 4194304 keys and values"},
		{"JSON", "a.json", `{"apiVersion":"v1","data":[` + strings.Repeat("1,", 5<<20) + "1]}",
			"a.json:1: data: must have at most 4194304 keys and values"},
		{"JSON in a file of YAML", "a.yaml", `{"apiVersion":"v1","data":[` + strings.Repeat("1,", 5<<20) + "1]}",
			"a.yaml: must have at most 4194304 keys and values"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		objects, errs := Read(test.file, []byte(test.text))
		runtime.ReadMemStats(&after)
		if len(objects) > 0 || len(errs) != 1 || errs[0].Error() != test.want {
			t.Errorf("%s: %d objects, %v, want %s", test.name, len(objects), errs, test.want)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 600<<20 {
			t.Errorf("%s: it took %d bytes", test.name, took)
		}
	}
}

// TestExpansion: aliases count as what they repeat.
func TestExpansion(t *testing.T) {
	for text, want := range map[string]string{
		"a: b\n":                           "4 24",
		"a: &x [b, c]\nd: [*x, *x]\n":      "14 90",
		"a: &x {b: c}\nd: {<<: *x}\n":      "12 84",
		"a: b\n---\nc: d\n":                "8 48",
		"":                                 "0 0",
		"a: &a [*a]\n":                     "must not use an alias inside the value it stands for",
		"a: [":                             "yaml: line 1: did not find expected node content",
		strings.Repeat("-\n", MaxValues*2): tooMany,
	} {
		values, size, err := Expansion([]byte(text))
		got := fmt.Sprint(values, size)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.40q: %s, want %s", text, got, want)
		}
	}
}
