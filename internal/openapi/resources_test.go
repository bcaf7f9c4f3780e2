package openapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/openapi"
	"github.com/admission-gateway/gateway/internal/resource"
)

const shop = `
openapi: 3.0.3
info: {title: Shop, version: 4.2.0}
servers:
- {url: 'https://{region}.example.com/{base}', variables: {region: {default: eu}, base: {default: shop/v2}}}
- {url: /legacy}
paths:
  /orders:
    get: {responses: {"200": {content: {application/json: {schema: {type: object, properties: {total: {type: integer}, orders: {type: array, items: {}}}}}}}}}
    post: {requestBody: {$ref: '#/components/requestBodies/Order'}}
  /orders/{order_id}:
    get: {responses: {"200": {content: {application/json: {schema: {$ref: '#/components/schemas/OrderResponse'}}}}}}
    put: {requestBody: {$ref: '#/components/requestBodies/Order'}}
    post: {requestBody: {$ref: '#/components/requestBodies/Order'}}
  /orders/{order_id}/lines/{line}:
    put: {requestBody: {content: {text/xml: {}}}}
  /orders/{order_id}/cancel:
    post: {requestBody: {content: {application/json: {schema: {type: object}}}}}
  /tenants/{tenant}/teams/{team}/orders/{id}:
    get: {}
    x-admission-gateway-resource: {names: {plural: team-orders, kind: TeamOrder}, version: v9}
  /tenants/{tenant}/orders/{id}:
    put: {requestBody: {content: {application/vnd.shop+json: {schema: {$ref: '#/components/schemas/OrderResponse'}}}}}
  /searches:
    post: {requestBody: {content: {'*/*': {schema: {type: object}}}}}
  /trailing/:
    post: {requestBody: {content: {application/json: {}}}}
  /files/{name}.txt:
    put: {requestBody: {content: {application/json: {}}}}
  /hidden/{id}:
    put: {requestBody: {content: {application/json: {}}}}
    x-admission-gateway-resource: {ignore: true}
  /settings:
    get: {}
    put: {requestBody: {content: {application/json: {}}}}
  /stock/{id}:
    get: {responses: {"200": {content: {application/json: {schema: {type: object, properties: {apiVersion: {type: string}, kind: {type: string}, metadata: {type: object}}}}}}}}
    patch: {requestBody: {content: {application/json: {}}}}
    servers: [{url: 'http://stock.example.com'}]
components:
  requestBodies:
    Order: {content: {application/json; charset=utf-8: {schema: {$ref: '#/components/schemas/order_request'}}}}
  schemas:
    OrderResponse: {type: object, properties: {id: {type: string}, order_id: {type: integer}}}
    order_request: {type: object}
`

