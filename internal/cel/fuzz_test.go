package cel

import (
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	kjson "sigs.k8s.io/json"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// fuzzExpressions read objects of any form.
var fuzzExpressions = []string{
	`object`, `object.a`, `object.a.b`, `object[0]`, `object.a[1]`, `object.a['b']`, `has(object.a)`, `has(object.a.b)`, `object.?a.?b.orValue(1)`,
	`size(object)`, `size(object.a)`, `object == oldObject`, `object.a == object.b`, `object.a == oldObject.a`, `object.a in object.b`, `1 in object.a`,
	`object.a + object.b`, `object.a < object.b`, `object.a * 2`, `type(object.a)`, `string(object.a)`, `int(object.a)`, `double(object.a)`,
	`object.a.map(x, x)`, `object.a.filter(x, x == object.b)`, `object.a.all(x, x > 0)`, `object.a.exists(x, x == 'b')`, `object.a.all(i, x, i != x)`,
	`object.a.transformList(i, x, [i, x])`, `object.a.startsWith('b')`, `object.a.matches('b+')`, `object.a.contains(object.b)`, `object.a ? object.b : 1`,
	`object.a || object.b`, `object.a && object.b`, `!object.a`, `[object.a, object.a]`, `{'a': object.a}`, `object.a.size() + object.b.size()`,
	`sets.contains(object.a, object.b)`, `object.a.distinct()`, `object.a.flatten()`, `object.a.reverse()`, `'%s'.format([object.a])`, `optional.ofNonZeroValue(object.a)`,
	`object.a.join(',')`, `quantity(object.a).isGreaterThan(quantity('1'))`, `object.a.lowerAscii()`, `object.a.split(object.b)`, `object.a.replace(object.b, 'c')`,
}

// FuzzAgainstKubernetes evaluates expressions on any object by lazy values and by cel-go over the decoded object.
func FuzzAgainstKubernetes(f *testing.F) {
	for i, object := range []string{
		celtest.PlainObject, `{"a":1,"b":2}`, `{"a":[1,"b",null,{"b":1}],"b":"b"}`, `{"a":{"b":[[]]},"b":{"b":[[]]}}`, `{"a":"bbb","b":"b"}`, `[1,{"a":2}]`, `null`, `{"a":1.5,"b":-0}`,
		`{"a":[1,[2,[3]]],"b":[1.0]}`, `{"a":"\u00e9\n","b":""}`, `{"a":true,"b":false}`, `{"a":[],"b":{}}`,
	} {
		f.Add([]byte(object), []byte(`{"a":1}`), uint8(i*7))
	}
	e, err := newAdmissionEnv(nil, nil, true, false)
	if err != nil {
		f.Fatal(err)
	}
	var programs []*Program
	var kubePrograms []celgo.Program
	for _, expression := range fuzzExpressions {
		ast, issues := e.Compile(expression)
		if issues != nil {
			f.Fatal(expression, issues.Err())
		}
		natively, lazily, err := bothWays(f, e, expression, ast.NativeRep())
		if err != nil {
			f.Fatal(err)
		}
		kubeProgram, err := e.Program(ast)
		if err != nil {
			f.Fatal(err)
		}
		for _, p := range []*Program{natively, lazily} {
			if p != nil {
				programs, kubePrograms = append(programs, p), append(kubePrograms, kubeProgram)
			}
		}
	}
	f.Fuzz(func(t *testing.T, object, old []byte, which uint8) {
		i := int(which) % len(programs)
		values := map[string]any{"params": nil, "namespaceObject": nil}
		nodes := map[value.Slot]document.Node{}
		for name, body := range map[string][]byte{"object": object, "oldObject": old} {
			d, err := document.Parse(body, document.Limits{})
			if err != nil {
				return
			}
			defer d.Release()
			var v any
			if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &v); err != nil {
				return
			}
			values[name] = types.DefaultTypeAdapter.NativeToValue(v)
			nodes[map[string]value.Slot{"object": value.Object, "oldObject": value.OldObject}[name]] = d.Root()
		}
		got := ours(programs[i], func(v *Vars) {
			for s, n := range nodes {
				v.Set(s, n, nil)
			}
		})
		if strings.Contains(got.err, "beyond 64 bits") {
			return // Kubernetes rounds
		}
		if strings.Contains(got.err, "cost limit") {
			if prices, ok := kubernetesUnits(kubePrograms[i], values); ok && prices < ExpressionLimit/4 {
				t.Errorf("%s\ngot  %v, by Kubernetes' prices %d units", programs[i].Source(), got, prices)
			}
			return
		}
		want := theirs(kubePrograms[i], values)
		if strings.Contains(want.err, "cost limit") || strings.HasPrefix(want.err, "internal error") && got.err != "" {
			return // cel-go's cost tracking panics over some arguments that are errors
		}
		for try := 0; try < 100 && got != want; try++ {
			want = theirs(kubePrograms[i], values) // the order of a map's keys is random
		}
		if got != want {
			t.Errorf("%s\ngot  %v\nwant %v", programs[i].Source(), got, want)
		}
	})
}
