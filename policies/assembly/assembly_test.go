package assembly_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/assembly"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/source"
)

// head begins a document.
const head = `{openapi: 3.0.3, info: {title: a, version: b}, `

// assembled makes the documents of files whole. It returns their JSON, each behind the name of its file, and what was
// found. A file behind "@" is read only if a document refers to it, and one behind "!" is a link that leads out.
func assembled(t *testing.T, files map[string]string) (whole, found string, a *assembly.Assembly) {
	t.Helper()
	var all []source.File
	var objects []*manifest.Object
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := source.File{Name: "p/" + strings.TrimLeft(name, "@!"), Data: []byte(files[name]), Root: "p",
			IsOutside: name[0] == '!'}
		all = append(all, file)
		if strings.ContainsAny(name[:1], "@!") {
			continue
		}
		read, errs := manifest.Read(file.Name, file.Data)
		if len(errs) > 0 {
			t.Fatal(errs[0])
		}
		objects = append(objects, read...)
	}
	var list finding.List
	a = assembly.New(all, nil, &list)
	var made, lines []string
	for _, o := range a.Objects(objects) {
		json := string(o.JSON)
		made = append(made, strings.TrimPrefix(o.File, "p/")+" "+strings.Replace(json,
			`"openapi":"3.0.3","info":{"title":"a","version":"b"},`, "", 1))
	}
	for _, f := range list.Found {
		lines = append(lines, strings.TrimPrefix(f.String(), "p/"))
	}
	return strings.Join(made, "\n"), strings.Join(lines, "\n"), a
}

