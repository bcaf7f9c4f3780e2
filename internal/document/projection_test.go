package document

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// randomParts makes Parts of some of the names, at most so deep.
func randomParts(r *rand.Rand, names []string, deep int) *Projection {
	if deep == 0 || r.IntN(4) == 0 {
		return nil
	}
	p := &Projection{Members: map[string]*Projection{}}
	for _, name := range names {
		if r.IntN(2) == 0 {
			p.Members[name] = randomParts(r, names, deep-1)
		}
	}
	if r.IntN(3) == 0 {
		p.Others = randomParts(r, names, deep-1)
	}
	if r.IntN(2) == 0 {
		p.Items = randomParts(r, names, deep-1)
	}
	return p
}

// of is what Parts say of a child.
func (p *Projection) of(child Node) *Projection {
	if child.Parent().Kind() == Array {
		return p.Items
	}
	if inside, found := p.Members[child.Key()]; found {
		return inside
	}
	return p.Others
}

// compareParts compares a value that was read by an outline with the same one of a document of which
// all was read.
func compareParts(t *testing.T, got, want Node, p *Projection) {
	t.Helper()
	if got.Kind() != want.Kind() || got.Key() != want.Key() || !bytes.Equal(got.Raw(), want.Raw()) ||
		got.Parent().Index() != 0 && got.Path() != want.Path() {
		t.Fatalf("%s is %s %q, want %s %q", want.Path(), got.Kind(), got.Raw(), want.Kind(), want.Raw())
	}
	if got.Kind() < Object {
		return
	}
	if p == nil {
		if got.Len() != 0 || got.First().Valid() || got.Children() != (Cursor{d: got.d}) {
			t.Fatalf("%s was read", want.Path())
		}
		return
	}
	if got.Len() != want.Len() {
		t.Fatalf("%s has %d children, want %d", want.Path(), got.Len(), want.Len())
	}
	g := got.First()
	for w := want.First(); w.Valid(); g, w = g.Next(), w.Next() {
		compareParts(t, g, w, p.of(w))
		if got.Kind() == Object {
			if found, _ := got.Get(w.Key()); found != g {
				t.Fatalf("%s is not found", w.Path())
			}
		}
	}
	if g.Valid() {
		t.Fatalf("%s goes on with %s", want.Path(), g.Path())
	}
}

// editParts edits the values that are read, in an order that the seed says.
func editParts(r *rand.Rand, n Node, p *Projection) {
	if p == nil || n.Kind() < Object {
		return
	}
	for m := n.First(); m.Valid(); m = m.Next() {
		editParts(r, m, p.of(m))
		switch r.IntN(6) {
		case 0:
			n.d.Remove(m)
		case 1:
			n.d.Replace(m, []byte(`{"in":["place"]}`))
		}
	}
	if n.Kind() == Object && r.IntN(2) == 0 {
		n.d.Set(n, "added", []byte(`[1]`))
	}
}

// emptyUnread empties the containers that are not read.
func emptyUnread(n Node, p *Projection) {
	switch {
	case p == nil && n.Kind() == Object:
		n.d.Replace(n, []byte("{}"))
	case p == nil && n.Kind() == Array:
		n.d.Replace(n, []byte("[]"))
	case p != nil:
		for m := n.First(); m.Valid(); m = m.Next() {
			emptyUnread(m, p.of(m))
		}
	}
}

