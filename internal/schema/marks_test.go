package schema_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/schema/schematest"
)

// What Prune notes on values changes nothing in what defaults fills in and what Validate says, whatever happens to the
// object in between (DEF-1, VAL-1, VAL-7).
func TestNotesChangeNothing(t *testing.T) {
	schemas := uint64(1500)
	if testing.Short() {
		schemas = 150
	}
	trusted, completed := 0, 0
	for seed := range schemas {
		sound, complete := notesChangeNothing(t, seed)
		trusted += sound
		completed += complete
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d objects were right at first sight, %d complete", trusted, completed)
	if trusted < int(schemas)/2 || completed < int(schemas)/2 {
		t.Errorf("too few objects to say anything")
	}
}

func FuzzNotesChangeNothing(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { notesChangeNothing(t, seed) })
}

// notesChangeNothing compares defaults and validations with notes and without. It returns how many objects were marked
// as a whole.
func notesChangeNothing(t *testing.T, seed uint64) (trusted, complete int) {
	g := schematest.New(seed)
	props := g.Schema()
	s, _, errs := schema.Compile(props, schema.Options{Resource: true})
	if len(errs) > 0 {
		return 0, 0 // Kubernetes refuses it
	}
	frame := cel.NewFrame(t.Context())
	defer frame.Release()
	var old *document.Document
	for _, sloppy := range []int{1000, 1000, 40, 15, 8} {
		raw := g.Object(props, sloppy)
		d, err := document.Parse(raw, document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if s.Prune(d, nil) != nil {
			d.Release()
			continue
		}
		var steps []string
		for range g.IntN(4) {
			switch g.IntN(6) {
			case 0:
				steps = append(steps, "prune")
				_ = s.Prune(d, nil) // an edit may have made it unreadable, which is for Validate to say
			case 1, 2, 3:
				steps = append(steps, "default")
				fresh, err := document.Parse(d.AppendTo(nil), document.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if d.Root().Marked(document.Complete) {
					complete++
				}
				defaults.Apply(fresh, s)
				defaults.Apply(d, s)
				if !document.EqualNodes(d.Root(), fresh.Root()) {
					t.Errorf("seed %d: schema %s\nobject %s\nafter %v\n got %s\nwant %s", seed, schematest.Text(props),
						raw, steps, d.AppendTo(nil), fresh.AppendTo(nil))
				}
				fresh.Release()
			default:
				steps = append(steps, change(g, d))
			}
		}
		if d.Root().Marked(document.Sound) {
			trusted++
		}
		now := d.AppendTo(nil)
		fresh, err := document.Parse(now, document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		var before document.Node
		if old != nil && g.IntN(2) == 0 {
			before = old.Root()
		}
		got, want := s.Validate(frame, d.Root(), before), s.Validate(frame, fresh.Root(), before)
		if !slices.Equal(texts(got), texts(want)) || got.More != want.More ||
			!slices.Equal(got.Warnings, want.Warnings) {
			t.Errorf("seed %d: schema %s\nobject %s\nafter %v %s\n got %v\nwant %v", seed, schematest.Text(props), raw,
				steps, now, texts(got), texts(want))
		}
		d.Release()
		if old != nil {
			old.Release()
		}
		old = fresh
	}
	return trusted, complete
}

func texts(r schema.Result) []string {
	list := make([]string, 0, len(r.Errors))
	for _, err := range r.Errors {
		list = append(list, err.Error())
	}
	return list
}

// change edits a value somewhere in the document and says how.
func change(g *schematest.Generator, d *document.Document) string {
	n := d.Root()
	for n.Len() > 0 && (n == d.Root() || g.IntN(3) > 0) {
		child := n.First()
		for range g.IntN(n.Len()) {
			child = child.Next()
		}
		n = child
	}
	path := n.Path()
	value := []string{`1`, `"a"`, `{}`, `[]`, `null`, `{"name":"a","size":1}`, `["a","a"]`, `-1.5`}[g.IntN(8)]
	switch {
	case g.IntN(3) == 0 && n != d.Root():
		d.Remove(n)
		return "remove " + path
	case n.Kind() == document.Object && g.IntN(2) == 0:
		d.Set(n, []string{"a", "b", "name", "size"}[g.IntN(4)], []byte(value))
		return "set in " + path + " " + value
	case n.Kind() == document.Array && g.IntN(2) == 0:
		d.Append(n, []byte(value))
		return "append to " + path + " " + value
	case n == d.Root():
		return "nothing"
	}
	d.Replace(n, []byte(value))
	return "replace " + path + " " + value
}

// A default may make two items of a list the same (VAL-7).
func TestDefaultsOfListKeys(t *testing.T) {
	s := compiled(t, `{type: object, properties: {ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [port, protocol],
		items: {type: object, required: [port], properties: {port: {type: integer}, protocol: {type: string, default: TCP}}}}}}`)
	for _, c := range []struct {
		ports string
		want  []string
	}{
		{`[{"port":1},{"port":2},{"port":1,"protocol":"UDP"}]`, []string{}},
		{`[{"port":1},{"port":1,"protocol":"TCP"}]`,
			[]string{`spec.ports[1]: Duplicate value: {"port":1,"protocol":"TCP"}`}},
		{`[{"port":1},{"port":2},{"port":3},{"port":4},{"port":5},{"port":6},{"port":7},{"port":1,"protocol":"TCP"}]`,
			[]string{`spec.ports[7]: Duplicate value: {"port":1,"protocol":"TCP"}`}},
	} {
		d := parsed(t, `{"metadata":{"name":"w"},"spec":{"ports":`+c.ports+`}}`)
		if err := s.Prune(d, nil); err != nil {
			t.Fatal(err)
		}
		defaults.Apply(d, s)
		if got := texts(s.Validate(nil, d.Root(), document.Node{})); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.ports, got, c.want)
		}
		if d.Root().Marked(document.Sound) != (len(c.want) == 0) {
			t.Errorf("%s: marked is %v", c.ports, d.Root().Marked(document.Sound))
		}
	}
}

// Objects may have more members that are required or have a default than a mask has bits (DEF-1, VAL-7).
func TestManyMembers(t *testing.T) {
	for _, n := range []int{62, 63, 64, 65, 130, 300, 600} {
		var properties, required, all []string
		for i := range n {
			properties = append(properties, fmt.Sprintf("p%03d: {type: integer, default: %d}, r%03d: {type: integer}",
				i, i, i))
			required = append(required, fmt.Sprintf("r%03d", i))
			all = append(all, fmt.Sprintf(`"r%03d":1`, i))
		}
		s := compiled(t, "{type: object, required: ["+strings.Join(required, ", ")+"], properties: {"+
			strings.Join(properties, ", ")+"}}")
		for missing := -1; missing < n; missing += 1 + n/9 {
			members := slices.Clone(all)
			if missing >= 0 {
				members = slices.Delete(members, missing, missing+1)
			}
			given := min(missing+1, n-1)
			members = append(members, fmt.Sprintf(`"p%03d":-1`, given))
			d := parsed(t, `{"metadata":{"name":"w"},"spec":{`+strings.Join(members, ",")+`}}`)
			if err := s.Prune(d, nil); err != nil {
				t.Fatal(err)
			}
			defaults.Apply(d, s)
			spec, _ := d.Root().Get("spec")
			if spec.Len() != len(members)+n-1 {
				t.Errorf("%d of each: %d members, want %d", n, spec.Len(), len(members)+n-1)
			}
			for i := range n {
				want := int64(i)
				if i == given {
					want = -1
				}
				m, _ := spec.Get(fmt.Sprintf("p%03d", i))
				if got, ok := m.Int64(); !ok || got != want {
					t.Errorf("%d of each: default %d is %d", n, i, got)
				}
			}
			want := []string{}
			if missing >= 0 {
				want = append(want, fmt.Sprintf("spec.r%03d: Required value", missing))
			}
			if got := texts(s.Validate(nil, d.Root(), document.Node{})); !slices.Equal(got, want) {
				t.Errorf("%d of each: got %v, want %v", n, got, want)
			}
		}
	}
}
