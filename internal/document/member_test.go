package document

import "testing"

func TestNames(t *testing.T) {
	d, err := Parse([]byte(`{"spec":1,"sp\u0065c2":2,"a":{"b":[3]}}`), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	for _, c := range []struct {
		key   string
		names map[string]bool
	}{
		{"spec", map[string]bool{"spec": true, "spec2": false, "Spec": false}},
		{"spec2", map[string]bool{"spec2": true, "spec": false, `sp\u0065c2`: false}},
	} {
		n, found := d.Root().Get(c.key)
		if !found {
			t.Fatalf("%s: not found", c.key)
		}
		for name, want := range c.names {
			if got := n.KeyIs(NewName(name)); got != want {
				t.Errorf("%s is %s: got %v, want %v", c.key, name, got, want)
			}
		}
		if n.KeyHash() != NewName(c.key).Hash() {
			t.Errorf("%s: the hash of the member must be the hash of its name", c.key)
		}
	}
	if d.Root().KeyIs(NewName("")) || (Node{}).KeyIs(NewName("")) {
		t.Error("what is no member must not have a name")
	}
}

func TestAdd(t *testing.T) {
	parse := func() *Document {
		d, err := Parse([]byte(`{"a":{"b":1}, "c":[]}`), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	added, set := parse(), parse()
	defer added.Release()
	defer set.Release()
	for _, key := range []string{"d", "é\n", ""} {
		added.Add(added.Root(), NewName(key), []byte(`{"x":[1]}`))
		set.Set(set.Root(), key, []byte(`{"x":[1]}`))
		n, _ := added.Root().Get("a")
		added.Add(n, NewName(key), []byte(`2`))
		n, _ = set.Root().Get("a")
		set.Set(n, key, []byte(`2`))
	}
	if got, want := string(added.AppendTo(nil)), string(set.AppendTo(nil)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c, _ := added.Root().Get("c")
	if n := added.Add(c, NewName("d"), []byte(`1`)); n.Valid() {
		t.Error("a list must not get members")
	}
}
