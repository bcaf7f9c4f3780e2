package plan_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

var update = flag.Bool("update", false, "write testdata anew")

// An input is what expressions read: as they read it here, and as they read it in Kubernetes.
type input struct {
	bind   func(*value.Bindings)
	values map[string]any
}

// plainInput has objects without a schema. An empty text is an object that a request does not have.
func plainInput(t testing.TB, object, old string) input {
	t.Helper()
	values := map[string]any{"object": nil, "oldObject": nil, "params": nil, "namespaceObject": nil}
	nodes := map[value.Slot]document.Node{}
	for slot, text := range map[value.Slot]string{value.Object: object, value.OldObject: old} {
		if text == "" {
			continue
		}
		nodes[slot] = celtest.Parse(t, text)
		name := map[value.Slot]string{value.Object: "object", value.OldObject: "oldObject"}[slot]
		values[name] = types.DefaultTypeAdapter.NativeToValue(celtest.Decode(t, text))
	}
	return input{values: values, bind: func(b *value.Bindings) {
		for slot, node := range nodes {
			b.Set(slot, node, nil)
		}
	}}
}

// compare evaluates an expression natively, as a value and as a condition, by cel-go's interpreter over lazy values,
// and by cel-go over Kubernetes' values. isSame says which outcomes are the same. It returns what the two ways cost
// here.
func compare(t *testing.T, x *celtest.Expression, in input,
	isSame func(a, b celtest.Outcome) bool) (native, lazy int64) {
	t.Helper()
	var want celtest.Outcome
	asked := false
	check := func(way string, got celtest.Outcome) {
		if strings.HasPrefix(got.Err, "stopped") && isSame(got, celtest.Outcome{}) {
			return // Kubernetes may work on it for minutes
		}
		if !asked {
			want, _ = x.Theirs(in.values)
			asked = true
		}
		// Kubernetes goes through the members of a map in any order, and so finds the first difference or error.
		for try := 0; try < 200 && !isSame(got, want); try++ {
			want, _ = x.Theirs(in.values)
		}
		if !isSame(got, want) {
			t.Errorf("%s\n%s\ngot  %v\nwant %v", way, x.Ast.Source().Content(), got, want)
		}
	}
	got, lazy := x.Lazily(in.bind)
	check("lazily", got)
	if x.Native == nil {
		return 0, lazy
	}
	got, native = x.Natively(in.bind)
	check("natively", got)
	if tested, ok := x.Tested(in.bind); ok && tested != got {
		t.Errorf("%s\nas a condition %v\nas a value     %v", x.Ast.Source().Content(), tested, got)
	}
	return native, lazy
}

func isEqual(a, b celtest.Outcome) bool { return a == b }

// TestPlain compares expressions about an object that no schema describes. What each costs, natively and by cel-go, is
// in testdata/units.txt: all gateways count the same.
func TestPlain(t *testing.T) {
	l := celtest.Plain(t)
	old := strings.Replace(celtest.PlainObject, `"replicas": 3`, `"replicas": 2`, 1)
	with, without := plainInput(t, celtest.PlainObject, old), plainInput(t, celtest.PlainObject, "")
	var units bytes.Buffer
	for _, expression := range celtest.PlainExpressions {
		t.Run(expression, func(t *testing.T) {
			x, err := l.Compile(expression)
			if err != nil {
				t.Skip(err) // cel-go refuses it
			}
			native, lazy := compare(t, x, with, isEqual)
			natively := fmt.Sprint(native)
			if x.Native == nil {
				natively = "no plan: " + x.Reason
			}
			fmt.Fprintf(&units, "%5s %5d  %s\n", natively, lazy, expression)
			if strings.Contains(expression, "oldObject") {
				compare(t, x, without, isEqual)
			}
		})
	}
	golden(t, "testdata/units.txt", units.Bytes())
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		a, b := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Fatalf("%s: got\n%s\nwant\n%s", file, a[i], b[i])
			}
		}
		t.Fatalf("%s: %d lines, want %d", file, len(a), len(b))
	}
}

