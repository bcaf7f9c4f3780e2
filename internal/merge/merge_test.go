package merge_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/merge"
)

func scalar(s merge.Scalar) *merge.Type { return &merge.Type{Scalar: s} }

func object(fields ...merge.Field) *merge.Type {
	o := &merge.Object{}
	o.SetFields(fields)
	return &merge.Type{Object: o}
}

func keyed(items *merge.Type, keys ...string) *merge.Type {
	l := &merge.List{Items: items, Relation: merge.Associative, Merged: true}
	for _, key := range keys {
		l.Keys = append(l.Keys, merge.Key{Name: document.NewName(key)})
	}
	l.MergeKeys = l.Keys
	return &merge.Type{List: l}
}

// orders is a type with each form of list.
func orders() *merge.Type {
	port := object(merge.Field{Name: "port", Type: scalar(merge.Numeric)},
		merge.Field{Name: "protocol", Type: scalar(merge.Text)},
		merge.Field{Name: "name", Type: scalar(merge.Text)})
	ports := keyed(port, "port", "protocol")
	d, _ := document.Parse([]byte(`"TCP"`), document.Limits{})
	ports.List.Keys[1].Default = d.Root()
	ports.List.MergeKeys = ports.List.Keys
	line := object(merge.Field{Name: "sku", Type: scalar(merge.Text)},
		merge.Field{Name: "quantity", Type: scalar(merge.Numeric)},
		merge.Field{Name: "tags",
			Type: &merge.Type{List: &merge.List{Items: scalar(merge.Text), Relation: merge.Associative, Merged: true}}})
	return object(
		merge.Field{Name: "lines", Type: keyed(line, "sku")},
		merge.Field{Name: "ports", Type: ports},
		merge.Field{Name: "steps", Type: &merge.Type{List: &merge.List{Items: scalar(merge.Text)}}},
		merge.Field{Name: "strategy", Type: object(merge.Field{Name: "type", Type: scalar(merge.Text)},
			merge.Field{Name: "rolling", Type: merge.Deduced()})},
		merge.Field{Name: "box", Type: &merge.Type{Object: &merge.Object{Rest: scalar(merge.Any), Atomic: true,
			Replaced: true}}},
		merge.Field{Name: "free", Type: merge.Deduced()},
	)
}

