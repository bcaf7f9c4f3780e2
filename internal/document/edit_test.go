package document

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

func set(t *testing.T, d *Document, key, raw string, steps ...any) Node {
	t.Helper()
	n := d.Set(at(t, d, steps...), key, []byte(raw))
	if !n.Valid() {
		t.Fatalf("Set of %s has failed", key)
	}
	return n
}

func TestEdits(t *testing.T) {
	tests := []struct {
		name, body string
		edit       func(t *testing.T, d *Document)
		want       string
	}{
		{"add to an empty object", `{ }`, func(t *testing.T, d *Document) {
			set(t, d, "a", "1")
		}, `{"a":1 }`},
		{"add two to an empty object", `{}`, func(t *testing.T, d *Document) {
			set(t, d, "a", "1")
			set(t, d, "b", "2")
		}, `{"a":1,"b":2}`},
		{"add a member", "{ \"a\" : 1.0\n}", func(t *testing.T, d *Document) {
			set(t, d, "b", `{"c": [ ]}`)
		}, "{ \"a\" : 1.0,\"b\":{\"c\": [ ]}\n}"},
		{"add a member whose key needs escapes", `{"a":1}`, func(t *testing.T, d *Document) {
			set(t, d, "b\"\n", `2`)
			set(t, d, "b\"\n", `3`)
		}, `{"a":1,"b\"\n":3}`},
		{"add a member whose key is not UTF-8", `{"a":1}`, func(t *testing.T, d *Document) {
			set(t, d, "b\xff", `2`)
			set(t, d, "b\ufffd", `3`)
		}, "{\"a\":1,\"b\ufffd\":3}"},
		{"change a member", `{ "a": 1, "b" :2 , "c":3}`, func(t *testing.T, d *Document) {
			set(t, d, "b", "20")
		}, `{ "a": 1, "b" :20 , "c":3}`},
		{"change a member with an escaped key", `{"\u0061" : 1,"b":2}`, func(t *testing.T, d *Document) {
			set(t, d, "a", "[]")
			set(t, d, "a", "{}")
		}, `{"\u0061" : {},"b":2}`},
		{"change every member", `{ "a": 1, "b" :2 , "c":3 }`, func(t *testing.T, d *Document) {
			set(t, d, "c", "30")
			set(t, d, "a", "10")
			set(t, d, "b", "20")
		}, `{ "a": 10, "b" :20 , "c":30 }`},
		{"change twice", `{"a": 1}`, func(t *testing.T, d *Document) {
			set(t, d, "a", `{"x":1}`)
			set(t, d, "a", `{"y":2}`)
			set(t, d, "z", `3`, "a")
		}, `{"a": {"y":2,"z":3}}`},
		{"white space around the inserted value", `{"a":1,"b":2}`, func(t *testing.T, d *Document) {
			set(t, d, "a", " 5 ")
		}, `{"a": 5,"b":2}`},
		{"nested in an inserted value", `{"a":1}`, func(t *testing.T, d *Document) {
			set(t, d, "b", `{ "c": {"d":[ 1 ]} }`)
			set(t, d, "e", `"x"`, "b", "c")
			d.Append(at(t, d, "b", "c", "d"), []byte("2"))
			d.Append(at(t, d, "b", "c", "d"), []byte("{}"))
			set(t, d, "f", "true", "b", "c", "d", 2)
			d.Remove(at(t, d, "b", "c", "d", 0))
		}, `{"a":1,"b":{ "c": {"d":[ 2,{"f":true} ],"e":"x"} }}`},
		{"remove the first member", `{ "a":1, "b":2 , "c":3 }`, func(t *testing.T, d *Document) {
			d.Remove(at(t, d, "a"))
		}, `{ "b":2 , "c":3 }`},
		{"remove a middle member", `{ "a":1, "b":2 , "c":3 }`, func(t *testing.T, d *Document) {
			d.Remove(at(t, d, "b"))
		}, `{ "a":1 , "c":3 }`},
		{"remove the last member", "{\n  \"a\":1,\n  \"b\":2\n}", func(t *testing.T, d *Document) {
			d.Remove(at(t, d, "b"))
		}, "{\n  \"a\":1\n}"},
		{"remove all members", `{ "a":1, "b":2 }`, func(t *testing.T, d *Document) {
			d.Remove(at(t, d, "a"))
			d.Remove(at(t, d, "b"))
		}, `{ }`},
		{"remove all but the last", `[ 1, 2,  3 ]`, func(t *testing.T, d *Document) {
			d.Remove(at(t, d, 0))
			d.Remove(at(t, d, 0))
		}, `[  3 ]`},
		{"remove and add again", `{"a":1, "b":2}`, func(t *testing.T, d *Document) {
			d.Remove(at(t, d, "b"))
			set(t, d, "b", "20")
			d.Remove(at(t, d, "a"))
			set(t, d, "a", "10")
		}, `{ "b":20,"a":10}`},
		{"remove all and add", `{ "a":1, "b":2 }`, func(t *testing.T, d *Document) {
			d.Remove(at(t, d, "b"))
			d.Remove(at(t, d, "a"))
			set(t, d, "c", "3")
		}, `{ "c":3 }`},
		{"remove what was added", `{"a":1}`, func(t *testing.T, d *Document) {
			n := set(t, d, "b", "2")
			set(t, d, "c", "3")
			d.Remove(n)
		}, `{"a":1,"c":3}`},
		{"remove what was changed", `{"a":1,"b":2,"c":3}`, func(t *testing.T, d *Document) {
			n := set(t, d, "b", "20")
			d.Remove(n)
			d.Remove(n)
			set(t, d, "a", "10")
		}, `{"a":10,"c":3}`},
		{"change, remove and add the last", `{"a": 1, "b": 2}`, func(t *testing.T, d *Document) {
			d.Remove(set(t, d, "b", "20"))
			set(t, d, "b", "200")
		}, `{"a": 1, "b":200}`},
		{"append", `[1, 2 ]`, func(t *testing.T, d *Document) {
			d.Append(d.Root(), []byte("3"))
			d.Append(d.Root(), []byte("4"))
		}, `[1, 2,3,4 ]`},
		{"append to an empty list", `[ ]`, func(t *testing.T, d *Document) {
			d.Append(d.Root(), []byte("3"))
			d.Append(d.Root(), []byte("4"))
		}, `[3,4 ]`},
		{"insert first", `[ 1, 2]`, func(t *testing.T, d *Document) {
			d.InsertBefore(at(t, d, 0), []byte("0"))
			d.InsertBefore(at(t, d, 0), []byte("-1"))
		}, `[-1,0, 1, 2]`},
		{"insert in the middle", `[ 1, 2 ]`, func(t *testing.T, d *Document) {
			d.InsertBefore(at(t, d, 1), []byte(`"a"`))
			d.InsertBefore(at(t, d, 2), []byte(`"b"`))
		}, `[ 1,"a","b", 2 ]`},
		{"insert before an only, inserted item", `[]`, func(t *testing.T, d *Document) {
			d.Append(d.Root(), []byte("2"))
			d.InsertBefore(at(t, d, 0), []byte("1"))
			d.Append(d.Root(), []byte("3"))
		}, `[1,2,3]`},
		{"insert and remove the first", `[1,2]`, func(t *testing.T, d *Document) {
			n := d.InsertBefore(at(t, d, 0), []byte("0"))
			d.InsertBefore(n, []byte("-1"))
			d.Remove(n)
		}, `[-1,1,2]`},
		{"insert after the removed first", `[ 1, 2]`, func(t *testing.T, d *Document) {
			d.Remove(at(t, d, 0))
			d.InsertBefore(at(t, d, 0), []byte("0"))
		}, `[ 0, 2]`},
		{"replace items", `[1, {"a":[]} , 3]`, func(t *testing.T, d *Document) {
			d.Replace(at(t, d, 1), []byte("2"))
			d.Replace(at(t, d, 2), []byte(`{"b":{}}`))
			set(t, d, "c", "null", 2, "b")
			d.Append(d.Root(), []byte("4"))
		}, `[1, 2 , {"b":{"c":null}},4]`},
		{"replace the root", " {\"a\":1}\n", func(t *testing.T, d *Document) {
			set(t, d, "b", "2")
			d.Replace(d.Root(), []byte(`[1]`))
			d.Append(d.Root(), []byte("2"))
			d.Replace(d.Root(), []byte(`{ "c":[] }`))
			set(t, d, "d", "3")
		}, " { \"c\":[],\"d\":3 }\n"},
		{"replace a scalar root", ` 1 `, func(t *testing.T, d *Document) {
			d.Replace(d.Root(), []byte(`{}`))
			set(t, d, "a", "{}")
		}, ` {"a":{}} `},
		{"nothing", ` { "a" : [ ] } `, func(t *testing.T, d *Document) {
			d.Remove(d.Root())
			d.Set(at(t, d, "a"), "x", []byte("1"))
			d.Append(d.Root(), []byte("1"))
			d.InsertBefore(d.Root(), []byte("1"))
			d.InsertBefore(at(t, d, "a"), []byte("1"))
		}, ` { "a" : [ ] } `},
		{"untouched spelling", "{\"big\":12345678901234567890,\"f\":1.50,\"s\":\"\\u0041\\/\",\t\"x\":1}",
			func(t *testing.T, d *Document) {
				d.Remove(at(t, d, "x"))
				d.SetString(d.Root(), "y", "<\"é\">")
			}, "{\"big\":12345678901234567890,\"f\":1.50,\"s\":\"\\u0041\\/\",\t\"y\":\"<\\\"é\\\">\"}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := mustParse(t, tt.body)
			defer d.Release()
			tt.edit(t, d)
			got := string(d.AppendTo([]byte("<")))
			if got != "<"+tt.want {
				t.Errorf("got %s, want <%s", got, tt.want)
			}
			if d.Edited() != (tt.want != tt.body) {
				t.Errorf("Edited is %v", d.Edited())
			}
			if raw := string(d.Root().Raw()); raw != strings.TrimSpace(tt.want) {
				t.Errorf("Raw is %s", raw)
			}
			c := d.Clone()
			defer c.Release()
			if !EqualNodes(c.Root(), d.Root()) {
				t.Error("the clone is not equal")
			}
			if want := decodeReference(t, []byte(tt.want)); !sameTree(decodeTree(d.Root()), want) {
				t.Errorf("read as %v, want %v", decodeTree(d.Root()), want)
			}
		})
	}
}