// TestTyped compares rules of a schema with Kubernetes' own values.
func TestTyped(t *testing.T) {
	object := celtest.TypedObject
	s := celtest.Structural(t, celtest.TypedSchema)
	l, typ := celtest.OfSchema(t, s)
	withMeta := model.WithTypeAndObjectMeta(s)
	var all []*celtest.Expression
	for _, expression := range celtest.TypedExpressions {
		x, err := l.Compile(expression)
		if err != nil {
			t.Fatal(expression, err)
		}
		all = append(all, x)
	}
	for name, body := range map[string]string{
		"as it is": object,
		"reordered": strings.NewReplacer(`["b", "a"]`, `["a", "b"]`,
			`[{"name": "x", "port": 1}, {"name": "y", "port": 2}]`,
			`[{"name": "y", "port": 2}, {"name": "x", "port": 1}]`,
			`"unknown": {"a": [1]}`, `"unknown": {"a": [1.0]}`).Replace(object),
		"smaller": strings.NewReplacer(`["b", "a"]`, `["b"]`, `{"name": "y", "port": 2}`, `{"name": "y", "port": 3}`,
			`"replicas": 3`, `"replicas": 2`, `"raw": {"a": [1, 2.0]}`, `"raw": {"a": [1, 2]}`,
			`, "unknown": {"a": [1]}`, ``).Replace(object),
		"of wrong types": strings.NewReplacer(`"replicas": 3`, `"replicas": "3"`, `"list": [1, 2, 3]`,
			`"list": {"a": 1}`,
			`"labels": {"app": "web",`, `"labels": {"app": null,`, `"when": "2024-01-02T03:04:05Z"`, `"when": "x"`,
			`"data": "aGVsbG8="`, `"data": "%"`, `"timeout": "90s"`, `"timeout": "x"`, `"name": "web"`, `"name": null`,
			`"named": [{`, `"named": [1, {`, `"port": 80`, `"port": 1.5`).Replace(object),
	} {
		t.Run(name, func(t *testing.T) {
			node, old := celtest.Parse(t, body), celtest.Parse(t, object)
			in := input{
				bind: func(b *value.Bindings) {
					b.Set(value.Self, node, typ)
					b.Set(value.OldSelf, old, typ)
				},
				values: map[string]any{
					"self":    schemacel.UnstructuredToVal(celtest.Decode(t, body), withMeta),
					"oldSelf": schemacel.UnstructuredToVal(celtest.Decode(t, object), withMeta),
				},
			}
			for _, x := range all {
				compare(t, x, in, isEqual)
			}
		})
	}
}

// isAlike compares the values of generated expressions. Errors are only compared as such.
func isAlike(ours, theirs celtest.Outcome) bool {
	return ours.Value == theirs.Value && (ours.Err == "") == (theirs.Err == "") ||
		strings.Contains(ours.Err, "beyond 64 bits") || // Kubernetes rounds
		strings.Contains(ours.Err, "invalid data, ") || // an object that the schema refuses reaches no rule
		strings.HasPrefix(ours.Err, "stopped") || strings.Contains(theirs.Err, "cost") || // other prices
		strings.HasPrefix(theirs.Err, "internal error") // it panics if an argument is an error or of another type
}

// TestGenerated compares expressions and objects that are made of random bytes.
func TestGenerated(t *testing.T) {
	l := celtest.Plain(t)
	compared := 0
	random := rand.New(rand.NewPCG(1, 2))
	for range 4000 {
		seed := make([]byte, 200)
		for i := range seed {
			seed[i] = byte(random.Uint32())
		}
		g := celtest.OfObjects(seed)
		object, old := g.Object(), g.Object()
		expression := g.Value(3)
		x, err := l.Compile(expression)
		if err != nil {
			continue
		}
		native, lazy := compare(t, x, plainInput(t, object, old), isAlike)
		if x.Native == nil {
			t.Errorf("%s has no native plan: %s", expression, x.Reason)
		}
		if most := max(native, lazy); most > celtest.Limit || min(native, lazy) < 0 {
			t.Errorf("%s costs %d units natively and %d lazily", expression, native, lazy)
		}
		compared++
	}
	if compared < 1000 {
		t.Errorf("only %d expressions were compared", compared)
	}
}

// FuzzAny compares expressions on any object.
func FuzzAny(f *testing.F) {
	for i, object := range []string{
		celtest.PlainObject, `{"a":1,"b":2}`, `{"a":[1,"b",null,{"b":1}],"b":"b"}`, `{"a":{"b":[[]]},"b":{"b":[[]]}}`,
		`{"a":"bbb","b":"b"}`,
		`[1,{"a":2}]`, `null`, `{"a":1.5,"b":-0}`, `{"a":[1,[2,[3]]],"b":[1.0]}`, `{"a":"\u00e9\n","b":""}`,
		`{"a":true,"b":false}`,
		`{"a":[],"b":{}}`,
	} {
		f.Add([]byte(object), []byte(`{"a":1}`), uint8(i*7))
	}
	l := celtest.Plain(f)
	var all []*celtest.Expression
	for _, expression := range celtest.AnyExpressions {
		x, err := l.Compile(expression)
		if err != nil {
			f.Fatal(expression, err)
		}
		all = append(all, x)
	}
	f.Fuzz(func(t *testing.T, object, old []byte, which uint8) {
		for _, body := range [][]byte{object, old} {
			d, err := document.Parse(body, document.Limits{})
			if err != nil {
				return
			}
			d.Release()
		}
		compare(t, all[int(which)%len(all)], plainInput(t, string(object), string(old)), isAlike)
	})
}

// TestAny compares expressions on all of some objects, most of which they do not fit.
func TestAny(t *testing.T) {
	l := celtest.Plain(t)
	objects := []string{
		`{"a":1,"b":2}`, `{"a":[1,"b",null,{"b":1}],"b":"b"}`, `{"a":"bbb","b":"b"}`, `[1,{"a":2}]`, `null`,
		`{"a":1.5,"b":-0}`,
		`{"a":[1,[2,[3]]],"b":[1.0]}`, `{"a":true,"b":false}`, `{"a":[],"b":{}}`, `{"a":["b","a","b"],"b":["b"]}`,
		`{"a":"1Gi","b":""}`,
	}
	for _, expression := range celtest.AnyExpressions {
		x, err := l.Compile(expression)
		if err != nil {
			t.Fatal(expression, err)
		}
		for i, object := range objects {
			compare(t, x, plainInput(t, object, objects[(i+1)%len(objects)]), isAlike)
		}
	}
}
