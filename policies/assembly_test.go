package policies

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/source"
)

// api is an OpenAPI document in which other files say what an order is.
const api = `openapi: 3.0.3
info: {title: Shop, version: v1}
x-admission-gateway-resource: {group: shop.example.com, version: v1}
paths:
  /orders:
    get: {responses: {'200': {description: ok}}}
    post:
      requestBody: {required: true, content: {application/json: {schema: {$ref: 'schemas/order.yaml'}}}}
      responses: {'201': {description: ok}}
  /orders/{id}:
    $ref: './paths.json#/order~1path'
components:
  schemas:
    Note: {type: string, maxLength: 5}
`

// orderFiles are the files that api refers to.
func orderFiles() map[string]string {
	return map[string]string{
		"api.yaml": api,
		"schemas/order.yaml": `type: object
required: [id]
properties:
  id: {type: string}
  note: {$ref: '../api.yaml#/components/schemas/Note'}
  size: {$ref: 'common.yaml#/sizes/small'}
  next: {$ref: '#'}
`,
		"schemas/common.yaml": "sizes:\n  small:\n    type: integer\n    maximum: 10\n    default: 3\n    oddKeyword: 1\n",
		"paths.json": `{"order/path": {"get": {"responses": {"200": {"description": "ok"}}}, "put": {"requestBody": {"content": {"application/json":
 {"schema": {"$ref": "schemas/order.yaml"}}}}, "responses": {"200": {"description": "ok"}}}}}`,
	}
}

func foundIn(dir string, found []Finding, severities ...Severity) (lines []string) {
	for _, f := range found {
		if slices.Contains(severities, f.Severity) {
			lines = append(lines, strings.TrimPrefix(f.String(), dir+"/"))
		}
	}
	return lines
}

