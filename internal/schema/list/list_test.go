package list

import (
	"fmt"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
)

func listOf(n int, item func(int) string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = item(i)
	}
	return "[" + strings.Join(items, ",") + "]"
}

func alike(text string) func(int) string { return func(int) string { return text } }

func counted(format string) func(int) string {
	return func(i int) string { return fmt.Sprintf(format, i) }
}

// However alike items are, finding the ones that repeat others takes a few looks for each: how many, the random hash
// decides (VAL-7).
func TestLooksForRepeatedItems(t *testing.T) {
	const n = 20_000
	for name, item := range map[string]func(int) string{
		"all different": counted(`"%d"`), "all the same": alike(`"a"`),
		"in pairs": func(i int) string { return fmt.Sprintf(`"%d"`, i/2) },
		"numbers":  counted(`%d`), "numbers in two spellings": func(i int) string { return []string{"1", "1.0"}[i%2] },
		"objects": counted(`{"a":%d}`),
		"lists":   counted(`[[%d]]`), "nulls": alike(`null`), "empty": alike(`{}`),
	} {
		d, err := document.Parse([]byte(listOf(n, item)), document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		k := &Items{}
		(&Type{}).Repeats(nil, d.Root(), k)
		looks := 0
		for slot, item := range k.slots {
			if item != 0 {
				home := int(item>>32) & (len(k.slots) - 1)
				looks += (slot-home+len(k.slots))%len(k.slots) + 1
			}
		}
		if looks > 10*n {
			t.Errorf("%s: %d slots are looked at to find %d items", name, looks, n)
		}
		d.Release()
	}
}

// One long list does not pin its memory: some walks without one give it back.
func TestRoomForItems(t *testing.T) {
	for _, n := range []int{100, 20_000, 100_000} {
		d, err := document.Parse([]byte(listOf(n, counted(`"%d"`))), document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		k := &Items{}
		(&Type{}).Repeats(nil, d.Root(), k)
		k.Release()
		if got := cap(k.items); n <= keptLarge*keptItems && got < n || got > keptLarge*keptItems {
			t.Errorf("%d items: room for %d was kept", n, got)
		}
		for range keptIdle {
			k.Release()
		}
		if got := cap(k.items); got > keptItems {
			t.Errorf("%d items: room for %d was kept in the end", n, got)
		}
		d.Release()
	}
}

func parse(t testing.TB, text string) document.Node {
	t.Helper()
	d, err := document.Parse([]byte(text), document.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d.Root()
}

var (
	set   = Type{}
	exact = Type{IsExact: true}
	named = Type{Keys: []document.Name{document.NewName("name")}, Defaults: make([]document.Node, 1)}
	ports = Type{Keys: []document.Name{document.NewName("port"), document.NewName("protocol")},
		Defaults: make([]document.Node, 2)}
)

// texts are values as they are spelled.
func texts(values []document.Node) string {
	var all []string
	for _, v := range values {
		all = append(all, string(v.Raw()))
	}
	return strings.Join(all, " ")
}

// A list says which of its items repeat others in the same way whether it is short, and each item is compared with
// each, or long, and a table holds them.
func TestRepeats(t *testing.T) {
	for _, c := range []struct {
		name, list   string
		of           Type
		want, misfit string
	}{
		{"a set without repetitions", `"a","b",1,true,null`, set, ``, ``},
		{"a value that is there three times", `"a","b","a","a"`, set, `"a"`, ``},
		{"escapes", `"a","\u0061"`, set, `"\u0061"`, ``},
		{"an integer and a double are two scalars", `1,1.0,1.0`, set, `1.0`, ``},
		{"an integer and a double are one in an object", `{"a":1},{"a":1.0}`, set, `{"a":1.0}`, ``},
		{"members in any order", `{"a":1,"b":2},{"b":2,"a":1}`, set, `{"b":2,"a":1}`, ``},
		{"types", `"1",1,[1],{"1":1}`, set, ``, ``},
		{"a set that is merged alone", `"a","a"`, Type{MayRepeat: true}, ``, ``},
		{"exact: each item that repeats another", `1,1.0,10e-1,2`, exact, `1.0 10e-1`, ``},
		{"exact: more digits than a double has", `0.1,0.10000000000000000001`, exact, ``, ``},
		{"exact: lists and objects", `[1],[1.0],{"a":[1]},{"a":[1e0]}`, exact, `[1.0] {"a":[1e0]}`, ``},
		{"keys that differ", `{"name":"a"},{"name":"b"},{"other":1}`, named, ``, ``},
		{"keys that are the same", `{"name":"a","x":1},{"name":"b"},{"name":"a","x":2}`, named, `{"name":"a","x":2}`,
			``},
		{"keys that are missing", `{"x":1},{"x":2}`, named, `{"x":2}`, ``},
		{"an item that cannot have keys", `{"name":"a"},"b",{"name":"a"}`, named, ``, `"b"`},
		{"one of two keys differs", `{"port":1,"protocol":"TCP"},{"port":1,"protocol":"UDP"}`, ports, ``, ``},
		{"both keys are the same", `{"port":1,"protocol":"TCP"},{"port":1.0,"protocol":"TCP"}`, ports,
			`{"port":1.0,"protocol":"TCP"}`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			var filler []string // of a list that is long
			for i := range few {
				filler = append(filler, fmt.Sprintf(`{"name":"filler %d","port":%d,"protocol":"X"}`, i, 1000+i))
			}
			for _, text := range []string{"[" + c.list + "]", "[" + strings.Join(append(filler, c.list), ",") + "]"} {
				got, misfit := c.of.Repeats(nil, parse(t, text), &Items{})
				if texts(got) != c.want || misfit.Valid() != (c.misfit != "") || misfit.Valid() &&
					string(misfit.Raw()) != c.misfit {
					t.Errorf("%s: got %q, misfit %q; want %q, misfit %q", text, texts(got), misfit.Raw(), c.want,
						c.misfit)
				}
			}
		})
	}
}

// A key that is missing has its default if the scratch says so.
func TestKeyDefaults(t *testing.T) {
	withDefault := Type{Keys: ports.Keys, Defaults: []document.Node{{}, parse(t, `"TCP"`)}}
	v := parse(t, `[{"port":1},{"port":1,"protocol":"TCP"},{"port":1,"protocol":"UDP"}]`)
	if got, _ := withDefault.Repeats(nil, v, &Items{}); len(got) != 0 {
		t.Errorf("without defaults %s repeat others", texts(got))
	}
	if got, _ := withDefault.Repeats(nil, v, &Items{Filled: true}); texts(got) != `{"port":1,"protocol":"TCP"}` {
		t.Errorf("with defaults %s repeat others", texts(got))
	}
}

// The item of an old list is found by its keys, which must all be there and scalars; if missing keys have their
// defaults, by these too.
func TestOldItems(t *testing.T) {
	withDefault := Type{Keys: ports.Keys, Defaults: []document.Node{{}, parse(t, `"TCP"`)}}
	old := `{"port":1,"protocol":"TCP","n":1},{"port":2,"n":2},{"port":[3],"protocol":"TCP","n":3},{"port":1,"protocol":"TCP","n":4}`
	long := old
	for i := range few {
		long += fmt.Sprintf(`,{"port":%d,"protocol":"X"}`, 1000+i)
	}
	for _, c := range []struct{ item, predecessor, ancestor string }{
		{`{"port":1,"protocol":"TCP"}`, `1`, `1`}, {`{"port":1.0,"protocol":"TCP"}`, ``, `1`},
		{`{"port":1,"protocol":"UDP"}`, ``, ``},
		{`{"port":1}`, ``, `1`}, {`{"port":2,"protocol":"TCP"}`, ``, `2`}, {`{"port":2}`, ``, `2`},
		{`{"port":[3],"protocol":"TCP"}`, ``, ``},
		{`{}`, ``, ``}, {`"a"`, ``, ``}, {`null`, ``, ``},
	} {
		for _, text := range []string{old, long} {
			list, item := parse(t, "["+text+"]"), parse(t, c.item)
			predecessors, ancestors := withDefault.Predecessors(list), withDefault.Ancestors(list)
			number := func(n document.Node) string {
				at, _ := n.Get("n")
				return string(at.Raw())
			}
			if p, a := predecessors.Of(item), ancestors.Of(item); number(p) != c.predecessor ||
				number(a) != c.ancestor {
				t.Errorf("%s in %d items: predecessor %s, ancestor %s", c.item, list.Len(), p.Raw(), a.Raw())
			}
		}
	}
	for _, of := range []*Type{nil, &set} {
		p, a := of.Predecessors(parse(t, `[1]`)), of.Ancestors(parse(t, `[1]`))
		if p.Of(parse(t, `1`)).Valid() || a.Of(parse(t, `1`)).Valid() {
			t.Error("an item is found in a list that is no list of type map")
		}
	}
}

func TestSameItems(t *testing.T) {
	equal := func(a, b document.Node) bool { return document.EqualNodes(a, b) }
	for _, c := range []struct {
		of   Type
		a, b string
		want bool
	}{
		{set, `[1,2]`, `[2,1]`, true}, {set, `[1,2]`, `[1,3]`, false}, {set, `[1,1]`, `[1,2]`, false},
		{set, `[1,2]`, `[1,1]`, false}, {set, `[]`, `[]`, true},
		{named, `[{"name":"a","x":1},{"name":"b"}]`, `[{"name":"b"},{"name":"a","x":1}]`, true},
		{named, `[{"name":"a","x":1},{"name":"b"}]`, `[{"name":"b"},{"name":"a","x":2}]`, false},
		{named, `["a"]`, `[{"name":"a"}]`, false}, {named, `[{"name":"a"}]`, `["a"]`, false},
	} {
		if got := c.of.SameItems(parse(t, c.a), parse(t, c.b), equal); got != c.want {
			t.Errorf("%s and %s: got %t", c.a, c.b, got)
		}
	}
}
