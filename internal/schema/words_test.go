package schema_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/schema/schematest"
)

// internals are the marks of what only the program knows: addresses, types of Go, its packages, and what a run-time
// failure says.
var internals = regexp.MustCompile(`0x[0-9a-f]{4,}|&\{|\*[a-z]+\.[A-Z]|\b(value|types|plan|ref|ast|field|json|metav1|v1|time|url)\.[A-Z]\w+|\bGo (value|struct|type)|` +
	`(^|[ ("'])(net/url|netip|strconv|encoding/\w+|time|json|yaml|regexp|base64|ParseAddr)(\.\w+)?: |runtime error|github\.com/|goroutine |interface \{\}|%!|\bmap\[|\[\]string`)

// textFormats are the formats of strings that Kubernetes knows, and patterns take their place in turn.
var textFormats = []string{"bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3",
	"uuid4", "uuid5", "isbn", "isbn10", "isbn13", "creditcard", "ssn",
	"hexcolor", "rgbcolor", "byte", "password", "date", "duration", "date-time", "k8s-short-name", "k8s-long-name"}

// wrongTexts are right for few of them.
var wrongTexts = []string{`""`, `"a"`, `"\u0001"`, `"%zz"`, `"http://a b\u007f/%zz"`, `"http://[::1"`, `"1e400"`,
	`"99999999999999999999h"`, `"10.0.0.1/99"`, `"999.1.1.1"`, `"2024-13-45"`,
	`"2024-01-02T25:61:00Z"`, `"5 parsecs"`, `"!!"`, `"é\u0000"`, `1`, `1.5`, `true`, `null`, `[]`,
	`{"a":{"b":[1]},"c":"d","e":2}`, `[{"x":1,"y":2,"z":3}]`}

// complaints returns all failures of an object.
func complaints(t *testing.T, s *schema.Schema, raw, oldRaw []byte) (all []string) {
	parse := func(raw []byte) *document.Document {
		d, err := document.Parse(slices.Clone(raw), document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := parse(raw)
	defer d.Release()
	var old document.Node
	if oldRaw != nil {
		before := parse(oldRaw)
		defer before.Release()
		old = before.Root()
	}
	var unknown schema.Unknown
	if err := s.Prune(d, &unknown); err != nil {
		return []string{err.Error()}
	}
	defaults.Apply(d, s)
	frame := cel.NewFrame(t.Context())
	defer frame.Release()
	result := s.Validate(frame, d.Root(), old)
	all = append(unknown.Messages(), result.Warnings...)
	for _, err := range result.Errors {
		all = append(all, err.Error())
	}
	if result.Err != nil {
		all = append(all, result.Err.Error())
	}
	return all
}

// TestComplaintsSayNothingInternal: what is said of an object that breaks its schema has no address, no type of Go and
// nothing that a package of the program says of itself, whatever keyword, format, pattern or rule it breaks. Of equal
// objects the same is said, in the same order.
func TestComplaintsSayNothingInternal(t *testing.T) {
	seen, bad := map[string]bool{}, map[string]string{}
	check := func(s *schema.Schema, raw, old []byte) {
		first := complaints(t, s, raw, old)
		for range 3 {
			if again := complaints(t, s, raw, old); !slices.Equal(first, again) {
				t.Fatalf("of %s is said\n%s\nand then\n%s", raw, strings.Join(first, "\n"), strings.Join(again, "\n"))
			}
		}
		for _, text := range first {
			seen[text] = true
			if found := internals.FindString(text); found != "" && bad[found] == "" {
				bad[found] = string(raw) + ": " + text
			}
		}
	}
	for seed := range uint64(400) {
		g := schematest.New(seed)
		props := g.Schema()
		s, _, errs := schema.Compile(props, schema.Options{Resource: true})
		if len(errs) > 0 {
			continue
		}
		var old []byte
		for _, sloppy := range []int{40, 8, 4, 2} {
			raw := g.Object(props, sloppy)
			check(s, raw, nil)
			if old != nil {
				check(s, raw, old)
			}
			old = raw
		}
	}
	for i, format := range textFormats {
		text := apiextensionsv1.JSONSchemaProps{Type: "string", Format: format}
		patterned := apiextensionsv1.JSONSchemaProps{Type: "string",
			Pattern: []string{"^[a-f]{2,3}$", `^\d+$`, "^(a|b)*c$", "[^\\x00-\\x7f]"}[i%4]}
		ruled := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true),
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"t": text},
			XValidations: apiextensionsv1.ValidationRules{{Rule: "has(self.t) && string(self.t) == 'x'"},
				{Rule: "self.t != self.t"}}}
		s, _, errs := schema.Compile(&apiextensionsv1.JSONSchemaProps{Type: "object",
			Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"text": text, "patterned": patterned, "ruled": ruled,
				"list": {Type: "array", XListType: new("set"),
					Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &text}},
				"map": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &text}},
			}}, schema.Options{Resource: true})
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		for _, value := range wrongTexts {
			check(s, fmt.Appendf(nil, `{"apiVersion":"a/v1","kind":"K","metadata":{"name":"n"},"text":%s,"patterned":%[1]s,"ruled":{"t":%[1]s},"list":[%[1]s,%[1]s],"map":{"b":%[1]s,"a":%[1]s}}`, value), nil)
		}
	}
	s, _, errs := schema.Compile(&apiextensionsv1.JSONSchemaProps{Type: "object"}, schema.Options{Resource: true})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	for _, member := range []string{"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion",
		"generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
		"labels", "annotations", "ownerReferences", "finalizers", "managedFields"} {
		for _, value := range append(wrongTexts, `["a b","c d","e f"]`, `{"a b":"-","c d":"-","e f":"-","g h":1}`,
			`{"a b":"-","c d":"-","e f":"-","g h":"-","i":"-"}`, `[{"apiVersion":1,"kind":"A","name":"a","uid":"u"}]`,
			`[{"manager":"m","operation":"Update","time":"soon"}]`) {
			check(s, fmt.Appendf(nil, `{"apiVersion":"a/v1","kind":"K","metadata":{"x":1,%q:%s}}`, member, value), nil)
		}
	}
	for _, found := range slices.Sorted(maps.Keys(bad)) {
		t.Errorf("%q in %s", found, bad[found])
	}
	if t.Logf("%d different complaints", len(seen)); len(seen) < 500 {
		t.Error("too few")
	}
}
