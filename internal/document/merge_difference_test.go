package document

import "testing"

// TestAppendMergePatch: the patch has what differs, and its effect is the change.
func TestAppendMergePatch(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{`{}`, `{}`, `{}`},
		{`{"a":1,"b":{"c":2,"d":[1]}}`, `{"a":1,"b":{"c":2,"d":[1]}}`, `{}`},
		{`{"a":1,"b":2}`, `{"b":3,"c":"x"}`, `{"b":3,"c":"x","a":null}`},
		{`{"b":{"c":2,"d":[1],"e":0}}`, `{"b":{"c":2,"d":[1,2]}}`, `{"b":{"d":[1,2],"e":null}}`},
		{`{"b":[1]}`, `{"b":{"c":1.50}}`, `{"b":{"c":1.50}}`},
		{`{"a\"b":1}`, `{"a\"b":null}`, `{"a\"b":null}`},
	} {
		from, err := Parse([]byte(c.from), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		to, err := Parse([]byte(c.to), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(AppendMergePatch(nil, from.Root(), to.Root())); got != c.want {
			t.Errorf("from %s to %s: got %s, want %s", c.from, c.to, got, c.want)
		}
	}
}

// FuzzAppendMergePatch: a merge patch of a difference makes the one object of the other. An object with a null in it is
// not reached by any merge patch.
func FuzzAppendMergePatch(f *testing.F) {
	f.Add(`{"a":1,"b":{"c":2}}`, `{"b":{"d":[1,{"e":2}]}}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		from, err := Parse([]byte(a), Limits{})
		if err != nil {
			return
		}
		to, err := Parse([]byte(b), Limits{})
		if err != nil || from.Root().Kind() != Object || to.Root().Kind() != Object || hasNull(to.Root()) {
			return
		}
		patch, err := Parse(AppendMergePatch(nil, from.Root(), to.Root()), Limits{})
		if err != nil {
			t.Fatalf("from %s to %s: %v", a, b, err)
		}
		result := from.Clone()
		result.MergePatch(patch.Root())
		if !EqualNodes(result.Root(), to.Root()) {
			t.Errorf("from %s to %s: %s makes %s", a, b, patch.AppendTo(nil), result.AppendTo(nil))
		}
	})
}

func hasNull(n Node) bool {
	if n.Kind() == Null {
		return true
	}
	for m := n.First(); m.Valid() && (n.Kind() == Object || n.Kind() == Array); m = m.Next() {
		if hasNull(m) {
			return true
		}
	}
	return false
}
