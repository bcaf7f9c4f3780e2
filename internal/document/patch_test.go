package document

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The public suite of JSON patches, all enabled cases.
func TestJSONPatchSuite(t *testing.T) {
	dir := suiteDir(t, "data/json-patch-tests")
	for _, file := range []string{"tests.json", "spec_tests.json"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		var cases []struct {
			Comment              string
			Doc, Patch, Expected json.RawMessage
			Error                string
			Disabled             bool
		}
		if err := json.Unmarshal(text, &cases); err != nil {
			t.Fatal(err)
		}
		ran := 0
		for i, c := range cases {
			if c.Disabled || c.Doc == nil {
				continue
			}
			ran++
			d, patch := mustParse(t, string(c.Doc)), mustParse(t, string(c.Patch))
			err := d.ApplyJSONPatch(patch.Root(), Limits{})
			name := fmt.Sprintf("%s %d %s", file, i, c.Comment)
			if (err != nil) != (c.Error != "") {
				t.Errorf("%s: got %v, want %q", name, err, c.Error)
			}
			if want := string(c.Doc); err != nil && string(d.AppendTo(nil)) != want {
				t.Errorf("%s: left %s, want %s", name, d.AppendTo(nil), want)
			}
			if err == nil && c.Expected != nil {
				want := mustParse(t, string(c.Expected))
				if !EqualNodes(d.Root(), want.Root()) {
					t.Errorf("%s: got %s, want %s", name, d.AppendTo(nil), c.Expected)
				}
			}
		}
		t.Logf("%s: %d of %d cases", file, ran, len(cases))
		if ran < 15 {
			t.Errorf("%s: only %d cases", file, ran)
		}
	}
}

