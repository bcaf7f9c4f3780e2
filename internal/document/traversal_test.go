package document

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A Traversal stops where Names and a Glance say, member by member, and marks and numbers the others.
func TestTraversalOfMembers(t *testing.T) {
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
		form := Form{Object: ObjectForm{Known: NewKnown(set, members, true), Size: Size{Most: 1000}}}
		form.Decides.Add(Object)
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
		v := &listed{}
		got := Traverse(d.Root(), &form, Sound, v)
		for m := d.Root().First(); m.Valid(); m = m.Next() {
			want := set.Member(m)
			if len(names) > 0 && want >= 0 && want%3 != 2 && m.Kind() == String {
				if !m.Marked(Sound) || m.Note(d.noter) != want+1 {
					t.Errorf("%s: %s is not marked", text, m.Key())
				}
				continue
			}
			if len(v.asked) == 0 || v.asked[0] != m || v.places[0] != want || want >= 0 && m.Note(d.noter) != want+1 ||
				m.Marked(Sound) {
				t.Fatalf("%s: asked about %v, not about %s", text, v.asked, m.Key())
			}
			v.asked, v.places = v.asked[1:], v.places[1:]
		}
		if len(v.asked) > 0 || !d.Root().Marked(Sound) || got != Sound {
			t.Errorf("%s: got %v, and asked about %v besides", text, got, v.asked)
		}
		d.Release()
	}
}

// listed is a Visitor that records the questions it is asked.
type listed struct {
	asked  []Node
	places []int
}

func (l *listed) Value(_ *Form, _, value Node, place int) (Marks, uint64, bool) {
	l.asked, l.places = append(l.asked, value), append(l.places, place)
	return Sound, 0, true
}

func (l *listed) End(*Form, Node) bool { return false }

// Traverse does what a walk from node to node does, whatever the document and the form are, and whatever the visitor
// edits.
func FuzzTraverse(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed, seed/3)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		text := randomValue(rand.New(rand.NewPCG(a, 1)), 0)
		edits := rand.NewPCG(b, 2)
		form := randomForm(rand.New(edits), 0)
		var found [2]editor
		var marked [2][]Marks
		var texts [2]string
		for way := range 2 {
			d, err := Parse([]byte(text), Limits{})
			if err != nil {
				return // the same key twice
			}
			if d.Root().Kind() < Object {
				return
			}
			d.TakeNotes(new(Noter))
			if m := d.Root().First(); m.Valid() && b%3 == 0 {
				d.Replace(m, []byte(`{"a":1,"bb":"x"}`))
			}
			if b%5 == 0 {
				d.Set(d.Root(), "abcdefghi", []byte(`"text"`))
			}
			v := &found[way]
			v.d, v.seed = d, b
			marks := Marks(b>>8) & (Sound | Complete)
			var got Marks
			if way == 0 {
				got = Traverse(d.Root(), form, marks, v)
			} else if got = traverseSlowly(d.Root(), form, marks, v); v.isOver {
				got = 0
			}
			marked[way] = append(marked[way], got)
			for i := range d.tape {
				e := &d.tape[i]
				marked[way] = append(marked[way], marksOf(e.meta), Marks(e.meta>>noteShift))
			}
			texts[way] = string(d.AppendTo(nil))
			d.Release()
		}
		if !slices.Equal(found[0].asked, found[1].asked) || texts[0] != texts[1] ||
			!slices.Equal(marked[0], marked[1]) {
			t.Errorf("%s\n got %v %s %v\nwant %v %s %v", text, found[0].asked, texts[0], marked[0], found[1].asked,
				texts[1], marked[1])
		}
	})
}

// An editor is a Visitor that edits the document, and records the questions it is asked.
type editor struct {
	d      *Document
	seed   uint64
	asked  []string
	isOver bool
}

func (v *editor) Value(of *Form, container, value Node, place int) (marks Marks, there uint64, ok bool) {
	v.asked = append(v.asked, fmt.Sprint("value ", of.Of, container.Index(), value.Index(), place))
	switch draw := HashWords(v.seed, uint64(len(v.asked))) >> 32 % 20; {
	case draw == 0 && v.seed%7 == 0:
		v.isOver = true
		return 0, 0, false
	case draw < 3:
		v.d.Remove(value)
		return Sound | Complete, 0, true
	case draw < 6:
		v.d.Replace(value, []byte(`{"a":["b"]}`))
		return Complete, draw & 1, true
	case draw < 8 && value.Kind() == Object:
		v.d.Set(value, "new", []byte("1"))
		return Sound, 2, true
	}
	return Sound | Complete, 6, true
}

func (v *editor) End(of *Form, container Node) bool {
	v.asked = append(v.asked, fmt.Sprint("end ", of.Of, container.Index()))
	return len(v.asked)%2 == 0
}