func TestResources(t *testing.T) {
	d := read(t, shop)
	resources, operations, found := d.Resources(nil)
	type summary struct {
		group, version, plural, kind string
		envelope                     resource.Envelope
		namespaced                   bool
		name, items                  string
		paths                        string
		create, update               bool
	}
	var got []summary
	for _, r := range resources {
		got = append(got, summary{r.Group, r.Version, r.Plural, r.Kind, r.Envelope, r.Namespaced, r.NameField,
			r.ItemsField, strings.Join(r.Paths, " "), r.Create != nil, r.Update != nil})
	}
	want := []summary{
		{"", "v2", "orders", "Order", resource.Bare, false, "order_id", "orders",
			"/shop/v2/orders /shop/v2/orders/{name} /legacy/orders /legacy/orders/{name}", true, true},
		{"", "v2", "lines", "Line", resource.Bare, true, "", "", "/shop/v2/orders/{namespace}/lines/{name} /legacy/orders/{namespace}/lines/{name}", false, false},
		{"", "v9", "team-orders", "TeamOrder", resource.Bare, true, "", "", "/shop/v2/tenants/{namespace}/teams/{parent-team}/orders/{name} /legacy/tenants/{namespace}/teams/{parent-team}/orders/{name}", false, false},
		{"", "v2", "tenants-orders", "TenantsOrder", resource.Bare, true, "id", "", "/shop/v2/tenants/{namespace}/orders/{name} /legacy/tenants/{namespace}/orders/{name}", false, true},
		{"", "v4", "stock", "Stock", resource.Kubernetes, false, "", "", "/stock/{name}", false, false},
		{"", "v2", "searches", "Search", resource.Bare, false, "", "", "/shop/v2/searches /legacy/searches", true,
			false},
		{"", "v2", "trailing", "Trailing", resource.Bare, false, "", "", "/shop/v2/trailing/ /legacy/trailing/", false,
			false},
		{"", "v2", "settings", "Setting", resource.Bare, false, "", "", "/shop/v2/settings /legacy/settings", false,
			false},
	}
	if !slices.Equal(got, want) {
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Errorf("%d:\n got %+v\nwant %+v", i, get(got, i), get(want, i))
			}
		}
	}
	var others []string
	for _, o := range operations {
		others = append(others, summaryOf(o))
	}
	wantOthers := []string{
		"POST /shop/v2/orders/{order_id} /legacy/orders/{order_id} held",
		"POST /shop/v2/orders/{order_id}/cancel /legacy/orders/{order_id}/cancel held",
		"PUT /shop/v2/files/{name}.txt /legacy/files/{name}.txt held", "PUT /shop/v2/hidden/{id} /legacy/hidden/{id}",
	}
	if !slices.Equal(others, wantOthers) {
		t.Errorf("operations\n%s\nwant\n%s", strings.Join(others, "\n"), strings.Join(wantOthers, "\n"))
	}
	if got := findings(found); len(got) > 0 {
		t.Errorf("found\n%s\nwant nothing", strings.Join(got, "\n"))
	}
	_, notes := openapi.Overlooked(d)
	notes = slices.DeleteFunc(notes,
		func(f openapi.Finding) bool { return !strings.HasPrefix(f.Message, "is the resource") })
	wantNotes := []string{
		"paths[/tenants/{tenant}/orders/{id}]: warning: is the resource 'tenants-orders', because another path has the shorter name: policies match it by that; `x-admission-gateway-resource.names.plural` may give it another one",
	}
	if got := findings(notes); !slices.Equal(got, wantNotes) || d.Renamed() != len(wantNotes) {
		t.Errorf("noted, of %d names,\n%s\nwant\n%s", d.Renamed(), strings.Join(got, "\n"),
			strings.Join(wantNotes, "\n"))
	}
}