func TestJSONPatch(t *testing.T) {
	doc := "{ \"a\" : {\"b/c\":[1, 2.0 ,3], \"m~n\":true},\n  \"z\":1e3 }"
	tests := []struct {
		name, patch string
		want        string // "": doc
		err         string
	}{
		{"bytes that stay", `[{"op":"replace","path":"/a/b~1c/0","value":9},{"op":"add","path":"/a/b~1c/1","value":[ ]},{"op":"remove","path":"/a/m~0n"},{"op":"test","path":"/z","value":1000.0}]`,
			"{ \"a\" : {\"b/c\":[9,[ ], 2.0 ,3]},\n  \"z\":1e3 }", ""},
		{"move keeps the spelling", `[{"op":"move","from":"/a/b~1c/1","path":"/y"},{"op":"copy","from":"/z","path":"/a/b~1c/-"}]`,
			"{ \"a\" : {\"b/c\":[1 ,3,1e3], \"m~n\":true},\n  \"z\":1e3,\"y\":2.0 }", ""},
		{"move to itself", `[{"op":"move","from":"/a","path":"/a"}]`, "", ""},
		{"unknown members are ignored", `[{"op":"test","path":"/z","value":1e3,"comment":"x"}]`, "", ""},
		{"replace the root", `[{"op":"replace","path":"","value":{"n":null}},{"op":"add","path":"/k","value":1}]`, `{"n":null,"k":1}`, ""},

		{"not a list", `{"op":"add"}`, "", "JSON patch: a patch must be a list of operations"},
		{"not an object", `["add"]`, "", "JSON patch: operation 0: an operation must be an object"},
		{"no op", `[{"path":"/a","value":1}]`, "", "JSON patch: operation 0: 'op' must be a string"},
		{"unknown op", `[{"op":"Add","path":"/a","value":1}]`, "", "JSON patch: operation 0 ('Add' at '/a'): 'op' must be one of 'add', 'copy', 'move', 'remove', 'replace', 'test'"},
		{"no path", `[{"op":"add","value":1}]`, "", "JSON patch: operation 0 ('add' at ''): 'path' must be a string"},
		{"no value", `[{"op":"add","path":"/a"}]`, "", "JSON patch: operation 0 ('add' at '/a'): 'value' must be set"},
		{"no slash", `[{"op":"remove","path":"a"}]`, "", "JSON patch: operation 0 ('remove' at 'a'): 'path' must be empty or begin with '/'"},
		{"bad tilde", `[{"op":"remove","path":"/a~2"}]`, "", "JSON patch: operation 0 ('remove' at '/a~2'): '~' in 'path' must be followed by '0' or '1'"},
		{"NUL in a path", `[{"op":"add","path":"/a\u0000","value":1}]`, "",
			"JSON patch: operation 0 ('add' at '/a\x00'): 'path' must not contain '\\u0000'"},
		{"missing member", `[{"op":"add","path":"/y","value":1},{"op":"replace","path":"/a/x","value":1}]`, "",
			"JSON patch: operation 1 ('replace' at '/a/x'): member 'x' must exist"},
		{"missing item", `[{"op":"add","path":"/a/b~1c/4","value":1}]`, "", "JSON patch: operation 0 ('add' at '/a/b~1c/4'): index 4 must be less than the length of the list, 3"},
		{"end of a list", `[{"op":"remove","path":"/a/b~1c/-"}]`, "", "JSON patch: operation 0 ('remove' at '/a/b~1c/-'): the index of a list must be a number without leading zeros, less than its length"},
		{"leading zero", `[{"op":"remove","path":"/a/b~1c/01"}]`, "", "JSON patch: operation 0 ('remove' at '/a/b~1c/01'): the index of a list must be a number without leading zeros, less than its length"},
		{"below a scalar", `[{"op":"add","path":"/z/y","value":1}]`, "", "JSON patch: operation 0 ('add' at '/z/y'): 'y' must be in an object or a list, not in a number"},
		{"item below a scalar", `[{"op":"replace","path":"/z/y/x","value":1}]`, "", "JSON patch: operation 0 ('replace' at '/z/y/x'): 'y' must be in an object or a list, not in a number"},
		{"missing from", `[{"op":"copy","path":"/y","from":"/x"}]`, "",
			"JSON patch: operation 0 ('copy' at '/y'): 'from': member 'x' must exist"},
		{"move into itself", `[{"op":"move","path":"/a/b","from":"/a"}]`, "", "JSON patch: operation 0 ('move' at '/a/b'): a value may not be moved into itself"},
		{"move of the root", `[{"op":"move","path":"/a","from":""}]`, "",
			"JSON patch: operation 0 ('move' at '/a'): a value may not be moved into itself"},
		{"remove the root", `[{"op":"remove","path":""}]`, "", "JSON patch: operation 0 ('remove' at ''): the whole document may not be removed"},
		{"failing test after edits", `[{"op":"remove","path":"/a"},{"op":"replace","path":"","value":[]},{"op":"test","path":"","value":{}}]`, "", "JSON patch: operation 2 ('test' at ''): the value must be equal to the test's"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, patch := mustParse(t, doc), mustParse(t, tt.patch)
			d.Set(d.Root(), "before", []byte("1"))
			d.Remove(at(t, d, "before"))
			err := d.ApplyJSONPatch(patch.Root(), Limits{})
			if err == nil && tt.err != "" || err != nil && err.Error() != tt.err {
				t.Errorf("got error %v, want %s", err, tt.err)
			}
			want := tt.want
			if want == "" {
				want = doc
			}
			if got := string(d.AppendTo(nil)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if !sameTree(decodeTree(d.Root()), decodeReference(t, []byte(want))) {
				t.Errorf("reads as %v", decodeTree(d.Root()))
			}
		})
	}
}