// A document may consist of several files of its folder, which are no policy files of their own then. What is found in
// them has their lines.
func TestFilesOfDocuments(t *testing.T) {
	dir := testutil.WriteFiles(t, orderFiles())
	for _, path := range []string{dir, filepath.Join(dir, "api.yaml")} {
		set, found := Load([]string{path})
		if set == nil {
			t.Fatalf("%s: %v", path, found)
		}
		if got := foundIn(dir, found, Warning); !slices.Contains(got, "schemas/common.yaml:6: sizes.small.oddKeyword: warning: the keyword 'oddKeyword' is not enforced") {
			t.Errorf("%s: %s", path, strings.Join(got, "\n"))
		}
		if got := judge(t, set, "orders", `{"id":"1","size":11,"note":"too long","next":{"id":"2","size":12}}`); got != "next.size must be less than or equal to 10; note must be at most 5 characters; size must be less than or equal to 10" {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// A document of Swagger 2.0 may have schemas in other files.
func TestFilesOfSwagger(t *testing.T) {
	files := map[string]string{
		"api.yaml": `swagger: "2.0"
info: {title: Shop, version: v1}
paths:
  /orders:
    get: {responses: {'200': {description: ok}}}
    post:
      parameters: [{in: body, name: body, required: true, schema: {$ref: 'order.yaml#/Order'}}]
      responses: {'201': {description: ok}}
`,
		"order.yaml": "Order:\n  type: object\n  required: [id]\n  properties: {id: {type: string}, next: {$ref: '#/Order'}}\n  oddKeyword: 1\n",
	}
	dir := testutil.WriteFiles(t, files)
	set, found := Load([]string{dir})
	if set == nil {
		t.Fatal(found)
	}
	if got := judge(t, set, "orders", `{"next":{"id":1}}`); got != "id Required value; next.id must be of type string" {
		t.Error(got)
	}
	if got := foundIn(dir, found, Warning); !slices.Contains(got, "order.yaml:5: Order.oddKeyword: warning: the keyword 'oddKeyword' is not enforced") {
		t.Error(strings.Join(got, "\n"))
	}
}

// What a document may not refer to is an error with the line of the reference.
func TestFilesThatAreRefused(t *testing.T) {
	for ref, want := range map[string]string{
		"../other/order.yaml":       "must not lead out of the folder of policy files, as '../other/order.yaml' does",
		"schemas/missing.yaml":      "must lead to a file that can be read, not to 'schemas/missing.yaml': there is no '*/schemas/missing.yaml'",
		"schemas/order.txt":         "must lead to a file whose name ends in '.yaml', '.yml' or '.json', not to 'schemas/order.txt'",
		"link.yaml":                 "must not lead out of the folder of policy files, as the link '*/link.yaml' does",
		"/etc/hosts":                "must be a reference within the document or to a file of its folder, such as '#/components/schemas/Order' or 'order.yaml#/Order', not '/etc/hosts'",
		"https://example.com/a.yml": "must be a reference within the document or to a file of its folder, such as '#/components/schemas/Order' or 'order.yaml#/Order', not 'https://example.com/a.yml'",
		"file:///etc/a.yaml":        "must be a reference within the document or to a file of its folder, such as '#/components/schemas/Order' or 'order.yaml#/Order', not 'file:///etc/a.yaml'",
		"schemas/common.yaml#/none": "must point to something in the document, not '#/x-admission-gateway-files/*~1schemas~1common.yaml/none'",
	} {
		files := orderFiles()
		files["api.yaml"] = strings.Replace(api, "'schemas/order.yaml'", "'"+ref+"'", 1)
		root := testutil.WriteFiles(t,
			map[string]string{"other/order.yaml": "type: object\n", "p/schemas/order.txt": "type: object\n"})
		dir := filepath.Join(root, "p")
		for name, text := range files {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if ref == "link.yaml" {
			if err := os.Symlink("../other/order.yaml", filepath.Join(dir, ref)); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range []string{dir, filepath.Join(dir, "api.yaml")} {
			_, found := Load([]string{path})
			got := strings.Join(foundIn(dir, found, Error), "\n")
			got = strings.ReplaceAll(strings.ReplaceAll(got, dir, "*"), strings.ReplaceAll(dir, "/", "~1"), "*")
			full := "api.yaml:8: paths[/orders].post.requestBody.content[application/json].schema.$ref: " + want
			if got != full && !(path == dir && ref == "link.yaml" && strings.Contains(got, full)) {
				t.Errorf("%s of %s: got\n%s\nwant\n%s", ref, strings.TrimPrefix(path, dir), got, full)
			}
		}
	}
}

const (
	shop = `openapi: 3.0.3
info: {title: Shop, version: v1}
paths:
  /orders:
    get: {responses: {'200': {description: ok}}}
    post:
      tags: [a]
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Order'}}}}
      responses: {'201': {description: ok}}
components:
  schemas:
    Order:
      type: object
      required: [id]
      properties: {id: {type: string}, size: {type: integer, default: 3}, old: {type: string}}
`
	overlay = `overlay: 1.0.0
info: {title: What we want of the shop, version: 1.0.0}
EXTENDSactions:
- target: $
  update: {x-admission-gateway-resource: {group: shop.example.com, version: v1}}
- target: $.components.schemas.Order
  description: An order has an owner.
  update: {required: [owner], properties: {owner: {type: string, pattern: '^team-'}, size: {maximum: 10, oddKeyword: 1}}}
- target: $..properties[?@.default == 3].default
  remove: true
- target: $.components.schemas.Order.properties.old
  remove: true
- target: $.paths[*].post.tags
  update: b
`
)

// An overlay changes a document before it is compiled; what is found in what it adds has its lines.
func TestOverlays(t *testing.T) {
	for _, extends := range []string{"", "extends: shop.yaml\n", "extends: https://example.com/api/shop.yaml\n",
		"extends: ./shop.yaml\n"} {
		dir := testutil.WriteFiles(t,
			map[string]string{"shop.yaml": shop, "ours.yaml": strings.Replace(overlay, "EXTENDS", extends, 1)})
		set, found := Load([]string{dir})
		if set == nil {
			t.Fatal(found)
		}
		line := "ours.yaml:8"
		if extends != "" {
			line = "ours.yaml:9"
		}
		if got := foundIn(dir, found, Warning); !slices.Contains(got, line+": components.schemas.Order.properties.size.oddKeyword: warning: the keyword 'oddKeyword' is not enforced") {
			t.Errorf("%q: %s", extends, strings.Join(got, "\n"))
		}
		if got := judge(t, set, "orders", `{"id":"1","size":11,"owner":"me"}`); got != "owner must match the regular expression '^team-'; size must be less than or equal to 10" {
			t.Errorf("%q: %s", extends, got)
		}
		if got := judge(t, set, "orders", `{"id":"1"}`); got != "owner Required value" {
			t.Errorf("%q: %s", extends, got)
		}
	}
}

// What is wrong with an overlay is an error with its line, and so is a target that selects nothing.
func TestOverlaysThatAreRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"overlay: 1.1.0\ninfo: {title: a, version: b}\nactions: [{target: $, update: {}}]\n", "a.yaml:1: overlay: must be of version 1.0 of the Overlay specification, not '1.1.0'"},
		{"overlay: 1.0.0\ninfo: {title: a}\nactions: [{target: $, update: {}}]\n",
			"a.yaml:2: info: must have a `version`"},
		{"overlay: 1.0.0\ninfo: {title: a, version: b}\n", "a.yaml:1: actions: must be a list of at least one action"},
		{"overlay: 1.0.0\ninfo: {title: a, version: b}\nactions:\n- {target: $.paths, updat: {}}\n",
			"a.yaml:4: actions[0]: must have an `update`, or `remove: true`\na.yaml:4: actions[0].updat: must be one of 'target', 'description', 'update', 'remove', or begin with 'x-'"},
		{"overlay: 1.0.0\ninfo: {title: a, version: b}\nactions:\n- target: $.none[*]\n  remove: true\n", "a.yaml:4: actions[0].target: must select something in the document '*/shop.yaml'"},
		{"overlay: 1.0.0\ninfo: {title: a, version: b}\nactions:\n- {target: $.info.title, update: b}\n",
			"a.yaml:4: actions[0].target: must select objects or lists, not a string: select the object that has the member, and update that"},
		{"overlay: 1.0.0\ninfo: {title: a, version: b}\nactions:\n- {target: $, update: {paths: [1]}}\n", "a.yaml:4: actions[0].update.paths: must be an object, as in the document"},
		{"overlay: 1.0.0\ninfo: {title: a, version: b}\nactions:\n- {target: $.info, update: [1]}\n", "a.yaml:4: actions[0].update: must be an object, as what the target selects"},
		{"overlay: 1.0.0\ninfo: {title: a, version: b}\nactions:\n- {target: $, remove: true}\n", "a.yaml:4: actions[0].target: must not select the whole document, which cannot be removed"},
		{"overlay: 1.0.0\ninfo: {title: a, version: b}\nextends: other.yaml\nactions: [{target: $, update: {}}]\n",
			"a.yaml:3: extends: must name an OpenAPI document among the policy files by its path from here or by the name of its file, not 'other.yaml'"},
	} {
		dir := testutil.WriteFiles(t, map[string]string{"a.yaml": c.text, "shop.yaml": shop})
		_, found := Load([]string{dir})
		if got := strings.ReplaceAll(strings.Join(foundIn(dir, found, Error), "\n"), dir, "*"); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.text, got, c.want)
		}
	}
	dir := testutil.WriteFiles(t, map[string]string{"a.yaml": strings.Replace(overlay, "EXTENDS", "", 1),
		"shop.yaml": shop, "b.yaml": strings.NewReplacer("/orders", "/carts", "Order", "Cart").Replace(shop)})
	_, found := Load([]string{dir})
	if got := strings.Join(foundIn(dir, found, Error), "\n"); got != "a.yaml:1: must name the document that it changes by `extends`, since there are 2" {
		t.Error(got)
	}
}

