package schema

import (
	"fmt"
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
)

func shapeOf(names ...string) *Shape {
	s := &Shape{}
	for _, name := range names {
		s.object.properties = append(s.object.properties, Property{Name: name})
	}
	s.link()
	return s
}

func parse(t testing.TB, text string) document.Node {
	t.Helper()
	d, err := document.Parse([]byte(text), document.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d.Root()
}

func TestTable(t *testing.T) {
	for _, size := range []int{0, 1, 2, 7, 64, 1000} {
		var names []string
		text := "{"
		for i := range size {
			names = append(names, fmt.Sprintf("name%04d", i))
			text += fmt.Sprintf("%q:1,", names[i])
		}
		s := shapeOf(names...)
		d := parse(t, text+`"":1,"n":2,"name000":3,"name00000":4,"Name0000":5,"zzzzzzzz":6,"nam\u0065X":7}`)
		i := 0
		for m := d.First(); m.Valid(); m = m.Next() {
			want := ""
			if i < size {
				want = names[i]
			}
			i++
			byNode, byName := s.property(m), s.Property(m.Key())
			if byNode != byName || (byNode == nil) != (want == "") || byNode != nil && byNode.Name != want {
				t.Errorf("%d properties, %q: got %v and %v, want %q", size, m.Key(), byNode, byName, want)
			}
		}
	}
	escaped := parse(t, `{"k\u0069nd":1}`).First()
	if p := shapeOf("kind").property(escaped); p == nil {
		t.Error("an escaped key must be found")
	}
	if p := (&Shape{}).property(escaped); p != nil {
		t.Errorf("got %v, want nothing", p)
	}
}

// hostile-input.md, JSON: case variants of known fields.
func TestVariants(t *testing.T) {
	s := shapeOf("Straße", "kind", "Kind2", "status")
	for name, want := range map[string]string{
		"Kind": "kind", "KIND": "kind", "\u212aind": "kind", "kind": "", "STATUS": "status", "\u017ftatus": "status",
		"statu\u017f": "status",
		"kind2":       "Kind2", "stra\u1e9ee": "Straße", "strasse": "", "kin": "", "": "", "kindd": "", "k\u0131nd": "",
	} {
		if got, _ := s.variant(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	if got, found := (&Shape{}).variant("kind"); found {
		t.Errorf("got %q, want nothing", got)
	}
}
