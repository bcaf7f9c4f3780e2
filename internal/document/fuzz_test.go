package document

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"
)

// FuzzParse compares what is accepted with encoding/json and sigs.k8s.io/json: both accept it too
// and read the same value, and what is printed after an edit they read as the edited value.
func FuzzParse(f *testing.F) {
	for _, body := range editBodies {
		f.Add([]byte(body))
	}
	for _, body := range []string{
		`{"a":"\ud83d\ude00é","b":[1e5,-0,1.50,12345678901234567890,9007199254740993,1e-999],"c":{"\u0000":1}}`,
		`["\u0000\b\f\n\r\t\/\\\"", true, false, null, "` + "\u2028\x7f" + `"]`,
		`{"aaaaaaaa":1,"aaaaaaa\u0061":2}`, "\ufeff[]", `[01]`, `[1.]`, `"` + "\xff" + `"`, `"\ud800"`, `{"a":1,}`,
		`[[[[[[[[]]]]]]]]`,
		`{"a":1,"ab":2,"A":3}`, `{"` + strings.Join(numbered(40), `":0,"`) + `":0}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := Parse(body, Limits{})
		if err != nil {
			e := err.(*Error)
			if e.Msg == "" || e.Offset < 0 || e.Offset > len(body) {
				t.Fatalf("%q: bad error %+v", body, e)
			}
			return
		}
		defer d.Release()
		checkAgainstDecoders(t, d, body)

		if got := d.AppendTo(nil); string(got) != string(body) {
			t.Fatalf("%q: printed as %q", body, got)
		}
		checkClone(t, d, body)
		enlarge(d, body)
		checkAgainstDecoders(t, d, d.AppendTo(nil))
	})
}

// numbered returns so many numbers as texts.
func numbered(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = strconv.Itoa(i)
	}
	return all
}

// enlarge edits the root: it puts the text into it, or another value in its place.
func enlarge(d *Document, text []byte) {
	switch root := d.Root(); root.Kind() {
	case Object:
		d.Set(root, "added", text)
	case Array:
		d.Append(root, text)
	default:
		d.Replace(root, []byte(`{"root":[]}`))
	}
}

// checkClone compares a clone, which may be a copy of the tape, with what a parse of its text makes, before and after
// edits.
func checkClone(t *testing.T, d *Document, body []byte) {
	t.Helper()
	clone := d.Clone()
	defer clone.Release()
	parsed, err := Parse(d.Root().Raw(), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer parsed.Release()
	if !EqualNodes(clone.Root(), parsed.Root()) || clone.alike != parsed.alike || clone.Edited() {
		t.Fatalf("%q: the clone is %q, alike %v", body, clone.AppendTo(nil), clone.alike)
	}
	for range 2 {
		enlarge(clone, body)
		enlarge(parsed, body)
		got, want := clone.AppendTo(nil), parsed.AppendTo(nil)
		if string(got) != string(want) {
			t.Fatalf("%q: the clone becomes %q, want %q", body, got, want)
		}
		checkAgainstDecoders(t, clone, got)
	}
	if d.Edited() || string(d.AppendTo(nil)) != string(body) {
		t.Fatalf("%q: an edit of the clone makes %q of the document", body, d.AppendTo(nil))
	}
}

func checkAgainstDecoders(t *testing.T, d *Document, text []byte) {
	t.Helper()
	std, err := decodeStd(text)
	if err != nil {
		t.Fatalf("encoding/json refuses %q: %v", text, err)
	}
	if got := decodeTree(d.Root()); !sameTree(got, std) {
		t.Fatalf("%q: read as %#v, encoding/json reads %#v", text, got, std)
	}
	var kube any
	strict, err := kjson.UnmarshalStrict(text, &kube)
	if err != nil || len(strict) > 0 {
		t.Fatalf("sigs.k8s.io/json refuses %q: %v, %v", text, err, strict)
	}
	if got := kubeTree(t, d.Root()); !sameTree(got, kube) {
		t.Fatalf("%q: read as %#v, sigs.k8s.io/json reads %#v", text, got, kube)
	}
}

// kubeTree reads a node as sigs.k8s.io/json decodes it: numbers spelled as integers are int64 if
// they fit, others float64.
func kubeTree(t *testing.T, n Node) any {
	switch n.Kind() {
	case Number:
		i, isInt64 := n.Int64()
		f, ok := n.Float64()
		if !ok {
			t.Fatalf("%s is no double", n.Raw())
		}
		if isInt64 && math.Abs(f) < 1<<53 && float64(i) != f {
			t.Fatalf("%s reads as %d and as %v", n.Raw(), i, f)
		}
		if isInt64 && n.IsInteger() {
			return i
		}
		return f
	case Array:
		list := make([]any, 0, n.Len())
		for item := n.First(); item.Valid(); item = item.Next() {
			list = append(list, kubeTree(t, item))
		}
		return list
	case Object:
		object := make(map[string]any, n.Len())
		for member := n.First(); member.Valid(); member = member.Next() {
			object[member.Key()] = kubeTree(t, member)
		}
		return object
	}
	return decodeTree(n)
}

// FuzzDecoders finds texts that encoding/json accepts and Parse refuses for
// another reason than the documented ones.
func FuzzDecoders(f *testing.F) {
	for _, body := range editBodies {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) {
			if d, err := Parse(body, Limits{}); err == nil {
				d.Release()
				t.Fatalf("%q: accepted, encoding/json refuses it", body)
			}
			return
		}
		d, err := Parse(body, Limits{Depth: 20000})
		if err == nil {
			d.Release()
			return
		}
		if code := err.(*Error).Code; code == Syntax {
			t.Fatalf("%q: %v, encoding/json accepts it", body, err)
		}
	})
}

// FuzzEqual compares EqualNodes with exact arithmetic on decoded trees.
func FuzzEqual(f *testing.F) {
	f.Add([]byte(`[1.50,"a",{"b":0}]`), []byte(`[15e-1,"\u0061",{"b":-0.0}]`))
	f.Add([]byte(`{"a":1,"b":2}`), []byte(`{"b":2,"a":1}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		x, err := Parse(a, Limits{})
		if err != nil {
			return
		}
		defer x.Release()
		y, err := Parse(b, Limits{})
		if err != nil {
			return
		}
		defer y.Release()
		if longExponent(a) || longExponent(b) {
			return // exact arithmetic would take too long
		}
		want := equalTrees(decodeReference(t, a), decodeReference(t, b))
		if got := EqualNodes(x.Root(), y.Root()); got != want {
			t.Fatalf("%s and %s: equal is %v, want %v", a, b, got, want)
		}
		if !EqualNodes(x.Root(), x.Root()) {
			t.Fatalf("%s does not equal itself", a)
		}
	})
}

