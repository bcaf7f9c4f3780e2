package document

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func TestNumbers(t *testing.T) {
	type reading struct {
		i       int64
		isInt64 bool
		f       float64
		integer bool
	}
	tests := map[string]reading{
		"0":                        {0, true, 0, true},
		"-0":                       {0, true, math.Copysign(0, -1), true},
		"-0.0":                     {0, true, math.Copysign(0, -1), false},
		"0e7":                      {0, true, 0, false},
		"1":                        {1, true, 1, true},
		"1.0":                      {1, true, 1, false},
		"1e0":                      {1, true, 1, false},
		"1.50e1":                   {15, true, 15, false},
		"0.0015E+4":                {15, true, 15, false},
		"1500e-2":                  {15, true, 15, false},
		"1500e-3":                  {0, false, 1.5, false},
		"1.5":                      {0, false, 1.5, false},
		"-17":                      {-17, true, -17, true},
		"9007199254740993":         {9007199254740993, true, 9007199254740992, true},
		"9007199254740993.0":       {9007199254740993, true, 9007199254740992, false},
		"9223372036854775807":      {math.MaxInt64, true, 9223372036854775807, true},
		"9223372036854775808":      {0, false, 9223372036854775808, true},
		"-9223372036854775808":     {math.MinInt64, true, -9223372036854775808, true},
		"-9223372036854775809":     {0, false, -9223372036854775808, true},
		"-9.223372036854775808e18": {math.MinInt64, true, -9223372036854775808, false},
		"9.223372036854775808e18":  {0, false, 9223372036854775808, false},
		"18446744073709551616":     {0, false, 18446744073709551616, true},
		"18446744073709551617":     {0, false, 18446744073709551616, true},
		"99999999999999999999":     {0, false, 1e20, true},
		"184467440737095516160":    {0, false, 184467440737095516160, true},
		"1e18":                     {1e18, true, 1e18, false},
		"1e19":                     {0, false, 1e19, false},
		"1e300":                    {0, false, 1e300, false},
		"1e-999":                   {0, false, 0, false},
		"1.000000000000000005":     {0, false, 1, false},
	}
	for text, want := range tests {
		d := mustParse(t, " "+text+" ")
		n := d.Root()
		var got reading
		got.i, got.isInt64 = n.Int64()
		got.f, _ = n.Float64()
		got.integer = n.IsInteger()
		if !want.isInt64 {
			got.i = 0
		}
		if got != want || math.Signbit(got.f) != math.Signbit(want.f) || string(n.Raw()) != text {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
		d.Release()
	}
}

func TestReadingOtherKinds(t *testing.T) {
	d := mustParse(t, `{"s":"x","t":true,"f":false,"z":null,"l":[],"o":{}}`)
	for m := d.Root().First(); m.Valid(); m = m.Next() {
		if _, ok := m.Int64(); ok || m.IsInteger() || m.Len() != 0 || m.First().Valid() || m.HasNUL() {
			t.Errorf("%s reads as what it is not", m.Key())
		}
		if _, ok := m.Float64(); ok {
			t.Errorf("%s reads as a number", m.Key())
		}
		if _, ok := m.Get("x"); ok {
			t.Errorf("%s has members", m.Key())
		}
		if _, ok := m.At(0); ok {
			t.Errorf("%s has items", m.Key())
		}
		if m.Kind() != String && (m.Is("") || len(m.AppendStr(nil)) != 0) {
			t.Errorf("%s reads as a string", m.Key())
		}
		if got, want := m.Str() == "x", m.Key() == "s"; got != want {
			t.Errorf("%s: Str is %q", m.Key(), m.Str())
		}
		if got, want := m.Bool(), m.Key() == "t"; got != want {
			t.Errorf("%s: Bool is %v", m.Key(), got)
		}
	}
	var kinds []string
	for m := d.Root().First(); m.Valid(); m = m.Next() {
		kinds = append(kinds, m.Kind().String())
	}
	if got := strings.Join(kinds, " "); got != "string boolean boolean null array object" {
		t.Error(got)
	}
}

func TestZeroNode(t *testing.T) {
	var n Node
	d := mustParse(t, `{}`)
	if n.Valid() || n.Kind() != Invalid || n.Len() != 0 || n.First().Valid() || n.Next().Valid() ||
		n.Parent().Valid() ||
		n.Key() != "" || n.Str() != "" || n.Raw() != nil || n.Bool() || n.Document() != nil || n.Path() != "" ||
		n.Clone() != nil ||
		d.Set(n, "a", []byte("1")).Valid() || d.Append(n, []byte("1")).Valid() || d.Replace(n, []byte("1")).Valid() ||
		d.InsertBefore(n, []byte("1")).Valid() {
		t.Error("the zero Node must read as nothing")
	}
	d.Remove(n)
	if d.Edited() {
		t.Error("edits through the zero Node must do nothing")
	}
}

func TestStrings(t *testing.T) {
	tests := map[string]string{
		`""`:                               "",
		`"plain"`:                          "plain",
		`"seven77"`:                        "seven77",
		`"eight888"`:                       "eight888",
		`"a longer one, with ünïcode 😀"`:   "a longer one, with ünïcode 😀",
		`"\"\\\/\b\f\n\r\t"`:               "\"\\/\b\f\n\r\t",
		`"\u0041\u00e9\u20AC\ud83d\ude00"`: "Aé€😀",
		`"0123456\n"`:                      "0123456\n",
		`"01234567\n89"`:                   "01234567\n89",
		`"\u0000"`:                         "\x00",
		`"\ufffd\uffff\ud7ff\ue000"`:       "\ufffd\uffff\ud7ff\ue000",
	}
	for text, want := range tests {
		d := mustParse(t, text)
		n := d.Root()
		if got := n.Str(); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
		if got := string(n.AppendStr([]byte("<"))); got != "<"+want {
			t.Errorf("%s: AppendStr gives %q", text, got)
		}
		if !n.Is(want) || n.Is(want+"x") || n.Is("x"+want) || want != "" && (n.Is("") || n.Is(want[:len(want)-1])) {
			t.Errorf("%s: Is is wrong", text)
		}
		if got, want := n.Escaped(), strings.Contains(text, `\`); got != want {
			t.Errorf("%s: Escaped is %v", text, got)
		}
		if got, want := n.HasNUL(), strings.Contains(want, "\x00"); got != want {
			t.Errorf("%s: HasNUL is %v", text, got)
		}
		d.Release()
	}
}

// Strings and keys of every length, so that each way to find their end, and to
// hash them, is taken, near the end of the body and far from it.
func TestEveryLength(t *testing.T) {
	for _, fill := range []string{"a", "é", "\\\\", "\\u00e9"} {
		for size := range 40 {
			for _, tail := range []string{"", "                        "} {
				text := strings.Repeat(fill, size)
				body := `{"` + text + `":"` + text + `","x` + text + `":["` + text + `"]}` + tail
				d := mustParse(t, body)
				want, err := decodeStd([]byte(`"` + text + `"`))
				if err != nil {
					t.Fatal(err)
				}
				for _, prefix := range []string{"", "x"} {
					key := prefix + want.(string)
					n, ok := d.Root().Get(key)
					if !ok || n.Key() != key {
						t.Fatalf("%s: no key %q", body, key)
					}
					if item, ok := n.At(0); ok {
						n = item
					}
					if n.Str() != want {
						t.Fatalf("%s: got %q", body, n.Str())
					}
				}
				d.Release()
			}
		}
	}
}

func TestLookup(t *testing.T) {
	for _, members := range []int{0, 1, 5, 16, 17, 18, 100, 5000} {
		var body strings.Builder
		for i := range members {
			fmt.Fprintf(&body, `,"k\u0065y-%d":%d`, i, i)
		}
		d := mustParse(t, "{"+strings.TrimPrefix(body.String(), ",")+"}")
		root := d.Root()
		if root.Len() != members {
			t.Errorf("%d members: Len is %d", members, root.Len())
		}
		for i := range members {
			n, ok := root.Lookup(NewName(fmt.Sprintf("key-%d", i)))
			if got, _ := n.Int64(); !ok || got != int64(i) {
				t.Fatalf("%d members: key-%d is %d, %v", members, i, got, ok)
			}
		}
		for _, key := range []string{"", "key", "key-", "key--1", fmt.Sprintf("key-%d", members), `k\u0065y-0`} {
			if _, ok := root.Get(key); ok {
				t.Errorf("%d members: found %q", members, key)
			}
		}
		d.Release()
	}
}

// A key must not match across its closing quotation mark.
func TestLookupOfKeyWithQuotes(t *testing.T) {
	d := mustParse(t, `{"a":"b","c":1}`)
	for _, key := range []string{`a":"b`, `a"`, `c":1}`} {
		if _, ok := d.Root().Get(key); ok {
			t.Errorf("found %q", key)
		}
	}
}

func TestDuplicatesInLargeObjects(t *testing.T) {
	for _, members := range []int{15, 16, 17, 18, 64, 3000} {
		for _, twice := range []int{0, 7, members - 1} {
			var body strings.Builder
			for i := range members {
				fmt.Fprintf(&body, `"key-%d":{"key-%d":[{}]},`, i, i)
			}
			text := fmt.Sprintf(`{"o":{%s"k\u0065y-%d":0}}`, body.String(), twice)
			_, err := Parse([]byte(text), Limits{})
			want := fmt.Sprintf("o.key-%d: duplicate key 'key-%d' at offset %d", twice, twice,
				strings.LastIndex(text, `"k`))
			if err == nil || err.Error() != want {
				t.Errorf("%d members, %d twice: got %v, want %s", members, twice, err, want)
			}
		}
	}
}

