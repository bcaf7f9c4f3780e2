package schema_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/schema/schematest"
)

// extended compiles a schema with the gateway's own keywords, in YAML.
func extended(t testing.TB, text string) (*schema.Schema, field.ErrorList) {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	d := parsed(t, string(raw))
	extensions, errs := schema.ReadExtensions(d.Root(), nil)
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

// updated returns the object that an update makes, and its failures.
func updated(t testing.TB, s *schema.Schema, old, text string, patched bool) (string, []string) {
	t.Helper()
	before, d := parsed(t, old), parsed(t, text)
	defaults.Apply(before, s)
	if err := s.Prune(d, nil); err != nil {
		t.Fatal(err)
	}
	s.Carry(d, before.Root(), patched)
	defaults.Apply(d, s)
	f := cel.NewFrame(context.Background())
	defer f.Release()
	result := s.Validate(f, d.Root(), before.Root())
	var messages []string
	for _, err := range result.Errors {
		messages = append(messages, err.Error())
	}
	return string(d.AppendTo(nil)), messages
}

const machine = `
type: object
properties:
  zone: {type: string, x-admission-gateway-immutable: true}
  size: {type: integer, default: 2, x-admission-gateway-immutable: true}
  note: {type: string}
  free: {type: string, nullable: true, x-admission-gateway-immutable: true}
  disk:
    type: object
    required: [format]
    properties:
      format: {type: string}
      class: {type: string, x-admission-gateway-immutable: true}
      key: {type: object, x-admission-gateway-immutable: true, properties: {id: {type: string}, version: {type: number}}}
  ports:
    type: array
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [port, protocol]
    items:
      type: object
      required: [port]
      properties:
        port: {type: integer}
        protocol: {type: string, default: TCP}
        host: {type: string, x-admission-gateway-immutable: true}
  tags:
    type: object
    additionalProperties: {type: string, x-admission-gateway-immutable: true}
  groups: {type: array, x-kubernetes-list-type: set, x-admission-gateway-immutable: true, items: {type: string}}
  steps: {type: array, x-admission-gateway-immutable: true, items: {type: string}}
  rules:
    type: array
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [name]
    items: {type: object, required: [name], x-admission-gateway-immutable: true, properties: {name: {type: string}, allow: {type: boolean}}}
`

// DEF-7: what is left out is carried over, what differs is refused in Kubernetes' words.
func TestImmutable(t *testing.T) {
	s, errs := extended(t, machine)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if !s.NeedsOld() {
		t.Error("the stored object must be asked for")
	}
	for _, c := range []struct {
		name, old, object string
		patched           bool
		want              string
		errs              []string
	}{
		{name: "left out", old: `{"zone":"\u0061","size":5,"note":"n"}`, object: `{ "note":"m" }`,
			want: `{ "note":"m","size":5,"zone":"\u0061" }`},
		{name: "the same", old: `{"zone":"a","size":5}`, object: `{"size":5.0,"zone":"\u0061"}`,
			want: `{"size":5.0,"zone":"\u0061"}`},
		{name: "another", old: `{"zone":"a","size":5}`, object: `{"zone":"b","size":6}`,
			want: `{"zone":"b","size":6}`,
			errs: []string{`zone: Invalid value: "b": field is immutable`,
				`size: Invalid value: 6: field is immutable`}},
		{name: "the default of what is stored", old: `{}`, object: `{"size":3}`,
			want: `{"size":3}`, errs: []string{`size: Invalid value: 3: field is immutable`}},
		{name: "set for the first time", old: `{}`, object: `{"zone":"b"}`, want: `{"zone":"b","size":2}`},
		{name: "null stands for nothing", old: `{"zone":"a"}`, object: `{"zone":null}`, want: `{"size":2,"zone":"a"}`},
		{name: "unless it is a value", old: `{"free":"a"}`, object: `{"free":null}`,
			want: `{"free":null,"size":2}`, errs: []string{`free: Invalid value: null: field is immutable`}},
		{name: "null to a value", old: `{"free":null}`, object: `{"free":"a"}`,
			want: `{"free":"a","size":2}`, errs: []string{`free: Invalid value: "a": field is immutable`}},
		{name: "taken out by a patch", old: `{"zone":"a","disk":{"format":"x","class":"y"}}`, object: `{}`,
			patched: true,
			want:    `{"size":2}`, errs: []string{`disk.class: Invalid value: null: field is immutable`,
				`zone: Invalid value: null: field is immutable`}},
		{name: "within an object", old: `{"disk":{"format":"x","class":"fast"}}`, object: `{"disk":{"format":"z"}}`,
			want: `{"disk":{"format":"z","class":"fast"},"size":2}`},
		{name: "within an object that is left out", old: `{"disk":{"format":"x","class":"fast","key":{"id":"k"}}}`,
			object: `{}`,
			want:   `{"disk":{"class":"fast","key":{"id":"k"}},"size":2}`, errs: []string{`disk.format: Required value`}},
		{name: "an object", old: `{"disk":{"format":"x","key":{"id":"k","version":1.0}}}`,
			object: `{"disk":{"format":"x","key":{"version":1,"id":"k"}}}`,
			want:   `{"disk":{"format":"x","key":{"version":1,"id":"k"}},"size":2}`},
		{name: "an object with something left out", old: `{"disk":{"format":"x","key":{"id":"k","version":1}}}`,
			object: `{"disk":{"format":"x","key":{"id":"k"}}}`,
			want:   `{"disk":{"format":"x","key":{"id":"k"}},"size":2}`,
			errs:   []string{`disk.key: Invalid value: {"id":"k"}: field is immutable`}},
		{name: "items by their keys, one of them with a default",
			old:    `{"ports":[{"port":1,"protocol":"TCP","host":"a"},{"port":2,"host":"b"},{"port":3,"host":"c"}]}`,
			object: `{"ports":[{"port":2},{"port":1,"host":"a"},{"port":1,"protocol":"UDP","host":"x"}]}`,
			want:   `{"ports":[{"port":2,"host":"b","protocol":"TCP"},{"port":1,"host":"a","protocol":"TCP"},{"port":1,"protocol":"UDP","host":"x"}],"size":2}`},
		{name: "an item that differs", old: `{"ports":[{"port":1,"host":"a"},{"port":2,"host":"b"}]}`,
			object: `{"ports":[{"port":2,"host":"c"}]}`,
			want:   `{"ports":[{"port":2,"host":"c","protocol":"TCP"}],"size":2}`,
			errs:   []string{`ports[0].host: Invalid value: "c": field is immutable`}},
		{name: "values of a map come and go", old: `{"tags":{"a":"1","b":"2"}}`, object: `{"tags":{"b":"3","c":"4"}}`,
			want: `{"tags":{"b":"3","c":"4"},"size":2}`,
			errs: []string{`tags[b]: Invalid value: "3": field is immutable`}},
		{name: "a set in another order", old: `{"groups":["a","b"],"steps":["a","b"]}`,
			object: `{"groups":["b","a"],"steps":["b","a"]}`,
			want:   `{"groups":["b","a"],"steps":["b","a"],"size":2}`,
			errs:   []string{`steps: Invalid value: ["b","a"]: field is immutable`}},
		{name: "items as a whole", old: `{"rules":[{"name":"a","allow":true},{"name":"b"}]}`,
			object: `{"rules":[{"name":"c"},{"name":"b"},{"name":"a"}]}`,
			want:   `{"rules":[{"name":"c"},{"name":"b"},{"name":"a"}],"size":2}`,
			errs:   []string{`rules[2]: Invalid value: {"name":"a"}: field is immutable`}},
		{name: "many items", old: `{"ports":` + items(20, 1) + `}`, object: `{"ports":` + items(20, -1) + `}`,
			want: `{"ports":` + items(20, 0) + `,"size":2}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, errs := updated(t, s, c.old, c.object, c.patched)
			if got != c.want || !slices.Equal(errs, c.errs) {
				t.Errorf("got  %s %q\nwant %s %q", got, errs, c.want, c.errs)
			}
		})
	}
}

// items are ports: stored ones, ones of an update that leaves the hosts out, and the result of the
// update.
func items(n, form int) string {
	var b strings.Builder
	for i := range n {
		port, _ := json.Marshal(i)
		switch form {
		case 1:
			b.WriteString(`,{"port":` + string(port) + `,"host":"h` + string(port) + `"}`)
		case -1:
			b.WriteString(`,{"port":` + string(port) + `}`)
		default:
			b.WriteString(`,{"port":` + string(port) + `,"host":"h` + string(port) + `","protocol":"TCP"}`)
		}
	}
	return "[" + b.String()[1:] + "]"
}

// A field that is immutable is one whose value the CEL rule 'self == oldSelf' holds for.
func TestImmutableAgreesWithTransitionRules(t *testing.T) {
	compared := 0
	for seed := range uint64(600) {
		g := schematest.New(seed)
		spec := g.Schema()
		spec.XValidations, spec.XPreserveUnknownFields = nil, nil
		root := &apiextensionsv1.JSONSchemaProps{Type: "object",
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": *spec}}
		immutable, _, errs := schema.Compile(root, schema.Options{Extensions: &schema.Extensions{
			Properties: map[string]*schema.Extensions{"spec": {Immutable: true}},
		}})
		if len(errs) > 0 {
			continue
		}
		spec.XValidations = apiextensionsv1.ValidationRules{{Rule: "self == oldSelf", Message: "changed"}}
		root.Properties["spec"] = *spec
		ruled, _, errs := schema.Compile(root, schema.Options{})
		if len(errs) > 0 {
			continue
		}
		for range 6 {
			old, object := `{"spec":`+string(g.Object(spec, 1000))+`}`, `{"spec":`+string(g.Object(spec, 1000))+`}`
			if g.IntN(2) == 0 {
				object = old
			}
			_, got := updated(t, immutable, old, object, false)
			_, want := updated(t, ruled, old, object, false)
			if slices.ContainsFunc(want, func(m string) bool { return m != "spec: Invalid value: changed" }) {
				continue // something else is wrong
			}
			compared++
			if (len(got) > 0) != (len(want) > 0) {
				t.Errorf("seed %d: %s, then %s\nschema %s\n got %q\nwant %q", seed, old, object, schematest.Text(spec),
					got, want)
			}
		}
	}
	if compared < 300 {
		t.Errorf("only %d objects were compared", compared)
	}
}

const schedule = `
type: object
properties:
  plan:
    type: object
    properties:
      type: {type: string, default: Fixed}
      fixed: {type: object, properties: {at: {type: string}}}
      cron: {type: string}
      random: {type: integer}
      other: {type: string}
    x-admission-gateway-union:
      discriminator: type
      members: [fixed, {field: cron, value: Calendar}, {field: random, optional: true}]
  source:
    type: object
    properties: {url: {type: string}, path: {type: string}, inline: {type: string}}
    x-admission-gateway-union: {members: [url, path, inline]}
`

// VAL-6: at most one member is set, the one that the discriminator names; what it leaves stale is cleared.
func TestUnion(t *testing.T) {
	s, errs := extended(t, schedule)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if s.NeedsOld() {
		t.Error("the stored object is needed only where something is stale")
	}
	for _, c := range []struct {
		name, old, object string
		want              string
		errs              []string
	}{
		{name: "valid", object: `{"plan":{"type":"Calendar","cron":"0 1 * * *"},"source":{"url":"u"}}`},
		{name: "nothing set", object: `{"source":{}}`},
		{name: "optional", object: `{"plan":{"type":"Random"}}`},
		{name: "another discriminator", object: `{"plan":{"type":"None"}}`},
		{name: "not the member", object: `{"plan":{"type":"Calendar","random":3}}`,
			errs: []string{"plan.cron: Required value: must be set where `type` is 'Calendar'",
				"plan.random: Forbidden: may only be set where `type` is 'Random'"}},
		{name: "several", object: `{"plan":{"type":"Fixed","fixed":{},"cron":"x","random":null},"source":{"url":"u","path":"p","inline":"i"}}`,
			want: `{"plan":{"type":"Fixed","fixed":{},"cron":"x"},"source":{"url":"u","path":"p","inline":"i"}}`,
			errs: []string{"plan.cron: Forbidden: may only be set where `type` is 'Calendar'",
				"source: Invalid value: must have at most one of `url`, `path` and `inline`"}},
		{name: "by the default", object: `{"plan":{"cron":"x"}}`, want: `{"plan":{"cron":"x","type":"Fixed"}}`,
			errs: []string{"plan.fixed: Required value: must be set where `type` is 'Fixed'",
				"plan.cron: Forbidden: may only be set where `type` is 'Calendar'"}},
		{name: "what is stale is cleared", old: `{"plan":{"type":"Fixed","fixed":{"at":"noon"}}}`,
			object: `{"plan":{"type":"Calendar","fixed":{"at":"\u006eoon"},"cron":"x"}}`,
			want:   `{"plan":{"type":"Calendar","cron":"x"}}`},
		{name: "but not what was changed too", old: `{"plan":{"type":"Fixed","fixed":{"at":"noon"}}}`,
			object: `{"plan":{"type":"Calendar","fixed":{"at":"one"},"cron":"x"}}`,
			errs:   []string{"plan.fixed: Forbidden: may only be set where `type` is 'Fixed'"}},
		{name: "nor what was not stored", old: `{"plan":{"type":"Random"}}`,
			object: `{"plan":{"type":"Calendar","fixed":{},"cron":"x"}}`,
			errs:   []string{"plan.fixed: Forbidden: may only be set where `type` is 'Fixed'"}},
		{name: "the discriminator left out is its default", old: `{"plan":{"type":"Calendar","cron":"x"}}`,
			object: `{"plan":{"cron":"x","fixed":{}}}`,
			want:   `{"plan":{"fixed":{},"type":"Fixed"}}`},
		{name: "what an update leaves as it was",
			old:    `{"plan":{"type":"Calendar","random":1},"source":{"url":"a","path":"b"}}`,
			object: `{"plan":{"type":"Calendar","random":2},"source":{"url":"c","path":"d"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want == "" {
				c.want = c.object
			}
			var got string
			var errs []string
			if c.old == "" {
				d := parsed(t, c.object)
				if err := s.Prune(d, nil); err != nil {
					t.Fatal(err)
				}
				defaults.Apply(d, s)
				result := s.Validate(nil, d.Root(), document.Node{})
				for _, err := range result.Errors {
					errs = append(errs, err.Error())
				}
				got = string(d.AppendTo(nil))
				if stale := s.Stale(d.Root()); stale != strings.Contains(strings.Join(errs, "\n"), "may only be set") {
					t.Errorf("stale: %v, failures: %q", stale, errs)
				}
			} else {
				got, errs = updated(t, s, c.old, c.object, false)
			}
			if got != c.want || !slices.Equal(errs, c.errs) {
				t.Errorf("got  %s %q\nwant %s %q", got, errs, c.want, c.errs)
			}
		})
	}
}

func TestUnionWithoutDefault(t *testing.T) {
	s, errs := extended(t, `{type: object, properties: {type: {type: string}, a: {type: string}, b: {type: string}},
		x-admission-gateway-union: {discriminator: type, members: [a, b]}}`)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for object, want := range map[string]string{
		`{}`:                         "",
		`{"a":"1"}`:                  "type: Required value: must be 'A' where `a` is set",
		`{"a":"1","b":"2"}`:          "b: Invalid value: must have at most one of `a` and `b`",
		`{"type":"B","b":"2"}`:       "",
		`{"type":"","b":"2"}`:        "type: Required value: must be 'B' where `b` is set",
		`{"type":"B","a":"","b":""}`: "a: Forbidden: may only be set where `type` is 'A'",
	} {
		result := s.Validate(nil, parsed(t, object).Root(), document.Node{})
		got := ""
		for _, err := range result.Errors {
			got += err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", object, got, want)
		}
	}
}

// VAL-6: the verdict is the verdict of Kubernetes' own check of discriminated unions.
func TestUnionAgreesWithKubernetes(t *testing.T) {
	s, errs := extended(t, `{type: object, properties: {type: {type: string}, a: {type: string}, b: {type: string}, c: {type: string}},
		x-admission-gateway-union: {discriminator: type, members: [a, b, c]}}`)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	type object struct {
		Type    string  `json:"type,omitempty"`
		A, B, C *string `json:",omitempty"`
	}
	membership := validate.NewDiscriminatedUnionMembership("type", validate.NewDiscriminatedUnionMember("a", "A"),
		validate.NewDiscriminatedUnionMember("b", "B"), validate.NewDiscriminatedUnionMember("c", "C"))
	one := "1"
	var objects []object
	for _, discriminator := range []string{"A", "B", "Z"} {
		for bits := range 8 {
			o := object{Type: discriminator}
			for bit, to := range []**string{&o.A, &o.B, &o.C} {
				if bits&(1<<bit) != 0 {
					*to = &one
				}
			}
			objects = append(objects, o)
		}
	}
	raw := func(o object) string {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ToLower(strings.ReplaceAll(string(text), `"type":"`, `"type":"=`))
	}
	written := func(o object) *document.Document {
		return parsed(t, strings.NewReplacer(`"=a"`, `"A"`, `"=b"`, `"B"`, `"=z"`, `"Z"`).Replace(raw(o)))
	}
	check := func(op operation.Type, o, old *object) (fields []string) {
		for _, err := range validate.DiscriminatedUnion(t.Context(), operation.Operation{Type: op}, nil, o, old,
			membership,
			func(o *object) string {
				if o == nil {
					return ""
				}
				return o.Type
			},
			func(o *object) bool { return o != nil && o.A != nil },
			func(o *object) bool { return o != nil && o.B != nil },
			func(o *object) bool { return o != nil && o.C != nil }) {
			fields = append(fields, err.Field)
		}
		return fields
	}
	failing := func(d, old *document.Document) (fields []string) {
		var before document.Node
		if old != nil {
			before = old.Root()
		}
		result := s.Validate(nil, d.Root(), before)
		for _, err := range result.Errors {
			fields = append(fields, err.Field)
		}
		slices.Sort(fields)
		return fields
	}
	for _, o := range objects {
		if got, want := failing(written(o), nil), check(operation.Create, &o, nil); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", raw(o), got, want)
		}
		for _, old := range objects {
			if got, want := failing(written(o), written(old)),
				check(operation.Update, &o, &old); !slices.Equal(got, want) {
				t.Errorf("%s, before %s: got %q, want %q", raw(o), raw(old), got, want)
			}
		}
	}
}

// What cannot be meant is found when the schema is compiled.
func TestExtensionsAreChecked(t *testing.T) {
	for text, want := range map[string][]string{
		`{a: {type: string}, b: {type: array, items: {type: string, x-admission-gateway-immutable: true}}}`: {
			"properties[b].items.x-admission-gateway-immutable: Forbidden: may not be set on the items of a list unless its 'x-kubernetes-list-type' is 'map', which tells them apart"},
		`{a: {type: string, x-admission-gateway-immutable: "yes"}}`: {
			"properties[a].x-admission-gateway-immutable: Invalid value: must be 'true' or 'false'"},
		`{a: {type: string, not: {properties: {x: {x-admission-gateway-immutable: true}}}}}`: {
			"properties[a].not.properties[x].x-admission-gateway-immutable: Forbidden: may not be set below 'not'"},
		`{a: {type: object, required: [q], properties: {x: {type: string, default: d}, q: {type: string}, z: {type: integer}},
		  x-admission-gateway-union: {discriminator: z, members: [x, q, w, x, {field: x, kind: 1}, {value: x}]}}}`: {
			"properties[a].x-admission-gateway-union.members[4].kind: Forbidden: unknown field",
			"properties[a].x-admission-gateway-union.members[5].field: Required value"},
		`{a: {type: object, required: [q], properties: {x: {type: string, default: d}, q: {type: string}, z: {type: integer}, t: {type: string, enum: [V]}, v: {type: string}},
		  x-admission-gateway-union: [{discriminator: z, members: [x, q, w]}, {discriminator: t, members: [v, v, t, {field: x, value: X}]}, {members: []}]}}`: {
			"properties[a].x-admission-gateway-union[2].members: Invalid value: must be a list of at least one name, or of objects with `field`"},
		`{a: {type: object, required: [q], properties: {x: {type: string, default: d}, q: {type: string}, z: {type: integer}, t: {type: string, enum: [V]}, v: {type: string}},
		  x-admission-gateway-union: [{discriminator: z, members: [x, q, w]}, {discriminator: t, members: [v, v, t, {field: x, value: W}]}]}}`: {
			"properties[a].x-admission-gateway-union[0].discriminator: Invalid value: must be of type string",
			"properties[a].x-admission-gateway-union[0].members[0]: Invalid value: must not be 'x', which has a default: at most one member of a union is set",
			"properties[a].x-admission-gateway-union[0].members[1]: Invalid value: must not be 'q', which is required: at most one member of a union is set",
			"properties[a].x-admission-gateway-union[0].members[2]: Invalid value: must be a property of the object, not 'w'",
			"properties[a].x-admission-gateway-union[1].members[1]: Invalid value: must not be 'v' twice",
			"properties[a].x-admission-gateway-union[1].members[2]: Invalid value: must not be the discriminator",
			"properties[a].x-admission-gateway-union[1].members[3]: Invalid value: must have one of the values of `t`, not 'W'"},
	} {
		_, errs := extended(t, `{type: object, properties: `+text+`}`)
		if got := lines(errs); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", text, got, want)
		}
	}
}
