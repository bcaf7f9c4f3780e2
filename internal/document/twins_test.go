package document

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// mapsNamed judges the keys of objects that are members of certain names to be data.
type mapsNamed []string

func (m mapsNamed) IsData(object Node) bool {
	for _, name := range m {
		if object.Key() == name {
			return true
		}
	}
	return false
}

func TestCaseTwins(t *testing.T) {
	many := func(more string) string {
		var b strings.Builder
		for i := range 100 {
			fmt.Fprintf(&b, `"Key%d":%d,`, i, i)
		}
		return `{` + b.String() + more + `}`
	}
	for _, c := range []struct{ text, path string }{
		{`{}`, ""},
		{`[]`, ""},
		{`1`, ""},
		{`{"a":1,"b":{"a":1},"c":[{"a":1},{"A":1}]}`, ""},
		{`{"a":1,"A":1}`, "a A"},
		{`{"evil":false,"b":1,"Evil":true}`, "evil Evil"},
		{`{"x":{"y":[1,{"abc":1,"aBc":2}]}}`, "x.y[1] abc aBc"},
		{`{"\u0061":1,"A":1}`, "a A"},
		{"{\"status\":1,\"\u017ftatus\":1}", "status \u017ftatus"},
		{"{\"KIND\":1,\"\u212aind\":1}", "KIND \u212aind"},
		{`{"kind":1,"\u212aind":1}`, "kind \u212aind"},
		{`{"straße":1,"STRASSE":1,"strasse ":2}`, ""},
		{`{"é":1,"É":2}`, "é É"},
		{`{"a-b":1,"a_b":2,"a@":1,"a` + "`" + `":2,"[":1,"{":2}`, ""},
		{`{"labels":{"a":1,"A":2}}`, ""},
		{`{"labels":{"a":{"b":1,"B":2},"A":2}}`, "labels.a b B"},
		{many(`"other":1`), ""},
		{many(`"kEY7":1`), "Key7 kEY7"},
		{many("\"\u212aey99\":1"), "Key99 \u212aey99"},
		{`{"labels":` + many(`"kEY7":1`) + `}`, ""},
	} {
		d, err := Parse([]byte(c.text), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		first, second := d.Root().CaseTwins(mapsNamed{"labels"})
		got := ""
		if first.Valid() {
			got = strings.TrimSpace(first.Parent().Path() + " " + first.Key() + " " + second.Key())
		}
		if got != c.path {
			t.Errorf("%s: got %q, want %q", c.text, got, c.path)
		}
		d.Release()
	}
	d, err := Parse([]byte(`{"apiVersion":"v1","kind":"A","metadata":{"name":"a","labels":{"a":"b"}},"spec":{"apiVersion":1,"items":[{"a":1,"b":2,"c":3},{"aa":1,"bb":2}]}}`), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	names := &mapsNamed{}
	if n := testing.AllocsPerRun(100, func() { d.Root().CaseTwins(names) }); n > 0 {
		t.Errorf("takes %v allocations", n)
	}
}

// TestCaseTwinsIsLinear bounds the work for many keys, alike as far as a client can make them, by what it would take if
// each were compared with each: a test of minutes.
func TestCaseTwinsIsLinear(t *testing.T) {
	var b strings.Builder
	b.WriteByte('{')
	for i := range 1 << 19 {
		fmt.Fprintf(&b, `"%s%d":0,`, [...]string{"k", "\u212a"}[i&1], i)
	}
	b.WriteString(`"last":0}`)
	d, err := Parse([]byte(b.String()), Limits{Bytes: 1 << 26, Nodes: 1 << 21})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	if first, _ := d.Root().CaseTwins(mapsNamed{}); first.Valid() {
		t.Errorf("found %s", first.Path())
	}
}

// Two keys are found if, and only if, encoding/json reads both into one field.
func FuzzCaseTwins(f *testing.F) {
	f.Add("a", "A")
	f.Add("kind", "\u212aind")
	f.Add("s", "\u017f")
	f.Add("ß", "ss")
	f.Fuzz(func(t *testing.T, a, b string) {
		text, err := json.Marshal(map[string]int{a: 1, b: 2})
		if err != nil {
			return
		}
		d, perr := Parse(text, Limits{})
		if perr != nil || d.Root().Len() != 2 {
			return
		}
		defer d.Release()
		want := string(appendFolded(nil, d.Root().First().Key())) == string(
			appendFolded(nil, d.Root().First().Next().Key()))
		first, _ := d.Root().CaseTwins(mapsNamed{})
		if many, _ := twinsOfMany(d.Root()); first.Valid() != want || many.Valid() != want {
			t.Errorf("%q and %q: found %v and %v, want %v", a, b, first.Valid(), many.Valid(), want)
		}
	})
}

// FuzzAlike compares what is found with a look at each pair of keys, also after edits: what the parser and edits note,
// so that documents need no walk, is never too little.
func FuzzAlike(f *testing.F) {
	f.Add([]byte(`{"a":1,"metadata":{"labels":{"app":"x"}},"l":[{"name":1},{"Name":2}]}`), "A", []byte(`{"x":1,"X":2}`))
	f.Add([]byte(`{"resourceVersion":1,"RESOURCEVERSION":2,"progressDeadlineSeconds":3}`), "ProgressDeadlineSeconds",
		[]byte(`1`))
	f.Add([]byte(`{"kind":{},"b":{"\u0061":1}}`), "\u212aind", []byte(`[{"s":1,"ſ":2}]`))
	var many strings.Builder
	for i := range 2 * pairsUpTo {
		fmt.Fprintf(&many, `"k%d":{},`, i)
	}
	f.Add([]byte(`{`+many.String()+`"z":{"name":1}}`), "K7", []byte(`{"Ab":1}`))
	f.Fuzz(func(t *testing.T, text []byte, key string, raw []byte) {
		d, err := Parse(text, Limits{})
		if err != nil {
			return
		}
		defer d.Release()
		check := func() {
			t.Helper()
			first, second := d.Root().CaseTwins(mapsNamed{})
			if want := hasTwins(d.Root()); first.Valid() != want || second.Valid() != want {
				t.Fatalf("%s: found %v, want %v", d.AppendTo(nil), first.Valid(), want)
			}
		}
		check()
		of, value := d.Root(), NewMember("value", []byte(`{"A":1}`))
		if last := of.First(); last.Kind() == Object {
			of = last
		}
		if _, found := of.Get("value"); !found {
			d.Fill(of, &value, false)
			check()
		}
		if !json.Valid(raw) {
			return
		}
		if other, err := Parse(raw, Limits{}); err != nil { // not strict JSON
			return
		} else {
			other.Release()
		}
		added := d.Set(of, key, raw)
		check()
		d.Append(d.Root(), raw)
		check()
		if d.Remove(added); added.Valid() {
			check()
			d.Set(of, strings.ToUpper(key), raw)
			check()
		}
		d.Replace(d.Root(), raw)
		check()
	})
}

// hasTwins compares each key of an object with each other one.
func hasTwins(n Node) bool {
	for m := n.First(); m.Valid(); m = m.Next() {
		for o := m.Next(); n.Kind() == Object && o.Valid(); o = o.Next() {
			if strings.EqualFold(m.Key(), o.Key()) {
				return true
			}
		}
		if hasTwins(m) {
			return true
		}
	}
	return false
}
