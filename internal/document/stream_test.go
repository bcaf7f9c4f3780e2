package document

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// marker edits each item that has no member "done", and keeps count of the memory that it was asked for.
type marker struct {
	memory []byte
	asked  int
	items  int
	fail   error
}

func (m *marker) EditItem(d *Document) error {
	m.items++
	markItem(d, d.Root())
	return m.fail
}

func markItem(d *Document, item Node) {
	if _, found := item.Get("done"); !found {
		d.Set(item, "done", []byte("true"))
	}
}

func (m *marker) ItemMemory(kept []byte, least int) ([]byte, error) {
	m.asked = max(m.asked, least)
	memory := make([]byte, 2*least)
	copy(memory, kept)
	// What was given before is overwritten, so that a use of it shows.
	for i := range m.memory {
		m.memory[i] = '!'
	}
	m.memory = memory
	return memory, nil
}

// stream leads text through a Stream in pieces of the sizes that next gives.
func stream(o StreamOptions, e ItemEditor, text []byte, next func() int) (out []byte, err error) {
	var s Stream
	s.Reset(o, e)
	for len(text) > 0 {
		piece := bytes.Clone(text[:min(len(text), max(next(), 1))])
		text = text[len(piece):]
		for len(piece) > 0 {
			var used int
			out, used, err = s.Append(out, piece, len(out)+100)
			if err != nil {
				return out, err
			}
			for i := range used { // what was read is not looked at again
				piece[i] = '?'
			}
			piece = piece[used:]
		}
	}
	out, err = s.Close(out)
	return out, err
}

func whole() int { return 1 << 30 }

var members = []StreamMember{{"kind", []byte(`"ThingList"`)}, {"apiVersion", []byte(`"example.com/v1"`)}}

