package schema_test

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/schema/schematest"
)

// TestAgreesWithKubernetes compares pruning, defaults and validation with apiextensions-apiserver
// on random schemas and objects (DEF-1, DEF-5, DEF-6, VAL-1, VAL-2, VAL-7, META-2).
func TestAgreesWithKubernetes(t *testing.T) {
	schemas, refused := 2000, 0
	if testing.Short() {
		schemas = 200
	}
	for seed := range schemas {
		if !agrees(t, uint64(seed)) {
			refused++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d of %d schemas were refused by Kubernetes", refused, schemas)
	if refused > schemas*2/3 {
		t.Errorf("too few schemas to say anything")
	}
}

func FuzzAgreesWithKubernetes(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { agrees(t, seed) })
}

// agrees compares a schema and some objects, false when Kubernetes refuses the schema.
func agrees(t *testing.T, seed uint64) bool {
	g := schematest.New(seed)
	props := g.Schema()
	s, _, errs := schema.Compile(props, schema.Options{Resource: true})
	if len(errs) > 0 {
		return false
	}
	kube, err := schematest.NewKubernetes(props)
	if err != nil {
		t.Fatal(err)
	}
	c := comparison{t: t, props: props, schema: s, kube: kube, frame: cel.NewFrame(t.Context())}
	defer c.frame.Release()
	wordless := props.DeepCopy()
	schematest.Wordless(wordless)
	if c.wordless, _, errs = schema.Compile(wordless, schema.Options{Resource: true}); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	var old []byte
	for _, sloppy := range []int{1000, 40, 15, 8, 4} {
		raw := g.Object(props, sloppy)
		c.object(raw, nil)
		if old != nil {
			c.object(raw, old)
		}
		c.object(raw, raw)
		if old = raw; t.Failed() {
			return true
		}
	}
	return true
}

type comparison struct {
	t      *testing.T
	props  *apiextensionsv1.JSONSchemaProps
	schema *schema.Schema
	kube   *schematest.Kubernetes
	frame  *cel.Frame

	wordless *schema.Schema // whose rules have no messages; nil if the schema has no rules
}

// ours prunes and defaults an object.
func (c *comparison) ours(raw []byte) (*document.Document, []string, error) {
	d, err := document.Parse(raw, document.Limits{})
	if err != nil {
		c.t.Fatalf("%s: %v", raw, err)
	}
	var unknown schema.Unknown
	if err := c.schema.Prune(d, &unknown); err != nil {
		d.Release()
		return nil, nil, err
	}
	defaults.Apply(d, c.schema)
	return d, unknown.Messages(), nil
}

func (c *comparison) theirs(raw []byte) (map[string]any, []string, error) {
	obj, err := schematest.Decode(raw)
	if err != nil {
		c.t.Fatalf("%s: %v", raw, err)
	}
	unknown, err := c.kube.Prune(obj)
	if err != nil {
		return nil, nil, err
	}
	c.kube.Default(obj)
	for i, path := range unknown {
		unknown[i] = `unknown field "` + path + `"`
	}
	return obj, unknown, nil
}

func (c *comparison) object(raw, oldRaw []byte) {
	c.t.Helper()
	d, unknown, refusal := c.ours(raw)
	want, wantUnknown, err := c.theirs(raw)
	if (refusal != nil) != (err != nil) {
		c.failf(raw, "reading: got %v, want %v", refusal, err)
		return
	}
	if refusal != nil {
		return
	}
	defer d.Release()
	if len(unknown)+len(wantUnknown) > 0 && !slices.Equal(unknown, wantUnknown) {
		c.failf(raw, "unknown fields:\n got %v\nwant %v", unknown, wantUnknown)
	}
	out := d.AppendTo(nil)
	if got, want := schematest.Encode(c.normal(out)), schematest.Encode(want); !bytes.Equal(got, want) {
		c.failf(raw, "pruned and defaulted:\n got %s\nwant %s", got, want)
	}
	defaults.Apply(d, c.schema)
	if again := d.AppendTo(nil); string(again) != string(out) { // DEF-6
		c.failf(raw, "defaults applied twice: %s, then %s", out, again)
	}
	var before document.Node
	var wantBefore map[string]any
	if oldRaw != nil {
		old, _, refusal := c.ours(oldRaw)
		if refusal != nil {
			return
		}
		defer old.Release()
		before = old.Root()
		if wantBefore, _, err = c.theirs(oldRaw); err != nil {
			return
		}
	}
	result := c.schema.Validate(c.frame, d.Root(), before)
	if c.wordless != nil {
		// What the gateway derives if there is no message changes no verdict.
		if derived := c.wordless.Validate(c.frame, d.Root(), before); derived.Valid() != result.Valid() ||
			len(derived.Warnings) != len(result.Warnings) {
			c.failf(raw, "without messages: got %v %q\nwant %v %q", derived.Errors, derived.Warnings, result.Errors,
				result.Warnings)
		}
	}
	wantFailures, err := c.kube.Validate(want, wantBefore)
	if err != nil {
		return // not to be compared
	}
	failures, err := schematest.Failures(result.Errors)
	if err != nil {
		c.failf(raw, "%v", err)
	}
	failures = onlyTooLong(failures, wantFailures)
	if result.More > 0 { // more than are kept: the ones that are kept must be right
		wantFailures = slices.DeleteFunc(wantFailures,
			func(f schematest.Failure) bool { return !slices.Contains(failures, f) })
	}
	if len(failures)+len(wantFailures) > 0 && !slices.Equal(failures, wantFailures) {
		c.failf(raw, "failures:\n got %v\nwant %v\n old %s", failures, wantFailures, oldRaw)
	}
	for _, err := range result.Errors {
		if !conventional(err.Detail) { // VAL-3
			c.failf(raw, "wording: %v", err)
		}
	}
}

var (
	quoted = regexp.MustCompile("'[^']*'|`[^`]*`|\"[^\"]*\"|^.*rule: .*$")
	banned = regexp.MustCompile(`(?i)\b(should|shall|cannot|can't|larger|bigger|more than|fewer than)\b|[<>]`)
)

// conventional reports whether a message is worded as the API conventions ask, but for what it quotes.
func conventional(detail string) bool {
	return !banned.MatchString(quoted.ReplaceAllString(detail, ""))
}

// onlyTooLong leaves out what is wrong with a string that is too long besides its length: Kubernetes stops there.
func onlyTooLong(got, want []schematest.Failure) []schematest.Failure {
	return slices.DeleteFunc(got, func(f schematest.Failure) bool {
		tooLong := schematest.Failure{Type: field.ErrorTypeTooLong, Field: f.Field}
		return f.Type == field.ErrorTypeInvalid && slices.Contains(want, tooLong) && !slices.Contains(want, f)
	})
}

// normal decodes an object, with its metadata as Kubernetes writes it.
func (c *comparison) normal(raw []byte) map[string]any {
	obj, err := schematest.Decode(raw)
	if err != nil {
		c.t.Fatalf("%s: %v", raw, err)
	}
	meta, found, err := objectmeta.GetObjectMeta(obj, false)
	if err == nil && found {
		err = objectmeta.SetObjectMeta(obj, meta)
	}
	if err == nil {
		err = c.kube.Coerce(obj)
	}
	if err != nil {
		c.failf(raw, "metadata: %v", err)
	}
	return obj
}

func (c *comparison) failf(raw []byte, format string, args ...any) {
	c.t.Helper()
	c.t.Errorf("object %s\nschema %s", raw, schematest.Text(c.props))
	c.t.Errorf(format, args...)
}

const fuzzedSchema = `{type: object, properties: {spec: {type: object, required: [size], properties: {
	size: {type: integer, minimum: 1, maximum: 1000}, small: {type: integer, format: int32}, ratio: {type: number, maximum: 10},
	mode: {type: string, enum: [open, locked], default: open}, color: {type: string, pattern: '^[a-z]+$', minLength: 2}, long: {type: string, maxLength: 3},
	when: {type: string, format: date-time}, day: {type: string, format: date}, wait: {type: string, format: duration}, ip: {type: string, format: ipv4},
	ip6: {type: string, format: ipv6}, net: {type: string, format: cidr}, id: {type: string, format: uuid}, blob: {type: string, format: byte}, link: {type: string, format: uri},
	mail: {type: string, format: email}, host: {type: string, format: hostname}, port: {x-kubernetes-int-or-string: true}, none: {type: string, nullable: true, default: x},
	tags: {type: array, x-kubernetes-list-type: set, maxItems: 4, items: {type: string}},
	parts: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, weight: {type: integer, default: 5}}}},
	labels: {type: object, maxProperties: 2, additionalProperties: {type: string, minLength: 1}}, any: {type: object, x-kubernetes-preserve-unknown-fields: true},
	choice: {type: object, properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]}, {required: [b]}]},
	tpl: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}}}`

// FuzzObject compares objects of any text with Kubernetes' libraries.
func FuzzObject(f *testing.F) {
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict([]byte(fuzzedSchema), props); err != nil {
		f.Fatal(err)
	}
	s, _, errs := schema.Compile(props, schema.Options{Resource: true})
	if len(errs) > 0 {
		f.Fatal(errs)
	}
	kube, err := schematest.NewKubernetes(props)
	if err != nil {
		f.Fatal(err)
	}
	for _, spec := range []string{
		`{"size":1}`, `{"size":"1","small":3000000000,"ratio":1e1,"mode":null}`,
		`{"size":1,"tags":["a","a"],"parts":[{"name":"a"},{"name":"a","weight":1.0}]}`,
		`{"size":1,"when":"2020-01-02T03:04:05Z","day":"2020-01-02","wait":"1h","ip":"10.0.0.1","ip6":"::1","net":"10.0.0.0/8","blob":"aGk=","mail":"a@b.c","host":"a.bc"}`,
		`{"size":1,"tpl":{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"b"}}},"any":{"x":null},"choice":{"a":"","b":""},"labels":{"a":"","b":null}}`,
		`{"siz\u0065":1,"color":"\u0061b","long":"\u00e9\u00e9\u00e9\u00e9","port":"x","id":"123e4567-e89b-12d3-a456-426614174000","link":"https://example.com/x"}`,
	} {
		f.Add(`{"apiVersion":"schema.example/v1","kind":"Object","metadata":{"name":"w","labels":{"a":"b"}},"spec":` + spec + `}`)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := document.Parse([]byte(text), document.Limits{})
		if err != nil {
			return
		}
		isObject := d.Root().Kind() == document.Object
		refusal := s.Prune(d, nil)
		d.Release()
		if !isObject || refusal != nil && strings.Contains(refusal.Error(), "must be spelled") {
			return // Kubernetes distinguishes fields by case
		}
		c := comparison{t: t, props: props, schema: s, kube: kube}
		c.object([]byte(text), nil)
	})
}