func TestJSONPatchLimits(t *testing.T) {
	repeat := func(op string, n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(op+",", n), ",") + "]"
	}
	double := `{"op":"copy","from":"/a","path":"/a/-"}`
	nest := `{"op":"copy","from":"/a","path":"/a/a"}`
	tests := []struct {
		name, doc, patch string
		code             PatchCode
		ok               bool
	}{
		{"10,000 operations", `{"a":1}`, repeat(`{"op":"test","path":"/a","value":1}`, 10_000), 0, true},
		{"10,001 operations", `{"a":1}`, repeat(`{"op":"test","path":"/a","value":1}`, 10_001), PatchTooLong, false},
		{"copy bomb", `{"a":["aaaaaaaaaaaaaaaa"]}`, repeat(double, 30), PatchTooCostly, false},
		{"move back and forth", `{"a":"` + strings.Repeat("a", 1<<20) + `"}`,
			repeat(`{"op":"move","from":"/a","path":"/b"},{"op":"move","from":"/b","path":"/a"}`, 10), PatchTooCostly,
			false},
		{"deep result", `{"a":{}}`, repeat(nest, 64), PatchResultLimit, false},
		{"deep result that is made flat again", `{"a":{}}`, strings.TrimSuffix(repeat(nest, 64), "]") +
			`,{"op":"remove","path":"/a"}]`, 0, true},
		{"long list", "[" + strings.Repeat("0,", 400_000) + "0]",
			repeat(`{"op":"replace","path":"/399999","value":1}`, 100), PatchTooCostly, false},
		{"appending", "[" + strings.Repeat("0,", 100_000) + "0]", repeat(`{"op":"add","path":"/-","value":1}`, 10_000),
			0, true},
		{"many members", `{}`, manyAdds(10_000), 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, patch := mustParse(t, tt.doc), mustParse(t, tt.patch)
			err := d.ApplyJSONPatch(patch.Root(), Limits{})
			if tt.ok {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || err.(*PatchError).Code != tt.code {
				t.Errorf("got %v, want code %d", err, tt.code)
			}
			if got := string(d.AppendTo(nil)); got != tt.doc || d.Edited() {
				t.Error("the document has changed")
			}
		})
	}
}