// TestFilesOfDocuments: what a document refers to in other files is taken in, and all references lead to where it
// stands then.
func TestFilesOfDocuments(t *testing.T) {
	for _, c := range []struct {
		name, document string
		files          map[string]string
		whole, found   string
	}{
		{"nothing leads out", `components: {schemas: {A: {$ref: '#/b'}}}}`, nil,
			`{"components":{"schemas":{"A":{"$ref":"#/b"}}}}`, ""},
		{"a file", `components: {schemas: {A: {$ref: a.yaml}}}}`, map[string]string{"a.yaml": "type: object"},
			`{"components":{"schemas":{"A":{"$ref":"#/x-admission-gateway-files/p~1a.yaml"}}},"x-admission-gateway-files":{"p/a.yaml":{"type":"object"}}}`,
			""},
		{"a part of a file that refers to itself and to the document",
			`components: {schemas: {A: {$ref: 'd/a.json#/A'}}}}`,
			map[string]string{"d/a.json": `{"A":{"items":[{"$ref":"#"},{"$ref":"#/B"},{"$ref":"../api.yaml#/components"},{"$ref":"b.yml"}]}}`,
				"d/b.yml": "$ref: ./a.json#/A"},
			`{"components":{"schemas":{"A":{"$ref":"#/x-admission-gateway-files/p~1d~1a.json/A"}}},"x-admission-gateway-files":{` +
				`"p/d/a.json":{"A":{"items":[{"$ref":"#/x-admission-gateway-files/p~1d~1a.json"},{"$ref":"#/x-admission-gateway-files/p~1d~1a.json/B"},` +
				`{"$ref":"#/components"},{"$ref":"#/x-admission-gateway-files/p~1d~1b.yml"}]}},"p/d/b.yml":{"$ref":"#/x-admission-gateway-files/p~1d~1a.json/A"}}}`,
			""},
		{"a file with signs in its name", `components: {schemas: {A: {$ref: 'a~b%25c.yaml'}}}}`,
			map[string]string{"a~b%c.yaml": "{}"},
			`{"components":{"schemas":{"A":{"$ref":"#/x-admission-gateway-files/p~1a~0b%25c.yaml"}}},"x-admission-gateway-files":{"p/a~b%c.yaml":{}}}`,
			""},
		{"a file twice", `components: {schemas: {A: {$ref: a.yaml}, B: {$ref: './a.yaml#/x'}}}}`,
			map[string]string{"a.yaml": "x: 1"},
			`{"components":{"schemas":{"A":{"$ref":"#/x-admission-gateway-files/p~1a.yaml"},"B":{"$ref":"#/x-admission-gateway-files/p~1a.yaml/x"}}},` +
				`"x-admission-gateway-files":{"p/a.yaml":{"x":1}}}`, ""},
		{"members that are values, or named by the author",
			`x-a: {$ref: a.yaml}, components: {schemas: {$ref: {default: {$ref: a.yaml}, properties: {example: {$ref: a.yaml}}}}}}`,
			map[string]string{"a.yaml": "{}"},
			`{"x-a":{"$ref":"a.yaml"},"components":{"schemas":{"$ref":{"default":{"$ref":"a.yaml"},` +
				`"properties":{"example":{"$ref":"#/x-admission-gateway-files/p~1a.yaml"}}}}},"x-admission-gateway-files":{"p/a.yaml":{}}}`,
			""},
		{"discriminators",
			`components: {schemas: {A: {oneOf: [{$ref: a.yaml}], discriminator: {mapping: {a: a.yaml, b: A, c: '#/x', d: 'b.yaml#/y', e: 1}}}}}}`,
			map[string]string{"a.yaml": "{}", "b.yaml": "{}"},
			`{"components":{"schemas":{"A":{"oneOf":[{"$ref":"#/x-admission-gateway-files/p~1a.yaml"}],` +
				`"discriminator":{"mapping":{"a":"#/x-admission-gateway-files/p~1a.yaml","b":"A","c":"#/x","d":"#/x-admission-gateway-files/p~1b.yaml/y","e":1}}}}},` +
				`"x-admission-gateway-files":{"p/a.yaml":{},"p/b.yaml":{}}}`, ""},
		{"a discriminator of a file", `components: {schemas: {A: {$ref: a.yaml}}}}`,
			map[string]string{"a.yaml": "{discriminator: {mapping: {a: 'a.yaml#/B'}}, $ref: '#/B'}"},
			`{"components":{"schemas":{"A":{"$ref":"#/x-admission-gateway-files/p~1a.yaml"}}},"x-admission-gateway-files":{"p/a.yaml":{` +
				`"discriminator":{"mapping":{"a":"#/x-admission-gateway-files/p~1a.yaml/B"}},"$ref":"#/x-admission-gateway-files/p~1a.yaml/B"}}}`,
			""},
		{"what leads to no file",
			`components: {schemas: {A: {$ref: 'https://example.com/a.yaml'}, B: {$ref: /etc/a.yaml}, C: {$ref: 1}}}}`, nil,
			`{"components":{"schemas":{"A":{"$ref":"https://example.com/a.yaml"},"B":{"$ref":"/etc/a.yaml"},"C":{"$ref":1}}}}`,
			""},
		{"a file that is missing", `components: {schemas: {A: {$ref: none.yaml}, B: {$ref: '#/x'}}}}`, nil,
			`{"components":{"schemas":{"A":{"$ref":"#/x-admission-gateway-files/nowhere"},"B":{"$ref":"#/x"}}},"x-admission-gateway-files":{"nowhere":{}}}`,
			"api.yaml:1: components.schemas.A.$ref: must lead to a file that can be read, not to 'none.yaml': there is no 'p/none.yaml'"},
		{"a file out of the folder", `components: {schemas: {A: {$ref: ../a.yaml}}}}`,
			map[string]string{"../a.yaml": "{}"},
			`{"components":{"schemas":{"A":{"$ref":"#/x-admission-gateway-files/nowhere"}}},"x-admission-gateway-files":{"nowhere":{}}}`,
			"api.yaml:1: components.schemas.A.$ref: must not lead out of the folder of policy files, as '../a.yaml' does"},
		{"a file with another ending", `components: {schemas: {A: {$ref: a.txt}}}}`, map[string]string{"a.txt": "{}"},
			`{"components":{"schemas":{"A":{"$ref":"#/x-admission-gateway-files/nowhere"}}},"x-admission-gateway-files":{"nowhere":{}}}`,
			"api.yaml:1: components.schemas.A.$ref: must lead to a file whose name ends in '.yaml', '.yml' or '.json', not to 'a.txt'"},
		{"a link", `components: {schemas: {A: {$ref: '!a.yaml'}}}}`, nil,
			`{"components":{"schemas":{"A":{"$ref":"#/x-admission-gateway-files/nowhere"}}},"x-admission-gateway-files":{"nowhere":{}}}`,
			"api.yaml:1: components.schemas.A.$ref: must lead to a file that can be read, not to '!a.yaml': there is no 'p/!a.yaml'"},
		{"a file that cannot be read", `components: {schemas: {A: {$ref: a.yaml}, B: {$ref: a.yaml}}}}`,
			map[string]string{"a.yaml": "a: ["},
			`{"components":{"schemas":{"A":{"$ref":"#/x-admission-gateway-files/nowhere"},"B":{"$ref":"#/x-admission-gateway-files/nowhere"}}},` +
				`"x-admission-gateway-files":{"nowhere":{}}}`,
			"a.yaml:2: must be valid YAML: did not find expected node content"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{"api.yaml": head + c.document}
			for name, text := range c.files {
				files["@"+name] = text
			}
			whole, found, a := assembled(t, files)
			if whole != "api.yaml "+c.whole || found != c.found {
				t.Errorf("got\n%s\n%s\nwant\napi.yaml %s\n%s", whole, found, c.whole, c.found)
			}
			for name := range c.files {
				if got, want := a.IsReferred("p/"+name), strings.Contains(c.whole, `"p/`+name) ||
					strings.Contains(c.found, name+":"); got != want {
					t.Errorf("%s is referred to: %v", name, got)
				}
			}
		})
	}
	_, found, _ := assembled(t, map[string]string{"api.yaml": head + "components: {schemas: {A: {$ref: a.yaml}}}}",
		"!a.yaml": "{}"})
	if want := "api.yaml:1: components.schemas.A.$ref: must not lead out of the folder of policy files, as the link 'p/a.yaml' does"; found != want {
		t.Errorf("a link: got %s, want %s", found, want)
	}
}

