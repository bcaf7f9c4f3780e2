package cel

import (
	"context"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// TestPatches: what the expressions of mutating policies write, and why they do not compile or have no value. The texts
// are Kubernetes'.
func TestPatches(t *testing.T) {
	d, err := document.Parse([]byte(`{"metadata":{"name":"w1","labels":{"a/b":"c"}},"spec":{"size":1.50,"owner":"ann","parts":[{"name":"p"}]}}`), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	apply, patch := (*PatchCompiler).ApplyConfiguration, (*PatchCompiler).JSONPatch
	for _, c := range []struct {
		compile    func(*PatchCompiler, string) (*Program, error)
		expression string
		want       string
	}{
		{apply, `Object{}`, `{}`},
		{apply, `Object{spec: Object.spec{size: object.spec.size, color: 'red', parts: [Object.spec.parts{name: 'x', weight: 2}]}}`,
			`{"spec":{"color":"red","parts":[{"name":"x","weight":2}],"size":1.5}}`},
		{apply, `Object{spec: Object.spec{parts: object.spec.parts, all: object.metadata}}`,
			`{"spec":{"all":{"name":"w1","labels":{"a/b":"c"}},"parts":[{"name":"p"}]}}`},
		{apply, `Object{spec: Object.spec{?color: object.spec.?color, ?owner: object.spec.?owner, none: optional.none(), some: optional.of(1)}}`,
			`{"spec":{"none":null,"owner":"ann","some":1}}`},
		{apply, `Object{metadata: Object.metadata{labels: {'z': 'y', 'a': 'b'}}, spec: Object.spec{parts: object.spec.parts.map(p, Object.spec.parts{name: p.name + '2'})}}`,
			`{"metadata":{"labels":{"a":"b","z":"y"}},"spec":{"parts":[{"name":"p2"}]}}`},
		{apply, `has(object.spec.owner) ? Object{spec: Object.spec{n: [1, 2, 3], d: [2.5, 3.0]}} : Object{}`, `{"spec":{"d":[2.5,3],"n":[1,2,3]}}`},
		{apply, `Object{spec: Object.spec{variable: variables.name}}`, `{"spec":{"variable":"w1!"}}`},
		{patch, `[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('example.com/~x'), value: 'y'}]`,
			`[{"op":"add","path":"/metadata/labels/example.com~1~0x","value":"y"}]`},
		{patch, `[JSONPatch{op: 'move', from: '/a', path: '/b'}, JSONPatch{op: 'remove', path: '/c'}, JSONPatch{op: 'test', path: '/d', value: null}]`,
			`[{"op":"move","path":"/b","from":"/a"},{"op":"remove","path":"/c"},{"op":"test","path":"/d","value":null}]`},
		{patch, `[JSONPatch{op: 'add', path: '/spec', value: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'b'}}}}]`,
			`[{"op":"add","path":"/spec","value":{"selector":{"matchLabels":{"a":"b"}}}}]`},
		{patch, `object.spec.parts.map(p, JSONPatch{op: 'add', path: '/x/' + p.name, value: p}) + [JSONPatch{op: 'add', path: '/y', value: true}]`,
			`[{"op":"add","path":"/x/p","value":{"name":"p"}},{"op":"add","path":"/y","value":true}]`},
		{patch, `true ? [] : [JSONPatch{op: 'remove', path: '/x'}]`, `[]`},
		{patch, `[JSONPatch{op: Object{x: 'add'}.x, path: '/a', value: has(Object{}.x) || Object{a: 1} == Object{a: 2 - 1}}]`, `[{"op":"add","path":"/a","value":true}]`},

		{apply, `1`, `must evaluate to Object but got int`},
		{apply, `Object.spec{}`, `must evaluate to Object but got Object.spec`},
		{apply, `Thing{}`, `compilation failed: ERROR: <input>:1:6: undeclared reference to 'Thing' (in container '') | Thing{} | .....^`},
		{patch, `[]`, `must evaluate to list(JSONPatch) but got list(dyn)`},
		{patch, `[JSONPatch{opp: 'add'}]`, `compilation failed: ERROR: <input>:1:15: expected type of field 'opp' is '' but provided type is 'string' | [JSONPatch{opp: 'add'}] | ..............^`},
		{apply, `Object{spec: Object.wrong{}}`, `type mismatch: unexpected type name "Object.wrong", expected "Object.spec", which matches field name path from root Object type`},
		{apply, `Object{spec: Object.spec{x: object.spec.nothing}}`, `expression 'Object{spec: Object.spec{x: object.spec.nothing}}' resulted in error: no such key: nothing`},
		{apply, `Object{spec: {1: 2}}`, `error applying patch: failed to convert patch object to typed object: .spec: a map whose keys are not strings cannot be written as JSON`},
		{patch, `[JSONPatch{op: 'add', path: '/a', value: optional.none()}]`, `JSONPath valueExpression evaluated to a type that could not marshal to JSON: optional.none() dereference`},
	} {
		compiler := NewPatchCompiler(false)
		if err := compiler.Variable("name", "object.metadata.name + '!'"); err != nil {
			t.Fatal(err)
		}
		p, err := c.compile(compiler, c.expression)
		if err != nil {
			if got := strings.Join(strings.Fields(err.Error()), " "); got != c.want {
				t.Errorf("%s\ngot  %s\nwant %s", c.expression, got, c.want)
			}
			continue
		}
		f := NewFrame(context.Background())
		f.Vars().Set(value.Object, d.Root(), nil)
		f.OpenVariables(f.Vars(), compiler.Variables())
		raw, err := p.EvalPatch(f, f.Vars(), nil)
		got := string(raw)
		if err != nil {
			got = err.Error()
		}
		f.CloseVariables(f.Vars())
		f.Release()
		if got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.expression, got, c.want)
		}
	}
}

