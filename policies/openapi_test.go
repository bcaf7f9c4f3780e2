package policies

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/openapi/openapitest"
	"sigs.k8s.io/randfill"

	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/merge/kubernetes"
	"github.com/admission-gateway/gateway/internal/resource"
	kschema "github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// published loads the documents that a Kubernetes API server publishes, and reads their components.
func published(t *testing.T) (*Set, components) {
	t.Helper()
	groups, err := openapitest.NewEmbeddedFileClient().Paths()
	if err != nil {
		t.Fatal(err)
	}
	files, schemas := map[string]string{}, components{}
	for name, group := range groups {
		raw, err := group.Schema("application/json")
		if err != nil {
			t.Fatal(err)
		}
		files[strings.ReplaceAll(name, "/", "_")+".json"] = string(raw)
		var d struct{ Components struct{ Schemas components } }
		if err := json.Unmarshal(raw, &d); err != nil {
			t.Fatal(err)
		}
		maps.Copy(schemas, d.Components.Schemas)
	}
	dir := testutil.WriteFiles(t, files)
	set, found := Load([]string{dir})
	found = slices.DeleteFunc(found, func(f Finding) bool { return f.Severity == Note })
	if len(found) > 0 {
		t.Fatal(text(dir, found))
	}
	return set, schemas
}

// components are schemas by their names.
type components map[string]*component

type component struct {
	Ref                         string `json:"$ref"`
	AllOf                       []*component
	Properties                  map[string]*component
	Items, AdditionalProperties *component
	Kinds                       []metav1.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
}

// of is the component of a kind.
func (all components) of(kind schema.GroupVersionKind) *component {
	for _, c := range all {
		if slices.Contains(c.Kinds, metav1.GroupVersionKind(kind)) {
			return c
		}
	}
	return nil
}

// unknown counts the members that a schema does not name.
func (all components) unknown(c *component, value any) (n int) {
	for c != nil && (c.Ref != "" || len(c.AllOf) == 1) {
		if len(c.AllOf) == 1 {
			c = c.AllOf[0]
		} else {
			c = all[strings.TrimPrefix(c.Ref, "#/components/schemas/")]
		}
	}
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			n += all.unknown(c.Items, item)
		}
	case map[string]any:
		for key, member := range v {
			if p := c.Properties[key]; p != nil {
				n += all.unknown(p, member)
			} else if c.AdditionalProperties != nil {
				n += all.unknown(c.AdditionalProperties, member)
			} else if len(c.Properties) > 0 {
				n++
			}
		}
	}
	return n
}

// failuresOf is how many members of an object are unknown in a write, and what is wrong with it.
func failuresOf(t *testing.T, set *Set, r *resource.Resource, verb resource.Verb,
	raw []byte) (unknown int, wrong []string) {
	t.Helper()
	d, err := document.Parse(raw, document.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	defer d.Release()
	s := set.SchemaFor(r, verb)
	var fields kschema.Unknown
	if err := s.Prune(d, &fields); err != nil {
		return 0, []string{err.Error()}
	}
	defaults.Apply(d, s)
	f := cel.NewFrame(context.Background())
	defer f.Release()
	for _, err := range s.Validate(f, d.Root(), document.Node{}).Errors {
		wrong = append(wrong, err.Error())
	}
	return len(fields.Messages()), wrong
}

// TestPublishedSchemas holds objects that Kubernetes' own types write, with everything in them set at random, against
// the documents that Kubernetes publishes: nothing is unknown and nothing wrong.
func TestPublishedSchemas(t *testing.T) {
	set, all := published(t)
	fill := randfill.NewWithSeed(1).NilChance(0).NumElements(0, 2).MaxDepth(16).Funcs(
		func(q *apiresource.Quantity, c randfill.Continue) {
			*q = *apiresource.NewQuantity(c.Int63n(1000), apiresource.DecimalSI)
			_ = q.String()
		},
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			*m = metav1.ObjectMeta{Name: fmt.Sprint("n", c.Intn(100)), Labels: map[string]string{"a": "b"}}
		},
		func(m *metav1.Time, c randfill.Continue) { *m = metav1.Unix(c.Int63n(1<<32), 0) },
		func(m *metav1.MicroTime, c randfill.Continue) {
			*m = metav1.NewMicroTime(time.Unix(c.Int63n(1<<32), 0))
		},
		func(m *metav1.FieldsV1, c randfill.Continue) { m.SetRawString(`{}`) },
		func(r *runtime.RawExtension, c randfill.Continue) { r.Raw = []byte(`{"a":1}`) },
	)
	kinds := 0
	for _, r := range set.Registry().Resources() {
		typ := scheme.Scheme.AllKnownTypes()[r.GroupVersionKind()]
		if typ == nil {
			continue
		}
		kinds++
		for range 20 {
			o := reflect.New(typ).Interface().(runtime.Object)
			fill.Fill(o)
			o.GetObjectKind().SetGroupVersionKind(r.GroupVersionKind())
			raw, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			var value any
			if err := json.Unmarshal(raw, &value); err != nil {
				t.Fatal(err)
			}
			known := all.of(r.GroupVersionKind())
			for _, verb := range []resource.Verb{resource.VerbCreate, resource.VerbUpdate} {
				if set.SchemaFor(r, verb) == nil {
					continue // of a kind that is not written so
				}
				unknown, wrong := failuresOf(t, set, r, verb, raw)
				if want := min(all.unknown(known, value), 101); unknown != want || len(wrong) > 0 {
					t.Fatalf("%s: %d fields are unknown, want %d\n%s\n%s", r.Names.Kind, unknown, want,
						strings.Join(wrong, "\n"), raw)
				}
			}
		}
	}
	if kinds < 20 {
		t.Errorf("only %d kinds were compared", kinds)
	}
}

