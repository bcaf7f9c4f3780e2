package document

import (
	"fmt"
	"strings"
	"testing"
)

// Pass stops where Names and a Glance say, member by member, and marks and numbers the others.
func TestPass(t *testing.T) {
	long := strings.Repeat("n", 17)
	sets := [][]string{nil, {"a"}, {""}, {"a", "abcdefgh", "abcdefghi", "abcdefghijklmnop", long}}
	for size := 1; size < 40; size++ {
		var names []string
		for i := range size {
			names = append(names, fmt.Sprintf("%.*s%d", i%18, "member of an object", i))
		}
		sets = append(sets, names)
	}
	for _, names := range sets {
		set := NewNames(names)
		members := make([]KnownMember, len(names))
		for i := range members {
			members[i] = KnownMember{Glance: NoGlance(), Bit: uint8(i % 63)}
			if i%3 != 2 {
				members[i].Glance.Kinds.Add(String)
			}
		}
		known := NewKnown(set, members)
		text := []byte(`{"other":1`)
		for _, name := range append([]string{"b", "abcdefgi", "abcdefghj", "abcdefghijklmnoq"}, names...) {
			text = append(AppendString(append(text, ','), name), `:"x"`...)
		}
		text = append(text, `,"\u0061":0,"\u0061bc":""}`...)
		d, err := Parse(text, Limits{})
		if err != nil {
			continue // the same key twice
		}
		d.TakeNotes(new(Noter))
		d.Set(d.Root(), "added", []byte(`"x"`))
		c := d.Root().Children()
		place, seen := c.Pass(&known, true, Sound)
		for m := d.Root().First(); m.Valid(); m = m.Next() {
			want := set.Member(m)
			if passes := want >= 0 && want%3 != 2 && m.Kind() == String && quick(m); passes != (!c.Valid() || c.Node() != m) {
				t.Fatalf("%s: %s is passed: %t", text, m.Key(), !passes)
			} else if passes {
				if !m.Marked(Sound) || m.Note(d.noter) != want+1 || seen&(1<<(want%63)) == 0 {
					t.Errorf("%s: %s is not marked", text, m.Key())
				}
				continue
			}
			if place != want || want >= 0 && m.Note(d.noter) != want+1 || m.Marked(Sound) {
				t.Fatalf("%s: stopped at %d, not %d", text, place, want)
			}
			c.Next()
			place, seen = c.Pass(&known, true, Sound)
		}
		if c.Valid() {
			t.Errorf("%s: a member was left", text)
		}
		d.Release()
	}
}

// quick reports whether Pass looks at the value of a member.
func quick(m Node) bool {
	e := &m.d.tape[m.i]
	return e.meta&(flagKeyEscaped|flagSide) == 0 && len(m.Key()) <= maxShort && int(e.key)+8 <= len(m.d.body)
}
