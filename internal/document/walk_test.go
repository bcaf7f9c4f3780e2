package document

import "testing"

// TestWalk: a path is followed as far as it leads.
func TestWalk(t *testing.T) {
	d, err := Parse([]byte(`{"a":{"b":{"c":1},"x":null},"l":[{"a":2}]}`), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	for _, c := range []struct {
		path []string
		want string
		far  int
	}{
		{nil, `{"a":{"b":{"c":1},"x":null},"l":[{"a":2}]}`, 0},
		{[]string{"a"}, `{"b":{"c":1},"x":null}`, 1},
		{[]string{"a", "b", "c"}, `1`, 3},
		{[]string{"a", "b", "d", "e"}, `{"c":1}`, 2},
		{[]string{"a", "x", "b"}, `null`, 2},
		{[]string{"l", "a"}, `[{"a":2}]`, 1},
		{[]string{"b"}, `{"a":{"b":{"c":1},"x":null},"l":[{"a":2}]}`, 0},
	} {
		var path []Name
		for _, name := range c.path {
			path = append(path, NewName(name))
		}
		n, far := d.Root().Walk(path)
		if string(n.Raw()) != c.want || far != c.far {
			t.Errorf("%v leads to %s after %d names, want %s after %d", c.path, n.Raw(), far, c.want, c.far)
		}
	}
	if n, far := (Node{}).Walk([]Name{NewName("a")}); n.Valid() || far != 0 {
		t.Errorf("the invalid node leads to %v after %d names", n, far)
	}
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
