package document

import (
	"fmt"
	"testing"
)

func TestNames(t *testing.T) {
	for _, size := range []int{0, 1, 2, 7, 64, 1000} {
		var names []string
		text := "{"
		for i := range size {
			names = append(names, fmt.Sprintf("name%04d", i))
			if i%3 == 0 {
				text += fmt.Sprintf(`"n\u0061me%04d":%d,`, i, i)
			} else {
				text += fmt.Sprintf("%q:%d,", names[i], i)
			}
		}
		d, err := Parse([]byte(text+`"":-1,"n":-1,"name000":-1,"name00000":-1,"Name0000":-1,"zzzzzzzz":-1}`), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		set := NewNames(names)
		for m := d.Root().First(); m.Valid(); m = m.Next() {
			want, _ := m.Int64()
			if got := set.Member(m); got != int(want) {
				t.Errorf("%d names, member %q: got %d, want %d", size, m.Key(), got, want)
			}
			if got := set.Index(m.Key()); got != int(want) {
				t.Errorf("%d names, name %q: got %d, want %d", size, m.Key(), got, want)
			}
		}
		if set.Member(d.Root()) != -1 || set.Member(Node{}) != -1 {
			t.Errorf("%d names: what is no member must not have one", size)
		}
		d.Release()
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