func TestStream(t *testing.T) {
	list := StreamOptions{Place: List, Path: []string{"items"}}
	typed := StreamOptions{Place: List, Path: []string{"items"}, Members: members, Wrap: true}
	for _, c := range []struct {
		name string
		o    StreamOptions
		text string
		want string
	}{
		{"single", StreamOptions{}, " {\"a\" : 1}\n", " {\"a\" : 1,\"done\":true}\n"},
		{"single, nothing to edit", StreamOptions{}, `{"done":0, "b":[{}]}`, `{"done":0, "b":[{}]}`},
		{"single scalar", StreamOptions{}, ` 12 `, ` 12 `},
		{"single list", StreamOptions{}, `[{"a":1}]`, `[{"a":1}]`},
		{"sequence", StreamOptions{Place: Sequence}, "{}\n\n{\"a\":\"}\\\"\"}{}\n",
			"{\"done\":true}\n\n{\"a\":\"}\\\"\",\"done\":true}{\"done\":true}\n"},
		{"sequence of others", StreamOptions{Place: Sequence}, "1 2.5e1\n\"x\" [ {} ] null",
			"1 2.5e1\n\"x\" [ {} ] null"},
		{"empty sequence", StreamOptions{Place: Sequence}, " \n", " \n"},
		{"list", list, `{"metadata":{"items":[{}]},"items" : [ {} , {"done":1},{"a":{}}], "x":[{}]}`,
			`{"metadata":{"items":[{}]},"items" : [ {"done":true} , {"done":1},{"a":{},"done":true}], "x":[{}]}`},
		{"list with an escaped key", list, `{"\u0069tems":[{}]}`, `{"\u0069tems":[{"done":true}]}`},
		{"list of others", list, `{"items":[1,"x",null,[{}],{}]}`, `{"items":[1,"x",null,[{}],{"done":true}]}`},
		{"list that is none", list, `{"items":{"a":{}},"y":1}`, `{"items":{"a":{}},"y":1}`},
		{"empty list", list, `{"items":[ ]}`, `{"items":[ ]}`},
		{"deeper list", StreamOptions{Place: List, Path: []string{"a", "b"}},
			`{"b":[{}],"a":{"a":[{}],"b":[{}],"c":{"b":[{}]}},"c":{"b":[{}]}}`,
			`{"b":[{}],"a":{"a":[{}],"b":[{"done":true}],"c":{"b":[{}]}},"c":{"b":[{}]}}`},
		{"list at the root", StreamOptions{Place: List}, ` [{},{}] `, ` [{"done":true},{"done":true}] `},
		{"no list at the root", StreamOptions{Place: List}, `{"items":[{}]}`, `{"items":[{}]}`},
		{"members", typed, "{\"items\":[{}]\n}\n", "{\"items\":[{\"done\":true}]\n,\"kind\":\"ThingList\",\"apiVersion\":\"example.com/v1\"}\n"},
		{"one member", typed, `{"kind":"X","items":[]}`, `{"kind":"X","items":[],"apiVersion":"example.com/v1"}`},
		{"all members", typed, `{"kind":"X","items":[],"apiVersion":null}`,
			`{"kind":"X","items":[],"apiVersion":null}`},
		{"members of an empty object", typed, `{ }`, `{ "kind":"ThingList","apiVersion":"example.com/v1"}`},
		{"members within", typed, `{"a":{"kind":1},"items":[]}`,
			`{"a":{"kind":1},"items":[],"kind":"ThingList","apiVersion":"example.com/v1"}`},
		{"wrapped", typed, " [{},[]] ", ` {"items":[{"done":true},[]],"kind":"ThingList","apiVersion":"example.com/v1"} `},
		{"wrapped, empty", typed, "[]", `{"items":[],"kind":"ThingList","apiVersion":"example.com/v1"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for size := 1; size <= len(c.text)+1; size++ {
				got, err := stream(c.o, &marker{}, []byte(c.text), func() int { return size })
				if err != nil || string(got) != c.want {
					t.Fatalf("pieces of %d: %v\n got %s\nwant %s", size, err, got, c.want)
				}
			}
		})
	}
}

// TestStreamRefuses: what Parse refuses a Stream refuses, wherever it stands, with place and reason.
func TestStreamRefuses(t *testing.T) {
	list := StreamOptions{Place: List, Path: []string{"data", "items"}, Members: members,
		Limits: Limits{Bytes: 60, Depth: 4, Nodes: 9}}
	for _, c := range []struct {
		name, text string
		o          StreamOptions
		want       Error
	}{
		{"nothing", "", StreamOptions{}, Error{0, "", Syntax, "unexpected end of the document"}},
		{"cut in an item", `{"a":`, StreamOptions{}, Error{5, "", Syntax, "unexpected end of the document"}},
		{"cut in a list", `{"data":{"items":[{}`, list, Error{20, "", Syntax, "unexpected end of the document"}},
		{"cut in a string", `{"data":"`, list, Error{9, "", Syntax, "unexpected end of the document"}},
		{"two items", `{} {}`, StreamOptions{},
			Error{3, "", Syntax, "unexpected character '{', the end of the document must stand here"}},
		{"bad item", `{"data":{"items":[{},{"a":{"b":01}}]}}`, list,
			Error{31, "data.items[1].a.b", Syntax, "numbers must not have leading zeros"}},
		{"bad list of an item", `{"data":{"items":[{},2,{"a":[1 2]}]}}`, list,
			Error{31, "data.items[2].a", Syntax, "unexpected character '2', ',' or ']' must stand here"}},
		{"brackets that do not match", `{"data":{"items":[{"a":[}]}}`, list,
			Error{24, "data.items[0].a[0]", Syntax, "unexpected character '}', a value must stand here"}},
		{"duplicate key in an item", `{"data":{"items":[{"a":1,"\u0061":2}]}}`, list,
			Error{25, "data.items[0].a", Duplicate, "duplicate key 'a'"}},
		{"items twice", `{"data":{"items":[],"it\u0065ms":[]}}`, list,
			Error{20, "", Duplicate, "duplicate key 'items'"}},
		{"data twice", `{"data":{"items":[]},"data":{"items":[]}}`, list,
			Error{21, "", Duplicate, "duplicate key 'data'"}},
		{"kind twice", `{"kind":1,"kind":1}`, list, Error{10, "", Duplicate, "duplicate key 'kind'"}},
		{"NUL in a key", `{"a\u0000":1}`, list, Error{1, "", Encoding, msgKeyNUL}},
		{"bad UTF-8", "{\"a\":\"\xff\"}", list, Error{6, "", Encoding, "strings must be valid UTF-8"}},
		{"lone surrogate", `{"a":"\ud800"}`, list, Error{6, "", Encoding, "escapes of surrogates must come in pairs"}},
		{"control character", "{\"a\":\"\n\"}", list,
			Error{6, "", Syntax, "control characters in strings must be escaped"}},
		{"bad literal", `{"a":nul}`, list, Error{5, "", Syntax, "unexpected character 'n', a value must stand here"}},
		{"literal that goes on", `{"a":truey}`, list,
			Error{9, "", Syntax, "unexpected character 'y', the end of a value must stand here"}},
		{"bad number", `{"a":1e400}`, list, Error{5, "", Range, msgRange}},
		{"comment", `{/**/}`, list,
			Error{1, "", Syntax, "unexpected character '/', a key in double quotes must stand here"}},
		{"trailing comma", `{"a":1,}`, list,
			Error{7, "", Syntax, "unexpected character '}', a key in double quotes must stand here"}},
		{"trailing comma in a list", `{"data":{"items":[{},]}}`, list,
			Error{21, "", Syntax, "unexpected character ']', a value must stand here"}},
		{"no colon", `{"a" 1}`, list, Error{5, "", Syntax, "unexpected character '1', ':' must stand here"}},
		{"no comma", `{"data":{"items":[{}{}]}}`, list,
			Error{20, "", Syntax, "unexpected character '{', ',' or ']' must stand here"}},
		{"wrong bracket", `{"a":[}`, list, Error{6, "", Syntax, "unexpected character '}', a value must stand here"}},
		{"trailing data", `{}1`, list,
			Error{2, "", Syntax, "unexpected character '1', the end of the document must stand here"}},
		{"too deep", `{"a":[[[[]]]]}`, list, Error{8, "", TooDeep, "depth of nesting must be less than or equal to 4"}},
		{"item too deep", `{"data":{"items":[{"a":[[[[]]]]}]}}`, list,
			Error{26, "data.items[0].a[0][0][0]", TooDeep, "depth of nesting must be less than or equal to 4"}},
		{"item with too many values", `{"data":{"items":[{"a":[1,2,3,4,5,6,7,8]}]}}`, list,
			Error{38, "data.items[0].a", TooManyNodes, "number of values must be less than or equal to 9"}},
		{"item too large", `{"data":{"items":[{"a":"` + strings.Repeat("x", 60) + `"}]}}`, list,
			Error{78, "data.items[0]", TooLarge, "document must be less than or equal to 60 bytes long"}},
		{"string too long", `{"a":"` + strings.Repeat("x", 60) + `"}`, list,
			Error{65, "", TooLarge, "document must be less than or equal to 60 bytes long"}},
		{"byte order mark", "\ufeff{}", StreamOptions{},
			Error{0, "", Encoding, "document must not begin with a byte order mark"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{1, 2, 3, 7, 1000} {
				if size < 1000 && c.want.Msg == "document must not begin with a byte order mark" {
					continue // nothing is known of it without its second byte
				}
				_, err := stream(c.o, &marker{}, []byte(c.text), func() int { return size })
				var got *Error
				if !errors.As(err, &got) || *got != c.want {
					if size == 1000 && c.want.Code == TooLarge && strings.HasPrefix(c.text, `{"a"`) && err == nil {
						continue // a string that comes whole takes no memory
					}
					t.Fatalf("pieces of %d:\n got %+v\nwant %+v", size, err, c.want)
				}
			}
		})
	}
}

func TestStreamEditorFails(t *testing.T) {
	fault := errors.New("fault")
	got, err := stream(StreamOptions{Place: Sequence}, &marker{fail: fault}, []byte("1 {}"), whole)
	if err != fault || string(got) != "1 " {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestStreamMemory: a long list takes the memory of one item, and memory of the editor's only for items that are large.
func TestStreamMemory(t *testing.T) {
	var s Stream
	e := &marker{}
	s.Reset(StreamOptions{Place: List, Path: []string{"items"}}, e)
	small := `{"name":"` + strings.Repeat("x", 1000) + `"},`
	chunk, out := []byte(strings.Repeat(small, 64)), make([]byte, 0, 128<<10)
	if _, _, err := s.Append(nil, []byte(`{"items":[`), whole()); err != nil {
		t.Fatal(err)
	}
	feed := func() {
		for piece := chunk[:]; len(piece) > 0; {
			n := min(len(piece), 7777)
			var used int
			var err error
			if out, used, err = s.Append(out[:0], piece[:n], 16<<10); err != nil {
				t.Fatal(err)
			}
			piece = piece[used:]
		}
	}
	feed()
	if n := testing.AllocsPerRun(100, feed); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if e.asked > 0 || e.items < 6400 || cap(out) != 128<<10 {
		t.Errorf("asked for %d bytes, saw %d items, made %d bytes at once", e.asked, e.items, cap(out))
	}
	big := []byte(`{"a":"` + strings.Repeat("x", 100_000) + `"}`)
	if _, _, err := s.Append(nil, big[:50_000], whole()); err != nil || e.asked != 50_000 || !s.Holding() {
		t.Errorf("asked for %d bytes, %v", e.asked, err)
	}
	if got, _, err := s.Append(nil, big[50_000:], whole()); err != nil || len(got) != len(big)+len(`,"done":true`) ||
		s.Holding() {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// referenceList edits a list in one document.
func referenceList(text []byte, path []string) ([]byte, error) {
	d, err := Parse(text, Limits{Depth: 64 + len(path) + 1})
	if err != nil {
		return nil, err
	}
	defer d.Release()
	at := d.Root()
	for _, key := range path {
		var found bool
		if at, found = at.Get(key); !found {
			return d.AppendTo(nil), nil
		}
	}
	if at.Kind() == Array {
		for n := at.First(); n.Valid(); n = n.Next() {
			if n.Kind() == Object {
				markItem(d, n)
			}
		}
	}
	return d.AppendTo(nil), nil
}

// FuzzStream compares the pieces with the whole: what Parse accepts comes out as if the document
// had been edited as a whole, whatever the pieces; what Parse refuses is refused, but for duplicate
// keys that do not matter.
func FuzzStream(f *testing.F) {
	for _, text := range []string{
		`{"items":[{"a":1},{"done":true}, {} ,1,"x",[{}]],"kind":"X"}`, `{"a":{"items":[{}]},"items":[]}`,
		`[{},{"a":"\"}{"}]`, `{"\u0069tems":[{"a":[{"b":{}}]}]}`,
		`{"items":[{"a":1,"a":2}]}`, `{"items":[{}`, `{"items":[],"items":[]}`, "{\"a\":\"\xff\"}",
		`{"items":[{"a":[}]}`, `1`, ` "x" `, `{"a":1,"a":2}`, "[1e5,-0,truefalse]",
		`{"items":[{"a":"\ud83d\ude00é"},{"b":[1e5,-0,1.50,12345678901234567890]}]}`,
	} {
		for i := range 3 {
			f.Add([]byte(text), uint64(i), byte(i))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64, form byte) {
		r := rand.New(rand.NewPCG(seed, 1))
		most := 1 + r.IntN(40)
		pieces := func() int { return 1 + r.IntN(most) }
		path := []string{"items"}[form&1:]
		got, err := stream(StreamOptions{Place: List, Path: path}, &marker{}, text, pieces)
		want, refusal := referenceList(text, path)
		var refused, parsed *Error
		switch {
		case err != nil && !errors.As(err, &refused), refusal != nil && !errors.As(refusal, &parsed):
			t.Fatalf("unexpected kinds of errors: %v, %v", err, refusal)
		case parsed != nil && (parsed.Code == Duplicate || parsed.Code == TooDeep):
			return // may be one that does not matter; of depth only an item's is known exactly
		case refused != nil && refused.Code == TooDeep:
			return
		case (refused == nil) != (parsed == nil):
			t.Fatalf("%q: %v as a stream, %v as a whole", text, err, refusal)
		case refused == nil && string(got) != string(want):
			t.Fatalf("%q:\n got %q\nwant %q", text, got, want)
		}
		if refused != nil && (refused.Offset < 0 || refused.Offset > len(text) || refused.Msg == "") {
			t.Fatalf("%q: bad error %+v", text, refused)
		}
		single, err := stream(StreamOptions{}, &marker{fail: nil}, text, pieces)
		sequence, err2 := stream(StreamOptions{Place: Sequence}, &marker{}, text, pieces)
		if err == nil && (err2 != nil || !slices.Equal(single, sequence)) {
			t.Fatalf("%q: %q alone, %q, %v in a sequence", text, single, sequence, err2)
		}
		wrapped, err := stream(StreamOptions{Place: List, Path: []string{"items"}, Members: members, Wrap: true},
			&marker{}, text, pieces)
		if err != nil || refusal != nil {
			return
		}
		d, err := Parse(wrapped, Limits{Depth: 70})
		if err != nil {
			t.Fatalf("%q: became %q: %v", text, wrapped, err)
		}
		defer d.Release()
		if root := d.Root(); root.Kind() == Object {
			for _, m := range members {
				if _, found := root.Get(m.Name); !found {
					t.Fatalf("%q: became %q without %s", text, wrapped, m.Name)
				}
			}
		} else if root.Kind() == Array {
			t.Fatalf("%q: became %q", text, wrapped)
		}
	})
}

// BenchmarkStream is a list led through a Stream, with and without an edit of each item; Parse is the same list parsed
// as a whole.
func BenchmarkStream(b *testing.B) {
	for _, item := range []string{deployment, `{"done":1,` + deployment[1:]} {
		text := []byte(`{"apiVersion":"v1","kind":"List","items":[` + strings.Repeat(item+",", 739) + item + `]}`)
		b.Run(fmt.Sprintf("edits=%v", item == deployment), func(b *testing.B) {
			var s Stream
			e := &marker{}
			out := make([]byte, 0, 128<<10)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				s.Reset(StreamOptions{Place: List, Path: []string{"items"}}, e)
				for rest := text; len(rest) > 0; {
					var used int
					var err error
					if out, used, err = s.Append(out[:0], rest[:min(len(rest), 64<<10)], 64<<10); err != nil {
						b.Fatal(err)
					}
					rest = rest[used:]
				}
			}
		})
	}
}

// TestStreamSuite: a Stream takes the texts of JSONTestSuite that Parse takes, and passes them byte
// for byte.
func TestStreamSuite(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(suiteDir(t, "data/JSONTestSuite"), "test_parsing", "*.json"))
	if err != nil || len(files) < 300 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d, refusal := Parse(text, Limits{})
		d.Release()
		for _, size := range []int{1, 5, 1 << 20} {
			got, err := stream(StreamOptions{}, idle{}, text, func() int { return size })
			if (err == nil) != (refusal == nil) {
				t.Errorf("%s in pieces of %d: %v, Parse says %v", filepath.Base(file), size, err, refusal)
			} else if err == nil && !bytes.Equal(got, text) {
				t.Errorf("%s in pieces of %d came out as %q", filepath.Base(file), size, got)
			}
		}
	}
}

// idle edits nothing.
type idle struct{}

func (idle) EditItem(*Document) error { return nil }

func (idle) ItemMemory(kept []byte, least int) ([]byte, error) {
	return append(make([]byte, 0, 2*least), kept...)[:2*least], nil
}
