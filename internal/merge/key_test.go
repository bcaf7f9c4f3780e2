package merge

import (
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
)

func node(t *testing.T, text string) document.Node {
	t.Helper()
	d, err := document.Parse([]byte(text), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return d.Root()
}

// TestIdentity: items with equal keys have one identity, and no identity begins another one.
func TestIdentity(t *testing.T) {
	one := []Key{{Name: document.NewName("a")}}
	two := []Key{{Name: document.NewName("a")}, {Name: document.NewName("b"), Default: node(t, `"x"`)}}
	for _, c := range []struct {
		keys      []Key
		item      string
		want      string
		isPresent bool
	}{
		{nil, `"ab"`, "s2:ab", true},
		{nil, `""`, "s0:", true},
		{nil, `12`, "n12;", true},
		{nil, `1.5`, "f1.5;", true},
		{nil, `true`, "true", true},
		{nil, `null`, "0", true},
		{nil, `[1]`, "r3:[1]", true},
		{one, `{"a":"x","b":1}`, "s1:x", true},
		{one, `{"b":1}`, "-", false},
		{one, `7`, "", false},
		{two, `{"a":1}`, "n1;s1:x", true},
		{two, `{"b":"y"}`, "-s1:y", true},
		{two, `{}`, "-s1:x", true},
	} {
		if got, isPresent := identity(nil, c.keys, node(t, c.item)); string(got) != c.want || isPresent != c.isPresent {
			t.Errorf("%s: %s (%t), want %s (%t)", c.item, got, isPresent, c.want, c.isPresent)
		}
	}
	for _, c := range []struct {
		keys       []Key
		item, want string
	}{
		{nil, `"x"`, `[="x"]`},
		{one, `{"a":1}`, `[a=1]`},
		{two, `{"a":1}`, `[a=1,b="x"]`},
		{two, `{"b":"y"}`, `[b="y"]`},
	} {
		l := &List{Keys: c.keys}
		if got := string(l.pathStep(nil, node(t, c.item))); got != c.want {
			t.Errorf("the step to %s: %s, want %s", c.item, got, c.want)
		}
	}
}

// TestAllows: which values may be of a type.
func TestAllows(t *testing.T) {
	kinds := []document.Kind{document.Object, document.Array, document.String, document.Number, document.Bool,
		document.Null, document.Invalid}
	for name, c := range map[string]struct {
		of   *Type
		want string // the kinds as they are listed above
	}{
		"objects": {&Type{Object: &Object{}}, "o    0 "},
		"lists":   {&Type{List: &List{}}, " a   0 "},
		"texts":   {&Type{Scalar: Text}, "  s  0 "},
		"numbers": {&Type{Scalar: Numeric}, "   n 0 "},
		"bools":   {&Type{Scalar: Boolean}, "    b0 "},
		"any":     {Opaque(), "oasnb0 "},
		"unknown": {Deduced(), "oasnb0 "},
		"nothing": {&Type{}, "     0 "},
	} {
		got := []byte("       ")
		for i, k := range kinds {
			if c.of.Allows(k) {
				got[i] = "oasnb0?"[i]
			}
		}
		if string(got) != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