// TestPatchesAreCounted: what a patch repeats of a large object spends the budget, however cheap it is to name.
func TestPatchesAreCounted(t *testing.T) {
	d, err := document.Parse([]byte(`{"items":[`+strings.Repeat(`1,`, 999)+`1],"text":"`+strings.Repeat("x", 100_000)+
		`"}`), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPatchCompiler(false).JSONPatch(`object.items.map(i, JSONPatch{op: 'add', path: '/x', value: object})`)
	if err != nil {
		t.Fatal(err)
	}
	f := NewFrame(context.Background())
	defer f.Release()
	f.Vars().Set(value.Object, d.Root(), nil)
	_, err = p.EvalPatch(f, f.Vars(), nil)
	if failure, ok := err.(*Error); !ok || failure.Cause != value.OverLimit {
		t.Errorf("got %v", err)
	}
}

// TestDefaultingCompiler: self is the object that has the field.
func TestDefaultingCompiler(t *testing.T) {
	d, err := document.Parse([]byte(`{"spec":{"image":"a:latest"}}`), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	c := NewDefaultingCompiler()
	when, err := c.When(`self.image.endsWith(':latest') && object.spec == self`)
	if err != nil {
		t.Fatal(err)
	}
	v, kind, err := c.Value(`{'policy': self.image}`)
	if kind != document.Object || err != nil {
		t.Fatal(kind, err)
	}
	f := NewFrame(context.Background())
	defer f.Release()
	spec, _ := d.Root().Get("spec")
	f.Vars().Set(value.Object, d.Root(), nil)
	f.Vars().Set(value.Self, spec, nil)
	if ok, err := when.EvalBool(f, f.Vars()); !ok || err != nil {
		t.Errorf("when: %v, %v", ok, err)
	}
	raw, ok, err := v.EvalJSON(f, f.Vars(), nil)
	if string(raw) != `{"policy":"a:latest"}` || !ok || err != nil {
		t.Errorf("value: %s, %v, %v", raw, ok, err)
	}
	if _, err := c.When(`1`); err == nil {
		t.Error("a condition of type int compiles")
	}
	for expression, want := range map[string]document.Kind{
		`1`: document.Number, `'a'`: document.String, `[1]`: document.Array, `true`: document.Bool,
		`null`:   document.Null,
		`self.x`: document.Invalid, `object.?x`: document.Invalid, `optional.of('a')`: document.String,
		`duration('1h')`: document.String,
	} {
		if _, kind, err := c.Value(expression); kind != want || err != nil {
			t.Errorf("%s: %v, %v", expression, kind, err)
		}
	}
}