// TestPublishedSchemasLikeServers has objects in which a server's own decoder decides what is missing and what stands
// twice.
func TestPublishedSchemasLikeServers(t *testing.T) {
	set, _ := published(t)
	pod := func(container string) string {
		return `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{"containers":[` + container + `]}}`
	}
	for object, want := range map[string][]string{
		pod(`{"name":"c","env":[{"name":"A","value":"1"},{"name":"A","value":"2"}],"ports":[{"containerPort":80},{"containerPort":80}]}`): nil,
		pod(`{"name":"c","env":null,"resources":{"limits":{"cpu":1,"memory":"1Gi"}},"livenessProbe":{"tcpSocket":{"port":"http"}}}`):      nil,
		pod(`{"name":"c","ports":[{"containerPort":"80"}],"stdin":1,"volumeMounts":[7]}`): {
			`spec.containers[0].ports[0].containerPort: Invalid value: "string": must be of type integer`,
			`spec.containers[0].stdin: Invalid value: "integer": must be of type boolean`,
			`spec.containers[0].volumeMounts[0]: Invalid value: "integer": must be of type object`,
		},
		pod(`{"name":"c","ports":[{"containerPort":2147483648}]}`): {
			`spec.containers[0].ports[0].containerPort: Invalid value: 2147483648: must be between -2147483648 and 2147483647, inclusive`,
		},
		`{"kind":"LimitRange","apiVersion":"v1","metadata":{"name":"a"},"spec":{"limits":null}}`:                        nil,
		`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"},"data":{"empty":"","lines":"YWJj\nZGVm\n"}}`:        nil,
		`{"kind":"StatefulSet","apiVersion":"apps/v1","metadata":{"name":"a"},"spec":{"selector":{},"template":{}}}`:    nil,
		`{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"a"},"spec":{"template":{}}}`:                   {`spec.selector: Required value`},
		`{"kind":"Service","apiVersion":"v1","metadata":{"name":"a"},"spec":{"ports":[{"port":80,"targetPort":true}]}}`: {`spec.ports[0].targetPort: Invalid value: "boolean": must be of type integer or string`},
	} {
		var about metav1.TypeMeta
		if err := json.Unmarshal([]byte(object), &about); err != nil {
			t.Fatal(err)
		}
		for _, r := range set.Registry().Resources() {
			if r.GroupVersionKind() != about.GroupVersionKind() {
				continue
			}
			if _, wrong := failuresOf(t, set, r, resource.VerbCreate, []byte(object)); !slices.Equal(wrong, want) {
				t.Errorf("%s\n got %q\nwant %q", object, wrong, want)
			}
			if got := set.StrategicType(r); got == nil || got != kubernetes.TypeOf(about.GroupVersionKind()) {
				t.Errorf("%s: its strategic merge patches are not of Kubernetes' type", r.Names.Kind)
			}
		}
	}
}

