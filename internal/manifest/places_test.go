package manifest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// FuzzPlaces compares the JSON that is made of YAML, and its table of positions, with sigs.k8s.io/yaml
// and with the positions of the parser's nodes: every member has the one of its key, and every item
// its own, also in what an alias repeats.
func FuzzPlaces(f *testing.F) {
	const head = "apiVersion: v1\nkind: K\n"
	for _, seed := range []string{
		"a:\n  b: 1\n  c: [1,\n  2, {d: e}]\n", "a: &x {b: y,\n c: [n,\n d]}\nq: *x\nz: [*x, *x]\nw: *x\n",
		"a: &x\n- &y\n  b: c\n- *y\nd: *x\ne: *y\n",
		"&k a: *k\n? b\n: c\n", "a: \"x\\u0001\\\"\"\n\"b\\\"c\": 1\nd: |\n  e\n  f\ng: {}\nh: []\n",
		"a: yes\nb: N\nc: 1.50\nd: ~\n",
	} {
		f.Add(head + seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		objects, errs := Read("a.yaml", []byte(in))
		if len(objects) != 1 || refused(errs) || objects[0].OpenAPI || objects[0].Kind == "List" || moreDocuments(in) {
			return
		}
		o := objects[0]
		compare(t, o, []byte(in))
		if text := o.Document().AppendTo(nil); !bytes.Equal(text, o.JSON) {
			t.Fatalf("the document of %s is %s", o.JSON, text)
		}
		if body, err := ReadBody([]byte(in)); err == nil && !looksLikeJSON([]byte(in)) && !bytes.Equal(body, o.JSON) {
			t.Fatalf("as a body it is %s, in a file %s", body, o.JSON)
		}
		var doc yaml.Node
		if looksLikeJSON([]byte(in)) || strings.Contains(in, "<<") ||
			yaml.Unmarshal(bytes.TrimPrefix([]byte(in), []byte("\xef\xbb\xbf")), &doc) != nil {
			return
		}
		samePositions(t, o, o.Document().Root(), doc.Content[0], positionOf(doc.Content[0]))
	})
}

func samePositions(t *testing.T, o *Object, n document.Node, from *yaml.Node, at position) {
	t.Helper()
	if got := o.position(n); got != at {
		t.Fatalf("%s of %s: got %v, want %v", n.Path(), o.JSON, got, at)
	}
	if from.Kind == yaml.AliasNode {
		from = from.Alias
	}
	parts := from.Content
	if from.Kind == yaml.ScalarNode {
		parts = nil
	}
	for child := n.First(); child.Valid(); child = child.Next() {
		at := parts[0]
		if n.Kind() == document.Object {
			parts = parts[1:]
		}
		samePositions(t, o, child, parts[0], positionOf(at))
		parts = parts[1:]
	}
	if len(parts) > 0 {
		t.Fatalf("%s of %s: %d nodes are missing", n.Path(), o.JSON, len(parts))
	}
}