// traverseSlowly is Traverse from node to node.
func traverseSlowly(container Node, f *Form, passed Marks, v *editor) (marks Marks) {
	marks = passed
	seen, object := uint64(0), container.Kind() == Object
	for m := container.First(); m.Valid(); m = m.Next() {
		inside, glance, place, bit := f.List.Items, Glance{}, -1, uint64(1)
		switch known := f.Object.Known; {
		case object && known != nil:
			inside, glance, bit = nil, NoGlance(), 0
			if place = known.names.Member(m); place >= 0 {
				member := known.table[known.slots[place]]
				inside, glance, bit = member.inside, member.glance, 1<<member.bit
				if known.noted != 0 {
					m.SetNote(place + 1)
				}
			}
		case object:
			inside = f.Object.Values
			fallthrough
		default:
			if glance = NoGlance(); inside != nil {
				glance = inside.Glance
			}
		}
		text, isPlain := m.Text()
		c := m.Cursor()
		switch {
		case glance.Takes(&c), inside != nil && isPlain && inside.Text != nil && inside.Text(text):
			m.Mark(passed)
			seen |= bit
		case inside != nil && inside.Enters>>m.Kind()&1 != 0:
			marks &= traverseSlowly(m, inside, passed, v)
			seen |= bit
		default:
			got, there, _ := v.Value(f, container, m, place)
			if marks &= got; !object || f.Object.Known != nil {
				seen |= there
			}
		}
		if v.isOver {
			return 0
		}
	}
	size := f.List.Size
	if object {
		if size = f.Object.Size; f.Object.Known != nil && seen&f.Object.Filled != f.Object.Filled {
			marks &^= Complete
		}
	}
	isWhole := !object || f.Object.Known == nil || seen&f.Object.Required == f.Object.Required
	n := uint32(container.Len())
	if marks&Sound != 0 && !(f.Decides>>container.Kind()&1 != 0 && isWhole && n >= size.Least && n <= size.Most) &&
		!v.End(f, container) {
		marks &^= Sound
	}
	container.Mark(marks)
	return marks
}

// randomForm makes a form. Deeper ones take less.
func randomForm(r *rand.Rand, depth int) *Form {
	f := &Form{Glance: NoGlance(), Of: depth}
	f.Glance.Kinds = KindSet(r.Uint32() & r.Uint32() & 0x7f)
	if r.IntN(2) == 0 {
		f.Glance.Strings(int32(r.IntN(3)), int32(r.IntN(9)))
	}
	if r.IntN(2) == 0 {
		f.Glance.Integers(int64(r.IntN(9))-5, int64(r.IntN(9)))
	}
	if r.IntN(3) == 0 {
		f.Text = func(s string) bool { return len(s)%2 == 0 }
	}
	if depth > 4 {
		return f
	}
	f.Object.Size, f.List.Size = Size{uint32(r.IntN(2)), uint32(r.IntN(9))}, Size{uint32(r.IntN(2)), uint32(r.IntN(9))}
	f.Enters, f.Decides = KindSet(r.Uint32()&0x60), KindSet(r.Uint32()&0x60)
	if r.IntN(4) > 0 {
		f.List.Items, f.Object.Values = randomForm(r, depth+1), randomForm(r, depth+1)
	}
	if r.IntN(4) > 0 {
		var members []KnownMember
		names := randomKeys[:r.IntN(len(randomKeys)+1)]
		for range names {
			m := KnownMember{Glance: NoGlance(), Bit: uint8(r.IntN(4))}
			if r.IntN(5) > 0 {
				m.Inside = randomForm(r, depth+1+r.IntN(3))
				m.Glance = m.Inside.Glance
			}
			members = append(members, m)
		}
		f.Object.Known = NewKnown(NewNames(names), members, r.IntN(2) == 0)
		f.Object.Required, f.Object.Filled = r.Uint64()&r.Uint64()&15, r.Uint64()&r.Uint64()&15
	}
	return f
}

var randomKeys = []string{"a", "bb", "", "abcdefgh", "abcdefghi", "abcdefghijklmnop", "a name of more than 16",
	"\u00e9", "new"}

// randomValue makes a JSON text.
func randomValue(r *rand.Rand, depth int) string {
	switch n := r.IntN(12); {
	case depth > 5 || n < 4 && depth > 0:
		return []string{`1`, `-4`, `"x"`, `"text"`, `"\u0041"`, `1.5`, `true`, `null`, `12345678901234567890`, `{}`,
			`[]`}[r.IntN(11)]
	case n < 7:
		items := ""
		for range r.IntN(4) {
			items += "," + randomValue(r, depth+1)
		}
		return "[" + strings.TrimPrefix(items, ",") + "]"
	}
	members := ""
	for _, i := range r.Perm(len(randomKeys))[:r.IntN(6)] {
		members += "," + string(AppendString(nil, randomKeys[i])) + ":" + randomValue(r, depth+1)
	}
	if r.IntN(6) == 0 {
		members += `,"\u0062":"x","other":1`
	}
	return "{" + strings.TrimPrefix(members, ",") + "}"
}
