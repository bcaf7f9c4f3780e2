package document

import "testing"

func TestNotes(t *testing.T) {
	d := mustParse(t, `{"a":{"b":[1,{"c":2}]},"d":{"e":3}}`)
	defer d.Release()
	first, second := new(Noter), new(Noter)
	if d.NotedBy(nil) || d.NotedBy(first) {
		t.Error("nobody took notes yet")
	}
	d.TakeNotes(first)
	var mark func(n Node)
	mark = func(n Node) {
		n.Mark(Sound)
		n.SetNote(int(n.Index()) + 7)
		for m := n.First(); m.Valid(); m = m.Next() {
			mark(m)
		}
	}
	mark(d.Root())
	deepest, e := at(t, d, "a", "b", 1, "c"), at(t, d, "d", "e")
	if !d.NotedBy(first) || d.NotedBy(second) || deepest.Note(first) != int(deepest.Index())+7 ||
		deepest.Note(second) != 0 || deepest.Note(nil) != 0 {
		t.Error("notes must be their author's, and nobody else's")
	}
	marked := func(want string) {
		t.Helper()
		got := ""
		for _, n := range []Node{d.Root(), at(t, d, "a"), at(t, d, "a", "b"), at(t, d, "a", "b", 1), deepest,
			at(t, d, "d"), e} {
			got += map[bool]string{true: "x", false: "-"}[n.Marked(Sound)]
		}
		if got != want {
			t.Errorf("marked are %s, want %s", got, want)
		}
	}
	marked("xxxxxxx")
	d.Fill(at(t, d, "d"), member("f", `{"g":[]}`), true)
	marked("xxxxxxx")
	d.Append(at(t, d, "d", "f", "g"), []byte(`1`))
	marked("-xxxx-x")
	mark(d.Root())
	d.Append(at(t, d, "d", "f", "g"), []byte(`2`)) // though all around it has been edited before
	marked("-xxxx-x")
	d.Replace(deepest, []byte(`4`))
	marked("------x")
	if deepest.Note(first) != 0 {
		t.Error("another value must have no note")
	}
	mark(d.Root())
	d.Remove(e)
	if marked("-xxxx-x"); e.Note(first) != int(e.Index())+7 {
		t.Error("edits elsewhere must leave notes alone")
	}
	mark(d.Root())
	d.Fill(at(t, d, "a"), member("f", `1`), false)
	if n := at(t, d, "a", "f"); n.Marked(Sound) || n.Note(first) != 0 {
		t.Error("what is added must have no notes")
	}
	marked("--xxxxx")
	n := at(t, d, "d")
	if n.Marked(Complete) || n.Marked(Sound|Complete) {
		t.Error("the mark Complete must not be there")
	}
	if n.Mark(Complete); !n.Marked(Complete) || !n.Marked(Sound|Complete) {
		t.Error("both marks must be there")
	}
	if n.SetNote(MaxNote); n.Note(first) != MaxNote || !n.Marked(Sound|Complete) || n.Kind() != Object {
		t.Error("notes must leave marks alone")
	}
	d.TakeNotes(second)
	if marked("-------"); deepest.Note(second) != 0 {
		t.Error("notes of another author must be gone")
	}
}

func member(key, raw string) *Member {
	m := NewMember(key, []byte(raw))
	return &m
}
