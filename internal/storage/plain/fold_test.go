package plain

import (
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

func parsed(t *testing.T, text string) *document.Document {
	t.Helper()
	d, err := document.Parse([]byte(text), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestFoldIntoMergePatch: what policies make of the result goes into the client's merge patch.
func TestFoldIntoMergePatch(t *testing.T) {
	for _, c := range []struct{ name, stored, patch, want, folded string }{
		{"nothing", `{"a":1}`, `{"b":2}`, `{"a":1,"b":2}`, `{"b":2}`},
		{"a member is added", `{"a":1}`, `{}`, `{"a":1,"b":2}`, `{"b":2}`},
		{"a member is changed", `{"a":1}`, `{"a":2}`, `{"a":3}`, `{"a":3}`},
		{"a change is undone", `{"a":1}`, `{"a":2}`, `{"a":1}`, `{}`},
		{"a member that is added is taken out", `{}`, `{"a":2}`, `{}`, `{}`},
		{"a stored member is taken out", `{"a":1,"b":2}`, `{}`, `{"b":2}`, `{"a":null}`},
		{"a stored member is kept", `{"a":1}`, `{"a":null}`, `{"a":1}`, `{}`},
		{"a member is replaced that was to go", `{"a":1}`, `{"a":null}`, `{"a":2}`, `{"a":2}`},
		{"within an object", `{"a":{"x":1,"y":2}}`, `{"a":{"x":3}}`, `{"a":{"x":4,"z":5}}`,
			`{"a":{"x":4,"y":null,"z":5}}`},
		{"within an object that is not named", `{"a":{"x":1,"y":2}}`, `{"b":1}`, `{"a":{"x":1,"y":3},"b":1}`,
			`{"b":1,"a":{"y":3}}`},
		{"an object becomes a text", `{"a":{"x":1}}`, `{"a":{"x":2}}`, `{"a":"t"}`, `{"a":"t"}`},
		{"an object that is not named becomes a text", `{"a":{"x":1}}`, `{}`, `{"a":"t"}`, `{"a":"t"}`},
		{"a text becomes an object", `{"a":"t"}`, `{"a":"u"}`, `{"a":{"x":1}}`, `{"a":{"x":1}}`},
		{"an object stays where a text was asked for", `{"a":{"x":1,"y":2}}`, `{"a":"t"}`, `{"a":{"x":1,"z":3}}`,
			`{"a":{"z":3,"y":null}}`},
		{"a list is replaced", `{"a":[1]}`, `{"a":[2]}`, `{"a":[3]}`, `{"a":[3]}`},
		{"a list in place of an object", `{"a":{"x":1}}`, `{"a":[2]}`, `{"a":{"x":2}}`, `{"a":{"x":2}}`},
		{"an object that was to go is changed", `{"a":{"x":1,"y":1}}`, `{"a":null}`, `{"a":{"x":2}}`,
			`{"a":{"x":2,"y":null}}`},
		{"a null that no merge patch can set", `{"a":1}`, `{}`, `{"a":null}`, ``},
		{"a null within what is added", `{}`, `{}`, `{"a":{"x":null}}`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fold{write: &storage.Write{}, patch: parsed(t, c.patch), stored: parsed(t, c.stored),
				want: parsed(t, c.want)}
			got, ok := f.mergePatch()
			if ok != (c.folded != "") || ok && string(got) != c.folded {
				t.Errorf("%s (%t), want %s", got, ok, c.folded)
			}
		})
	}
}

// TestPinMergePatch: the patch names the stored version.
func TestPinMergePatch(t *testing.T) {
	for _, c := range []struct {
		name, stored, patch, want string
		pin                       resource.FieldPath
		folded                    string
	}{
		{"a member", `{"a":1,"rev":7}`, `{"a":2}`, `{"a":2,"rev":7}`, resource.FieldPath{"rev"}, `{"a":2,"rev":7}`},
		{"within", `{"a":1,"m":{"v":"x"}}`, `{"a":2}`, `{"a":2,"m":{"v":"x"}}`, resource.FieldPath{"m", "v"},
			`{"a":2,"m":{"v":"x"}}`},
		{"within what is named", `{"m":{"v":"x","w":1}}`, `{"m":{"w":2}}`, `{"m":{"v":"x","w":2}}`,
			resource.FieldPath{"m", "v"}, `{"m":{"w":2,"v":"x"}}`},
		{"no version", `{"a":1}`, `{"a":2}`, `{"a":2}`, resource.FieldPath{"rev"}, ``},
		{"no parent", `{"a":1}`, `{"a":2}`, `{"a":2}`, resource.FieldPath{"m", "v"}, ``},
	} {
		f := fold{write: &storage.Write{}, patch: parsed(t, c.patch), stored: parsed(t, c.stored),
			want: parsed(t, c.want), pin: c.pin}
		got, ok := f.mergePatch()
		if ok != (c.folded != "") || ok && string(got) != c.folded {
			t.Errorf("%s: %s (%t), want %s", c.name, got, ok, c.folded)
		}
	}
}

// TestFoldIntoJSONPatch: what policies make of the result follows the client's operations, and what only reads have
// set comes before them if they replace it.
func TestFoldIntoJSONPatch(t *testing.T) {
	for _, c := range []struct {
		name, stored, completed, patch, want string
		isUnfilled                           bool
		folded                               string
	}{
		{"nothing", `{"a":1}`, `{"a":1}`, `[{"op":"add","path":"/b","value":2}]`, `{"a":1,"b":2}`, false,
			`[{"op":"add","path":"/b","value":2}]`},
		{"policies add", `{"a":1}`, `{"a":1}`, `[]`, `{"a":1,"b":2}`, false, `[{"op":"add","path":"/b","value":2}]`},
		{"policies change and take out", `{"a":1,"b":2}`, `{"a":1,"b":2}`, `[{"op":"replace","path":"/a","value":3}]`,
			`{"a":4}`, false,
			`[{"op":"replace","path":"/a","value":3},{"op":"replace","path":"/a","value":4},{"op":"remove","path":"/b"}]`},
		{"defaults that are stored", `{"a":1}`, `{"a":1,"d":9}`, `[{"op":"add","path":"/b","value":2}]`,
			`{"a":1,"d":9,"b":2}`, false,
			`[{"op":"add","path":"/d","value":9},{"op":"add","path":"/b","value":2}]`},
		{"defaults that are not", `{"a":1}`, `{"a":1,"d":9}`, `[{"op":"add","path":"/b","value":2}]`,
			`{"a":1,"d":9,"b":2}`, true,
			`[{"op":"add","path":"/b","value":2}]`},
		{"a default is replaced", `{"a":1}`, `{"a":1,"d":9}`, `[{"op":"replace","path":"/d","value":8}]`,
			`{"a":1,"d":8}`, true,
			`[{"op":"add","path":"/d","value":9},{"op":"replace","path":"/d","value":8}]`},
		{"a default in a list is replaced", `{"l":[{}]}`, `{"l":[{"d":9}]}`,
			`[{"op":"replace","path":"/l/0/d","value":8}]`, `{"l":[{"d":8}]}`, true,
			`[{"op":"add","path":"/l/0/d","value":9},{"op":"replace","path":"/l/0/d","value":8}]`},
		{"a stored member is replaced", `{"a":1}`, `{"a":1,"d":9}`, `[{"op":"replace","path":"/a","value":2}]`,
			`{"a":2,"d":9}`, true,
			`[{"op":"replace","path":"/a","value":2}]`},
		{"a default is changed by policies", `{"a":1}`, `{"a":1,"d":9}`, `[]`, `{"a":1,"d":7}`, true,
			`[{"op":"add","path":"/d","value":7}]`},
		{"a default within", `{"o":{"x":1}}`, `{"o":{"x":1,"d":9}}`, `[{"op":"add","path":"/b","value":2}]`,
			`{"o":{"x":1,"d":9},"b":2}`, true,
			`[{"op":"add","path":"/b","value":2}]`},
		{"a default in an item", `{"l":[{"x":1}]}`, `{"l":[{"x":1,"d":9}]}`, `[]`, `{"l":[{"x":1,"d":9}]}`, true, `[]`},
		{"a default in an item that policies change", `{"l":[{"x":1}]}`, `{"l":[{"x":1,"d":9}]}`, `[]`,
			`{"l":[{"x":2,"d":9}]}`, true,
			`[{"op":"replace","path":"/l/0/x","value":2},{"op":"add","path":"/l/0/d","value":9}]`},
		{"a default is taken out", `{"a":1}`, `{"a":1,"d":9}`, `[{"op":"remove","path":"/d"}]`, `{"a":1}`, true, ``},
		{"a default is moved", `{"a":1}`, `{"a":1,"d":9}`, `[{"op":"move","from":"/d","path":"/b"}]`, `{"a":1,"b":9}`,
			true, ``},
		{"an item behind the end", `{"l":[]}`, `{"l":[]}`, `[{"op":"replace","path":"/l/3","value":1}]`, `{"l":[]}`,
			true, ``},
		{"no position", `{"l":[]}`, `{"l":[]}`, `[{"op":"replace","path":"/l/x","value":1}]`, `{"l":[]}`, true, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fold{
				write: &storage.Write{}, patch: parsed(t, c.patch), stored: parsed(t, c.stored),
				completed: parsed(t, c.completed),
				want:      parsed(t, c.want), isUnfilled: c.isUnfilled, limits: document.Limits{Bytes: 1 << 10, Depth: 16},
			}
			got, ok := f.jsonPatch()
			if ok != (c.folded != "") || ok && string(got) != c.folded {
				t.Errorf("%s (%t), want %s", got, ok, c.folded)
			}
		})
	}
}

// TestPointerStep: the names of members in JSON pointers.
func TestPointerStep(t *testing.T) {
	for pointer, want := range map[string][2]string{
		"/a": {"a", ""}, "/a/b": {"a", "/b"}, "/": {"", ""}, "//b": {"", "/b"}, "/a~1b/c": {"a/b", "/c"},
		"/a~0b": {"a~b", ""}, "/~01": {"~1", ""},
	} {
		name, rest := pointerStep(pointer)
		if name != want[0] || rest != want[1] {
			t.Errorf("%s: %q and %q, want %q", pointer, name, rest, want)
		}
		if name != "" && string(appendPointer(nil, name))+rest != pointer {
			t.Errorf("%s becomes %s%s", pointer, appendPointer(nil, name), rest)
		}
	}
}