// TestManyFiles: a document consists of a thousand files at most.
func TestManyFiles(t *testing.T) {
	for _, n := range []int{1000, 1001} {
		files := map[string]string{}
		var refs strings.Builder
		for i := range n {
			name := fmt.Sprintf("%04d.yaml", i)
			files["@"+name] = "{}"
			fmt.Fprintf(&refs, "A%d: {$ref: %s}, ", i, name)
		}
		files["api.yaml"] = head + "components: {schemas: {" + refs.String() + "B: {}}}}"
		if _, found, _ := assembled(t, files); strings.Contains(found,
			"must not lead to more than 1000 files in all") != (n > 1000) {
			t.Errorf("%d files: %.200s", n, found)
		}
	}
}

// TestOverlays: an overlay changes what its targets select in its document, one action after the other.
func TestOverlays(t *testing.T) {
	const info = "{overlay: 1.0.0, info: {title: a, version: b}, "
	const document = `tags: [{name: x}, {name: y}, {name: z}], components: {schemas: {A: {type: object, required: [a], n: {k: 1}}}, other: {B: {n: 1.5}}}}`
	for _, c := range []struct{ name, actions, whole, found string }{
		{"an update",
			"[{target: $.components.schemas.A, update: {type: string, required: [b, c], n: {l: [1]}, new: {x: 2}}}]",
			`"A":{"type":"string","required":["a","b","c"],"n":{"k":1,"l":[1]},"new":{"x":2}}`, ""},
		{"an item", "[{target: $.tags, update: {name: w}}]",
			`"tags":[{"name":"x"},{"name":"y"},{"name":"z"},{"name":"w"}]`,
			""},
		{"each item", "[{target: '$.tags[*]', update: {d: 1}}]",
			`"tags":[{"name":"x","d":1},{"name":"y","d":1},{"name":"z","d":1}]`, ""},
		{"items that go", "[{target: '$.tags[0,2]', remove: true}]", `"tags":[{"name":"y"}]`, ""},
		{"all items", "[{target: '$.tags[*]', remove: true}]", `"tags":[]`, ""},
		{"a member", "[{target: $.components.schemas.A.n, remove: true}]", `"A":{"type":"object","required":["a"]}`,
			""},
		{"what is within what goes", "[{target: '$..n', remove: true}, {target: '$..[?@.type]', update: {d: 1}}]",
			`"A":{"type":"object","required":["a"],"d":1}}`, ""},
		{"what an action before added",
			"[{target: $.components, update: {more: {p: [{q: 1}]}}}, {target: '$.components.more.p[?@.q==1]', update: {r: 2}}]",
			`"more":{"p":[{"q":1,"r":2}]}`, ""},
		{"what an action before removed",
			"[{target: '$.tags[0]', remove: true}, {target: '$.tags[0]', update: {d: 1}}]",
			`"tags":[{"name":"y","d":1},{"name":"z"}]`, ""},
		{"what an action before appended",
			"[{target: $.tags, update: {name: w}}, {target: '$.tags[3]', update: {d: 1}}, {target: '$.components.schemas.A.required', update: b}, {target: '$..A', update: {required: [c]}}]",
			`{"name":"w","d":1}],"components":{"schemas":{"A":{"type":"object","required":["a","b","c"]`, ""},
		{"an update that is none", "[{target: $.tags, remove: false, update: 1, description: d, x-a: 1}]",
			`{"name":"z"},1]`, ""},
		{"nothing selected", "[{target: $.none, remove: true}]", document2,
			"o.yaml:1: actions[0].target: must select something in the document 'p/api.yaml'"},
		{"the whole document", "[{target: $, remove: true}]", document2,
			"o.yaml:1: actions[0].target: must not select the whole document, which cannot be removed"},
		{"the root", "[{target: $, update: {x-a: 1}}]", `"x-a":1`, ""},
		{"a string", "[{target: $.info.title, update: b}]", document2,
			"o.yaml:1: actions[0].target: must select objects or lists, not a string: select the object that has the member, and update that"},
		{"a list for an object", "[{target: $.info, update: [1]}]", document2,
			"o.yaml:1: actions[0].update: must be an object, as what the target selects"},
		{"a list for an object within", "[{target: $, update: {components: [1], x-b: 2}}]", `"x-b":2`,
			"o.yaml:1: actions[0].update.components: must be an object, as in the document"},
		{"a scalar for a list", "[{target: $, update: {tags: 1}}]", document2,
			"o.yaml:1: actions[0].update.tags: must be a list, as in the document"},
		{"a list for a scalar", "[{target: $.info, update: {title: [1]}}]", document2,
			"o.yaml:1: actions[0].update.title: must be a string, as in the document"},
		{"an object for a list", "[{target: $, update: {tags: {}}}]", document2,
			"o.yaml:1: actions[0].update.tags: must be a list, as in the document"},
	} {
		t.Run(c.name, func(t *testing.T) {
			whole, found, _ := assembled(t, map[string]string{"api.yaml": head + document,
				"o.yaml": info + "actions: " + c.actions + "}"})
			if !strings.Contains(whole, c.whole) || strings.Contains(whole, "overlay") || found != c.found {
				t.Errorf("got\n%s\n%s\nwant\n%s\n%s", whole, found, c.whole, c.found)
			}
		})
	}
}