// TestPatch: what directives do, and the errors, which name the place in the patch (RW-2).
func TestPatch(t *testing.T) {
	const object = `{"lines": [{"sku":"tea", "quantity":1},{"sku":"cup","tags":["a","b"]}],  "strategy":{"type":"Rolling","rolling":{"max":1}},"box":{"a":1,"b":2}}`
	for _, c := range []struct{ patch, want string }{
		// What is not touched stays byte for byte as it was.
		{`{}`, object},
		{`{"lines":[{"sku":"tea","quantity":2}]}`, `{"lines": [{"sku":"tea", "quantity":2},{"sku":"cup","tags":["a","b"]}],  "strategy":{"type":"Rolling","rolling":{"max":1}},"box":{"a":1,"b":2}}`},
		{`{"lines":[{"sku":"pot"}]}`, `{"lines": [{"sku":"pot"},{"sku":"tea", "quantity":1},{"sku":"cup","tags":["a","b"]}],  "strategy":{"type":"Rolling","rolling":{"max":1}},"box":{"a":1,"b":2}}`},
		{`{"lines":[{"$patch":"delete","sku":"tea"}],"strategy":null,"box":null}`,
			`{"lines": [{"sku":"cup","tags":["a","b"]}]}`},
		{`{"lines":[{"$patch":"replace"},{"sku":"pot"}],"strategy":null,"box":null}`, `{"lines": [{"sku":"pot"}]}`},
		{`{"lines":[{"$patch":"merge","sku":"tea","quantity":3}],"strategy":null,"box":null}`, `{"lines": [{"sku":"tea", "quantity":3},{"sku":"cup","tags":["a","b"]}]}`},
		{`{"$setElementOrder/lines":[{"sku":"cup"},{"sku":"pot"},{"sku":"tea"}],"lines":[{"sku":"pot"}],"strategy":null,"box":null}`,
			`{"lines": [{"sku":"cup","tags":["a","b"]},{"sku":"pot"},{"sku":"tea", "quantity":1}]}`},
		{`{"lines":[{"sku":"cup","tags":["c"],"$deleteFromPrimitiveList/tags":["a"]}],"strategy":null,"box":null}`,
			`{"lines": [{"sku":"tea", "quantity":1},{"sku":"cup","tags":["c","b"]}]}`},
		{`{"lines":null,"box":null,"strategy":{"$retainKeys":["type"],"type":"Recreate"}}`, `{  "strategy":{"type":"Recreate"}}`},
		{`{"lines":null,"box":null,"strategy":{"$patch":"replace","type":"Recreate"}}`,
			`{  "strategy":{"type":"Recreate"}}`},
		{`{"lines":null,"box":null,"strategy":{"$patch":"delete"}}`, `{  "strategy":{}}`},
		{`{"lines":null,"box":null,"strategy":{"$patch":"merge","type":"Recreate"}}`,
			`{  "strategy":{"type":"Recreate","rolling":{"max":1}}}`},
		{`{"lines":null,"strategy":null,"box":{"c":3}}`, `{"box":{"c":3}}`},
		{`{"$patch":"replace","steps":["a"]}`, `{"steps":["a"]}`},
		{`{"lines":null,"strategy":null,"box":null,"ports":[{"port":1},{"$patch":"delete","port":2},{"port":3}]}`, `{"ports":[{"port":1},{"port":3}]}`},
		{`{"$setElementOrder/lines":[{"sku":"tea"},{"sku":"cup"}],"lines":[{"$patch":"delete","sku":"pot"},{"sku":"cup","quantity":2}],"strategy":null,"box":null}`,
			`{"lines": [{"sku":"tea", "quantity":1},{"sku":"cup","tags":["a","b"],"quantity":2}]}`},
		// Fields that the type does not know are merged like any other, lists are replaced.
		{`{"lines":null,"strategy":null,"box":null,"other":{"a":[{"b":1,"$retainKeys":[]}],"c":null}}`, `{"other":{"a":[{"b":1}]}}`},
		// Directives never become part of what is new.
		{`{"lines":null,"strategy":null,"box":null,"free":{"$retainKeys":["a"],"a":1,"b":{"$patch":"delete"}}}`, `{"free":{"a":1}}`},
		// Two items with one key are one.
		{`{"lines":[{"sku":"pot","quantity":1},{"sku":"pot","tags":["x"]}],"strategy":null,"box":null}`,
			`{"lines": [{"sku":"pot","quantity":1,"tags":["x"]},{"sku":"tea", "quantity":1},{"sku":"cup","tags":["a","b"]}]}`},

		{`[]`, "strategic merge patch: a patch must be an object, not a list"},
		{`{"$patch":"remove"}`, "strategic merge patch: $patch: must be 'replace', 'delete' or 'merge'"},
		{`{"lines":[{"quantity":1}]}`, "strategic merge patch: lines[0]: the merge key `sku` must be set"},
		{`{"lines":[{"sku":{}}]}`, "strategic merge patch: lines[0].sku: a merge key must be a scalar, not an object"},
		{`{"lines":[{"sku":"a"},{"$patch":"drop","sku":"a"}]}`,
			"strategic merge patch: lines[1].$patch: must be 'replace', 'delete' or 'merge'"},
		{`{"lines":[{"sku":"a"},1]}`, "strategic merge patch: lines: items of merged lists must be of one type"},
		{`{"lines":[[]]}`, "strategic merge patch: lines: lists of lists must not be merged"},
		{`{"strategy":{"$retainKeys":"type"}}`,
			"strategic merge patch: strategy.$retainKeys: must be a list, not a string"},
		{`{"strategy":{"$retainKeys":["type"],"rolling":{}}}`, "strategic merge patch: strategy.rolling: must be named in `$retainKeys`, since the patch sets it"},
		{`{"$setElementOrder/lines":[{"sku":"tea"},{"sku":"pot"}],"lines":[{"sku":"pot"},{"sku":"tea"}]}`,
			"strategic merge patch: lines[1]: must be named in `$setElementOrder`, in the order of the list"},
		{`{"$setElementOrder/lines":{}}`,
			"strategic merge patch: [$setElementOrder/lines]: must be a list, not an object"},
		{`{"$setElementOrder/box":[1]}`, "strategic merge patch: [$setElementOrder/box]: `box` must be a list, not an object"},
		{`{"lines":[{"sku":"cup","$deleteFromPrimitiveList/tags":"a"}]}`, "strategic merge patch: lines[0][$deleteFromPrimitiveList/tags]: must be a list, not a string"},
	} {
		d, p := parsed(t, []byte(object)), parsed(t, []byte(c.patch))
		err := orders().Patch(d, p.Root())
		got := string(d.AppendTo(nil))
		if err != nil {
			if got != object {
				t.Errorf("%s: a patch that fails left %s", c.patch, got)
			}
			var failed *merge.PatchError
			if !errors.As(err, &failed) {
				t.Errorf("%s: %T", c.patch, err)
			}
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.patch, got, c.want)
		}
	}
}

// TestPatchBySeveralKeys: items with several keys. One key has a default.
func TestPatchBySeveralKeys(t *testing.T) {
	d := parsed(t, []byte(`{"ports":[{"port":80},{"port":80,"protocol":"UDP"}]}`))
	p := parsed(t, []byte(`{"ports":[{"port":80,"protocol":"TCP","name":"web"},{"port":53,"name":"dns"}]}`))
	if err := orders().Patch(d, p.Root()); err != nil {
		t.Fatal(err)
	}
	const want = `{"ports":[{"port":80,"protocol":"TCP","name":"web"},{"port":53,"name":"dns"},{"port":80,"protocol":"UDP"}]}`
	if got := string(d.AppendTo(nil)); got != want {
		t.Errorf("got %s", got)
	}
}