func manyAdds(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"op":"add","path":"/k%d","value":%d}`, i, i)
	}
	return "[" + b.String()[1:] + "]"
}

func TestMergePatch(t *testing.T) {
	tests := []struct{ name, doc, patch, want string }{
		// The examples of RFC 7386, appendix A.
		{"RFC 1", `{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{"RFC 2", `{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{"RFC 3", `{"a":"b"}`, `{"a":null}`, `{}`},
		{"RFC 4", `{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{"RFC 5", `{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{"RFC 6", `{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{"RFC 7", `{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{"RFC 8", `{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{"RFC 9", `["a","b"]`, `["c","d"]`, `["c","d"]`},
		{"RFC 10", `{"a":"b"}`, `["c"]`, `["c"]`},
		{"RFC 11", `{"a":"foo"}`, `null`, `null`},
		{"RFC 12", `{"a":"foo"}`, `"bar"`, `"bar"`},
		{"RFC 13", `{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{"RFC 14", `[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{"RFC 15", `{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},

		{"nothing", ` { "a" : 1.0 } `, `{}`, ` { "a" : 1.0 } `},
		{"nulls in lists stay", `{"a":1}`, `{"a":[null,{"b":null}],"c":[null]}`, `{"a":[null,{"b":null}],"c":[null]}`},
		{"object over a scalar", `{"a":1}`, `{"a":{"b":null,"\u0063":{"d":1.50},"e":null}}`, `{"a":{"c":{"d":1.50}}}`},
		{"bytes that stay", "{ \"a\": {\"x\" :1.0, \"y\":2},\n \"b\":[ ] }", `{"a":{"y":3,"z":{"k":[ 1 ]}},"c":null}`,
			"{ \"a\": {\"x\" :1.0, \"y\":3,\"z\":{\"k\":[ 1 ]}},\n \"b\":[ ] }"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, patch := mustParse(t, tt.doc), mustParse(t, tt.patch)
			d.MergePatch(patch.Root())
			if got := string(d.AppendTo(nil)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if !sameTree(decodeTree(d.Root()), decodeReference(t, []byte(tt.want))) {
				t.Errorf("reads as %v", decodeTree(d.Root()))
			}
		})
	}
}

// A document cannot be patched with itself.
func TestMergePatchWithNothing(t *testing.T) {
	d := mustParse(t, `{"a":null}`)
	d.MergePatch(d.Root())
	d.MergePatch(Node{})
	if d.Edited() {
		t.Errorf("got %s", d.AppendTo(nil))
	}
	if err := d.ApplyJSONPatch(Node{}, Limits{}); err == nil {
		t.Error("the zero Node is no patch")
	}
}

func BenchmarkJSONPatch(b *testing.B) {
	patch := mustParse(b, `[{"op":"replace","path":"/spec/replicas","value":5},{"op":"add","path":"/metadata/labels/example.com~1x","value":"y"},{"op":"remove","path":"/spec/strategy"},{"op":"test","path":"/kind","value":"Deployment"}]`)
	b.ReportAllocs()
	for b.Loop() {
		d := mustParse(b, deployment)
		if err := d.ApplyJSONPatch(patch.Root(), Limits{}); err != nil {
			b.Fatal(err)
		}
		d.Release()
	}
}

// mergeTrees is RFC 7386's own pseudo-code.
func mergeTrees(target, patch any) any {
	members, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	result, ok := target.(map[string]any)
	if !ok {
		result = map[string]any{}
	}
	for key, value := range members {
		if value == nil {
			delete(result, key)
		} else {
			result[key] = mergeTrees(result[key], value)
		}
	}
	return result
}

func FuzzMergePatch(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1},"c":[1]}`), []byte(`{"a":{"b":null,"x":{"y":null}},"c":{"z":1}}`))
	f.Add([]byte(deployment), []byte(`{"spec":{"template":null},"kind":{"a":[null]}}`))
	f.Fuzz(func(t *testing.T, doc, text []byte) {
		d, err := Parse(doc, Limits{})
		if err != nil {
			return
		}
		defer d.Release()
		patch, err := Parse(text, Limits{})
		if err != nil {
			return
		}
		defer patch.Release()
		d.MergePatch(patch.Root())
		want := mergeTrees(decodeReference(t, doc), decodeReference(t, text))
		if got := decodeTree(d.Root()); !sameTree(got, want) {
			t.Fatalf("%s merged with %s: read as %v, want %v", doc, text, got, want)
		}
		if printed := d.AppendTo(nil); !sameTree(decodeReference(t, printed), want) {
			t.Fatalf("%s merged with %s: printed %s, want %v", doc, text, printed, want)
		}
	})
}

// FuzzJSONPatch looks for crashes, for patches that fail half-way and leave
// something behind, and for results that cannot be parsed.
func FuzzJSONPatch(f *testing.F) {
	f.Add([]byte(`{"a":[1,2,3],"b":{"c":"x"}}`), []byte(`[{"op":"move","from":"/a/0","path":"/b/c"},{"op":"add","path":"/a/1","value":{}},{"op":"copy","from":"/b","path":"/a/-"},{"op":"remove","path":"/a/0"},{"op":"replace","path":"/b/c","value":null},{"op":"test","path":"","value":0}]`))
	f.Fuzz(func(t *testing.T, doc, text []byte) {
		d, err := Parse(doc, Limits{})
		if err != nil {
			return
		}
		defer d.Release()
		patch, err := Parse(text, Limits{})
		if err != nil {
			return
		}
		defer patch.Release()
		err = d.ApplyJSONPatch(patch.Root(), Limits{})
		printed := d.AppendTo(nil)
		if err != nil && string(printed) != string(doc) {
			t.Fatalf("%s: %v, but left %s", doc, err, printed)
		}
		if got := decodeTree(d.Root()); !sameTree(got, decodeReference(t, printed)) {
			t.Fatalf("%s patched with %s: read as %v, printed %s", doc, text, got, printed)
		}
		if again, err := Parse(printed, Limits{}); err != nil {
			t.Fatalf("%s patched with %s: printed %s: %v", doc, text, printed, err)
		} else {
			again.Release()
		}
	})
}