func TestAt(t *testing.T) {
	d := mustParse(t, `[0,1,2]`)
	for i := range 3 {
		if got, _ := at(t, d, i).Int64(); got != int64(i) {
			t.Errorf("item %d is %d", i, got)
		}
	}
	for _, i := range []int{-1, 3} {
		if _, ok := d.Root().At(i); ok {
			t.Errorf("there is an item %d", i)
		}
	}
}

func TestPath(t *testing.T) {
	d := mustParse(t, `{"spec":{"items":[{"name":1},{"name":2}],"a-b":1,"$ref":1,"_x9":1},"labels":{"example.com/x":1,"app":{"b c":[[1,[2]]]},"":1,"9":1,"a]b":1,"line\nbreak":1}}`)
	tests := []struct {
		steps []any
		want  string
	}{
		{nil, ""},
		{[]any{"spec", "items", 1, "name"}, "spec.items[1].name"},
		{[]any{"spec", "a-b"}, "spec.a-b"},
		{[]any{"spec", "$ref"}, "spec.$ref"},
		{[]any{"spec", "_x9"}, "spec._x9"},
		{[]any{"labels", "example.com/x"}, "labels[example.com/x]"},
		{[]any{"labels", "app", "b c", 0, 1, 0}, "labels.app[b c][0][1][0]"},
		{[]any{"labels", ""}, `labels[""]`},
		{[]any{"labels", "9"}, "labels[9]"},
		{[]any{"labels", "a]b"}, `labels["a]b"]`},
		{[]any{"labels", "line\nbreak"}, `labels["line\nbreak"]`},
	}
	for _, tt := range tests {
		if got := d.Path(at(t, d, tt.steps...)); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

func TestParent(t *testing.T) {
	d := mustParse(t, `{"a":[{"b":1}]}`)
	n := at(t, d, "a", 0, "b")
	var kinds []string
	for ; n.Valid(); n = n.Parent() {
		kinds = append(kinds, n.Kind().String()+" "+n.Key())
	}
	if got := strings.Join(kinds, ","); got != "number b,object ,array a,object " {
		t.Error(got)
	}
}

func TestEqualNodes(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{`1`, `1.0`, true},
		{`10`, `1e1`, true},
		{`0.10`, `1e-1`, true},
		{`-0`, `0.0`, true},
		{`0e5`, `-0e-9`, true},
		{`1e-999`, `10e-1000`, true},
		{`1e-999`, `0`, false},
		{`9007199254740993`, `9007199254740992`, false},
		{`9007199254740993`, `9007199254740992.0`, false},
		{`100000000000000000000`, `1e20`, true},
		{`12.30`, `1.23e1`, true},
		{`1.23`, `1.24`, false},
		{`1`, `-1`, false},
		{`1`, `"1"`, false},
		{`null`, `false`, false},
		{`true`, `true`, true},
		{`true`, `false`, false},
		{`"aé"`, `"\u0061\u00e9"`, true},
		{`"\u0061é"`, `"a\u00E9"`, true},
		{`"a"`, `"b"`, false},
		{`"\n"`, `"\t"`, false},
		{`[]`, `{}`, false},
		{`[1,[2,{}]]`, ` [ 1 , [ 2.0 , { } ] ] `, true},
		{`[1,2]`, `[2,1]`, false},
		{`[1]`, `[1,1]`, false},
		{`{"a":1,"b":{"c":2,"d":3}}`, `{"b":{"\u0064":3,"c":2},"a":1}`, true},
		{`{"a":1}`, `{"b":1}`, false},
		{`{"a":1}`, `{"a":1,"b":null}`, false},
		{`{"a":1,"b":2}`, `{"a":1,"b":3}`, false},
	}
	for _, tt := range tests {
		a, b := mustParse(t, tt.a), mustParse(t, tt.b)
		if EqualNodes(a.Root(), b.Root()) != tt.want || EqualNodes(b.Root(), a.Root()) != tt.want {
			t.Errorf("%s and %s: want %v", tt.a, tt.b, tt.want)
		}
		a.Release()
		b.Release()
	}
	if !EqualNodes(Node{}, Node{}) {
		t.Error("invalid nodes must be equal")
	}
}

func TestKindWithArticle(t *testing.T) {
	want := []string{"null", "null", "a boolean", "a number", "a string", "an object", "a list"}
	for k := Invalid; k <= Array; k++ {
		if got := k.WithArticle(); got != want[k] {
			t.Errorf("%s: got %q, want %q", k, got, want[k])
		}
	}
}

func TestAppendString(t *testing.T) {
	tests := map[string]string{
		"":                   `""`,
		"plain":              `"plain"`,
		"\"\\/\b\f\n\r\t":    `"\"\\/\u0008\u000c\n\r\t"`,
		"\x00\x1f\x7f":       "\"\\u0000\\u001f\x7f\"",
		"é€😀\u2028<&>":       "\"é€😀\u2028<&>\"",
		"a\xffb\xed\xa0\x80": "\"a\ufffdb\ufffd\ufffd\ufffd\"",
	}
	for s, want := range tests {
		if got := string(AppendString(nil, s)); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
}

func TestCaseVariants(t *testing.T) {
	set := NewFoldSet("kind", "apiVersion", "status", "Kind2", "kınd")
	tests := map[string]string{
		"kind": "", "apiVersion": "", "Kind2": "", "other": "", "": "", "kin": "", "kindd": "",
		"Kind": "kind", "KIND": "kind", "\u212aind": "kind", "\u212aIND": "kind",
		"STATUS": "status", "statu\u017f": "status", "\u017ftatu\u017f": "status",
		"apiversion": "apiVersion", "kind2": "Kind2", "KıND": "kınd",
		"k\u0130nd": "", strings.Repeat("k", 1000): "",
	}
	for key, want := range tests {
		got, ok := set.Variant(key)
		if got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", key, got, ok, want)
		}
		for _, name := range []string{"kind", "apiVersion", "status", "Kind2", "kınd"} {
			if want == name && !strings.EqualFold(key, name) {
				t.Errorf("%q: strings.EqualFold knows better", key)
			}
		}
	}
}

func TestFields(t *testing.T) {
	fields := NewFields("kind", "apiVersion", "status", "Kind2", "kınd")
	d := mustParse(t, `{"apiVersion":1,"other":3,"\u212aind":{"Kind":1},"STATUS":2,"status":4}`)
	var found [3]Node
	if n, name := fields.In(d.Root(), found[:]); n.Key() != "\u212aind" || name != "kind" {
		t.Errorf("got %q for %q", n.Key(), name)
	}
	if found[0].Valid() || found[1].Key() != "apiVersion" || found[2].Valid() {
		t.Errorf("found %v", found)
	}
	for _, text := range []string{`["Kind"]`, `"Kind"`} {
		if n, _ := fields.In(mustParse(t, text).Root(), nil); n.Valid() {
			t.Errorf("%s has members", text)
		}
	}
	d = mustParse(t, `{"apiVersion":1,"kind":{"Kind":1},"status":2,"Kind2":3}`)
	d.Set(d.Root(), "status", []byte("5"))
	if n, _ := fields.In(d.Root(), found[:]); n.Valid() {
		t.Errorf("got %q", n.Key())
	}
	for i, name := range []string{"kind", "apiVersion", "status"} {
		if want, _ := d.Root().Get(name); found[i] != want {
			t.Errorf("%s is %v, not %v", name, found[i], want)
		}
	}
}

// Reading changes nothing in a document, so many may read at once.
func TestConcurrentReads(t *testing.T) {
	d := mustParse(t, editBodies[len(editBodies)-1])
	d.Set(d.Root(), "a", []byte(`{"b":["\u0041"]}`))
	want := string(d.AppendTo(nil))
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for range 50 {
				if n, ok := d.Root().Get("k17"); !ok || n.Path() != "k17" || !EqualNodes(d.Root(), d.Root()) ||
					string(d.AppendTo(nil)) != want {
					t.Error("a concurrent reader sees something else")
				}
				_ = decodeTree(d.Root())
			}
		})
	}
	readers.Wait()
}