func TestEditedReads(t *testing.T) {
	d := mustParse(t, `{"spec":{"items":[{"name":"a"},{"name":"b"}],"old":1}}`)
	items := at(t, d, "spec", "items")
	d.Remove(items.First())
	d.InsertBefore(items.First(), []byte(`{"name":"c"}`))
	n := d.Append(items, []byte(`{"name":"d","deep":{"list":[1]}}`))
	d.Set(n, "name", []byte(`"e"`))
	d.Remove(at(t, d, "spec", "old"))
	spec := at(t, d, "spec")

	var got []string
	for item := items.First(); item.Valid(); item = item.Next() {
		name, _ := item.Get("name")
		got = append(got, name.Path()+"="+name.Str())
	}
	got = append(got, d.Path(at(t, d, "spec", "items", 2, "deep", "list", 0)))
	if s := strings.Join(got, " "); s != "spec.items[0].name=c spec.items[1].name=b spec.items[2].name=e spec.items[2].deep.list[0]" {
		t.Error(s)
	}
	if _, ok := spec.Get("old"); ok || spec.Len() != 1 || items.Len() != 3 {
		t.Errorf("old: %v, %d members, %d items", ok, spec.Len(), items.Len())
	}
}

// Nodes of values that are gone must neither crash nor reach the document.
func TestNodesOfRemovedValues(t *testing.T) {
	d := mustParse(t, `{"a":{"b":{"c":[1,2,{"d":1}]},"x":1},"z":1}`)
	a, b, c := at(t, d, "a"), at(t, d, "a", "b"), at(t, d, "a", "b", "c")
	item, deep, x := at(t, d, "a", "b", "c", 2), at(t, d, "a", "b", "c", 2, "d"), at(t, d, "a", "x")

	d.Replace(a, []byte(`{"new":[]}`))
	d.Remove(at(t, d, "z"))
	use := func() {
		for _, n := range []Node{b, c, item, deep, x} {
			_, _, _, _, _ = n.Path(), n.Raw(), n.Key(), n.Next(), n.Parent()
			d.Set(n, "d", []byte("5"))
			d.Append(n, []byte("6"))
			d.InsertBefore(n, []byte("7"))
			d.Replace(n, []byte(`{"d":[8]}`))
			d.Remove(n)
			d.Remove(n)
			_ = decodeTree(n)
		}
	}
	use()
	if got := string(d.AppendTo(nil)); got != `{"a":{"new":[]}}` || a.Len() != 1 || d.Root().Len() != 1 {
		t.Errorf("got %s, %d members", got, a.Len())
	}
	d.Replace(a, []byte(`0`))
	use()
	d.Replace(d.Root(), []byte(`[0]`))
	use()
	if got := string(d.AppendTo(nil)); got != `[0]` {
		t.Errorf("got %s", got)
	}
}

