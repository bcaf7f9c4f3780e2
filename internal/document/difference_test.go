package document

import (
	"encoding/json"
	"reflect"
	"testing"
)

func differenceOf(t testing.TB, from, to string, except ...[]string) string {
	t.Helper()
	a, b := mustParse(t, from), mustParse(t, to)
	defer a.Release()
	defer b.Release()
	return "[" + string(AppendDifference(nil, a.Root(), b.Root(), except)) + "]"
}

func TestDifference(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"nothing", `{"a":[1,{"b":null}]}`, `{"a": [1.0, {"b":null}]}`, `[]`},
		{"members", `{"a":1,"b":2,"c":3}`, `{"a":1,"b":"x","d":[]}`, `[{"op":"replace","path":"/b","value":"x"},{"op":"remove","path":"/c"},{"op":"add","path":"/d","value":[]}]`},
		{"names that a pointer escapes", `{"a/b":{"c~d":1}}`, `{"a/b":{"c~d":2,"\n":3}}`, `[{"op":"replace","path":"/a~1b/c~0d","value":2},{"op":"add","path":"/a~1b/\n","value":3}]`},
		{"null is a value", `{"a":1}`, `{"a":null}`, `[{"op":"replace","path":"/a","value":null}]`},
		{"items", `[{"a":1},2]`, `[{"a":2},2]`, `[{"op":"replace","path":"/0/a","value":2}]`},
		{"another length", `{"l":[1,2]}`, `{"l":[1]}`, `[{"op":"replace","path":"/l","value":[1]}]`},
		{"another kind", `[]`, `{}`, `[{"op":"replace","path":"","value":{}}]`},
		{"exact numbers", `{"a":9007199254740993}`, `{"a":9007199254740992}`,
			`[{"op":"replace","path":"/a","value":9007199254740992}]`},
		{"exceptions", `{"m":{"g":1,"l":1}}`, `{"m":{"g":2,"l":2}}`, `[{"op":"replace","path":"/m/l","value":2}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := differenceOf(t, c.from, c.to, []string{"m", "g"}); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// The difference of two values, applied to the first, is the second.
func FuzzDifference(f *testing.F) {
	f.Add(`{"a":[1,{"b/~":null}],"c":"x"}`, `{"a":[1,{"b/~":[]}],"d":{"e":1e1}}`)
	f.Add(`[[],{},""]`, `[{},[],null]`)
	f.Fuzz(func(t *testing.T, from, to string) {
		a, err := Parse([]byte(from), Limits{})
		if err != nil {
			t.Skip()
		}
		defer a.Release()
		b, err := Parse([]byte(to), Limits{})
		if err != nil {
			t.Skip()
		}
		defer b.Release()
		patch := mustParse(t, "["+string(AppendDifference(nil, a.Root(), b.Root(), nil))+"]")
		defer patch.Release()
		if patch.Root().Len() > MaxPatchOperations {
			t.Skip()
		}
		result := a.Clone()
		defer result.Release()
		if err := result.ApplyJSONPatch(patch.Root(), Limits{}); err != nil {
			t.Fatalf("%s of %s and %s: %v", patch.Root().Raw(), from, to, err)
		}
		if !EqualNodes(result.Root(), b.Root()) {
			t.Errorf("%s of %s and %s makes %s", patch.Root().Raw(), from, to, result.Root().Raw())
		}
		var x, y any
		if json.Unmarshal(result.AppendTo(nil), &x) != nil || json.Unmarshal([]byte(to), &y) != nil ||
			!reflect.DeepEqual(x, y) {
			t.Errorf("%s is not %s", result.AppendTo(nil), to)
		}
	})
}
