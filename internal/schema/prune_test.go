package schema_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// compiled is the schema of a custom resource whose spec has this schema.
func compiled(t testing.TB, spec string) *schema.Schema {
	t.Helper()
	tt, ok := t.(*testing.T)
	if !ok {
		t.Fatal("tests only")
	}
	versions, _, errs := schema.CompileCRD(definition(tt, spec))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return versions[0].Schema
}

const head = `"apiVersion":"lab.example.com/v1","kind":"Widget","metadata":{"name":"w"}`

const pruneSpec = `{type: object, properties: {
	a: {type: integer}, b: {type: string, nullable: true}, d: {type: integer, default: 1},
	list: {type: array, items: {type: object, properties: {a: {type: integer}}}},
	names: {type: object, additionalProperties: {type: object, properties: {a: {type: integer}}}},
	free: {type: object, additionalProperties: true},
	any: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: object, properties: {a: {type: integer}}}}},
	tpl: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true},
	bare: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object}}},
	intOrString: {x-kubernetes-int-or-string: true}}}`

func TestPrune(t *testing.T) {
	s := compiled(t, pruneSpec)
	for _, c := range []struct {
		name, object, want string
		unknown            []string
	}{
		{"nothing to do", `{` + head + `, "spec": { "a" : 1 } }`, `{` + head + `, "spec": { "a" : 1 } }`, nil},
		{"unknown fields", `{"zz":1,` + head + `,"spec":{"x":{"y":1},"a":1,"list":[{"a":1},{"b":2}]}}`,
			`{` + head + `,"spec":{"a":1,"list":[{"a":1},{}]}}`,
			[]string{"spec.list[1].b", "spec.x", "zz"}},
		{"in values of maps", `{` + head + `,"spec":{"names":{"m":{"a":1,"b":2}}}}`,
			`{` + head + `,"spec":{"names":{"m":{"a":1}}}}`, []string{"spec.names.m.b"}},
		{"objects in a map of anything are emptied", `{` + head + `,"spec":{"free":{"m":{"a":1},"n":1,"l":[{"x":1}]}}}`,
			`{` + head + `,"spec":{"free":{"m":{},"n":1,"l":[{}]}}}`, []string{"spec.free.l[0].x", "spec.free.m.a"}},
		{"preserved, but for what is known", `{` + head + `,"spec":{"any":{"x":{"y":null},"known":{"a":1,"b":2}}}}`,
			`{` + head + `,"spec":{"any":{"x":{"y":null},"known":{"a":1}}}}`,
			[]string{"spec.any.known.b"}},
		{"nulls that stand for nothing",
			`{` + head + `,"spec":{"a":null,"b":null,"d":null,"list":[null],"names":{"m":null}}}`,
			`{` + head + `,"spec":{"b":null,"d":null,"list":[null],"names":{}}}`, nil},
		{"metadata", `{"metadata":{"name":"w","bogus":1,"labels":null,"annotations":{"a":null},"ownerReferences":[{"uid":"u","x":1}],"managedFields":[{"fieldsV1":{"f:x":{}},"y":2}]}}`,
			`{"metadata":{"name":"w","annotations":{"a":""},"ownerReferences":[{"uid":"u"}],"managedFields":[{"fieldsV1":{"f:x":{}}}]}}`,
			[]string{"metadata.bogus", "metadata.managedFields[0].y", "metadata.ownerReferences[0].x"}},
		{"metadata comes first, embedded metadata last", `{"a":1,"metadata":{"z":1},"spec":{"tpl":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","q":1},"x":1}}}`,
			`{"metadata":{},"spec":{"tpl":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"},"x":1}}}`, []string{"metadata.z", "a", "spec.tpl.metadata.q"}},
		{"an embedded resource that preserves nothing",
			`{"spec":{"bare":{"kind":"Pod","apiVersion":"v1","spec":{"x":1},"y":1}}}`,
			`{"spec":{"bare":{"kind":"Pod","apiVersion":"v1","spec":{}}}}`,
			[]string{"spec.bare.spec.x", "spec.bare.y"}},
		{"an object where a number belongs", `{"spec":{"a":{"x":1},"intOrString":{"y":1}}}`,
			`{"spec":{"a":{},"intOrString":{}}}`, []string{"spec.a.x", "spec.intOrString.y"}},
		{"no metadata", `{"metadata":null}`, `{}`, nil},
		{"escaped keys", `{"sp\u0065c":{"\u0061":1,"\u0078":2}}`, `{"sp\u0065c":{"\u0061":1}}`, []string{"spec.x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := parsed(t, c.object)
			var unknown schema.Unknown
			if err := s.Prune(d, &unknown); err != nil {
				t.Fatal(err)
			}
			if got := string(d.AppendTo(nil)); got != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
			var want []string
			for _, path := range c.unknown {
				want = append(want, `unknown field "`+path+`"`)
			}
			if got := unknown.Messages(); !slices.Equal(got, want) {
				t.Errorf("got %q\nwant %q", got, want)
			}
			if unknown.Any() != (len(want) > 0) {
				t.Errorf("got Any %v", unknown.Any())
			}
			if err := s.Prune(parsed(t, c.object), nil); err != nil {
				t.Errorf("without collecting: %v", err)
			}
		})
	}
}