// A loop may remove the items that it passes.
func TestRemoveWhileIterating(t *testing.T) {
	d := mustParse(t, `[1,2,3,4,5,6]`)
	for n := d.Root().First(); n.Valid(); n = n.Next() {
		if i, _ := n.Int64(); i%2 == 0 {
			d.Remove(n)
		}
	}
	if got := string(d.AppendTo(nil)); got != `[1,3,5]` {
		t.Error(got)
	}
}

func TestEditsOfLargeObjects(t *testing.T) {
	var body strings.Builder
	body.WriteString(`{"k0":0`)
	for i := 1; i < 40; i++ {
		body.WriteString(`, "k` + strings.Repeat("x", i) + `":0`)
	}
	body.WriteString(`}`)
	d := mustParse(t, body.String())
	root := d.Root()
	last := "k" + strings.Repeat("x", 39)

	d.Remove(at(t, d, last))
	if _, ok := root.Get(last); ok {
		t.Fatal("found a removed member")
	}
	d.Set(root, last, []byte("1"))
	d.Set(root, last, []byte("2"))
	d.Set(root, "k0", []byte(`"first"`))
	d.Set(root, "new", []byte("3"))
	d.Remove(at(t, d, "kx"))
	d.Set(root, "kx", []byte("4"))
	if i, _ := at(t, d, last).Int64(); i != 2 || root.Len() != 41 || at(t, d, "k0").Str() != "first" {
		t.Errorf("%d, %d members", i, root.Len())
	}
	want := strings.Replace(body.String(), `"k0":0`, `"k0":"first"`, 1)
	want = strings.Replace(want, `, "kx":0`, ``, 1)
	want = strings.TrimSuffix(want, `"`+last+`":0}`) + `"` + last + `":2,"new":3,"kx":4}`
	if got := string(d.AppendTo(nil)); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// An object that edits make large gets its index on the way.
func TestObjectThatGrows(t *testing.T) {
	for _, body := range []string{`{}`, `{"k1":"old","x":0}`} {
		d := mustParse(t, body)
		root := d.Root()
		want := root.Len()
		for round := range 3 {
			for i := range 2000 {
				key := fmt.Sprintf("k%d", i)
				if i%3 == round {
					if n, ok := root.Get(key); ok {
						d.Remove(n)
					}
				}
				d.Set(root, key, strconv.AppendInt(nil, int64(i+round), 10))
			}
		}
		for i := range 2000 {
			n, ok := root.Get(fmt.Sprintf("k%d", i))
			if got, _ := n.Int64(); !ok || got != int64(i+2) {
				t.Fatalf("k%d is %d, %v", i, got, ok)
			}
		}
		if want += 2000 - (want+1)/2; root.Len() != want {
			t.Errorf("%d members, want %d", root.Len(), want)
		}
		printed := d.AppendTo(nil)
		if !sameTree(decodeTree(root), decodeReference(t, printed)) ||
			!EqualNodes(root, mustParse(t, string(printed)).Root()) {
			t.Errorf("printed %s", printed)
		}
		d.Release()
	}
}

func TestEditWithInvalidValuePanics(t *testing.T) {
	for _, raw := range []string{"", "{", "1 2", "nul", `{"a":1,"a":2}`} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q: no panic", raw)
				}
			}()
			d := mustParse(t, `{}`)
			d.Set(d.Root(), "a", []byte(raw))
		}()
	}
}