// TestSingletons: a path that is read, and replaced or patched, and is neither a collection nor a list is one object's.
func TestSingletons(t *testing.T) {
	const (
		me         = "{get: {responses: {'200': {content: {application/json: {schema: {$ref: '#/components/schemas/Account'}}}}}}, put: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Account'}}}}}"
		components = "\ncomponents: {schemas: {Account: {type: object, properties: {id: {type: string}, tags: {type: array, items: {type: string}}}}}}\n"
		passes     = "operation "
	)
	for name, test := range map[string]struct{ paths, want string }{
		"replaced": {"{/me: " + me + "}}", "me Account single /v1/me as /v1/me GET,HEAD,PUT,OPTIONS"},
		"patched":  {"{/me: {get: {}, patch: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Account'}}}}}}}", "me Me single /v1/me as /v1/me GET,HEAD,PATCH,OPTIONS"},
		"deleted too": {"{/me: " + me + ", delete: {}}}",
			"me Account single /v1/me as /v1/me GET,HEAD,PUT,DELETE,OPTIONS"},
		"named by the author": {"{/me: " + me +
			", x-admission-gateway-resource: {names: {plural: accounts, kind: Self}}}}",
			"accounts Self single /v1/me as /v1/me GET,HEAD,PUT,OPTIONS"},
		"left out by the author": {"{/me: " + me + ", x-admission-gateway-resource: {ignore: true}}}",
			passes + "GET /v1/me" + "; " + passes + "PUT /v1/me"},
		"below an object": {"{'/users/{id}/settings': " + me + "}}", "settings Account single /v1/users/{namespace}/settings as /v1/users/{id}/settings GET,HEAD,PUT,OPTIONS"},
		"beside objects":  {"{'/users/{id}': {get: {}}, /users/me: " + me + "}}", "users User /v1/users/{name} as /v1/users/{id} GET,HEAD,OPTIONS; me Account single /v1/users/me as /v1/users/me GET,HEAD,PUT,OPTIONS"},
		"a collection": {"{/me: " + me + "}, '/me/{id}': {get: {}}}",
			"me Me /v1/me /v1/me/{name} as /v1/me /v1/me/{id} GET,HEAD,OPTIONS; " + passes + "PUT /v1/me held"},
		"posted to": {"{/me: " + me + ", post: {}}}", passes + "GET /v1/me" + "; " + passes +
			"PUT /v1/me held" + "; " + passes + "POST /v1/me"},
		"never read":              {"{/me: {put: {}}}", passes + "PUT /v1/me"},
		"never written":           {"{/me: {get: {}, delete: {}}}", passes + "GET /v1/me" + "; " + passes + "DELETE /v1/me"},
		"a list":                  {"{/me: {get: {responses: {'200': {content: {application/json: {schema: {type: array, items: {}}}}}}}, patch: {}}}", passes + "GET /v1/me" + "; " + passes + "PATCH /v1/me"},
		"replaced by a list":      {"{/me: {get: {}, put: {requestBody: {content: {application/json: {schema: {type: array, items: {}}}}}}}}", passes + "GET /v1/me" + "; " + passes + "PUT /v1/me held"},
		"written by an operation": {"{'/users/{id}': {get: {}}, /users/me: {get: {}, put: {x-admission-gateway-operation: become}}}", "users User /v1/users/{name} as /v1/users/{id} GET,HEAD,OPTIONS; " + passes + "GET /v1/users/me"},
		"with a slash at the end": {"{/me/: " + me + "}}", "me Account single /v1/me/ as /v1/me/ GET,HEAD,PUT,OPTIONS"},
	} {
		resources, operations, _ := read(t, "openapi: 3.1.0\ninfo: {title: Me, version: '1'}\nservers: [{url: /v1}]\npaths: "+test.paths+components).Resources(nil)
		var got []string
		for _, r := range resources {
			line := r.Plural + " " + r.Kind
			methods := r.Methods(false)
			if r.IsSingleton() {
				line += " single"
			}
			got = append(got, line+" "+strings.Join(append(append(slices.Clone(r.Paths), "as"), r.Routes()...), " ")+
				" "+strings.Join(methods.Item.Names(), ","))
		}
		for _, o := range operations {
			got = append(got, passes+summaryOf(o))
		}
		if got := strings.Join(got, "; "); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, test.want)
		}
	}
}

// summaryOf returns the method and the paths of an operation that is no verb of a resource, and whether it is held.
func summaryOf(o *openapi.Documented) string {
	line := o.Method + " " + strings.Join(o.Templates, " ")
	if o.IsHeld() {
		line += " held"
	}
	return line
}