// What is beside the bounds of JSON and of the table.
func TestPlaces(t *testing.T) {
	for name, c := range map[string]struct{ file, in, want string }{
		"every key that stands again": {"a.json", "{\"a\":1,\n\"a\":2,\n\"b\":{\"a\":1},\n\"a\":3}\n{\"kind\":1}",
			"a.json:2: a: must not be set twice; it is set on line 1 already\na.json:4: a: must not be set twice; it is set on line 2 already\n" +
				"a.json:5: apiVersion: Required value\na.json:5: kind: must be a string"},
		"a key again among many": {"a.json", "{" + strings.Repeat(" ", 3) + strings.Join(strings.Split(`"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"n":1,"o":1,"p":1,"q":1,"a":2`, ","), ",\n") + "}",
			"a.json:18: a: must not be set twice; it is set on line 1 already"},
		"a number that no reader can hold": {"a.json", `{"a":[1e999]}`, "a.json:1: a[0]: must be valid JSON: numbers must be within the range of a double"},
		"such an exponent in YAML":         {"a.yaml", "apiVersion: v1\nkind: K\n\na: 1e-9999999999\n", "a.yaml:1: must be an object that can be read in one way only: a: exponents must be less than or equal to 9 digits long at offset 37"},
		"a member without a comma":         {"a.json", `{"x":{"a":{"b":[1,"\"]"]} "c":2}}`, `a.json:1: x.a: must be valid JSON: a member must be followed by ',' or '}', not '"'`},
		"NUL in a key": {"a.yaml", "apiVersion: v1\nkind: K\na: {\"b\\0\": 1}\n",
			"a.yaml:3: a: must not have a key with the character U+0000"},
		"a merge with NUL in a key": {"a.yaml", "apiVersion: v1\nkind: K\n<<: {\"b\\0\": 1}\n",
			"a.yaml:3: must not have a key with the character U+0000"},
		"a list of a type": {"a.yaml", "apiVersion: v1\nkind: KList\nitems:\n- metadata: {}\n  a: 1\n- metadata: {}\n  kind: 1\n", `{"apiVersion":"v1","kind":"K","metadata":{},"a":1}` + "\na.yaml:7: items[1].kind: must be a string"},
	} {
		if got := read(c.file, c.in); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
	objects, errs := Read("a.yaml",
		[]byte("apiVersion: v1\nkind: KList\nitems:\n- metadata: {name: a}\n  a:\n    b: 1\n"+
			"- &x\n  metadata: {name: b}\n  c: {d: 1,\n    e: [1,\n    2]}\n- *x\n"))
	if len(errs) > 0 || len(objects) != 3 {
		t.Fatal(objects, errs)
	}
	for i, want := range []map[string]position{
		{"": {4, 3}, "metadata.name": {4, 14}, "a": {5, 3}, "a.b": {6, 5}},
		{"": {7, 3}, "metadata": {8, 3}, "c.d": {9, 7}, "c.e": {10, 5}, "c.e[0]": {10, 9}, "c.e[1]": {11, 5}},
		{"": {12, 3}, "metadata": {8, 3}, "c.e[1]": {11, 5}},
	} {
		for path, at := range want {
			if got := objects[i].Where(path); (position{got.Line, got.Column}) != at ||
				objects[i].Line(path) != at.line {
				t.Errorf("item %d, %s: got %d:%d, want %v", i, path, got.Line, got.Column, at)
			}
		}
	}
}

// FuzzPositions compares the table of positions of a file of JSON with the text of the file: each member and each item
// begins where the table says.
func FuzzPositions(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"v1","kind":"K","ä":{"b":[1,2,{"c":"\u00e4"}],"d":1}}`,
		"{\n  \"kind\" : \"K\",\r\n\t\"a\": [1,\n2 , 3]\n}", `  {"kind":"K"} {"kind":"\ud83d\ude00","b":[[],{}]}`,
		"{\"kind\":\"" + strings.Repeat("€", 20000) + "\",\"b\":1,\n\"c\": 2}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		r := &reader{file: "a.json", isFragment: true}
		r.readJSON([]byte(in))
		if len(r.objects) != 1 || len(r.errs) > 0 {
			return
		}
		d, err := document.Parse([]byte(in), document.Limits{})
		if err != nil {
			return
		}
		defer d.Release()
		var same func(a, b document.Node)
		same = func(a, b document.Node) {
			offset, _ := b.Offset()
			before := in[:offset]
			want := position{1 + strings.Count(before, "\n"),
				1 + len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))}
			if got := r.objects[0].position(a); got != want && b.Parent().Valid() {
				t.Fatalf("%s of %s: got %v, want %v", b.Path(), in, got, want)
			}
			a, b = a.First(), b.First()
			for ; b.Valid(); a, b = a.Next(), b.Next() {
				same(a, b)
			}
		}
		same(r.objects[0].Document().Root(), d.Root())
	})
}

// Members that a '<<' brings are written twice, so that what is overridden is bounded too.
func TestMergesAreBounded(t *testing.T) {
	text := "apiVersion: v1\nkind: K\ns: &s " + strings.Repeat("x", 1<<20) + "\nl: &l [" + strings.Repeat("*s,", 9) +
		"]\nm:\n" + strings.Repeat("- {<<: {k: *l}, k: 1}\n", 20)
	_, errs := Read("a.yaml", []byte(text))
	if len(errs) != 1 || errs[0].Error() != "a.yaml:15: m[9]: must mean at most 33554432 bytes of JSON, its aliases replaced" {
		t.Errorf("%.300v", errs)
	}
}
