package defaults_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/schema"
)

// extended compiles a schema with the gateway's own keywords.
func extended(t testing.TB, text string) (*schema.Schema, field.ErrorList) {
	t.Helper()
	objects, problems := manifest.Read("schema.yaml",
		[]byte("apiVersion: v1\nkind: Schema\nschema:\n  "+strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")))
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	d, err := document.Parse(objects[0].JSON, document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	root, _ := d.Root().Get("schema")
	extensions, errs := schema.ReadExtensions(root, nil)
	if len(errs) > 0 {
		return nil, errs
	}
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.Unmarshal([]byte(text), props); err != nil {
		t.Fatal(err)
	}
	s, _, errs := schema.Compile(props, schema.Options{Extensions: extensions})
	return s, errs
}

// derived applies literal and computed defaults; failures are named behind the result.
func derived(t testing.TB, s *schema.Schema, text string, most int) (string, error) {
	t.Helper()
	d, err := document.Parse([]byte(text), document.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer d.Release()
	f := cel.NewFrame(context.Background())
	defer f.Release()
	defaults.Apply(d, s)
	failures, err := defaults.Derive(f, d, s, most)
	result := string(d.AppendTo(nil))
	for _, failure := range failures {
		result += "\n" + failure.Error()
	}
	return result, err
}

// The order in which the fields stand here is the file's.
const service = `
type: object
properties:
  kind: {type: string, default: Internal}
  port:
    type: integer
    x-admission-gateway-default: {expression: "self.kind == 'Internal' ? 8080 : 443"}
  healthPort:
    type: integer
    x-admission-gateway-default: {expression: self.port, when: "self.kind != 'Batch'"}
  replicas:
    type: integer
    nullable: true
    x-admission-gateway-default: {expression: "self.?minReplicas"}
  minReplicas: {type: integer}
  labels:
    type: object
    additionalProperties: {type: string}
    x-admission-gateway-default: {expression: "{'port': string(self.port), 'app': self.name}", when: has(self.name)}
  name: {type: string}
  probe:
    type: object
    x-admission-gateway-default: {expression: "{'path': '/live'}", when: "self.kind == 'Internal'"}
    properties:
      path: {type: string}
      periodSeconds: {type: integer, default: 10}
      port:
        type: integer
        x-admission-gateway-default: {expression: object.healthPort}
  routes:
    type: array
    items:
      type: object
      properties:
        host: {type: string}
        url:
          type: string
          x-admission-gateway-default: {expression: "'https://' + self.host + ':' + string(object.port)", when: has(self.host)}
  zones:
    type: object
    additionalProperties:
      type: object
      properties:
        weight:
          type: integer
          x-admission-gateway-default: {expression: "100 / object.zones.size()"}
  since:
    type: string
    format: date-time
    x-admission-gateway-default: {expression: "timestamp('2024-05-01T00:00:00Z')", when: "self.kind == 'Batch'"}
  ratio:
    type: number
    x-admission-gateway-default: {expression: "1", when: "self.kind == 'Batch'"}
  copy:
    type: object
    x-kubernetes-preserve-unknown-fields: true
    x-admission-gateway-default: {expression: "self.routes[0]", when: "self.?routes.orValue([]).size() > 0"}
`

// DEF-2, DEF-5, DEF-6
func TestDerive(t *testing.T) {
	s, errs := extended(t, service)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, c := range []struct{ name, object, want string }{
		{
			"conditions, other fields and objects that defaults make",
			`{}`,
			`{"kind":"Internal","port":8080,"healthPort":8080,"probe":{"path":"/live","periodSeconds":10,"port":8080}}`,
		},
		{
			"what is set is not changed",
			`{ "kind":"Batch", "port" : 1, "since":"", "ratio":0, "probe":{}, "replicas":null, "minReplicas":3 }`,
			`{ "kind":"Batch", "port" : 1, "since":"", "ratio":0, "probe":{"periodSeconds":10}, "replicas":null, "minReplicas":3 ` +
				"}\nprobe.port: Invalid value: must be set, because its default cannot be computed: no such key: healthPort, evaluating: object.healthPort",
		},
		{
			"a null where there is none is unset",
			`{"kind":"Batch","port":null,"healthPort":null,"replicas":2}`,
			`{"kind":"Batch","port":443,"healthPort":null,"replicas":2,"since":"2024-05-01T00:00:00Z","ratio":1}`,
		},
		{
			"optional values, maps and numbers",
			`{"kind":"Public","minReplicas":2,"name":"a\"b"}`,
			`{"kind":"Public","minReplicas":2,"name":"a\"b","port":443,"healthPort":443,"replicas":2,"labels":{"app":"a\"b","port":"443"}}`,
		},
		{
			"in items of lists and values of maps; what is copied keeps its spelling",
			`{"kind":"Public","port":1,"healthPort":1e0,"routes":[ {"host":"\u0061" },{},null],"zones":{"a":{},"b":{"weight":1}}}`,
			`{"kind":"Public","port":1,"healthPort":1e0,"routes":[ {"host":"\u0061","url":"https://a:1" },{},null],"zones":{"a":{"weight":50},"b":{"weight":1}},"copy":{"host":"\u0061","url":"https://a:1" }}`,
		},
		{
			"what has a wrong type leaves the field unset",
			`{"kind":"Public","port":"1","routes":[{"host":1},{"host":"b"}],"zones":[]}`,
			`{"kind":"Public","port":"1","routes":[{"host":1},{"host":"b"}],"zones":[],"copy":{"host":1}}` +
				"\nhealthPort: Invalid value: must be set, because its default cannot be computed: invalid data, expected int, got string, evaluating: self.port" +
				"\nroutes[0].url: Invalid value: must be set, because its default cannot be computed: invalid data, expected string, got number, evaluating: has(self.host)" +
				"\nroutes[1].url: Invalid value: must be set, because its default cannot be computed: invalid data, expected int, got string, evaluating: 'https://' + self.host + ':' + string(object.port)",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := derived(t, s, c.object, math.MaxInt)
			if err != nil || got != c.want {
				t.Errorf("got %s, %v\nwant %s", got, err, c.want)
			}
			once, _, failed := strings.Cut(got, "\n")
			if again, _ := derived(t, s, once, math.MaxInt); !failed && again != got {
				t.Errorf("applied twice: %s, then %s", got, again)
			}
		})
	}
}

// DEF-2: what cannot be right is found when the schema is compiled.
func TestDerivedDefaultsAreChecked(t *testing.T) {
	for _, c := range []struct {
		name, properties string
		want             []string
	}{
		{"type", `a: {type: integer, x-admission-gateway-default: {expression: "'x'"}}`,
			[]string{`properties[a].x-admission-gateway-default.expression: Invalid value: "'x'": must evaluate to int but got string`}},
		{"unknown field", `a: {type: integer, x-admission-gateway-default: {expression: self.b}}`,
			[]string{"properties[a].x-admission-gateway-default.expression: Invalid value: \"self.b\": compilation failed: ERROR: <input>:1:5: undefined field 'b'\n | self.b\n | ....^"}},
		{"condition", `a: {type: integer, x-admission-gateway-default: {expression: "1", when: "1"}}`,
			[]string{`properties[a].x-admission-gateway-default.when: Invalid value: "1": must evaluate to bool but got int`}},
		{"itself", `a: {type: integer, x-admission-gateway-default: {expression: "self.?a.orValue(1)"}}`,
			[]string{"properties[a].x-admission-gateway-default: Invalid value: must not read its own field `a`"}},
		{"itself, as a whole", `a: {type: integer, x-admission-gateway-default: {expression: "dyn(self) == dyn(object) ? 1 : 2"}}`,
			[]string{"properties[a].x-admission-gateway-default: Invalid value: must not read its own field `a`"}},
		{"a circle", `
a: {type: integer, x-admission-gateway-default: {expression: self.b}}
b: {type: integer, x-admission-gateway-default: {expression: self.c.d}}
c: {type: object, x-admission-gateway-default: {expression: "{'d': object.a}"}, properties: {d: {type: integer}}}`,
			[]string{"properties[a].x-admission-gateway-default: Invalid value: must not depend on itself: `a` reads `b`, which reads `c`, which reads `a`"}},
		{"beside a literal", `a: {type: integer, default: 1, x-admission-gateway-default: {expression: "1"}}`,
			[]string{`properties[a].x-admission-gateway-default: Forbidden: may not be set beside 'default', which comes first`}},
		{"on items", `a: {type: array, items: {type: string, x-admission-gateway-default: {expression: "'x'"}}}`,
			[]string{`properties[a].items.x-admission-gateway-default: Forbidden: may only be set on a property of an object`}},
		{"below anyOf", `a: {type: integer, anyOf: [{minimum: 1, x-admission-gateway-default: {expression: "1"}}]}`,
			[]string{`properties[a].anyOf[0].x-admission-gateway-default: Forbidden: may not be set below 'anyOf'`}},
		{"form", `
a: {type: integer, x-admission-gateway-default: 1}
b: {type: integer, x-admission-gateway-default: {expression: "", values: 1}}
c: {type: integer, x-admission-gateway-default: {when: "true"}}
d: {type: integer, x-admission-gateway-defaults: 1}`,
			[]string{
				"properties[a].x-admission-gateway-default: Invalid value: must be an object with `expression`",
				"properties[b].x-admission-gateway-default.expression: Invalid value: must be a string that is not empty",
				"properties[b].x-admission-gateway-default.values: Forbidden: unknown field",
				"properties[c].x-admission-gateway-default.expression: Required value",
				"properties[d].x-admission-gateway-defaults: Invalid value: must be one of the keywords 'x-admission-gateway-default', 'x-admission-gateway-immutable' and 'x-admission-gateway-union'",
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, errs := extended(t, "type: object\nproperties:\n  "+strings.ReplaceAll(strings.TrimSpace(c.properties),
				"\n", "\n  "))
			var got []string
			for _, err := range errs {
				got = append(got, err.Error())
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// DEF-2: parents come before what is in them, a field that is read before the one that reads it, and else the order is
// the file's.
func TestDeriveInOrder(t *testing.T) {
	s, errs := extended(t, `
type: object
properties:
  c: {type: string, x-admission-gateway-default: {expression: "self.b + 'c'"}}
  z: {type: string, x-admission-gateway-default: {expression: "has(self.w) ? 'with w' : 'without'"}}
  inner:
    type: object
    properties:
      x: {type: string, x-admission-gateway-default: {expression: object.c}}
  b: {type: string, x-admission-gateway-default: {expression: "self.a + 'b'"}}
  w: {type: string, x-admission-gateway-default: {expression: "'w'"}}
  a: {type: string, x-admission-gateway-default: {expression: "'a'"}}
`)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	got, err := derived(t, s, `{"inner":{}}`, math.MaxInt)
	want := `{"inner":{"x":"abc"},"w":"w","z":"with w","a":"a","b":"ab","c":"abc"}`
	if err != nil || got != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}

func TestDeriveWithinLimits(t *testing.T) {
	_, errs := extended(t, `
type: object
properties:
  l:
    type: array
    items:
      type: object
      properties:
        a: {type: string, x-admission-gateway-default: {expression: object.text}}
        c: {type: integer, x-admission-gateway-default: {expression: "object.l.filter(x, x == self).size()", when: has(object.costly)}}
  text: {type: string}
  costly: {type: boolean}
`)
	if len(errs) == 0 {
		t.Fatal("a default may not compare the items that it is in")
	}
	s, errs := extended(t, `
type: object
properties:
  l:
    type: array
    items:
      type: object
      properties:
        a: {type: string, x-admission-gateway-default: {expression: object.text}}
        c: {type: integer, x-admission-gateway-default: {expression: "object.m.filter(x, object.m.exists(y, x == y)).size()", when: has(object.m)}}
  m: {type: array, items: {type: integer}}
  text: {type: string}
`)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	items := func(n int, item string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	object := fmt.Sprintf(`{"text":"%s","l":%s}`, strings.Repeat("x", 1000), items(1000, "{}"))
	if _, err := derived(t, s, object, 10_000); !errors.Is(err, defaults.ErrTooLong) {
		t.Errorf("got %v, want %v", err, defaults.ErrTooLong)
	}
	var fault *cel.Error
	numbers := make([]string, 700)
	for i := range numbers {
		numbers[i] = fmt.Sprint(i)
	}
	object = fmt.Sprintf(`{"text":"","m":[%s],"l":%s}`, strings.Join(numbers, ","), items(1000, "{}"))
	if _, err := derived(t, s, object, math.MaxInt); !errors.As(err, &fault) || fault.Cause != value.OverBudget {
		t.Errorf("got %v, want a budget that is spent", err)
	}
}

func BenchmarkDerive(b *testing.B) {
	s, errs := extended(b, service)
	if len(errs) > 0 {
		b.Fatal(errs)
	}
	raw := []byte(`{"kind":"Internal","minReplicas":2,"name":"a","routes":[{"host":"a"}],"zones":{"a":{}},"probe":{"path":"/"}}`)
	f := cel.NewFrame(context.Background())
	defer f.Release()
	b.ReportAllocs()
	for b.Loop() {
		d, err := document.Parse(raw, document.Limits{})
		if err != nil {
			b.Fatal(err)
		}
		if failures, err := defaults.Derive(f, d, s, math.MaxInt); len(failures) > 0 || err != nil {
			b.Fatal(failures, err)
		}
		d.Release()
	}
}
