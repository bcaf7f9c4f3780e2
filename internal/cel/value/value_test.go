package value_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// arena is one without bounds.
func arena(t testing.TB) *value.Arena {
	a := &value.Arena{}
	a.Start(context.Background(), 1<<40)
	a.Allow(1 << 40)
	t.Cleanup(a.Release)
	return a
}

// shown is a value as tests compare it: what is done with an error ends with it.
func shown(v ref.Val) string {
	if err, ok := v.(*types.Err); ok {
		// which may be a map, whose members are in any order
		what, _, isKey := strings.Cut(err.Error(), "no such key: ")
		if what, _, isTyped := strings.Cut(err.Error(), "invalid data"); isTyped {
			return "error: " + what + "invalid data" // with a type of Go in Kubernetes
		}
		if isKey {
			return "error: " + what + "no such key"
		}
		if strings.HasPrefix(err.Error(), "unsupported index: ") {
			return "error: unsupported index" // with an address in Kubernetes
		}
		return "error: " + err.Error()
	}
	if v == nil {
		return "nil"
	}
	return celtest.Show(v)
}

// do does all that expressions do with a value and another one, and returns what comes of it, line by line.
func do(v, other ref.Val) (lines []string) {
	say := func(what string, f func() string) {
		defer func() {
			if r := recover(); r != nil {
				lines = append(lines, what+": panic")
			}
		}()
		lines = append(lines, what+": "+f())
	}
	say("value", func() string { return shown(v) })
	say("type", func() string { return v.Type().TypeName() })
	say("equal", func() string { return shown(v.Equal(other)) })
	say("types.Equal", func() string { return shown(types.Equal(v, other)) })
	for _, t := range []ref.Type{types.StringType, types.TypeType, types.MapType, types.ListType, types.IntType} {
		say("convert to "+t.TypeName(), func() string {
			if converted := v.ConvertToType(t); !types.IsError(converted) {
				return shown(converted)
			}
			return "error" // whose words name types of Go in Kubernetes
		})
	}
	if s, ok := v.(traits.Sizer); ok {
		say("size", func() string { return shown(s.Size()) })
	}
	if c, ok := v.(traits.Container); ok {
		say("contains", func() string { return shown(c.Contains(other)) })
	}
	if a, ok := v.(traits.Adder); ok {
		say("add", func() string { return shown(a.Add(other)) })
	}
	if m, ok := v.(traits.Mapper); ok {
		say("find", func() string {
			found, ok := m.Find(other)
			return fmt.Sprint(shown(found), ok)
		})
		say("get", func() string { return shown(m.Get(other)) })
	} else if i, ok := v.(traits.Indexer); ok {
		say("get", func() string { return shown(i.Get(other)) })
		for _, at := range []ref.Val{types.Int(0), types.Int(2), types.Int(1), types.Int(0), types.Int(-1),
			types.Int(9),
			types.Double(1), types.Uint(1)} {
			say("index "+shown(at), func() string { return shown(i.Get(at)) })
		}
	}
	if it, ok := v.(traits.Iterable); ok {
		say("items", func() string {
			var all []string
			for i := it.Iterator(); i.HasNext() == types.True; {
				if item := i.Next(); item != nil {
					// Kubernetes has nil in the place of a member that the schema does not name
					all = append(all, shown(item))
				}
			}
			if _, isMap := v.(traits.Mapper); isMap {
				return fmt.Sprint(len(all))
			}
			return strings.Join(all, " ")
		})
	}
	return lines
}

// at is a line, if there is one.
func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "nothing"
}

// values are the texts of values of all kinds.
var values = []string{
	"0", "1", "-1", "1.0", "1.5", "1e3", "9007199254740993", `""`, `"a"`, `"0"`, `"a text of more than ten characters"`,
	"true", "false", "null",
	"[]", "[1]", `["a",1,null]`, `[1,2,3]`, `[[1],{"a":1}]`, "{}", `{"a":1}`, `{"a":null,"b":[1]}`,
	`{"a":{"b":{"c":[1,{"d":2}]}}}`, `{"b":[1],"a":null}`,
}

// TestPlain: the values of a document are what cel-go makes of the decoded document, whatever is done with them.
func TestPlain(t *testing.T) {
	a := arena(t)
	var units strings.Builder
	for _, x := range values {
		before := spent(a)
		for _, y := range values {
			n, m := celtest.Parse(t, x), celtest.Parse(t, y)
			theirs, other := types.DefaultTypeAdapter.NativeToValue(celtest.Decode(t, x)),
				types.DefaultTypeAdapter.NativeToValue(celtest.Decode(t, y))
			want := do(theirs, other)
			for name, got := range map[string][]string{"lazy": do(a.Value(n, nil), a.Value(m, nil)),
				"with a value of cel-go's": do(a.Value(n, nil), other)} {
				for i := range want {
					if i >= len(got) || got[i] != want[i] {
						t.Errorf("%s and %s, %s: %v, want %s", x, y, name, at(got, i), want[i])
						break
					}
				}
			}
			// The other way round, cel-go asks the lazy value.
			if got, want := shown(theirs.Equal(a.Value(m, nil))), shown(theirs.Equal(other)); got != want {
				t.Errorf("%s equals %s: %s, want %s", x, y, got, want)
			}
		}
		fmt.Fprintf(&units, "%6d  %s\n", spent(a)-before, x)
	}
	golden(t, "testdata/plain.txt", units.String())
}