func TestOpenAPIFindings(t *testing.T) {
	document := func(lines ...string) string {
		return "openapi: 3.1.0\ninfo: {title: Orders, version: 2.0.0}\nservers: [{url: https://orders.example.com/v2}]\n" + strings.Join(lines, "\n") + `
paths:
  /orders/{id}: {x-admission-gateway-resource: {storedObject: Shown},
    put: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Order'}}}}, responses: {}}}
`
	}
	order := func(schema string, lines ...string) string {
		return document(lines...) + "components:\n  schemas:\n    Order:\n      " +
			strings.ReplaceAll(strings.TrimSpace(schema), "\n", "\n      ") + "\n"
	}
	settings := func(lines string) string {
		return order("type: object", "x-admission-gateway-resource:\n  "+strings.ReplaceAll(lines, "\n", "\n  "))
	}
	for name, test := range map[string]struct{ file, want string }{
		"a document": {order("type: object"), ""},
		"keywords that are not enforced": {order("type: object\nproperties:\n  a: {type: string, format: iban, pattern: '(?=a)'}\n  b: {type: array, divisibleBy: 1}\nrequired: desk"), "" +
			"a.yaml:15: components.schemas.Order.required: must be a list of names of properties\n" +
			"a.yaml:14: components.schemas.Order.properties.b.divisibleBy: warning: the keyword 'divisibleBy' is not enforced\n" +
			"a.yaml:13: components.schemas.Order.properties.a.format: note: the format 'iban' is not enforced\n" +
			"a.yaml:13: components.schemas.Order.properties.a.pattern: note: is not enforced, because the expression is not one of RE2: invalid or unsupported Perl syntax: `(?=`\n"},
		"references": {order("allOf:\n- {$ref: '#/components/schemas/Ordr'}\n- {$ref: 'common.yaml#/Base'}"), "" +
			"a.yaml:12: components.schemas.Order.allOf[0].$ref: must point to something in the document, not '#/components/schemas/Ordr'\n" +
			"a.yaml:13: components.schemas.Order.allOf[1].$ref: must lead to a file that can be read, not to 'common.yaml#/Base': there is no 'common.yaml'\n"},
		"wrong defaults": {order("type: object\nproperties:\n  a: {type: integer, default: 0, minimum: 1}\n  b: {type: string, default: 1}"), "" +
			"a.yaml:13: components.schemas.Order.properties.a.default: warning: the default is not applied: Invalid value: 0: must be greater than or equal to 1\n" +
			"a.yaml:14: components.schemas.Order.properties.b.default: warning: must be of the schema's type; the default is not applied\n"},
		"the gateway's own keywords": {order("type: object\nproperties:\n  a: {type: string, x-admission-gateway-default: {expression: self.c}}\n  b: {type: string, x-admission-gateway-immutable: 1}\n  c: {type: integer, x-admission-gateway-foo: 1}"), "" +
			"a.yaml:13: components.schemas.Order.properties.a.x-admission-gateway-default.expression: Invalid value: \"self.c\": must evaluate to string but got int\n" +
			"a.yaml:14: components.schemas.Order.properties.b.x-admission-gateway-immutable: Invalid value: must be 'true' or 'false'\n" +
			"a.yaml:15: components.schemas.Order.properties.c.x-admission-gateway-foo: Invalid value: must be one of the keywords 'x-admission-gateway-default', 'x-admission-gateway-immutable' and 'x-admission-gateway-union'\n"},
		"an extension that says again":      {settings("paths: {item: /a}"), "a.yaml:5: x-admission-gateway-resource.paths: may not be set: the document itself says it\n"},
		"an extension with what is unknown": {settings("group: orders.example.com\nnaems: {kind: Order}"), "a.yaml:6: x-admission-gateway-resource.naems: unknown field; did you mean `names`?\n"},
		"an extension with what is wrong":   {settings("names: {plural: Orders}\nenvelope: Bear"), "a.yaml:6: x-admission-gateway-resource.envelope: Unsupported value: \"Bear\": supported values: \"Bare\", \"Kubernetes\"\n"},
		"an extension against the rules":    {settings("names: {plural: Orders}\nstatusSubresource: Emulated\nfields: {status: state}\nscale: {specReplicasPath: .a, statusReplicasPath: .b}"), "a.yaml:5: x-admission-gateway-resource.names.plural: Invalid value: \"Orders\": must be a DNS label that begins with a letter, such as 'orders'\n"},
		"an extension that is none":         {order("type: object", "x-admission-gateway-resource: orders"), "a.yaml:4: x-admission-gateway-resource: must be an object with members of an APIResource's `spec`\n"},
		"a PUT that lacks what is writeOnly": {order("type: object\nproperties:\n  a: {type: array, items: {type: object, properties: {b: {writeOnly: true}}}}", "x-admission-gateway-resource: {backend: {patch: Emulated}}"),
			"a.yaml:4: x-admission-gateway-resource.backend.patch: warning: PATCH becomes a PUT of what the API shows, which lacks what is writeOnly: " +
				"the API may refuse it, or forget what it had stored there, unless clients send it again\n" +
				"a.yaml:13: components.schemas.Order.properties.a.items.properties.b.writeOnly: note: is not enforced in answers: they pass as they come\n"},
		"an extension about answers": {settings("responses: Warn"), ""},
		"an extension against answers": {settings("responses: Deny"),
			"a.yaml:5: x-admission-gateway-resource.responses: must be 'Ignore' or 'Warn'\n"},
		"an extension that leaves it out": {settings("ignore: true"), "a.yaml:7: paths[/orders/{id}].x-admission-gateway-resource.storedObject: warning: has no effect: the path is no part of a resource\n"},
		"Swagger with a schema that is a list": {"swagger: '2.0'\ninfo: {title: A, version: v1}\npaths: {}\ndefinitions:\n  items:\n    type: array\n    items:\n    - {type: string}\n",
			"a.yaml:7: definitions.items.items: must be one schema, not a list\n"},
		"Swagger with a reference to nothing": {"swagger: '2.0'\ninfo: {title: A, version: v1}\npaths:\n  /a:\n    post:\n      parameters:\n      - {in: body, name: b, schema: {$ref: '#/definitions/B'}}\n      responses: {'200': {schema: {$ref: '#/definitions/C'}}}\n",
			"a.yaml:7: paths[/a].post.parameters[0].schema.$ref: must point to something in the document, not '#/definitions/B'\n" +
				"a.yaml:8: paths[/a].post.responses.200.schema.$ref: must point to something in the document, not '#/definitions/C'\n"},
		"keywords of another type": {"openapi: 3.0.3\ninfo: {title: A, version: v1}\npaths:\n  /orders/{id}:\n    parameters:\n    - {name: id, in: path, schema: {type: string}}\n" +
			"    - {name: q, in: query, required: 'yes', schema: {type: string}}\n    put:\n      security: key\n      parameters: {}\n" +
			"      requestBody:\n        required: 'yes'\n        content: []\n      responses: {'200': {description: ok}}\n    get: [a]\n", "" +
			"a.yaml:7: paths[/orders/{id}].parameters[1].required: must be a boolean, not a string\n" +
			"a.yaml:9: paths[/orders/{id}].put.security: must be a list, not a string\n" +
			"a.yaml:10: paths[/orders/{id}].put.parameters: must be a list, not an object\n" +
			"a.yaml:12: paths[/orders/{id}].put.requestBody.required: must be a boolean, not a string\n" +
			"a.yaml:13: paths[/orders/{id}].put.requestBody.content: must be an object, not a list\n" +
			"a.yaml:15: paths[/orders/{id}].get: must be an object, not a list\n" +
			"a.yaml:6: paths[/orders/{id}].parameters[0]: warning: must have `required: true`: a value in the path is always there\n"},
		"an expression that is none": {"openapi: 3.1.0\ninfo: {title: A, version: v1}\npaths:\n  /a:\n    post:\n      requestBody:\n        content:\n          application/json: {schema: {type: string, pattern: '('}}\n",
			"a.yaml:8: paths[/a].post.requestBody.content[application/json].schema.pattern: warning: is not enforced, because the expression is not one of RE2: missing closing ): `(`\n"},
		"another version": {"openapi: 3.3.0\npaths: {}\n", "a.yaml:1: openapi: must be of version 3.0, 3.1 or 3.2 of OpenAPI, not '3.3.0'\n"},
		"Swagger":         {"swagger: '1.2'\npaths: {}\n", "a.yaml:1: openapi: must be of version 2.0 of Swagger, not '1.2'\n"},
		"longer names": {"openapi: 3.1.0\ninfo: {title: T, version: '1'}\npaths:\n  /a/{id}: {get: {}}\n  /b/{id}/a/{id2}: {get: {}}\n", "" +
			"a.yaml:5: paths[/b/{id}/a/{id2}]: note: has the kind 'BA', because another resource has the kind 'A'; `x-admission-gateway-resource.names.kind` may give it another one\n" +
			"a.yaml:5: paths[/b/{id}/a/{id2}]: note: is the resource 'b-a', because another path has the shorter name: policies match it by that; `x-admission-gateway-resource.names.plural` may give it another one\n" +
			"a.yaml:1: note: 1 resource has a longer name, because another path has the shorter one: policies match it by what 'gateway check --list' shows; `x-admission-gateway-resource.names.plural` at a path gives another name\n"},
		"a resource of another file too": {order("type: object") + "---\n" + orders, "" +
			"a.yaml:6: paths[/orders/{id}]: path '/v2/orders/{name}' of 'orders-2' must not match the same requests as path '/v2/orders/{name}' of 'orders'\n" +
			"a.yaml:6: paths[/orders/{id}]: note: is the resource 'orders-2', because a.yaml:17 has the name 'orders'; `x-admission-gateway-resource.names.plural` may give it another one\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := testutil.WriteFiles(t, map[string]string{"a.yaml": test.file})
			_, found := Load([]string{dir})
			if got := text(dir, found); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// What a document of Kubernetes' form says of parameters and credentials is noted with when it is enforced.
func TestOpenAPIKubernetesNotes(t *testing.T) {
	dir := testutil.WriteFiles(t, map[string]string{"a.yaml": `openapi: 3.0.0
info: {title: Shop, version: v1}
paths:
  /apis/shop.example.com/v1/widgets/{name}:
    parameters: [{name: name, in: path, required: true, schema: {type: string, uniqueItems: true}}]
    get:
      x-kubernetes-group-version-kind: {group: shop.example.com, version: v1, kind: Widget}
      security: [{token: []}]
      parameters:
      - {name: pretty, in: query, schema: {type: string}}
      - {name: zone, in: query, schema: {type: integer}}
      - {name: shape, in: query, schema: {type: array, items: {type: object}}}
  /apis/shop.example.com/v1/widgets/{name}/log:
    get:
      security: [{token: []}]
      parameters: [{name: follow, in: query, schema: {type: boolean}}]
  /shop/reports:
    get: {parameters: [{name: year, in: query, schema: {type: integer}}]}
components:
  securitySchemes: {token: {type: http, scheme: bearer}}
  schemas: {Widget: {type: object, x-kubernetes-group-version-kind: [{group: shop.example.com, version: v1, kind: Widget}]}}
`})
	set, found := Load([]string{dir})
	if set == nil {
		t.Fatal(text(dir, found))
	}
	const at, log = "paths[/apis/shop.example.com/v1/widgets/{name}].",
		"paths[/apis/shop.example.com/v1/widgets/{name}/log].get."
	want := "a.yaml:12: " + at + "get.parameters[2]: note: is not enforced: the gateway reads no lists and objects within lists\n" +
		"a.yaml:5: " + at + "parameters[0]: note: is not enforced: it is read as every API server reads it\n" +
		"a.yaml:8: " + at + "get.security: note: is enforced at upstreams of the dialect Plain alone: an API server reads its credentials itself\n" +
		"a.yaml:10: " + at + "get.parameters[0]: note: is not enforced: it is read as every API server reads it\n" +
		"a.yaml:11: " + at + "get.parameters[1]: note: is enforced at upstreams of the dialect Plain alone: an API server reads its parameters itself\n" +
		"a.yaml:15: " + log + "security: note: is not enforced: what answers there reads its credentials itself\n" +
		"a.yaml:16: " + log + "parameters[0]: note: is not enforced: what answers there reads its parameters itself\n"
	if got := text(dir, found); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestOpenAPIPatch: the media types of a PATCH count, and one that becomes a PUT which the document does not have is
// named.
func TestOpenAPIPatch(t *testing.T) {
	document := func(more string) string {
		return `openapi: 3.0.3
info: {title: Notes, version: "1"}
` + more + `paths:
  /notes:
    get: {responses: {"200": {description: all}}}
  /notes/{id}: # whose GET shows it
    x-admission-gateway-resource: {storedObject: Shown}
    patch:
      requestBody:
        content:
          application/json: {schema: {type: object, properties: {a: {type: string}}}}
          application/vnd.notes+json: {schema: {type: object}}
          application/merge-patch+json: {schema: {type: object}}
          multipart/form-data: {schema: {type: object}}
      responses: {"200": {description: one}}
`
	}
	set, _ := Load([]string{testutil.WriteFiles(t, map[string]string{"a.yaml": document("")})})
	r := set.Registry().Resources()[0]
	if r.Backend.Patch != resource.PatchValidated ||
		!slices.Equal(r.Writes.PatchTypes, []string{"application/vnd.notes+json"}) {
		t.Errorf("got %s %q", r.Backend.Patch, r.Writes.PatchTypes)
	}
	dir := testutil.WriteFiles(t,
		map[string]string{"a.yaml": document("x-admission-gateway-resource: {backend: {patch: Emulated}}\n")})
	_, found := Load([]string{dir})
	const want = "a.yaml:3: x-admission-gateway-resource.backend.patch: warning: PATCH becomes a PUT of the object that results from it, and the document has no PUT here\n" +
		"a.yaml:15: paths[/notes/{id}].patch.requestBody.content[multipart/form-data]: warning: is refused: a form is passed on to a backend that has PATCH itself (patch: Validated), for objects that are Bare\n"
	if got := text(dir, found); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