// TestApplyErrors: what keeps a configuration from being merged.
func TestApplyErrors(t *testing.T) {
	const object = `{"lines":[{"sku":"tea","quantity":1}]}`
	for _, c := range []struct{ object, configuration, want string }{
		{object, `{"steps":["a"],"box":{"a":1}}`, `invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .steps, .box`},
		{object, `{"line":[]}`, `failed to convert patch object to typed object: .line: field not declared in schema`},
		{object, `{"lines":{}}`, `failed to convert patch object to typed object: .lines: expected list, got map`},
		{object, `{"strategy":{"type":1}}`, `failed to convert patch object to typed object: .strategy.type: expected string, got 1`},
		{object, `{"lines":[{"sku":"a"},{"sku":"a"}]}`, `failed to convert patch object to typed object: .lines: duplicate entries for key [sku="a"]`},
		{object, `{"lines":[{"quantity":1}]}`, `failed to convert patch object to typed object: .lines: element 0: associative list with keys has an element that omits all key fields ["sku"] (and doesn't have default values for any key fields)`},
		{object, `{"lines":[{"sku":"a","quantity":"x","tags":[{}]}]}`,
			"failed to convert patch object to typed object: errors:\n" +
				`  .lines[sku="a"].quantity: expected numeric (int or float), got "x"` + "\n" +
				`  .lines[sku="a"].tags: element 0: associative list without keys has an element that's a map type`},
		{`{"steps":1}`, `{"free":1}`, `failed to convert original object to typed object: .steps: expected list, got 1`},
	} {
		d, p := parsed(t, []byte(c.object)), parsed(t, []byte(c.configuration))
		_, err := orders().Apply(d, p.Root())
		if got := fmt.Sprint(err); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.configuration, got, c.want)
		}
		if got := string(d.AppendTo(nil)); got != c.object {
			t.Errorf("%s: a configuration that fails left %s", c.configuration, got)
		}
	}
}

// TestApplyKeepsBytes: what a configuration does not change stays as it was written.
func TestApplyKeepsBytes(t *testing.T) {
	for _, c := range []struct{ object, configuration, want string }{
		{`{ "lines" : [ {"sku":"tea",  "quantity":1.0} ] }`, `{"lines":[{"sku":"tea","quantity":1}]}`,
			`{ "lines" : [ {"sku":"tea",  "quantity":1.0} ] }`},
		{`{ "lines" : [ {"sku":"tea"} ] }`, `{"lines":[{"sku":"cup"}]}`,
			`{ "lines" : [ {"sku":"tea"},{"sku":"cup"} ] }`},
		{`{"lines":[{"sku":"tea"},{"sku":"cup"}]}`, `{"lines":[{"sku":"cup"},{"sku":"tea","quantity":2}]}`,
			`{"lines":[{"sku":"cup"},{"sku":"tea","quantity":2}]}`},
		{`{"free":{"a":1}}`, `{"free":null}`, `{"free":{"a":1}}`},
	} {
		d, p := parsed(t, []byte(c.object)), parsed(t, []byte(c.configuration))
		changed, err := orders().Apply(d, p.Root())
		if err != nil || changed != (c.object != c.want) {
			t.Errorf("%s: changed %v, %v", c.configuration, changed, err)
		}
		if got := string(d.AppendTo(nil)); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.configuration, got, c.want)
		}
	}
}

// TestLongErrors: whatever an object holds, an error is short.
func TestLongErrors(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	items := strings.Repeat(`{"sku":1,"quantity":"`+big[:100]+`"},`, 5000)
	for _, object := range []string{`{"` + big + `":1}`, `{"steps":"` + big + `"}`,
		`{"lines":[` + strings.TrimSuffix(items, ",") + `]}`} {
		d, p := parsed(t, []byte(object)), parsed(t, []byte(`{}`))
		_, err := orders().Apply(d, p.Root())
		if err == nil || len(err.Error()) > 8<<10 {
			t.Errorf("an error of %d bytes", len(fmt.Sprint(err)))
		}
	}
}

func apply(t *merge.Type, d *document.Document, n document.Node) error {
	_, err := t.Apply(d, n)
	return err
}

// TestPatchIsLinear: large lists are merged without looking through one for each item of the other. It fails by taking
// minutes.
func TestPatchIsLinear(t *testing.T) {
	var one, two strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&one, `{"sku":"%d","quantity":1},`, i)
		fmt.Fprintf(&two, `{"sku":"%d","quantity":2},`, 50_000-i)
	}
	for _, merged := range []func(*merge.Type, *document.Document, document.Node) error{(*merge.Type).Patch, apply} {
		d := parsed(t, []byte(`{"lines":[`+strings.TrimSuffix(one.String(), ",")+`]}`))
		p := parsed(t, []byte(`{"lines":[`+strings.TrimSuffix(two.String(), ",")+`]}`))
		if err := merged(orders(), d, p.Root()); err != nil {
			t.Fatal(err)
		}
		list, _ := d.Root().Get("lines")
		if list.Len() != 50_001 {
			t.Errorf("%d items", list.Len())
		}
	}
}
