package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// read returns what a file holds as text: the objects' JSON, then the errors.
func read(name, data string) string {
	objects, errs := Read(name, []byte(data))
	var lines []string
	for _, o := range objects {
		lines = append(lines, string(o.JSON))
	}
	for _, err := range errs {
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "\n")
}

func TestRead(t *testing.T) {
	const head = "apiVersion: v1\nkind: K\n"
	const headJSON = `{"apiVersion":"v1","kind":"K"`
	tests := []struct{ name, file, in, want string }{
		{"one object", "a.yaml", head + "metadata:\n  name: w\n  namespace: ns\n",
			headJSON + `,"metadata":{"name":"w","namespace":"ns"}}`},
		{"several documents", "a.yaml", "# first\n---\n" + head + "---\n\n# nothing\n---\n" + head + "a: 1\n...\n---\n",
			headJSON + "}\n" + headJSON + `,"a":1}`},
		{"nothing", "a.yaml", "", ""},
		{"comments only", "a.yaml", "# a\n\n# b\n", ""},
		{"an explicit null", "a.yaml", "null\n", "a.yaml:1: must be an object with `apiVersion` and `kind`"},
		{"a list", "a.yaml", head + "---\n- a\n",
			headJSON + "}\na.yaml:4: must be an object with `apiVersion` and `kind`"},
		{"a word", "a.yaml", "hello\n", "a.yaml:1: must be an object with `apiVersion` and `kind`"},
		{"no kind", "a.yaml", "apiVersion: v1\n", "a.yaml:1: kind: Required value"},
		{"no apiVersion in the second document", "a.yaml", head + "---\n\nkind: K\n",
			headJSON + "}\na.yaml:5: apiVersion: Required value"},
		{"kind is a number", "a.yaml", "apiVersion: v1\nkind: 1\n", "a.yaml:2: kind: must be a string"},
		{"kind is empty", "a.yaml", "apiVersion: v1\nkind: ''\n", "a.yaml:2: kind: may not be empty"},
		{"a name that is no string is left to the schema", "a.yaml", head + "metadata: {name: 1}\n",
			headJSON + `,"metadata":{"name":1}}`},

		{"kind List", "a.yaml", "apiVersion: v1\nkind: List\nitems:\n- " + indent(head) + "- " + indent(head) +
			"  a: 1\n", headJSON + "}\n" + headJSON + `,"a":1}`},
		{"kind List with an item without kind", "a.yaml", "apiVersion: v1\nkind: List\nitems:\n- " + indent(head) +
			"- apiVersion: v1\n", headJSON + "}\na.yaml:6: items[1].kind: Required value"},
		{"kind List with a word", "a.yaml", "apiVersion: v1\nkind: List\nitems: [a]\n",
			"a.yaml:3: items[0]: must be an object with `apiVersion` and `kind`"},
		{"kind List in a List", "a.yaml", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items: []\n", "a.yaml:4: items[0]: must not be a list inside a list"},
		{"a typed list", "a.json", `{"kind":"KList","apiVersion":"v1","items":[{"metadata":{"name":"a"}},` + headJSON +
			`,"metadata":{}}]}`, `{"apiVersion":"v1","kind":"K","metadata":{"name":"a"}}` + "\n" + headJSON +
			`,"metadata":{}}`},
		{"an object that only sounds like a list", "a.json", `{"kind":"AllowList","apiVersion":"v1","items":["a"]}`,
			`{"kind":"AllowList","apiVersion":"v1","items":["a"]}`},

		{"duplicate keys", "a.yaml", head + "a:\n  b: 1\n  c: 2\n  b: 1\nkind: K\n", "a.yaml:6: a.b: must not be set twice; it is set on line 4 already\na.yaml:7: kind: must not be set twice; it is set on line 2 already"},
		{"duplicate keys by another spelling", "a.yaml", head + "\"k\\x69nd\": K\n",
			"a.yaml:3: kind: must not be set twice; it is set on line 2 already"},
		{"a duplicate key in a list", "a.yaml", head + "a:\n- {}\n- {x/y: 1, x/y: 2}\n",
			"a.yaml:5: a[1][x/y]: must not be set twice; it is set on line 5 already"},
		{"a number as key", "a.yaml", head + "a: {80: http, -1: x, true: z}\n",
			headJSON + `,"a":{"80":"http","-1":"x","true":"z"}}`},
		{"a number as key that is another number", "a.yaml", head + "a:\n  080: a\n  0x1F: b\n  1.5: c\n", "a.yaml:4: a: must have strings as keys; the key '080' is read as 80 and must be in quotes\n" +
			"a.yaml:5: a: must have strings as keys; the key '0x1F' is read as 31 and must be in quotes\n" +
			"a.yaml:6: a: must have strings as keys; the key '1.5' is read as 1.5 and must be in quotes"},
		{"a key that YAML 1.1 takes for a boolean", "a.yaml", head + "on: push\n", headJSON + `,"true":"push"}` + "\na.yaml:3: the key 'on' is read as 'true', as in YAML 1.1; to mean the word it must be in quotes"},
		{"two such keys", "a.yaml", head + "yes: 1\non: 2\n", "a.yaml:3: the key 'yes' is read as 'true', as in YAML 1.1; to mean the word it must be in quotes\n" +
			"a.yaml:4: the key 'on' is read as 'true', as in YAML 1.1; to mean the word it must be in quotes\n" +
			"a.yaml:4: true: must not be set twice; it is set on line 3 already"},
		{"an empty key", "a.yaml", head + "? \n: 1\n", "a.yaml:3: must not have an empty key"},
		{"an empty string as key", "a.yaml", head + "'': 1\n", headJSON + `,"":1}`},
		{"a list as key", "a.yaml", head + "? [a]\n: 1\n",
			"a.yaml:3: must have strings as keys, not lists or mappings"},

		{"aliases", "a.yaml", head + "a: &x {b: 1}\nc: *x\nd: [*x]\n",
			headJSON + `,"a":{"b":1},"c":{"b":1},"d":[{"b":1}]}`},
		{"an alias as key", "a.yaml", head + "a: &x b\n*x : 1\n&y c: *y\n", headJSON + `,"a":"b","b":1,"c":"c"}`},
		{"an unknown alias", "a.yaml", head + "a: *x\n", "a.yaml:3: must be valid YAML: unknown anchor 'x' referenced"},
		{"an alias of another document", "a.yaml", head + "a: &x 1\n---\n" + head + "a: *x\n", headJSON + ",\"a\":1}\na.yaml:7: a: must not use the alias '*x', which no anchor of this document defines"},
		{"an alias inside itself", "a.yaml", head + "a: &x\n  b: [*x]\n",
			"a.yaml:4: a.b[0]: must not use the alias '*x' inside the value it stands for"},
		{"an alias of something wrong is reported once", "a.yaml", head + "a: &x !foo 1\nb: *x\n",
			"a.yaml:3: a: must not have the tag '!foo'"},
		{"merge", "a.yaml", head + "a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  b: 3\n",
			headJSON + `,"a":{"b":1,"c":2},"d":{"b":3,"c":2}}`},
		{"merge of several", "a.yaml", head + "a: &x {b: 1, c: 2}\nd: &y {b: 4, e: 5}\nf:\n  <<: [*y, *x]\n",
			headJSON + `,"a":{"b":1,"c":2},"d":{"b":4,"e":5},"f":{"b":4,"e":5,"c":2}}`},
		{"merge after a member that it brings too", "a.yaml", head + "a: &x {b: 1}\nd:\n  b: 3\n  <<: *x\n",
			"a.yaml:6: d: must have the merge key '<<' before `b`, which it would bring too"},
		{"merge twice", "a.yaml", head + "a: &x {b: 1}\nd:\n  <<: *x\n  <<: *x\n",
			"a.yaml:6: d: must not have the merge key '<<' twice"},
		{"merge of a string", "a.yaml", head + "d:\n  <<: x\n",
			"a.yaml:4: d: must merge a mapping or a list of mappings with '<<'"},
		{"the merge key in quotes is a key", "a.yaml", head + "'<<': 1\n", headJSON + `,"<<":1}`},

		{"tags", "a.yaml", head + "a: !!str 1\nb: !!int \"2\"\nc: !!float 3\nd: ! 4\ne: &a ! 5\nf: !!map {}\ng: !!seq []\nh: !!null ''\ni: !!bool 'yes'\n", headJSON + `,"a":"1","b":2,"c":3,"d":"4","e":"5","f":{},"g":[],"h":null,"i":true}`},
		{"tags that do not fit", "a.yaml",
			head + "a: !!int x\nb: !!bool 1\nc: !!binary aGk=\nd: !set {}\ne: !!omap []\nf: !x 1\n",
			"a.yaml:3: a: must not have the tag '!!int', which does not fit 'x'\n" +
				"a.yaml:4: b: must not have the tag '!!bool', which does not fit '1'\n" +
				"a.yaml:5: c: must not have the tag '!!binary'\n" +
				"a.yaml:6: d: must not have the tag '!set'\n" +
				"a.yaml:7: e: must not have the tag '!!omap'\n" +
				"a.yaml:8: f: must not have the tag '!x'"},

		{"not UTF-8", "a.yaml", head + "a: \xff\n", "a.yaml:3: must be valid UTF-8"},
		{"UTF-16", "a.yaml", "\xff\xfea\x00", "a.yaml:1: must be valid UTF-8"},
		{"a byte order mark", "a.yaml", "\xef\xbb\xbf" + head, headJSON + "}"},
		{"YAML syntax", "a.yaml", head + "a: [1\nb: 2\n",
			"a.yaml:3: must be valid YAML: did not find expected ',' or ']'"},
		{"a tab", "a.yaml", head + "a:\n\tb: 1\n",
			"a.yaml:4: must be valid YAML: lines must be indented by spaces, not by tabs"},
		{"a character that begins nothing", "a.yaml", head + "a:\n b: @c\n",
			"a.yaml:4: must be valid YAML: found character that cannot start any token"},
		{"objects before a syntax error are kept", "a.yaml", head + "---\n{\n",
			headJSON + "}\na.yaml:5: must be valid YAML: did not find expected node content"},

		{"JSON keeps spellings", "a.json",
			headJSON + `, "a" : [1.0, 1e2, 123456789012345678901234567890, "\u0041\/", "` + "\u2028" + `"] }`,
			headJSON + `,"a":[1.0,1e2,123456789012345678901234567890,"\u0041\/","` + "\u2028" + `"]}`},
		{"JSON in a YAML file", "a.yaml", headJSON + `,"a":"\ud83d\ude00"}`, headJSON + `,"a":"\ud83d\ude00"}`},
		{"YAML in braces", "a.yaml", `{apiVersion: v1, kind: K, a: yes}`, headJSON + `,"a":true}`},
		{"a stream of JSON", "a.json", headJSON + "}\n" + headJSON + "}", headJSON + "}\n" + headJSON + "}"},
		{"JSON and junk", "a.json", headJSON + "}\n}",
			headJSON + "}\na.json:2: must be valid JSON: a value must not begin with '}'"},
		{"a JSON list", "a.json", "[]", "a.json:1: must be an object with `apiVersion` and `kind`"},
		{"duplicate keys in JSON", "a.json", headJSON + ",\n\"a\":{\"b\":1,\n\"\\u0062\":1}}",
			"a.json:3: a.b: must not be set twice; it is set on line 2 already"},
		{"YAML in a JSON file", "a.json", head, "a.json:1: must be valid JSON: a value must not begin with 'a'"},
		{"a comma too many", "a.json", "{\"a\":1,\n}",
			"a.json:2: must be valid JSON: a key must be a string in double quotes, not '}'"},
		{"no colon", "a.json", `{"a" 1}`, `a.json:1: a: must be valid JSON: a key must be followed by ':', not '1'`},
		{"no comma in an object", "a.json", `{"a":1 "b":2}`, `a.json:1: a: must be valid JSON: a member must be followed by ',' or '}', not '"'`},
		{"no comma in a list", "a.json", `{"a":[1 2]}`, `a.json:1: a: must be valid JSON: an item must be followed by ',' or ']', not '2'`},
		{"a number with a leading zero", "a.json", `{"a":01}`,
			`a.json:1: a: must be valid JSON: a value must not begin with '1'`},
		{"a lone surrogate", "a.json", `{"a":"\ud83d"}`, `a.json:1: a: must be valid JSON: a string must not have this escape sequence: "\\ud83d"`},
		{"an unknown escape", "a.json", `{"a":"\x41"}`, `a.json:1: a: must be valid JSON: a string must not have this escape sequence: "\\x41\"}"`},
		{"a line break in a string", "a.json", "{\"a\":\"x\ny\"}", `a.json:1: a: must be valid JSON: a string must not have the control character '\n', which must be escaped`},
		{"NUL in a key", "a.json", `{"a\u0000":1}`, `a.json:1: must not have a key with the character U+0000`},
		{"an open string", "a.json", `{"a":"x`,
			`a.json:1: a: must be valid JSON: a string must end with a double quote`},
		{"an open object", "a.json", `{"a":`, `a.json:1: a: must be valid JSON: a value must not be missing at the end of the file`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := read(test.file, test.in); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// indent makes a list item of lines.
func indent(lines string) string {
	return strings.ReplaceAll(strings.TrimSuffix(lines, "\n"), "\n", "\n  ") + "\n"
}

// Numbers keep their exact value, and otherwise mean what YAML 1.1 says.
func TestScalars(t *testing.T) {
	tests := []struct{ in, want string }{
		{"yes", "true"}, {"Off", "false"}, {"y", "true"}, {"~", "null"}, {"", "null"}, {"Null", "null"},
		{"nULL", `"nULL"`},
		{"'yes'", `"yes"`}, {"\"1\"", `"1"`},
		{"1", "1"}, {"-1", "-1"}, {"+1", "1"}, {"0777", "511"}, {"0o17", "15"}, {"0x1F", "31"}, {"0b11", "3"},
		{"-0b11", "-3"}, {"1_000", "1000"}, {"089", "89"},
		{"9007199254740993", "9007199254740993"}, {"18446744073709551615", "18446744073709551615"},
		{"18446744073709551617", "18446744073709551617"}, {"-9223372036854775809", "-9223372036854775809"},
		{"1.0", "1"}, {"1e3", "1000"}, {"1.", "1"}, {".5", "0.5"}, {"-.5", "-0.5"}, {"+00.50", "0.5"}, {"0.1", "0.1"},
		{"1e21", "1e+21"}, {"-0.0", "-0"},
		{"0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"},
		{"+0012345678901234567890.50", "12345678901234567890.50"},
		{"1.00000000000000000001e2", "1.00000000000000000001e2"},
		{"1e-400", "1e-400"}, {"0e1070000", "0"},
		{"1.2.3", `"1.2.3"`}, {"1.2.3.4/8", `"1.2.3.4/8"`}, {"12:30", `"12:30"`}, {"190:20:30", `"190:20:30"`},
		{"2024-01-01", `"2024-01-01"`}, {"2024-01-01T00:00:00Z", `"2024-01-01T00:00:00Z"`},
		{"0xFFFFFFFFFFFFFFFFFF", `"0xFFFFFFFFFFFFFFFFFF"`}, {"1e", `"1e"`}, {"0b2", `"0b2"`}, {".", `"."`},
		{"._5", `"._5"`},
		{"|\n a\n b\n", `"a\nb\n"`}, {">-\n a\n b\n", `"a b"`},
		{"\"\\x01\\t\\\"\\\\\\r\\u2028<&>\"", `"\u0001\t\"\\\r` + "\u2028" + `<&>"`},
		{"1e999", "error: must not be the number '1e999', which is too large; a string must be in quotes"},
		{"07777777777777777777777777", "error: must not be the number '07777777777777777777777777', which is too large; a string must be in quotes"},
		{".inf", "error: must not be '.inf', which JSON cannot hold; a string must be in quotes"},
		{".NaN", "error: must not be '.NaN', which JSON cannot hold; a string must be in quotes"},
	}
	for _, test := range tests {
		t.Run(test.in, func(t *testing.T) {
			got := read("a.yaml", "apiVersion: v1\nkind: K\na: "+test.in+"\n")
			got = strings.TrimPrefix(got, `{"apiVersion":"v1","kind":"K","a":`)
			got = strings.Replace(got, "a.yaml:3: a: ", "error: ", 1)
			if want := test.want; got != want && got != want+"}" {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	const head = "apiVersion: v1\nkind: K\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	var bomb strings.Builder
	bomb.WriteString(head)
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), i-1)
	}
	long := head + "s: &s " + strings.Repeat("x", 1<<20) + "\nl: [" + strings.Repeat("*s,", 40) + "]\n"
	deep := strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1)
	tests := []struct{ name, file, in, want string }{
		{"too large", "a.yaml", strings.Repeat(" ", MaxBytes+1), "a.yaml: must be at most 16777216 bytes"},
		{"alias bomb", "a.yaml", bomb.String(),
			"a.yaml:9: a6: must mean at most 33554432 bytes of JSON, its aliases replaced"},
		{"a long string repeated", "a.yaml", long,
			"a.yaml:5: l: must mean at most 33554432 bytes of JSON, its aliases replaced"},
		{"deep YAML", "a.yaml", head + "a: " + deep, "a.yaml:4: a" + strings.Repeat("[0]", maxDepth) +
			": must be nested at most 256 levels deep"},
		{"deep JSON", "a.json", `{"a":` + deep + "}", "a.json:1: a" + strings.Repeat("[0]", maxDepth) +
			": must be nested at most 256 levels deep"},
		{"very deep YAML", "a.yaml", head + "a: " + strings.Repeat("[", 100_000),
			"a.yaml:4: must be valid YAML: exceeded max depth of 10000"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, errs := Read(test.file, []byte(test.in))
			if len(errs) == 0 {
				t.Fatal("no error")
			}
			if got := errs[0].Error(); got != test.want {
				t.Errorf("got\n%.300s\nwant\n%.300s", got, test.want)
			}
		})
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: g/v1\nkind: K\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, errs := ReadFile(file)
	if len(objects) != 1 || len(errs) != 0 {
		t.Fatalf("got %v, %v", objects, errs)
	}
	if group, version := objects[0].GroupVersion(); group != "g" || version != "v1" {
		t.Errorf("got %q, %q", group, version)
	}
	for name, want := range map[string]string{
		filepath.Join(dir, "b.yaml"): ": may not be read: no such file or directory",
		dir:                          ": must be a file, not a directory",
	} {
		_, errs := ReadFile(name)
		if len(errs) != 1 || errs[0].Error() != name+want {
			t.Errorf("got %v, want %q", errs, name+want)
		}
	}
}

func TestLine(t *testing.T) {
	const in = `# a comment
apiVersion: v1
kind: K
metadata:
  labels:
    example.com/x: a
    example.com/x.y: b
spec:
  versions:
  - name: v1

    schema:
      properties:
        a.b[0]:
          type: string
        a:
          type: integer
  - {name: v2,
     schema: {}}
shared: &s
  deep: 1
copy: *s
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: K
  a: 1
`
	objects, errs := Read("a.yaml", []byte(in))
	if len(errs) != 0 {
		t.Fatal(errs)
	}
	tests := []struct {
		object int
		path   string
		want   int
	}{
		{0, "", 2},
		{0, "<nil>", 2},
		{0, "kind", 3},
		{0, "metadata", 4},
		{0, "metadata.name", 4},
		{0, "metadata.labels[example.com/x]", 6},
		{0, "metadata.labels.example.com/x", 6},
		{0, "metadata.labels[example.com/x.y]", 7},
		{0, "metadata.labels.example.com/x.y", 7},
		{0, "metadata.labels[example.com/z]", 5},
		{0, "spec.versions[0]", 10},
		{0, "spec.versions[0].schema.properties", 13},
		{0, "spec.versions[0].schema.properties[a.b[0]].type", 15},
		{0, "spec.versions[0].schema.properties.a.b[0].type", 15},
		{0, "spec.versions[0].schema.properties.a.type", 17},
		{0, "spec.versions[0].schema.properties[a].type", 17},
		{0, "spec.versions[1].schema", 19},
		{0, "spec.versions[2]", 9},
		{0, "spec.versions[-1]", 9},
		{0, "spec.versions[x", 9},
		{0, "spec.versions.x", 9},
		{0, "kind.x", 3},
		{0, "copy", 22},
		{0, "copy.deep", 21},
		{1, "", 27},
		{1, "a", 29},
	}
	for _, test := range tests {
		if got := objects[test.object].Line(test.path); got != test.want {
			t.Errorf("object %d, %s: got line %d, want %d", test.object, test.path, got, test.want)
		}
	}
	objects, errs = Read("a.json", []byte("\n{\"apiVersion\":\"v1\",\n\"kind\":\"K\",\n\"a\":[\n1,\n2]}"))
	if len(errs) != 0 {
		t.Fatal(errs)
	}
	for path, want := range map[string]int{"": 2, "kind": 3, "a[1]": 6, "a[2]": 4} {
		if got := objects[0].Line(path); got != want {
			t.Errorf("%s: got line %d, want %d", path, got, want)
		}
	}
}

// The content of a file decides what is JSON, as for kubectl: objects that are JSON are read as JSON, and what is not
// as YAML.
func TestReadByContent(t *testing.T) {
	const object = `{"apiVersion": "v1", "kind": "K", "metadata": {"name": "\ud83d\ude00"}}`
	const yaml = "apiVersion: v1\nkind: K\nmetadata: {name: b}\n"
	for _, c := range []struct {
		in    string
		names []string
		errs  string
	}{
		{object, []string{"😀"}, ""},
		{"\n" + object + "\n" + object, []string{"😀", "😀"}, ""},
		{object + " # a comment\n", []string{"😀"}, ""},
		{object + "\n---\n" + yaml, []string{"😀", "b"}, ""},
		{"{apiVersion: v1, kind: K, metadata: {name: b}}\n---\n" + yaml, []string{"b", "b"}, ""},
		// What is wrong with JSON is said of JSON, and of YAML after it with the line of the file.
		{`{"kind": "K", "a": "\ud83d\ude00"}`, nil, "a.yaml:1: apiVersion: Required value\n"},
		{`{"apiVersion": "v1", "kind": "K", "a": 1,` + "\n" + ` "a": "\ud83d\ude00"}`, nil,
			"a.yaml:2: a: must not be set twice; it is set on line 1 already\n"},
		{object + "\n\n---\n" + yaml + "kind: K\n", []string{"😀"},
			"a.yaml:7: kind: must not be set twice; it is set on line 5 already\n"},
		{object + "\n---\na: [\n", []string{"😀"}, "a.yaml:4: must be valid YAML: did not find expected node content\n"},
	} {
		objects, errs := Read("a.yaml", []byte(c.in))
		var names []string
		for _, o := range objects {
			names = append(names, o.Name)
		}
		found := ""
		for _, err := range errs {
			found += err.Error() + "\n"
		}
		if !slices.Equal(names, c.names) || found != c.errs {
			t.Errorf("%s: %v, %s\nwant %v, %s", c.in, names, found, c.names, c.errs)
		}
	}
}