func get[T any](list []T, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// TestMadeNames: a name that is made up gives way to one that an author gives, and to the one of a shorter path,
// whatever the paths are. None is an error.
func TestMadeNames(t *testing.T) {
	resources, _, found := read(t, `
openapi: 3.0.3
info: {title: Names, version: '1'}
paths:
  /run: {post: {}}
  /runs/{id}: {get: {}}
  /media_a/{id}: {get: {}}
  /media-a/{id}: {get: {}}
  /Items/{id}: {get: {}}
  /items/{id}: {get: {}}
  /shop/items/{id}: {get: {}}
  /said/{id}: {get: {}, x-admission-gateway-resource: {names: {plural: items, kind: Item}}}
`).Resources(nil)
	var got []string
	for _, r := range resources {
		got = append(got, r.Plural+" "+r.Kind)
	}
	if got, want := strings.Join(got, ", "), "runs Run, media-a MediaA, media-a-2 MediaA2, items-2 Item2, items-3 Item3, shop-items ShopItem, items Item, run Run2"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, f := range found {
		if f.Error {
			t.Error(f)
		}
	}
}

func TestVersions(t *testing.T) {
	for text, want := range map[string]string{
		`{"openapi":"3.0.3"}`: "",
		`{"openapi":"3.1.1"}`: "",
		`{"openapi":3.1}`:     "",
		`{"openapi":"3.2.0"}`: "",
		`{"openapi":3.2}`:     "",
		`{"openapi":"3.3.0"}`: "must be of version 3.0, 3.1 or 3.2 of OpenAPI, not '3.3.0'",
		`{"openapi":"4"}`:     "must be of version 3.0, 3.1 or 3.2 of OpenAPI, not '4'",
	} {
		d, err := openapi.Parse([]byte(text))
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			d.Release()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// TestKindsOfNumbers: a kind has letters, wherever the path has them.
func TestKindsOfNumbers(t *testing.T) {
	resources, _, found := read(t, `
openapi: 3.0.3
info: {title: Names, version: '1'}
paths:
  /status/401: {get: {}, put: {}}
  /status/404: {get: {}, put: {}}
  /archive/2024/{id}: {get: {}}
  /1/2/{id}: {get: {}}
  /3/{id}: {get: {}}
`).Resources(nil)
	var got []string
	for _, r := range resources {
		got = append(got, r.Plural+" "+r.Kind)
	}
	if got, want := strings.Join(got, ", "),
		"r-2024 Archive2024, r-2 Object2, r-3 Object, r-401 Status401, r-404 Status404"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, f := range found {
		if f.Error {
			t.Error(f)
		}
	}
}

// Names that a program gave to schemas are no kinds: the path names them.
func TestKindsOfGeneratedSchemas(t *testing.T) {
	for name, want := range map[string]string{
		"def-0": "User", "Schema12": "User", "InlineResponse200": "User", "inline_model_1": "User", "Body": "User",
		"Model":   "User",
		"Account": "Account", "UserResponse": "User", "Definition": "Definition", "Defender": "Defender",
	} {
		resources, _, _ := read(t, strings.ReplaceAll(`
openapi: 3.0.3
paths:
  /v1/users: {post: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/NAME'}}}}}}
  /v1/users/{id}: {get: {}}
components: {schemas: {NAME: {type: object}}}
`, "NAME", name)).Resources(nil)
		if got := resources[0].Kind; got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// What the extension of an operation says.
func TestActions(t *testing.T) {
	d := read(t, `
openapi: 3.0.3
paths:
  /v1/{tenant}/users: {get: {}, post: {requestBody: {content: {application/json: {schema: {type: object}}}}}}
  /v1/{tenant}/users/{id}: {get: {}}
  /v1/{tenant}/users/{id}/keys/{key}/rotate: {post: {x-admission-gateway-operation: rotate}}
  /v1/{tenant}/users/bulk:
    put:
      x-admission-gateway-operation: {name: bulk, operation: UPDATE, items: Each}
      requestBody: {required: true, content: {application/json: {schema: {type: array, items: {type: object}}}}}
  /search: {post: {x-admission-gateway-operation: search, requestBody: {content: {application/json: {schema: {type: object}}}}}}
  /other/x: {delete: {x-admission-gateway-operation: {name: purge, resource: users}}}
  /nowhere/x: {delete: {x-admission-gateway-operation: purge}}
`)
	_, _, found := d.Resources(nil)
	var got []string
	for _, a := range d.Actions() {
		schema := "any"
		if a.Schema != nil {
			schema = openapi.TypeOf(a.Schema)
		}
		got = append(got, fmt.Sprint(a.Of.Plural, "/", a.Name(), " ", a.Method, " ", a.Paths, " ", a.Routes, " ",
			schema, " ", a.Said.MayBeEmpty, " ", a.Member("items")))
	}
	want := []string{
		"users/rotate POST [/v1/{namespace}/users/{name}/keys/{parent-key}/rotate] [/v1/{tenant}/users/{id}/keys/{key}/rotate] any true ",
		"users/bulk PUT [/v1/{namespace}/users/bulk] [/v1/{tenant}/users/bulk] array false Each",
		"search/search POST [/search] [/search] object true ",
		"users/purge DELETE [/other/x] [/other/x] any true ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	wantFound := "paths[/nowhere/x].delete.x-admission-gateway-operation: must be below the path of a resource, or name the `resource` that it belongs to"
	if got := findings(found); !slices.Contains(got, wantFound) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), wantFound)
	}
}
