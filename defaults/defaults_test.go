package defaults_test

import (
	"bytes"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/schema/schematest"
)

func compiled(t testing.TB, text string, o schema.Options) *schema.Schema {
	t.Helper()
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict([]byte(text), props); err != nil {
		t.Fatal(err)
	}
	s, _, errs := schema.Compile(props, o)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return s
}

// applied fills in the defaults, of the object as a whole, and of what has to be read of it.
func applied(t testing.TB, s *schema.Schema, text string) string {
	t.Helper()
	whole := appliedBy(t, s, text, document.Limits{})
	if got := appliedBy(t, s, text, document.Limits{Outline: document.NewOutline(s.DefaultedParts())}); got != whole {
		t.Errorf("of %s parts were read\n got %s\nwant %s", text, got, whole)
	}
	return whole
}

func appliedBy(t testing.TB, s *schema.Schema, text string, limits document.Limits) string {
	t.Helper()
	d, err := document.Parse([]byte(text), limits)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer d.Release()
	defaults.Apply(d, s)
	return string(d.AppendTo(nil))
}

const example = `{type: object, properties: {
	replicas: {type: integer, default: 1},
	mode: {type: string, default: "<open>"},
	none: {type: string, nullable: true, default: x},
	ratio: {type: number, default: 0.5},
	"on": {type: boolean, default: false},
	tags: {type: array, items: {type: string}, default: [a, b]},
	opts: {type: object, default: {}, properties: {level: {type: integer, default: 3}, deep: {type: object, properties: {x: {type: string, default: dx}}}}},
	more: {type: object, default: {deep: {}}, properties: {deep: {type: object, properties: {x: {type: string, default: dx}}}}},
	plain: {type: object, properties: {x: {type: string, default: px}}},
	list: {type: array, items: {type: object, default: {"y": 2}, properties: {x: {type: integer, default: 1}, "y": {type: integer}}}},
	numbers: {type: array, items: {type: integer, default: 7}},
	nullable: {type: array, items: {type: integer, nullable: true, default: 7}},
	map: {type: object, additionalProperties: {type: object, properties: {x: {type: integer, default: 1}}}},
	counts: {type: object, additionalProperties: {type: integer}}}}`

const rest = `"mode":"<open>","more":{"deep":{"x":"dx"}},"none":"x","on":false,"opts":{"level":3},"ratio":0.5,"replicas":1,"tags":["a","b"]`