// VAL-7, and hostile-input.md, JSON: case variants of known fields.
func TestPruneRefuses(t *testing.T) {
	s := compiled(t, pruneSpec)
	for object, want := range map[string]string{
		`{"Kind":"Widget"}`:                                           `Kind: Invalid value: "Kind": must be spelled 'kind'`,
		`{"\u212aind":"Widget"}`:                                      "\u212aind: Invalid value: \"\u212aind\": must be spelled 'kind'",
		`{"SPEC":{}}`:                                                 `SPEC: Invalid value: "SPEC": must be spelled 'spec'`,
		`{"spec":{"list":[{"a":1},{"A":1}]}}`:                         `spec.list[1].A: Invalid value: "A": must be spelled 'a'`,
		`{"spec":{"names":{"A":{"A":1}}}}`:                            `spec.names[A].A: Invalid value: "A": must be spelled 'a'`,
		`{"spec":{"any":{"Known":1}}}`:                                `spec.any.Known: Invalid value: "Known": must be spelled 'known'`,
		`{"spec":{"tpl":{"METADATA":1}}}`:                             `spec.tpl.METADATA: Invalid value: "METADATA": must be spelled 'metadata'`,
		`{"metadata":{"Labels":{}}}`:                                  `metadata.Labels: Invalid value: "Labels": must be spelled 'labels'`,
		`{"metadata":{"name":1}}`:                                     `metadata.name: Invalid value: "integer": must be of type string`,
		`{"metadata":{"labels":{"a":true}}}`:                          `metadata.labels[a]: Invalid value: "boolean": must be of type string`,
		`{"metadata":{"labels":[]}}`:                                  `metadata.labels: Invalid value: "array": must be of type object`,
		`{"metadata":{"finalizers":["a",{}]}}`:                        `metadata.finalizers[1]: Invalid value: "object": must be of type string`,
		`{"metadata":{"generation":1.5}}`:                             `metadata.generation: Invalid value: "number": must be of type integer`,
		`{"metadata":{"creationTimestamp":"soon"}}`:                   `metadata.creationTimestamp: Invalid value: "soon": must be a valid 'date-time'`,
		`{"metadata":{"ownerReferences":[{"controller":1}]}}`:         `metadata.ownerReferences[0].controller: Invalid value: "integer": must be of type boolean`,
		`{"metadata":"w"}`:                                            `metadata: Invalid value: "string": must be of type object`,
		`{"kind":1}`:                                                  `kind: Invalid value: "integer": must be of type string`,
		`{"apiVersion":null}`:                                         `apiVersion: Invalid value: "null": must be of type string`,
		`{"spec":{"tpl":{"kind":["Pod"]}}}`:                           `spec.tpl.kind: Invalid value: "array": must be of type string`,
		`{"spec":{"tpl":{"metadata":{"annotations":{"a":{"b":1}}}}}}`: `spec.tpl.metadata.annotations[a]: Invalid value: "object": must be of type string`,
	} {
		err := s.Prune(parsed(t, object), nil)
		if err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", object, err, want)
		}
	}
}

// What a request can make us print and hold is bounded.
func TestUnknownIsBounded(t *testing.T) {
	s := compiled(t, `{type: object, properties: {a: {type: integer}}}`)
	var b strings.Builder
	b.WriteString(`{"spec":{`)
	for i := range 5000 {
		fmt.Fprintf(&b, `"%s%d":1,`, strings.Repeat("x", 550), i)
	}
	b.WriteString(`"b":1}}`)
	d := parsed(t, b.String())
	var unknown schema.Unknown
	if err := s.Prune(d, &unknown); err != nil {
		t.Fatal(err)
	}
	messages := unknown.Messages()
	if len(messages) != 101 || messages[100] != "and 4901 more unknown fields" {
		t.Errorf("got %d messages, the last one %q", len(messages), messages[len(messages)-1])
	}
	if total := len(unknown.Error()); total > 100*1100 {
		t.Errorf("got %d bytes", total)
	}
	if got := string(d.AppendTo(nil)); got != `{"spec":{}}` {
		t.Errorf("got %.100s", got)
	}
}

func TestStrictMessage(t *testing.T) {
	s := compiled(t, `{type: object, properties: {a: {type: integer}}}`)
	var unknown schema.Unknown
	if err := s.Prune(parsed(t, `{"spec":{"foo":1},"bar":2}`), &unknown); err != nil {
		t.Fatal(err)
	}
	if got, want := unknown.Error(),
		`strict decoding error: unknown field "bar", unknown field "spec.foo"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Bytes of an object that is as it should be come out as they came in.
func FuzzPruneRoundTrip(f *testing.F) {
	f.Add(`{"spec": { "a" : 1e0 ,"names":{"\u0061":{}}}, "metadata":{"name":"w"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		s := compiled(t, pruneSpec)
		d, err := document.Parse([]byte(text), document.Limits{})
		if err != nil {
			return
		}
		defer d.Release()
		var unknown schema.Unknown
		if refusal := s.Prune(d, &unknown); refusal != nil {
			return
		}
		once := string(d.AppendTo(nil))
		if !d.Edited() && once != text {
			t.Errorf("got %s, want %s", once, text)
		}
		again, err := document.Parse([]byte(once), document.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		defer again.Release()
		if refusal := s.Prune(again, &unknown); refusal != nil || again.Edited() {
			t.Errorf("pruning twice changes %s to %s (%v)", once, again.AppendTo(nil), refusal)
		}
	})
}
