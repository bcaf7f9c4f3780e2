package document

import (
	"fmt"
	"strings"
	"testing"
)

// TestStep: Step finds what Get finds, in objects of any form.
func TestStep(t *testing.T) {
	var many strings.Builder
	for i := range 100 {
		fmt.Fprintf(&many, `,"key-%d":%d`, i, i)
	}
	long := strings.Repeat("x", maxShort)
	d, err := Parse([]byte(`{"a":{"b":{"c":1},"x":null},"empty":{},"":0,"l":[{"a":2}],"seven77":1,"eight888":2,"nine99999":3,`+
		`"`+long+`":4,"`+long+`y":5,"\u0061\u0062":6,"many":{"first":0`+many.String()+`},"z":1}`), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	compare := func() {
		t.Helper()
		keys := []string{"", "a", "b", "c", "x", "empty", "l", "seven77", "seven78", "eight888", "eight889",
			"nine99999", "mine99999", long, long + "y", long + "z", "ab", "many", "z", "first", "key-7", "key-99",
			"key-100", "new", "newer"}
		nodes := []Node{{}}
		for at := 0; at < len(nodes); at++ {
			for n := nodes[at].First(); n.Valid(); n = n.Next() {
				nodes = append(nodes, n)
			}
			if at == 0 {
				nodes = append(nodes, d.Root())
			}
			for _, key := range keys {
				name := NewName(key)
				got, isThere := nodes[at].Step(&name)
				if want, exists := nodes[at].Get(key); isThere != exists || isThere && got != want {
					t.Errorf("Step(%q) of %s is %v, %v, want %v, %v", key, nodes[at].Raw(), got, isThere, want, exists)
				}
			}
		}
	}
	compare()
	a, _ := d.Root().Get("a")
	d.Set(a, "new", []byte(`{"newer":{}}`))
	d.Set(d.Root(), "ab", []byte(`{"x":1}`))
	for _, removed := range []string{"eight888", "z", "empty"} {
		n, _ := d.Root().Get(removed)
		d.Remove(n)
	}
	compare()
}

// TestText: strings without escapes are found as they stand.
func TestText(t *testing.T) {
	d, err := Parse([]byte(`["plain","with \n",1,null]`), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	for i, want := range []string{"plain", "", "", ""} {
		n, _ := d.Root().At(i)
		if s, ok := n.Text(); s != want || ok != (want != "") {
			t.Errorf("item %d reads %q, %v", i, s, ok)
		}
	}
	if _, ok := (Node{}).Text(); ok {
		t.Error("the invalid node is a text")
	}
}