// DEF-1, DEF-5, DEF-6
func TestApply(t *testing.T) {
	s := compiled(t, `{type: object, properties: {spec: `+example+`}}`, schema.Options{})
	for _, c := range []struct{ name, object, want string }{
		{"all that is missing, sorted by name", `{"spec":{}}`, `{"spec":{` + rest + `}}`},
		{"nothing where the object is missing", `{ "other" : 1 }`, `{ "other" : 1 }`},
		{"behind what is there, whose bytes stay", `{"spec": { "replicas" : 1e0, "mode":"\u0061" ,"opts":{"level":4} , "tags":[] , "on":true,"none":"","ratio":0.50,"more":{}}}`,
			`{"spec": { "replicas" : 1e0, "mode":"\u0061" ,"opts":{"level":4} , "tags":[] , "on":true,"none":"","ratio":0.50,"more":{}}}`},
		{"what the user gave is not changed", `{"spec":{"replicas":0,"mode":"","none":null,"ratio":0,"on":false,"tags":[],"opts":{"level":0},"more":{}}}`,
			`{"spec":{"replicas":0,"mode":"","none":null,"ratio":0,"on":false,"tags":[],"opts":{"level":0},"more":{}}}`},
		{"nor what is of a wrong type", `{"spec":{"replicas":"1","mode":{},"none":1,"ratio":[],"on":0,"tags":{},"opts":[],"more":1,"list":{},"map":[]}}`,
			`{"spec":{"replicas":"1","mode":{},"none":1,"ratio":[],"on":0,"tags":{},"opts":[],"more":1,"list":{},"map":[]}}`},
		{"a null where there is none is unset", `{"spec":{"replicas":null,"mode":null,"none":null,"ratio":null,"on":null,"tags":null,"opts":null,"more":null,"plain":null}}`,
			`{"spec":{"replicas":1,"mode":"<open>","none":null,"ratio":0.5,"on":false,"tags":["a","b"],"opts":{"level":3},"more":{"deep":{"x":"dx"}},"plain":null}}`},
		{"in what is there", `{"spec":{"plain":{},"opts":{"deep":{}},` +
			rest[:len(`"mode":"<open>","more":{"deep":{"x":"dx"}},"none":"x","on":false`)] + `}}`,
			`{"spec":{"plain":{"x":"px"},"opts":{"deep":{"x":"dx"},"level":3},"mode":"<open>","more":{"deep":{"x":"dx"}},"none":"x","on":false,"ratio":0.5,"replicas":1,"tags":["a","b"]}}`},
		{"in items of lists", `{"spec":{"list":[{},{"x":2},null,3,{"y":1}],"numbers":[1,null],"nullable":[null],` + rest + `}}`,
			`{"spec":{"list":[{"x":1},{"x":2},{"x":1,"y":2},3,{"y":1,"x":1}],"numbers":[1,7],"nullable":[null],` + rest + `}}`},
		{"in values of maps", `{"spec":{"map":{"a":{},"b":{"x":2},"c":1,"d":null},"counts":{"a":null},` + rest + `}}`,
			`{"spec":{"map":{"a":{"x":1},"b":{"x":2},"c":1,"d":null},"counts":{"a":null},` + rest + `}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := applied(t, s, c.object)
			if got != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
			if again := applied(t, s, got); again != got {
				t.Errorf("applied twice: %s, then %s", got, again)
			}
		})
	}
}

func TestApplyToNoObject(t *testing.T) {
	s := compiled(t, `{type: object, properties: {a: {type: integer, default: 1}}}`, schema.Options{})
	for _, text := range []string{`[]`, `1`, `null`, ` "a" `} {
		if got := applied(t, s, text); got != text {
			t.Errorf("got %s, want %s", got, text)
		}
	}
}

// DEF-1, DEF-5: as k8s.io/apiextensions-apiserver has it, on random schemas and objects.
func TestAgreesWithKubernetes(t *testing.T) {
	for seed := range uint64(1000) {
		agrees(t, seed)
	}
}

func FuzzAgreesWithKubernetes(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { agrees(t, seed) })
}

func agrees(t *testing.T, seed uint64) {
	g := schematest.New(seed)
	props := g.Schema()
	s, _, errs := schema.Compile(props, schema.Options{Resource: true})
	if len(errs) > 0 {
		return // Kubernetes refuses it
	}
	kube, err := schematest.NewKubernetes(props)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		raw := g.Object(props, 10)
		want, err := schematest.Decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		kube.Default(want)
		got, err := schematest.Decode([]byte(applied(t, s, string(raw))))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := schematest.Encode(got), schematest.Encode(want); !bytes.Equal(got, want) {
			t.Errorf("seed %d: object %s\nschema %s\n got %s\nwant %s", seed, raw, schematest.Text(props), got, want)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	s := compiled(b, `{type: object, properties: {spec: `+example+`}}`, schema.Options{})
	raw := []byte(`{"spec":{"replicas":2,"mode":"x","none":"y","tags":[],"more":{},"list":[{"x":1},{"y":1}],"map":{"a":{"x":1}}}}`)
	b.ReportAllocs()
	for b.Loop() {
		d, err := document.Parse(raw, document.Limits{})
		if err != nil {
			b.Fatal(err)
		}
		defaults.Apply(d, s)
		d.Release()
	}
}

// Defaults stop when the document becomes too long.
func TestApplyWithin(t *testing.T) {
	s := compiled(t, `{type: object, properties: {l: {type: array, items: {type: object, properties: {a: {type: string, default: "0123456789"}}}}}}`, schema.Options{})
	for _, c := range []struct {
		most int
		ok   bool
	}{{1 << 20, true}, {600, false}} {
		d, err := document.Parse([]byte(`{"l":[`+strings.TrimSuffix(strings.Repeat("{},", 100), ",")+`]}`),
			document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		ok := defaults.ApplyWithin(d, s, c.most)
		if ok != c.ok || ok != strings.HasSuffix(string(d.AppendTo(nil)), `{"a":"0123456789"}]}`) ||
			!ok && d.Extent() > c.most+100 {
			t.Errorf("within %d bytes: %v, %d bytes", c.most, ok, d.Extent())
		}
		d.Release()
	}
}
