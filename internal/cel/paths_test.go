package cel

import (
	"context"
	"errors"
	"testing"

	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// TestPathsAfterEdits: what a Frame remembers of paths does not outlive edits of the document, nor the document.
func TestPathsAfterEdits(t *testing.T) {
	read := func(name string) (*document.Document, document.Node) {
		d, err := document.Parse([]byte(`{"spec":{"name":"`+name+`","list":[{"name":"`+name+`"}]}}`), document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return d, d.Root()
	}
	rules := []string{
		`object.spec.name == '%'`,
		`has(object.spec.name) && object.?spec.?name.orValue('none') == '%'`,
		`object.spec.list.all(i, i.name == '%' && object.spec.name == i.name)`,
	}
	programs := map[string][]*Program{}
	for _, want := range []string{"a", "b", "c", "d", "e"} {
		for _, rule := range rules {
			source := ""
			for _, r := range rule {
				if r == '%' {
					source += want
				} else {
					source += string(r)
				}
			}
			programs[want] = append(programs[want], nativePrograms(t, []string{source})...)
			programs[want] = append(programs[want], lazyPrograms(t, []string{source})...)
		}
	}
	f := NewFrame(context.Background())
	defer f.Release()
	v := f.Vars()
	check := func(when, want string) {
		t.Helper()
		for name, list := range programs {
			for _, p := range list {
				if got, err := p.EvalBool(f, v); err != nil || got != (name == want) {
					t.Errorf("%s: %s is %v, %v", when, p.Source(), got, err)
				}
			}
		}
	}
	d, root := read("a")
	v.Set(value.Object, root, nil)
	check("at first", "a")
	spec, _ := root.Get("spec")
	list, _ := spec.Get("list")
	d.SetString(spec, "name", "b")
	d.Replace(list.First(), []byte(`{"name":"b"}`))
	check("after a member was set", "b")
	d.Remove(spec)
	d.Set(root, "spec", []byte(`{"name":"c","list":[{"name":"c"}]}`))
	check("after its object was replaced", "c")
	d.Replace(root, []byte(`{"spec":{"list":[{"name":"d"}],"name":"d"}}`))
	check("after the root was replaced", "d")
	err := d.Atomically(func() error {
		d.Replace(root, []byte(`{"spec":{"more":0,"list":[{"name":"e"}],"name":"e"}}`))
		check("after an edit", "e")
		return errors.New("taken back")
	})
	check("after it was taken back: "+err.Error(), "d")
	d.Release()
	for range 3 {
		next, root := read("e")
		v.Set(value.Object, root, nil)
		check("after the document was released", "e")
		next.Release()
	}
}
