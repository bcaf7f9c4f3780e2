package document

import (
	"fmt"
	"strings"
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

// Names of every length are found, wherever in a body the key is, and in what edits added.
func TestNamesOfEveryLength(t *testing.T) {
	var names []string
	for size := range 40 {
		names = append(names, strings.Repeat("x", size))
	}
	set := NewNames(names)
	for want, name := range names {
		for _, text := range []string{`{"` + name + `":1}`, `{"` + name + `":1}` + strings.Repeat(" ", 20)} {
			d := mustParse(t, text)
			if got := set.Member(d.Root().First()); got != want {
				t.Errorf("%q in %s: got %d, want %d", name, text, got, want)
			}
			d.Set(d.Root(), name+"x", []byte("2"))
			if got := set.Member(d.Root().First().Next()); got != want+1 && want+1 < len(names) {
				t.Errorf("%q added to %s: got %d, want %d", name+"x", text, got, want+1)
			}
			d.Release()
		}
	}
}

func TestFill(t *testing.T) {
	parse := func() *Document {
		d, err := Parse([]byte(`{"a":{"b":1}, "c":[]}`), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	filled, set := parse(), parse()
	defer filled.Release()
	defer set.Release()
	for i, key := range []string{"d", "é\n", "", "x"} {
		value := []string{`{"x":[1]}`, `1.0`, `"\u0061"`, ` [ ] `}[i]
		filled.Fill(filled.Root(), member(key, value), false)
		set.Set(set.Root(), key, []byte(value))
		n, _ := filled.Root().Get("a")
		filled.Fill(n, member(key, value), true)
		n, _ = set.Root().Get("a")
		set.Set(n, key, []byte(value))
		if m, ok := filled.Root().Get(key); !ok || !EqualNodes(filled.Root(), set.Root()) || m.Escaped() != (i == 2) ||
			m.Key() != key {
			t.Errorf("%q: got %v %q", key, ok, m.Raw())
		}
	}
	if got, want := string(filled.AppendTo(nil)), string(set.AppendTo(nil)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c, _ := filled.Root().Get("c")
	if filled.Fill(c, member("d", `1`), false); c.Len() != 0 {
		t.Error("a list must not get members")
	}
}
