package openapi_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/openapi"
	"github.com/admission-gateway/gateway/internal/schema"
)

// A schema that contains itself is filled in, checked and looked up in at any depth.
func TestSchemaThatContainsItself(t *testing.T) {
	resources, _, found := read(t, things("3.1.0", `
Thing:
  type: object
  x-kubernetes-validations: [{rule: "self.size < 9"}]
  properties:
    size: {type: integer, default: 3}
    name: {type: string, x-admission-gateway-immutable: true}
    of: {$ref: '#/components/schemas/Thing'}
    all: {type: array, items: {$ref: '#/components/schemas/Thing'}}
    by: {type: object, additionalProperties: {$ref: '#/components/schemas/Thing'}}`)).Resources(nil)
	if len(found) > 0 {
		t.Fatal(findings(found))
	}
	s := compiled(t, resources[0].Create)
	const deep = `{"of":{"all":[{"by":{"k":{"of":{"of":{}}}}}]}}`
	if got, wrong := admitted(t, s, deep); got != `{"of":{"all":[{"by":{"k":{"of":{"of":{"size":3},"size":3},"size":3}},"size":3}],"size":3},"size":3}` || wrong != nil {
		t.Errorf("got %s, %q", got, wrong)
	}
	_, wrong := admitted(t, s, strings.Replace(deep, `"of":{}`, `"of":{"size":10}`, 1))
	if want := []string{`of.all[0].by[k].of.of.size: Invalid value: 10: failed rule: self.size < 9`}; !sameField(wrong,
		want) {
		t.Errorf("got %q, want %q", wrong, want)
	}
	if _, wrong := admitted(t, s, strings.Replace(deep, `"of":{}`, `"of":{"Size":1}`, 1)); len(wrong) != 1 ||
		!strings.Contains(wrong[0], "must be spelled 'size'") {
		t.Errorf("a misspelled name: %q", wrong)
	}
	nested := strings.Repeat(`{"size":1,"of":`, 4) + `{"size":1,"name":"a"}` + strings.Repeat("}", 4)
	before, after := parsed(t, nested), parsed(t, strings.Replace(nested, `"a"`, `"b"`, 1))
	frame := cel.NewFrame(context.Background())
	defer frame.Release()
	if errs := s.Validate(frame, after, before).Errors; len(errs) != 1 || errs[0].Field != "of.of.of.of.name" {
		t.Errorf("an immutable name may change: %v", errs)
	}
	if got := len(s.Programs()); got != 2 { // of the whole object, and of the ones in it
		t.Errorf("%d programs", got)
	}
	root := s.Root()
	if of := root.Property("of").Shape; of == root || of != of.Property("of").Shape ||
		of != of.Property("all").Shape.Items() || of != of.Property("by").Shape.Additional() {
		t.Error("the graph does not lead back to the schema")
	}
	s.MergeType()
	s.DefaultedParts()
}

func parsed(t *testing.T, text string) document.Node {
	t.Helper()
	d, err := document.Parse([]byte(text), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Release)
	return d.Root()
}

// sameField reports whether each message is about the field of the wanted one.
func sameField(got, want []string) bool {
	for i := range got {
		before, _, _ := strings.Cut(got[i], ":")
		if i < len(want) && !strings.HasPrefix(want[i], strings.TrimSuffix(before, ".size")) {
			return false
		}
	}
	return len(got) == len(want)
}

// A default that its own schema fills in again and again is not applied.
func TestEndlessDefault(t *testing.T) {
	resources, _, found := read(t, things("3.1.0", `
Thing: {type: object, properties: {next: {$ref: '#/components/schemas/Next'}, last: {$ref: '#/components/schemas/Last'}}}
Next: {type: object, default: {}, properties: {next: {$ref: '#/components/schemas/Next'}, size: {type: integer, default: 1}}}
Last: {type: object, default: {last: {last: {}}}, properties: {last: {type: object}, size: {type: integer, default: 1}}}`)).Resources(nil)
	want := []string{"components.schemas.Next.default: warning: the default is not applied: with the defaults of what is in it, it contains itself"}
	if got := findings(found); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	s := compiled(t, resources[0].Create)
	if got, wrong := admitted(t, s,
		`{"next":{"next":{}}}`); got != `{"next":{"next":{"size":1},"size":1},"last":{"last":{"last":{}},"size":1}}` ||
		wrong != nil {
		t.Errorf("got %s, %q", got, wrong)
	}
}

// The list types of Kubernetes hold in the schemas of any document.
func TestListTypesOfDocuments(t *testing.T) {
	resources, _, found := read(t, things("3.1.0", `
Thing:
  type: object
  properties:
    tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
    ports:
      type: array
      x-kubernetes-list-type: map
      x-kubernetes-list-map-keys: [name]
      items: {type: object, required: [name], properties: {name: {type: string}}}
    loose:
      type: array
      x-kubernetes-list-type: map
      x-kubernetes-list-map-keys: [name]
      items: {type: object, properties: {name: {type: string}}}`)).Resources(nil)
	want := []string{"components.schemas.Thing.properties.loose.x-kubernetes-list-map-keys: warning: is not enforced, because the key 'name' is neither required nor has a default"}
	if got := findings(found); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	_, wrong := admitted(t, compiled(t, resources[0].Create), `{"tags":["a","b","a"],"ports":[{"name":"x"},{"name":"x"}],"loose":[{"name":"x"},{"name":"x"}]}`)
	if want := []string{`tags[2]: Duplicate value: "a"`, `ports[1]: Duplicate value: {"name":"x"}`}; !reflect.DeepEqual(
		wrong, want) {
		t.Errorf("got %q, want %q", wrong, want)
	}
}

// However many schemas may hold for a value together, there is a bound.
func TestJointSchemas(t *testing.T) {
	// Which of the schemas hold for a member tells which of the 15 names before it were 'a'.
	b := strings.Builder{}
	b.WriteString("T0: {type: object, properties: {a: {allOf: [{$ref: '#/components/schemas/T0'}, {$ref: '#/components/schemas/T1'}]}, b: {$ref: '#/components/schemas/T0'}}}\n")
	for i := 1; i < 15; i++ {
		fmt.Fprintf(&b, "T%d: {type: object, properties: {a: {$ref: '#/components/schemas/T%d'}, b: {$ref: '#/components/schemas/T%d'}}}\n", i, i+1, i+1)
	}
	b.WriteString("T15: {type: object}\n")
	resources, _, _ := read(t, things("3.1.0", b.String()+"Thing: {$ref: '#/components/schemas/T0'}\n")).Resources(nil)
	if n := openapi.Models(resources[0].Create); n < 1000 || n > 5000 {
		t.Errorf("%d models", n)
	}
	if _, _, errs := resources[0].Create.Compile(schema.Options{}); len(errs) > 0 {
		t.Error(errs)
	}
}