const document2 = `"tags":[{"name":"x"},{"name":"y"},{"name":"z"}],"components":{"schemas":{"A":{"type":"object","required":["a"],"n":{"k":1}}},"other":{"B":{"n":1.5}}}`

// TestOverlaysThatAreWrong: what is wrong with an overlay is found, all at once, and it changes nothing.
func TestOverlaysThatAreWrong(t *testing.T) {
	const one = "openapi: 3.0.3\ninfo: {title: a, version: b}\ncomponents: {schemas: {A: {}}}\n"
	for _, c := range []struct {
		overlay string
		want    []string
	}{
		{"overlay: 1.1.0\ninfo: {title: a, version: b}\nactions: [{target: $, update: {}}]",
			[]string{"overlay: must be of version 1.0 of the Overlay specification, not '1.1.0'"}},
		{"overlay: 1.0.9\ninfo: {title: a, version: b}\nactions: [{target: $, update: {}}]", nil},
		{"overlay: '1.0'\ninfo: {title: a, version: b}\nactions: [{target: $, update: {}}]", nil},
		{"overlay: 1.0.0\ninfo: {}\nactions: []\nmore: 1\nx-more: 1",
			[]string{"more: must be one of 'overlay', 'info', 'extends', 'actions', or begin with 'x-'",
				"info: must have a `title`", "info: must have a `version`",
				"actions: must be a list of at least one action"}},
		{"overlay: 1.0.0\ninfo: {title: 1, version: b}\nextends: 1\nactions: {}", []string{"extends: must be a string",
			"info.title: must be a string", "info: must have a `title`",
			"actions: must be a list of at least one action"}},
		{"overlay: 1.0.0\ninfo: {title: a, version: b}\nactions: [1]", []string{"actions[0]: must be an object"}},
		{"overlay: 1.0.0\ninfo: {title: a, version: b}\nactions: [{target: '$[', update: {}, updat: 1, description: 1}]",
			[]string{
				"actions[0].updat: must be one of 'target', 'description', 'update', 'remove', or begin with 'x-'",
				"actions[0].description: must be a string",
				"actions[0].target: must be a JSONPath as RFC 9535 has it, such as '$.paths[*].get': "}},
		{"overlay: 1.0.0\ninfo: {title: a, version: b}\nactions: [{update: {}}]",
			[]string{"actions[0]: must be a JSONPath"}},
		{"overlay: 1.0.0\ninfo: {title: a, version: b}\nactions: [{target: $, remove: 1}]",
			[]string{"actions[0].remove: must be 'true' or 'false'",
				"actions[0]: must have an `update`, or `remove: true`"}},
		{"overlay: 1.0.0\ninfo: {title: a, version: b}\nactions: [{target: $, remove: false}]",
			[]string{"actions[0]: must have an `update`, or `remove: true`"}},
		{"overlay: 1.0.0\ninfo: {title: a, version: b}\nextends: other.yaml\nactions: [{target: $, update: {}}]", []string{
			"extends: must name an OpenAPI document among the policy files by its path from here or by the name of its file, not 'other.yaml'"}},
	} {
		_, found, _ := assembled(t, map[string]string{"api.yaml": one, "o.yaml": c.overlay})
		var got []string
		for line := range strings.Lines(found) {
			_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			got = append(got, rest)
		}
		if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
			t.Errorf("%s\ngot\n%s\nwant\n%s", c.overlay, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestDocumentsOfOverlays: an overlay changes the document that it names, or the only one.
func TestDocumentsOfOverlays(t *testing.T) {
	overlay := func(extends string) string {
		return "overlay: 1.0.0\ninfo: {title: a, version: b}\n" + extends +
			"actions: [{target: $, update: {x-changed: true}}]\n"
	}
	const one = head + "components: {}}"
	for _, c := range []struct {
		files   map[string]string
		changed string
		found   string
	}{
		{map[string]string{"o.yaml": overlay("")}, "",
			"must stand beside the OpenAPI document that it changes: there is none among the policy files"},
		{map[string]string{"o.yaml": overlay(""), "a.yaml": one}, "a.yaml", ""},
		{map[string]string{"o.yaml": overlay(""), "a.yaml": one, "b.yaml": one}, "",
			"must name the document that it changes by `extends`, since there are 2"},
		{map[string]string{"o.yaml": overlay("extends: b.yaml\n"), "a.yaml": one, "b.yaml": one}, "b.yaml", ""},
		{map[string]string{"d/o.yaml": overlay("extends: ../b.yaml\n"), "d/b.yaml": one, "b.yaml": one}, "b.yaml", ""},
		{map[string]string{"o.yaml": overlay("extends: 'https://example.com/api/b.yaml#x'\n"), "a.yaml": one,
			"d/b.yaml": one}, "d/b.yaml", ""},
		{map[string]string{"o.yaml": overlay("extends: 'https://example.com/b.yaml'\n"), "c/b.yaml": one,
			"d/b.yaml": one},
			"",
			"extends: must be a path from here: 2 documents are in a file 'b.yaml'"},
		{map[string]string{"o.yaml": overlay("extends: c.yaml\n"), "a.yaml": one}, "",
			"extends: must name an OpenAPI document among the policy files"},
	} {
		whole, found, _ := assembled(t, c.files)
		changed := ""
		for line := range strings.Lines(whole) {
			if name, rest, _ := strings.Cut(line, " "); strings.Contains(rest, "x-changed") {
				changed += name
			}
		}
		if changed != c.changed || (found == "") != (c.found == "") || !strings.Contains(found, c.found) {
			t.Errorf("%v: %q is changed, %s, want %q, %s", c.files, changed, found, c.changed, c.found)
		}
	}
}