// spent is how many units were counted so far.
func spent(a *value.Arena) int64 {
	a.ChargeBudget()
	return a.Spent()
}

var update = flag.Bool("update", false, "write testdata anew")

// golden compares units with a file of them.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
}

// schemas are the types of the values of documents.
var schemas = []string{
	"{type: integer}", "{type: number}", "{type: string}", "{type: boolean}", "{type: string, nullable: true}",
	"{type: string, format: date-time}", "{type: string, format: date}",
	"{type: string, format: duration}", "{type: string, format: byte}", "{x-kubernetes-int-or-string: true}",
	"{x-kubernetes-preserve-unknown-fields: true}", "{type: array, items: {type: integer}}",
	"{type: array, x-kubernetes-list-type: set, items: {type: integer}}",
	"{type: array, items: {x-kubernetes-int-or-string: true}}", "{type: object}",
	"{type: object, properties: {a: {type: integer}}}",
	"{type: object, properties: {a: {type: integer, nullable: true}, b: {type: array, items: {type: integer}}}}",
	"{type: object, additionalProperties: {type: integer}}",
	"{type: object, additionalProperties: {type: integer, nullable: true}}",
	"{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {b: {type: array, items: {type: integer}}}}",
	"{type: object, properties: {a: {x-kubernetes-preserve-unknown-fields: true}}}",
}

// TestTyped: a value that a schema describes is what Kubernetes makes of it.
func TestTyped(t *testing.T) {
	a := arena(t)
	texts := append(values, `"2024-01-02T03:04:05Z"`, `"2024-01-02"`, `"90s"`, `"aGVsbG8="`, `[3,2,1]`,
		`{"a":1,"x":[1]}`, `{"a":1,"x":[1.0]}`)
	var units strings.Builder
	for _, schema := range schemas {
		before := spent(a)
		s := celtest.Structural(t, schema)
		typ := value.NewType(s, false)
		for _, x := range texts {
			for _, y := range texts {
				if strings.Contains(schema, "int") && (x == "1.0" || x == "1e3" || y == "1.0" || y == "1e3") {
					continue // an integer here
				}
				n, m := celtest.Parse(t, x), celtest.Parse(t, y)
				theirs, other := kubernetes(t, s, x), kubernetes(t, s, y)
				got := do(a.Value(n, typ), a.Value(m, typ))
				want := do(theirs, other)
				for i := range want {
					if i >= len(got) || got[i] != want[i] && !isKnown(got[i], want[i]) {
						t.Errorf("%s: %s and %s: %v, want %s", schema, x, y, at(got, i), want[i])
						break
					}
				}
			}
		}
		fmt.Fprintf(&units, "%6d  %s\n", spent(a)-before, schema)
	}
	golden(t, "testdata/typed.txt", units.String())
}

func kubernetes(t *testing.T, s *structuralschema.Structural, text string) ref.Val {
	return schemacel.UnstructuredToVal(celtest.Decode(t, text), s)
}

// isKnown reports whether a difference means nothing: what Kubernetes panics over is an error, and it goes through the
// members of a map in any order, so that it finds a difference or a wrong value first.
func isKnown(got, want string) bool {
	isUnlike := func(s string) bool {
		return strings.HasSuffix(s, "qual: bool(false)") || strings.HasSuffix(s, "qual: error: invalid data")
	}
	return strings.HasSuffix(want, "panic") || isUnlike(got) && isUnlike(want)
}