func TestEditWithOwnBytes(t *testing.T) {
	d := mustParse(t, `{"a":[1,2],"b":0}`)
	d.Set(d.Root(), "b", at(t, d, "a").Raw())
	for range 3 {
		d.Append(at(t, d, "b"), at(t, d, "b").Raw())
	}
	d.Set(d.Root(), "a", at(t, d, "b", 2).Raw())
	want := `{"a":[1,2],"b":[1,2,[1,2],[1,2,[1,2]],[1,2,[1,2],[1,2,[1,2]]]]}`
	if got := string(d.AppendTo(nil)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestCloneWithoutNotes: what was noted of a document is not known of its clone.
func TestCloneWithoutNotes(t *testing.T) {
	d := mustParse(t, `{"a":{"b":1}}`)
	defer d.Release()
	author := new(Noter)
	d.TakeNotes(author)
	d.Root().Mark(Sound)
	at(t, d, "a").SetNote(7)
	clone := d.Clone()
	defer clone.Release()
	if clone.NotedBy(author) {
		t.Error("the clone has the author's notes")
	}
	clone.TakeNotes(author)
	if note := at(t, clone, "a").Note(author); note != 0 || clone.Root().Marked(Sound) {
		t.Errorf("the clone has the note %d, and its root is marked: %v", note, clone.Root().Marked(Sound))
	}
	if note := at(t, d, "a").Note(author); note != 7 || !d.Root().Marked(Sound) {
		t.Errorf("the document has the note %d, and its root is marked: %v", note, d.Root().Marked(Sound))
	}
}

func TestClone(t *testing.T) {
	body := []byte(` {"a":{"b":[1, 2]},"c":"x"} `)
	d, err := Parse(body, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	d.Append(at(t, d, "a", "b"), []byte("3"))
	all, part := d.Clone(), at(t, d, "a").Clone()
	d.Remove(at(t, d, "a"))
	d.Release()
	clear(body)
	if got := string(all.AppendTo(nil)); got != `{"a":{"b":[1, 2,3]},"c":"x"}` || all.Edited() {
		t.Errorf("got %s", got)
	}
	if got := string(part.AppendTo(nil)); got != `{"b":[1, 2,3]}` {
		t.Errorf("got %s", got)
	}
	part.Release()
	all.Release()
}