// The hash of a set changes with the roles of files, as these have them by their names.
func TestHashOfDocuments(t *testing.T) {
	hash := func(files ...source.File) string {
		set, found := Compile(source.Of(files))
		if set == nil {
			t.Fatal(found)
		}
		return set.Hash()
	}
	document := source.File{Name: "api.yaml",
		Data: []byte(strings.Replace(shop, "'#/components/schemas/Order'", "a.yaml", 1))}
	a, b := []byte("type: object\nproperties: {a: {type: string}}\n"),
		[]byte("type: object\nproperties: {b: {type: string}}\n")
	other := strings.NewReplacer("'#/components/schemas/Order'", "b.yaml", "/orders", "/carts").Replace(shop)
	second := source.File{Name: "two.yaml", Data: []byte(other)}
	if one, two := hash(document, second, source.File{Name: "a.yaml", Data: a}, source.File{Name: "b.yaml", Data: b}),
		hash(document, second, source.File{Name: "a.yaml", Data: b}, source.File{Name: "b.yaml", Data: a}); one == two {
		t.Errorf("both are %s", one)
	}
}

// judge returns what is wrong with a new object of a resource.
func judge(t *testing.T, set *Set, plural, text string) string {
	t.Helper()
	for _, r := range set.Registry().Resources() {
		if r.Names.Plural != plural || r.Operation != nil {
			continue
		}
		d, err := document.Parse([]byte(text), document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		frame := cel.NewFrame(context.Background())
		defer frame.Release()
		var all []string
		for _, err := range set.SchemaFor(r, resource.VerbCreate).Validate(frame, d.Root(), document.Node{}).Errors {
			all = append(all, err.Field+" "+cmp.Or(err.Detail, err.Type.String()))
		}
		slices.Sort(all)
		return strings.Join(all, "; ")
	}
	t.Fatalf("there is no resource '%s'", plural)
	return ""
}