// judgeOutline compares a reading by an outline with one of all of the text.
func judgeOutline(t *testing.T, text []byte, seed uint64) {
	var names []string
	for i, piece := range strings.Split(string(text), `"`) {
		if i%2 == 1 && len(names) < 20 {
			names = append(names, piece)
		}
	}
	r := rand.New(rand.NewPCG(seed, 1))
	p := randomParts(r, names, 5)
	if p == nil {
		p = new(Projection)
	}
	limits := Limits{Depth: 1 + r.IntN(6)*r.IntN(20)}
	want, wantErr := Parse(text, limits)
	limits.Outline = NewOutline(p)
	got, err := Parse(text, limits)
	defer func() { want.Release(); got.Release() }()
	switch {
	case err != nil && (wantErr == nil || err.Error() != wantErr.Error()):
		t.Fatalf("%q: %v, without an outline %v", text, err, wantErr)
	case err != nil:
		return
	}
	if out := got.AppendTo(nil); !bytes.Equal(out, text) {
		t.Fatalf("%q is printed as %q", text, out)
	}
	if wantErr != nil { // only in what is not read
		emptyUnread(got.Root(), p)
		limits.Outline = nil
		again, err := Parse(got.AppendTo(nil), limits)
		if err != nil {
			t.Fatalf("%q: %v, though %v", got.AppendTo(nil), err, wantErr)
		}
		again.Release()
		return
	}
	if len(got.tape) < len(want.tape) { // else all of it was read
		compareParts(t, got.Root(), want.Root(), p)
	}
	editParts(rand.New(rand.NewPCG(seed, 2)), want.Root(), p)
	editParts(rand.New(rand.NewPCG(seed, 2)), got.Root(), p)
	if w, g := want.AppendTo(nil), got.AppendTo(nil); !bytes.Equal(w, g) {
		t.Fatalf("%q, edited, is\n%q, want\n%q", text, g, w)
	}
}

// outlineTexts are texts that an outline may pass over parts of.
var outlineTexts = []string{
	deployment, `[` + deployment + `,` + deployment + `]`,
	`{"a":{"b":{"c":[1,{"d":"}"}]},"x":{}},"b":[[],[{"a":"\\"},{"a":"\"]"}]],"c":1}`,
	` { "a" : [ { "b" : { } , "a" : "\u005d" } ] , "\u0062" : { "a" : [ null ] } } `,
	`{"a":{"b":1,"b":2},"b":{"a":[}]},"c":{"a":tru e}}`, `{"a":{"b":[}`, `{"a":[{}}`, `{"a":{"b":"\`,
	`[[[[[[[[[[[[]]]]]]]]]]]]`, `{"a":{}} {}`, `{"a":{}`,
	`{"a":` + strings.Repeat(`[`, 70) + strings.Repeat(`]`, 70) + `}`, `{"a":{"` + strings.Repeat(`\`, 131) + `"":[]}}`,
	`{"` + strings.Join(numbered(40), `":{"a":[]},"`) + `":{}}`, `1`, ``,
}

func TestOutline(t *testing.T) {
	for _, text := range outlineTexts {
		for seed := range uint64(100) {
			judgeOutline(t, []byte(text), seed)
		}
	}
}

// TestOutlineReads shows what a reading by an outline passes over.
func TestOutlineReads(t *testing.T) {
	p := new(Projection)
	p.Along("spec", "template")
	p.Along("metadata")
	p.Members["spec"].Others = &Projection{Items: new(Projection)}
	o := NewOutline(p)
	const text = `{"metadata":{"labels":{"a":"b"}},"spec":{"template":{"x":[1]},"list":[{"y":{}},{"z":2}]},"status":{"a":1,"a":2}}`
	d, err := Parse([]byte(text), Limits{Outline: o})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	spec, _ := d.Root().Get("spec")
	list, _ := spec.Get("list")
	if got := fmt.Sprint(d.Root().Len(), spec.Len(), list.Len(), list.First().Len(), len(d.tape)); got != "3 2 2 1 12" {
		t.Errorf("lengths and values: %s", got)
	}
	item, _ := list.At(1)
	d.Set(item, "w", []byte("3"))
	if got, want := string(d.AppendTo(nil)), strings.Replace(text, `"z":2`, `"z":2,"w":3`, 1); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := Parse([]byte(strings.Replace(text, `"x"`, `"x":0,"x"`, 1)), Limits{Outline: o}); err == nil ||
		!strings.Contains(err.Error(), "spec.template.x: duplicate key 'x'") {
		t.Errorf("a key that is there twice in what is read: %v", err)
	}
}

// BenchmarkOutline reads what the defaults of a pod template would need.
func BenchmarkOutline(b *testing.B) {
	p := new(Projection)
	p.Along("spec", "template", "spec")
	limits, body := Limits{Outline: NewOutline(p)}, []byte(deployment)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		d, err := Parse(body, limits)
		if err != nil {
			b.Fatal(err)
		}
		d.Release()
	}
}

// FuzzOutline compares readings by outlines with those of whole texts.
func FuzzOutline(f *testing.F) {
	for i, text := range outlineTexts {
		f.Add([]byte(text), uint64(i))
	}
	f.Fuzz(judgeOutline)
}