// TestNames: members have the names that expressions use.
func TestNames(t *testing.T) {
	s := celtest.Structural(t,
		"{type: object, properties: {if: {type: integer}, a-b: {type: integer}, x__y: {type: integer}, c: {type: integer}}}")
	typ := value.NewType(s, false)
	for name, want := range map[string]string{"__if__": "if", "a__dash__b": "a-b", "x__underscores__y": "x__y",
		"c": "c",
		"d": "d"} {
		if got, ok := typ.Unescape(name); got != want || !ok {
			t.Errorf("%s is %q, %v, want %q", name, got, ok, want)
		}
		m := arena(t).Value(celtest.Parse(t, "{}"), typ).(*value.Map)
		if got := m.PlainName(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]bool{"a__b": true, "__": true, "_a_": false, "": false, "_": false,
		"a_": false} {
		if got := value.MayBeEscaped(name); got != want {
			t.Errorf("%q may be escaped: %v", name, got)
		}
	}
	for schema, kinds := range map[string]string{
		"{type: object}": "object", "{type: array, items: {type: integer}}": "array", "{type: string}": "string",
		"{type: boolean}": "bool", "{type: integer}": "", "{type: string, format: date}": "",
		"{type: array, x-kubernetes-list-type: set, items: {type: string}}": "array",
		"": "object array string bool null",
	} {
		var of *value.Type
		if schema != "" {
			of = value.NewType(celtest.Structural(t, schema), false)
		}
		var got []string
		for name, kind := range map[string]document.Kind{"object": document.Object, "array": document.Array,
			"string": document.String, "bool": document.Bool, "null": document.Null, "number": document.Number} {
			if of.Includes(kind) {
				got = append(got, name)
			}
		}
		for _, kind := range got {
			if !strings.Contains(kinds, kind) || len(got) != len(strings.Fields(kinds)) {
				t.Errorf("%s includes %v, want %s", schema, got, kinds)
			}
		}
	}
	a := arena(t)
	empty, full := a.Value(celtest.Parse(t, "{}"), nil).(*value.Map), a.Value(celtest.Parse(t, `{"a":1}`),
		nil).(*value.Map)
	if !empty.IsZeroValue() || full.IsZeroValue() || a.Value(celtest.Parse(t, "{}"), typ).(*value.Map).IsZeroValue() {
		t.Error("which map is a zero value")
	}
	if _, found := a.Value(celtest.Parse(t, `{"__x":1}`), typ).(*value.Map).Find(types.String("__x")); found {
		t.Error("a member with a name that no expression can write is found")
	}
	if !value.IsObject(celtest.Parse(t, "{}"), typ) || value.IsObject(celtest.Parse(t, "[]"), typ) ||
		!value.IsObject(celtest.Parse(t, "{}"), nil) ||
		value.IsObject(celtest.Parse(t, "{}"), value.NewType(celtest.Structural(t, "{type: string}"), false)) {
		t.Error("what is an object")
	}
	r := a.NewRecord(1, nil).(fmt.Stringer)
	if r.String() != "map" || full.String() != "map" ||
		a.Value(celtest.Parse(t, "[1]"), nil).(*value.List).String() != "list" {
		t.Error("a value is shown by more than its type")
	}
	root := value.NewType(celtest.Structural(t, "{type: object}"), true)
	if root.Members["kind"] == nil || root.Members["metadata"] == nil {
		t.Error("the root of a resource has no kind and metadata")
	}
}

// TestDocuments: a collection of documents is a list of cel-go's.
func TestDocuments(t *testing.T) {
	a := arena(t)
	defer func() {
		if units := spent(a); units != 591 {
			t.Errorf("all of it costs %d units", units)
		}
	}()
	list := func(texts ...string) (*value.Documents, ref.Val) {
		l := &value.Documents{Arena: a}
		var all []any
		for _, text := range texts {
			l.Of = append(l.Of, celtest.Parse(t, text))
			all = append(all, celtest.Decode(t, text))
		}
		return l, types.DefaultTypeAdapter.NativeToValue(all)
	}
	for _, texts := range [][]string{{}, {`{"a":1}`}, {`{"a":1}`, `{"b":[2]}`, `{"c":null}`}} {
		ours, theirs := list(texts...)
		for _, others := range [][]string{{}, {`{"a":1}`}, {`{"a":1}`, `{"b":[2]}`, `{"c":null}`},
			{`{"a":1}`, `{"b":[3]}`, `{"c":null}`}} {
			o, p := list(others...)
			got, want := do(ours, o), do(theirs, p)
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%v and %v:\n%s\nwant\n%s", texts, others, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
		elem := types.DefaultTypeAdapter.NativeToValue(map[string]any{"a": int64(1)})
		if got, want := ours.Contains(elem), theirs.(traits.Container).Contains(elem); got != want {
			t.Errorf("%v contains {a: 1}: %v, want %v", texts, got, want)
		}
		if ours.IsZeroValue() != (len(texts) == 0) {
			t.Errorf("%v is a zero value: %v", texts, ours.IsZeroValue())
		}
		if got, want := fmt.Sprint(ours.Value()), fmt.Sprint(theirs.Value()); got != want {
			t.Errorf("%v decoded is %s, want %s", texts, got, want)
		}
		if _, err := ours.ConvertToNative(reflect.TypeFor[[]any]()); err != nil {
			t.Error(err)
		}
		if l := a.Value(celtest.Parse(t, "["+strings.Join(texts, ",")+"]"),
			nil).(*value.List); l.IsZeroValue() != (len(texts) == 0) {
			t.Errorf("%v is a zero value: %v", texts, l.IsZeroValue())
		}
		n := 0
		ours.Fold(folder(func(i, v any) bool { n++; return n < 2 }))
		if n != min(len(texts), 2) {
			t.Errorf("%v: %d items were folded", texts, n)
		}
	}
}

// A folder is a traits.Folder.
type folder func(i, v any) bool

// FoldEntry implements traits.Folder.
func (f folder) FoldEntry(i, v any) bool { return f(i, v) }

// TestFolds: loops with two variables see the members and items with their keys, and may end early.
func TestFolds(t *testing.T) {
	a := arena(t)
	typ := value.NewType(celtest.Structural(t, "{type: object, properties: {a-b: {type: integer}, c: {type: string}}}"),
		false)
	for _, c := range []struct {
		text string
		typ  *value.Type
		most int
		want string
	}{
		{`{"a":1,"b":"x"}`, nil, 9, `"a"=int(1) "b"="x"`}, {`{"a":1,"b":"x"}`, nil, 1, `"a"=int(1)`},
		{`[1,"x"]`, nil, 9, `int(0)=int(1) int(1)="x"`}, {`[1,"x"]`, nil, 1, `int(0)=int(1)`}, {`{}`, nil, 9, ""},
		{`[]`, nil, 9, ""},
		{`{"x":0,"a-b":1,"y":0,"c":"z","w":1}`, typ, 9, `"a__dash__b"=int(1) "c"="z"`}, {`{"w":1}`, typ, 9, ""},
	} {
		var got []string
		a.Value(celtest.Parse(t, c.text), c.typ).(traits.Foldable).Fold(folder(func(i, v any) bool {
			got = append(got, shown(i.(ref.Val))+"="+shown(v.(ref.Val)))
			return len(got) < c.most
		}))
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
	}
}

// TestRecords: a record is a map of the fields that are there.
func TestRecords(t *testing.T) {
	a := arena(t)
	fields := []value.Field{
		{Name: "a", Get: func(f *value.Arena, of any) ref.Val { return f.NewText(of.(string)) }},
		{Name: "b", Get: func(*value.Arena, any) ref.Val { return nil }},
		{Name: "c", Get: func(*value.Arena, any) ref.Val { return types.NewErr("broken") }},
	}
	r := a.NewRecord("x", fields).(*value.Record)
	two := a.NewRecord("y", fields[:2])
	plain := types.DefaultTypeAdapter.NativeToValue(map[string]string{"a": "x"})
	for name, got := range map[string]ref.Val{
		`"x"`: r.Get(types.String("a")), "error: no such key": r.Get(types.String("b")),
		"error: broken": r.Get(types.String("c")), "error: unsupported map key type: types.Int": r.Get(types.Int(1)),
		"bool(true)": r.Contains(types.String("a")), "bool(false)": r.Contains(types.String("b")), "int(2)": r.Size(),
		"type(map)": r.ConvertToType(types.TypeType), "map": types.String(r.Type().TypeName()),
		"error: type conversion error from 'map(dyn, dyn)' to 'int'": r.ConvertToType(types.IntType),
	} {
		if shown(got) != name && string(fmt.Sprint(got)) != name {
			t.Errorf("got %s, want %s", shown(got), name)
		}
	}
	if got := r.Contains(types.String("c")); !types.IsError(got) {
		t.Errorf("a field that fails is there: %v", got)
	}
	one := a.NewRecord("x", fields[:2])
	for _, c := range []struct {
		a, b ref.Val
		want ref.Val
	}{{one, plain, types.True}, {one, one, types.True}, {one, two, types.False}, {two, plain, types.False},
		{one, r, types.False}, {one, types.DefaultTypeAdapter.NativeToValue(map[string]string{"b": "x"}),
			types.False}} {
		if got := c.a.Equal(c.b); got != c.want {
			t.Errorf("%s equals %s: %v", shown(c.a), shown(c.b), got)
		}
	}
	if got := one.Equal(types.Int(1)); !types.IsError(got) {
		t.Errorf("a record equals 1: %v", got)
	}
	var names []string
	it := r.Iterator()
	for it.HasNext() == types.True {
		names = append(names, string(it.Next().(types.String)))
	}
	if it.Next() != nil || strings.Join(names, " ") != "a c" {
		t.Errorf("the names are %v", names)
	}
}

// TestJSON: values are written as JSON, or it is said why not.
func TestJSON(t *testing.T) {
	l := celtest.Plain(t)
	object := celtest.Parse(t, `{"a":{"b":[1,null]},"l":["x",2],"n":null,"s":"a\"b","d":{"x":1}}`)
	for _, c := range []struct{ expression, json, configuration string }{
		{"1", "1", ""}, {"-1", "-1", ""}, {"12u", "12", ""}, {"1.5", "1.5", ""}, {"1e21", "1e+21", ""},
		{"1e-7", "1e-07", ""},
		{"1e20", "100000000000000000000", ""}, {"0.000001", "0.000001", ""}, {"0.0", "0", ""}, {"true", "true", ""},
		{"null", "null", ""},
		{"'a\"b'", `"a\"b"`, ""}, {"b'abc'", `"YWJj"`, ""}, {"duration('90s')", `"90s"`, ""},
		{"timestamp('2024-01-02T03:04:05Z')", `"2024-01-02T03:04:05Z"`, ""}, {"object.a", `{"b":[1,null]}`, ""},
		{"object.l", `["x",2]`, ""},
		{"[dyn(1), dyn('a'), object.l]", `[1,"a",["x",2]]`, ""},
		{"{'b': dyn(1), 'a': object.a}", `{"a":{"b":[1,null]},"b":1}`, ""}, {"object.?l", `["x",2]`, ""},
		{"object.?none", "!optional.none() dereference", ""},
		{"{1: 2}", "!a map whose keys are not strings cannot be written as JSON", ""},
		{"int", "!a value of type type cannot be written as JSON", ""},
		{"1.0 / 0.0", "!the number +Inf cannot be written as JSON", ""},
		{"[1.0 / 0.0]", "!the number +Inf cannot be written as JSON", ""},
		{"{'a': [1.0 / 0.0]}", "!the number +Inf cannot be written as JSON", ""},
		{"Object{b: 1, a: object.l}", `{"a":["x",2],"b":1}`, `{"a":["x",2],"b":1}`}, {"Object{}", "{}", "{}"},
		{"Object{a: object.n}", "!.a: must not be null", "!.a: must not be null"},
		{"Object{a: object.a}", "!.a.b[1]: must not be null", "!.a.b[1]: must not be null"},
		{"Object{a: [dyn(1), dyn('b'), dyn(true), dyn(1.5), object.d, object.l]}",
			`{"a":[1,"b",true,1.5,{"x":1},["x",2]]}`,
			`{"a":[1,"b",true,1.5,{"x":1},["x",2]]}`},
		{"Object{a: {'x': dyn(1), 'w': object.s}}", `{"a":{"w":"a\"b","x":1}}`,
			`{"a":{"w":"a\"b","x":1}}`},
		{"Object{a: [null]}", "!.a[0]: must not be null", "!.a[0]: must not be null"},
		{"Object{a: {'b': null}}", "!.a.b: must not be null", "!.a.b: must not be null"},
		{"Object{a: [[1]]}", "!.a[0]: must not be a list that is written within a list or map",
			"!.a[0]: must not be a list that is written within a list or map"},
		{"Object{a: [{'b': 1}]}", "!.a[0]: must not be a map that is written within a list or map",
			"!.a[0]: must not be a map that is written within a list or map"},
		{"Object{a: {1: 2}}", "!.a: a map whose keys are not strings cannot be written as JSON",
			"!.a: a map whose keys are not strings cannot be written as JSON"},
		{"Object{a: 1u}", `{"a":1}`, "!.a: must not be of type uint"},
		{"Object{a: b'abc'}", `{"a":"YWJj"}`, "!.a: must not be of type bytes"},
		{"Object{a: duration('1s')}", "!.a: must not be of type google.protobuf.Duration",
			"!.a: must not be of type google.protobuf.Duration"},
		{"Object{a: int}", `{"a":"int"}`, `{"a":"int"}`},
		{"Object{a: Object.a{b: 1}}", `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		{"Object{a: [Object.a{b: 1}]}", `{"a":[{"b":1}]}`, `{"a":[{"b":1}]}`},
		{"Object{a: object.?l}", `{"a":["x",2]}`, `{"a":["x",2]}`},
		{"Object{a: object.?none}", `{"a":null}`, `{"a":null}`},
		{"Object{a: [object.?s]}", `{"a":["a\"b"]}`, `{"a":["a\"b"]}`},
		{"Object{a: object.l + [3]}", `{"a":["x",2,3]}`, `{"a":["x",2,3]}`},
		{"Object{a: object.l.map(x, x)}", `{"a":["x",2]}`, `{"a":["x",2]}`},
		{"Object{a: Object.b{}}", `{"a":{}}`,
			"!type mismatch: unexpected type name \"Object.b\", expected \"Object.a\", which matches field name path from root Object type"},
		{"Object{a: [Object.b{}], b: {'x': Object.c{}}}", `{"a":[{}],"b":{"x":{}}}`,
			"!type mismatch: unexpected type name \"Object.b\", expected \"Object.a\", which matches field name path from root Object type\nunexpected type name \"Object.c\", expected \"Object.b\", which matches field name path from root Object type"},
		{"Object{a: 1.0 / 0.0}", "!.a: the number +Inf cannot be written as JSON",
			"!.a: the number +Inf cannot be written as JSON"},
	} {
		x, err := l.Compile(c.expression)
		if err != nil {
			t.Errorf("%s: %v", c.expression, err)
			continue
		}
		m := celtest.NewMachine()
		m.Bindings.Set(value.Object, object, nil)
		v := x.Value(m)
		text, problem := m.Arena.AppendJSON(nil, v)
		if got := jsonOr(text, problem); got != c.json {
			t.Errorf("%s is written as %s, want %s", c.expression, got, c.json)
		}
		if made, ok := v.(*value.Made); ok {
			text, problem := m.Arena.AppendConfiguration(nil, made)
			got := jsonOr(text, problem)
			const conversion = "!error applying patch: failed to convert patch object to typed object: ."
			if strings.HasPrefix(c.configuration, "!.") != strings.HasPrefix(got, conversion) {
				t.Errorf("%s as a configuration is %s", c.expression, got)
			}
			got = strings.Replace(got, strings.TrimSuffix(conversion, "."), "!", 1)
			if got != c.configuration {
				t.Errorf("%s as a configuration is %s, want %s", c.expression, got, c.configuration)
			}
		}
		m.Release()
	}
	for expression, want := range map[string]string{
		"[JSONPatch{op: 'add', path: '/a', value: 1}, JSONPatch{op: 'move', path: '/b', from: '/c'}]": `[{"op":"add","path":"/a","value":1},{"op":"move","path":"/b","from":"/c"}]`,
		"[]": "[]", "[1]": "!type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch",
		"[JSONPatch{op: 'add', path: '/a', value: Object{a: Object.a{b: [1]}}}]": `[{"op":"add","path":"/a","value":{"a":{"b":[1]}}}]`,
		"[JSONPatch{op: 'add', path: '/a', value: {1: 2}}]":                      "!JSONPath valueExpression evaluated to a type that could not marshal to JSON: a map whose keys are not strings cannot be written as JSON",
		"[JSONPatch{op: 'add', path: '/a', value: Object{a: Object.b{}}}]":       "!type mismatch: unexpected type name \"Object.b\", expected \"Object.a\", which matches field name path from root Object type",
	} {
		x, err := l.Compile(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		m := celtest.NewMachine()
		text, problem := m.Arena.AppendOperations(nil, x.Value(m).(traits.Lister))
		if got := jsonOr(text, problem); got != want {
			t.Errorf("%s is written as %s, want %s", expression, got, want)
		}
		m.Release()
	}
}

func jsonOr(text []byte, problem string) string {
	if problem != "" {
		return "!" + problem
	}
	return string(text)
}

// TestMade: an object that an expression makes has the fields that are set.
func TestMade(t *testing.T) {
	typ := func(name string) *value.MadeType {
		resolved, ok := value.MadeTypes{}.Resolve(name)
		if !ok {
			t.Fatal(name)
		}
		return resolved.(*value.MadeType)
	}
	for name, want := range map[string]bool{"Object": true, "Object.spec": true, "JSONPatch": true, "Objects": false,
		"object": false, "": false} {
		if _, ok := (value.MadeTypes{}).Resolve(name); ok != want {
			t.Errorf("%q is a type: %v", name, ok)
		}
	}
	made := func(name string, fields map[string]ref.Val) *value.Made { return typ(name).Val(fields).(*value.Made) }
	a := made("Object", map[string]ref.Val{"b": types.Int(1), "a": types.String("x")})
	for _, c := range []struct {
		other ref.Val
		want  ref.Val
	}{
		{made("Object", map[string]ref.Val{"a": types.String("x"), "b": types.Int(1)}), types.True},
		{made("Object", map[string]ref.Val{"a": types.String("y"), "b": types.Int(1)}), types.False},
		{made("Object", map[string]ref.Val{"a": types.String("x")}), types.False},
		{made("Object.a", map[string]ref.Val{"a": types.String("x"), "b": types.Int(1)}), types.False},
		{types.Int(1), types.False},
	} {
		if got := a.Equal(c.other); got != c.want {
			t.Errorf("equals %v: %v", c.other, got)
		}
	}
	if a.IsZeroValue() || !made("Object", nil).IsZeroValue() {
		t.Error("which object is a zero value")
	}
	if got := a.ConvertToType(types.TypeType); shown(got) != "type(type)" || a.ConvertToType(a.Type()) != a ||
		!types.IsError(a.ConvertToType(types.IntType)) {
		t.Errorf("converts to %v", got)
	}
	if _, err := a.ConvertToNative(reflect.TypeFor[string]()); err == nil {
		t.Error("converts to a string")
	}
	field, _ := typ("Object").Field("a")
	none, _ := typ("Object").Field("none")
	if got, err := field.GetFrom(a); err != nil || got != types.String("x") || !field.IsSet(a) || none.IsSet(a) ||
		field.IsSet(1) {
		t.Errorf("the field is %v, %v", got, err)
	}
	if got, err := none.GetFrom(a); got != nil || err != nil {
		t.Errorf("a field that is not set is %v, %v", got, err)
	}
	if _, err := field.GetFrom(1); err == nil {
		t.Error("1 has a field")
	}
	a.Vals[0] = nil
	if a.DropAbsent(); strings.Join(a.Names, " ") != "b" || len(a.Vals) != 1 {
		t.Errorf("the fields are %v", a.Names)
	}
}

// memory is a value.Memory of so many bytes.
type memory struct {
	left, asked, worked int
	refusesWork         bool
}

// Grow implements value.Memory.
func (m *memory) Grow(n int) bool {
	m.asked++
	if n > m.left {
		return false
	}
	m.left -= n
	return true
}

// Shrink implements value.Memory.
func (m *memory) Shrink(n int) { m.left += n }

// Work implements value.Memory.
func (m *memory) Work() bool { m.worked++; return !m.refusesWork }

// TestAllowance: what an evaluation may still use is counted, and what is too much stops it.
func TestAllowance(t *testing.T) {
	stopped := func(f func()) (cause any) {
		defer func() { cause = recover() }()
		f()
		return nil
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		do   func(a *value.Arena)
		want any
	}{
		"in the limit":   {func(a *value.Arena) { a.Allow(100); a.Charge(100) }, nil},
		"over the limit": {func(a *value.Arena) { a.Allow(100); a.Charge(101) }, value.Stop(value.OverLimit)},
		"over the budget": {func(a *value.Arena) { a.SetBudget(50); a.Allow(100); a.Charge(51) },
			value.Stop(value.OverBudget)},
		"in the budget": {func(a *value.Arena) { a.SetBudget(50); a.Allow(100); a.Charge(50) }, nil},
		"a little at once": {func(a *value.Arena) {
			a.Allow(1000)
			for range 1000 {
				a.Charge(1)
			}
		}, nil},
		"a little too much": {func(a *value.Arena) {
			a.Allow(1000)
			for range 1001 {
				a.Charge(1)
			}
		}, value.Stop(value.OverLimit)},
		"cancelled": {func(a *value.Arena) {
			a.Start(cancelled, 1000)
			a.Allow(1000)
			for range 101 {
				a.Charge(1)
			}
		}, value.Stop(value.Cancelled)},
		"not looked yet": {func(a *value.Arena) {
			a.Start(cancelled, 1000)
			a.Allow(1000)
			for range 100 {
				a.Charge(1)
			}
		}, nil},
		"too late": {func(a *value.Arena) { a.SetDeadline(time.Now().Add(-time.Second)); a.Allow(1000); a.Charge(101) },
			value.Stop(value.Cancelled)},
		"in time": {func(a *value.Arena) { a.SetDeadline(time.Now().Add(time.Hour)); a.Allow(1000); a.Charge(101) },
			nil},
		"shared": {func(a *value.Arena) {
			restore := a.Share(10)
			a.Allow(100)
			a.Charge(10)
			a.ChargeBudget()
			restore()
			a.Allow(100)
			a.Charge(90)
		}, nil},
		"more than shared": {func(a *value.Arena) { a.Share(10); a.Allow(100); a.Charge(11) },
			value.Stop(value.OverBudget)},
		"much made":     {func(a *value.Arena) { a.Take(value.MadeLimit) }, nil},
		"too much made": {func(a *value.Arena) { a.Take(value.MadeLimit); a.Take(1) }, value.Stop(value.OverLimit)},
	} {
		a := &value.Arena{}
		a.Start(context.Background(), 1000)
		if got := stopped(func() { c.do(a) }); got != c.want {
			t.Errorf("%s: stopped by %v, want %v", name, got, c.want)
		}
		a.ChargeBudget()
		if a.Budget() < 0 || a.Spent() < 0 {
			t.Errorf("%s: a budget of %d, %d spent", name, a.Budget(), a.Spent())
		}
		a.Release()
	}
	// An evaluation within another one, and a share of the budget.
	a := &value.Arena{}
	a.Start(context.Background(), 1000)
	a.Allow(300)
	a.Charge(10)
	outer := a.Running()
	a.ChargeBudget()
	a.Allow(50)
	a.Charge(20)
	a.ChargeBudget()
	a.Resume(outer)
	if got := stopped(func() { a.Charge(290) }); got != nil {
		t.Errorf("the outer evaluation is stopped by %v", got)
	}
	if got := stopped(func() { a.Charge(1) }); got != value.Stop(value.OverLimit) {
		t.Errorf("the outer evaluation is stopped by %v", got)
	}
	a.SetBudget(100)
	restore := a.Share(40)
	a.Allow(1000)
	a.Charge(15)
	a.ChargeBudget()
	if left := a.Budget(); left != 25 {
		t.Errorf("%d units of the share are left", left)
	}
	if restore(); a.Budget() != 85 {
		t.Errorf("%d units of the budget are left", a.Budget())
	}
	deadline := time.Now().Add(time.Hour)
	if a.SetDeadline(deadline); !a.Deadline().Equal(deadline) {
		t.Errorf("the deadline is %v", a.Deadline())
	}
	const free, step = 4 << 10, value.GrantStep
	for name, c := range map[string]struct {
		memory *memory
		do     func(a *value.Arena)
		want   any
		left   int // while it runs
		asked  int
	}{
		"what is free": {&memory{}, func(a *value.Arena) { a.Take(free) }, nil, 0, 0},
		"a step":       {&memory{left: step}, func(a *value.Arena) { a.Take(free + 1); a.Take(step - 1) }, nil, 0, 1},
		"refused": {&memory{left: step - 1}, func(a *value.Arena) { a.Take(free + 1) }, value.Stop(value.Refused),
			step - 1, 1},
		"two steps": {&memory{left: 3 * step}, func(a *value.Arena) { a.Take(free + step + 1) }, nil, step, 1},
		"short text": {&memory{}, func(a *value.Arena) {
			for range 100 {
				a.MadeText(value.ShortText)
			}
		}, nil, 0, 0},
		"text": {&memory{left: step}, func(a *value.Arena) { a.MadeText(value.ShortText + 1); a.MadeText(free) },
			nil, 0, 1},
		"text and values": {&memory{left: step}, func(a *value.Arena) { a.Take(free - 1000); a.MadeText(1001) }, nil, 0,
			1},
		"counted text": {&memory{left: step}, func(a *value.Arena) {
			a.CountText(types.String(strings.Repeat("a",
				free+1)))
		}, nil, 0, 1},
		"counted bytes": {&memory{left: step}, func(a *value.Arena) {
			a.CountText(types.Bytes(strings.Repeat("a",
				free+1)))
			a.CountText(types.Int(1))
		}, nil, 0, 1},
		"text that went": {&memory{left: step}, func(a *value.Arena) { a.MadeText(free); a.Retire(); a.MadeText(free) },
			nil, step, 0},
		"room": {&memory{left: step}, func(a *value.Arena) { a.MakeRoom(free); a.MakeRoom(free + 1) }, nil, 0,
			1},
		"heavy": {&memory{left: 4 << 20}, func(a *value.Arena) { a.Take(2<<20 + 1) }, nil, 4<<20 - 32*step, 1},
		"heavy, refused": {&memory{left: 4 << 20, refusesWork: true}, func(a *value.Arena) { a.Take(2<<20 + 1) },
			value.Stop(value.Refused), 4 << 20, 0},
		"light": {&memory{left: 4 << 20, refusesWork: true}, func(a *value.Arena) { a.Take(2 << 20) }, nil,
			4<<20 - 32*step, 1},
		"work": {&memory{refusesWork: true},
			func(a *value.Arena) { a.Allow(1 << 30); a.Charge(100_001); a.Charge(101) }, value.Stop(value.Refused), 0,
			0},
		"less work": {&memory{refusesWork: true},
			func(a *value.Arena) { a.Allow(1 << 30); a.Charge(99_000); a.Charge(101) }, nil, 0, 0},
	} {
		all := c.memory.left
		a := &value.Arena{}
		a.Start(context.Background(), 1<<40)
		a.SetMemory(c.memory)
		if a.Memory() != value.Memory(c.memory) {
			t.Error("another memory is asked")
		}
		if got := stopped(func() { c.do(a) }); got != c.want || c.memory.left != c.left || c.memory.asked != c.asked {
			t.Errorf("%s: stopped by %v with %d bytes left, asked %d times, want %v, %d, %d", name, got, c.memory.left,
				c.memory.asked, c.want, c.left, c.asked)
		}
		if a.Release(); c.memory.left != all {
			t.Errorf("%s: %d bytes are not given back", name, all-c.memory.left)
		}
	}
}

// TestSlabs: a slab hands out places that are not used twice before they are given back.
func TestSlabs(t *testing.T) {
	var s value.Slab[int]
	first := s.Mark()
	seen := map[*int]bool{}
	for i := range 5000 {
		p := s.Take()
		if *p != 0 || seen[p] {
			t.Fatalf("the place %d is used", i)
		}
		*p, seen[p] = i+1, true
	}
	s.Reset(first)
	again := s.Mark()
	p := s.Take()
	if *p != 0 {
		t.Errorf("a place that was given back has %d", *p)
	}
	*p = 7
	if s.Mark() == again {
		t.Error("the mark stays")
	}
	if s.Reset(again); s.Mark() != again || *p != 0 {
		t.Errorf("after a reset there is %d", *p)
	}
	for _, n := range []int{0, 1, 31, 512, 513, 2000} {
		want := make([]int, n)
		for i := range want {
			want[i] = i
		}
		got := s.TakeAll(want)
		if fmt.Sprint(got) != fmt.Sprint(want) || cap(got) != len(got) && n <= 512 {
			t.Errorf("%d values are %d, with room for %d", n, len(got), cap(got))
		}
	}
	a := arena(t)
	for _, i := range []int64{0, 255, 256, -1, 1 << 40} {
		if got := a.NewInt(i); got != types.Int(i) {
			t.Errorf("%d is %v", i, got)
		}
	}
	if a.NewString("a") != types.String("a") || a.NewDouble(1.5) != types.Double(1.5) {
		t.Error("a value is another one")
	}
	tab, data := value.Words(types.String("a"))
	if value.Joined(tab, data) != types.String("a") {
		t.Error("the words of a value make another one")
	}
	places := a.Marks()
	made := a.NewString("kept")
	a.Take(100)
	a.GiveBack(places)
	if a.Marks() != places || made != types.String("") {
		t.Errorf("what was made is %v", made)
	}
}