// Texts may follow one another, and their reader may allow duplicate keys.
func TestParseNext(t *testing.T) {
	const text = ` {"a": [1, "b"], "c": {"d": null}} [2] x`
	d, read, err := ParseNext([]byte(text), Limits{})
	if err != nil || text[read:] != " [2] x" {
		t.Fatalf("read %d: %v", read, err)
	}
	offsets := map[string]int{"": 1, "a": 2, "a[0]": 8, "a[1]": 11, "c": 17, "c.d": 23}
	var visit func(n Node)
	visit = func(n Node) {
		if at, ok := n.Offset(); !ok || at != offsets[n.Path()] {
			t.Errorf("%s: got offset %d, %v, want %d", n.Path(), at, ok, offsets[n.Path()])
		}
		for m := n.First(); m.Valid(); m = m.Next() {
			visit(m)
		}
	}
	visit(d.Root())
	if _, ok := d.Set(d.Root(), "e", []byte("1")).Offset(); ok {
		t.Error("what an edit brought has an offset")
	}
	d.Release()
	if d, read, err = ParseNext([]byte(text[read:]), Limits{}); err != nil || read != len(" [2]") ||
		d.Root().Len() != 1 {
		t.Fatalf("read %d: %v", read, err)
	}
	d.Release()
	if _, _, err = ParseNext([]byte(" x"), Limits{}); err == nil {
		t.Error("a word was read")
	}
}

func TestRepeatedKeys(t *testing.T) {
	many := `{"k0":0`
	for i := 1; i < 40; i++ {
		many += `,"k` + strconv.Itoa(i) + `":0`
	}
	for text, want := range map[string]map[int]int{
		`{"a":1,"b":{"a":2},"\u0061":3}`: {19: 1},
		many + `,"k7":1}`:                {len(many) + 1: strings.Index(many, `"k7"`)},
		many + `}`:                       {},
	} {
		got := map[int]int{}
		d, err := Parse([]byte(text), Limits{Repeated: func(first, again int) { got[again] = first }})
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
		d.Release()
	}
}