func longExponent(text []byte) bool {
	run, inExponent := 0, false
	for _, c := range text {
		switch {
		case c|0x20 == 'e':
			run, inExponent = 0, true
		case c >= '0' && c <= '9':
			if run++; inExponent && run > 3 {
				return true
			}
		case c != '+' && c != '-':
			run, inExponent = 0, false
		}
	}
	return false
}

// FuzzStrings compares quoting with reading, and FoldSet with strings.EqualFold.
func FuzzStrings(f *testing.F) {
	f.Add("kind", "\u212aind")
	f.Add("a\xff\x00\"\\\u2028", "Status\u017f")
	f.Fuzz(func(t *testing.T, a, b string) {
		d, err := Parse(AppendString(nil, a), Limits{})
		if err != nil {
			t.Fatalf("%q: %v", a, err)
		}
		defer d.Release()
		if got, want := d.Root().Str(), string([]rune(a)); got != want || !d.Root().Is(want) {
			t.Fatalf("%q: reads as %q", a, got)
		}
		if !utf8.ValidString(a) || !utf8.ValidString(b) {
			return
		}
		name, got := NewFoldSet(a).Variant(b)
		if want := a != b && strings.EqualFold(a, b); got != want || got && name != a {
			t.Fatalf("%q is a variant of %q: %v, want %v", b, a, got, want)
		}
	})
}

// FuzzSpelling compares a Spelling with a FoldSet, which looks at one key after the other.
func FuzzSpelling(f *testing.F) {
	f.Add("kind", "Kind", `{"a":{"\u212aind":1}}`)
	f.Add("kind", "name", `[{"kind":1,"NAMES":2},{"\u006bind":1}]`)
	f.Add("a", "a", `{"A":1}`)
	f.Fuzz(func(t *testing.T, a, b, text string) {
		if !utf8.ValidString(a) || !utf8.ValidString(b) {
			return
		}
		d, err := Parse([]byte(text), Limits{})
		if err != nil {
			return
		}
		defer d.Release()
		set, want := NewFoldSet(a, b), true
		isTwin := a != b && strings.EqualFold(a, b)
		for i := range d.tape {
			n := Node{d, uint32(i)}
			if d.tape[i].meta&flagMember == 0 {
				continue
			}
			if _, isVariant := set.Variant(n.Key()); isVariant || isTwin && (n.Key() == a || n.Key() == b) {
				want = false
			}
		}
		if got := NewSpelling([]string{a, b}).IsKept(d); got != want {
			t.Fatalf("%q, %q: kept %v, want %v: %s", a, b, got, want, text)
		}
	})
}

// FuzzNames compares what Names finds with a comparison of each key with each name.
func FuzzNames(f *testing.F) {
	f.Add("kind", "a name of 17 byte", `{"kind":{"\u006bind":1},"a name of 17 byte":2,"":3}`)
	f.Add("", "sixteen161616161", `[{"":1},{"sixteen161616161":2}]`)
	f.Add("eight888", "eight8888", `{"eight888":1,"eight8888":2,"eight888":3}`)
	f.Fuzz(func(t *testing.T, a, b, text string) {
		d, err := Parse([]byte(text), Limits{})
		if err != nil || a == b {
			return
		}
		defer d.Release()
		names := []string{a, b}
		set := NewNames(names)
		for i := range d.tape {
			n := Node{d, uint32(i)}
			want := -1
			if d.tape[i].meta&flagMember != 0 {
				want = slices.Index(names, n.Key())
			}
			if got := set.Member(n); got != want {
				t.Fatalf("%q in %s: got %d, want %d", n.Key(), text, got, want)
			}
		}
	})
}
