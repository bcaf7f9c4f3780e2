package document

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A model is a value as maps and slices would hold it, members in order, to
// which the same edits are made as to a document.
type model struct {
	kind   Kind
	text   string // exactly what must be printed, as long as nothing below was edited
	keys   []string
	quoted []string // the keys as spelled
	kids   []*model
}

// newModel decodes a value of a document into a model.
func newModel(n Node) *model {
	m := &model{kind: n.Kind(), text: string(n.raw())}
	for k := n.First(); k.Valid(); k = k.Next() {
		m.kids = append(m.kids, newModel(k))
		if m.kind == Object {
			e := &n.d.tape[k.i]
			m.keys = append(m.keys, k.Key())
			m.quoted = append(m.quoted, string(n.d.source(e)[e.key-1:e.keyEnd+1]))
		}
	}
	return m
}

func modelOf(t testing.TB, text string) *model {
	d, err := Parse([]byte(text), Limits{trusted: true})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer d.Release()
	return newModel(d.Root())
}

// compare reports where the node differs from the model.
func (m *model) compare(n Node, path string) error {
	if n.Kind() != m.kind || n.Len() != len(m.kids) {
		return fmt.Errorf("%s: %s of %d, want %s of %d", path, n.Kind(), n.Len(), m.kind, len(m.kids))
	}
	if m.text != "" && string(n.Raw()) != m.text {
		return fmt.Errorf("%s: is %s, want %s", path, n.Raw(), m.text)
	}
	i := 0
	for k := n.First(); k.Valid(); k = k.Next() {
		if m.kind == Object {
			if k.Key() != m.keys[i] {
				return fmt.Errorf("%s: key %q, want %q", path, k.Key(), m.keys[i])
			}
			if found, ok := n.Get(m.keys[i]); !ok || found != k {
				return fmt.Errorf("%s: Get does not find %q", path, m.keys[i])
			}
			name := NewName(m.keys[i])
			if found, ok := n.Step(&name); !ok || found != k {
				return fmt.Errorf("%s: Step does not find %q", path, m.keys[i])
			}
			e := &n.d.tape[k.i]
			if quoted := string(n.d.source(e)[e.key-1 : e.keyEnd+1]); quoted != m.quoted[i] {
				return fmt.Errorf("%s: key is spelled %s, want %s", path, quoted, m.quoted[i])
			}
		} else if found, ok := n.At(i); !ok || found != k {
			return fmt.Errorf("%s: At does not find %d", path, i)
		}
		if k.Parent() != n {
			return fmt.Errorf("%s[%d]: wrong parent", path, i)
		}
		if err := m.kids[i].compare(k, n.Path()); err != nil {
			return err
		}
		i++
	}
	return nil
}

// source of decisions: bytes of a fuzzer, or of a random generator.
type decisions struct {
	bytes []byte
}

func (c *decisions) below(n int) int {
	if len(c.bytes) == 0 || n == 0 {
		return 0
	}
	b := int(c.bytes[0])
	c.bytes = c.bytes[1:]
	return b % n
}

var (
	editKeys   = []string{"a", "b", "c", "name", "quo\"te", "ü", "longer-than-eight", ""}
	editValues = []string{`0`, `-1.50`, `"s"`, `"\u0041"`, `null`, `true`, `[]`, `{}`, ` [ 1, {"a": [ ]} ] `,
		`{ "a":1 , "b" : {"c":[2]}}`, `[[],[[]]]`, `{"\u0061":{"":0}}`}
)

// edit makes one edit, at a place that the decisions lead to, on both.
func edit(t testing.TB, d *Document, root *model, c *decisions) string {
	node, m := d.Root(), root
	path := []*model{root}
	var parent *model
	position := 0
	for len(m.kids) > 0 && c.below(4) != 0 {
		parent, position = m, c.below(len(m.kids))
		m = m.kids[position]
		path = append(path, m)
		node = node.First()
		for range position {
			node = node.Next()
		}
	}
	touched := func(models []*model) {
		for _, m := range models {
			m.text = ""
		}
	}
	raw := editValues[c.below(len(editValues))]
	value := modelOf(t, raw)
	where := node.Path()
	switch op := c.below(6); {
	case op <= 1 && m.kind == Object:
		key := editKeys[c.below(len(editKeys))]
		touched(path)
		if i := slices.Index(m.keys, key); i >= 0 {
			m.kids[i] = value
		} else {
			m.keys = append(m.keys, key)
			m.quoted = append(m.quoted, string(AppendString(nil, key)))
			m.kids = append(m.kids, value)
		}
		if got := d.Set(node, key, []byte(raw)); string(got.Raw()) != value.text {
			t.Fatalf("Set returned the node of %s, want %s", got.Raw(), value.text)
		}
		return fmt.Sprintf("set %s %q %s", where, key, raw)
	case op <= 1 && m.kind == Array:
		touched(path)
		m.kids = append(m.kids, value)
		d.Append(node, []byte(raw))
		return fmt.Sprintf("append %s %s", where, raw)
	case op == 2 && parent != nil && parent.kind == Array:
		touched(path[:len(path)-1])
		parent.kids = slices.Insert(parent.kids, position, value)
		d.InsertBefore(node, []byte(raw))
		return fmt.Sprintf("insert %s %s", where, raw)
	case op <= 3 && parent != nil:
		touched(path[:len(path)-1])
		parent.kids = slices.Delete(parent.kids, position, position+1)
		if parent.kind == Object {
			parent.keys = slices.Delete(parent.keys, position, position+1)
			parent.quoted = slices.Delete(parent.quoted, position, position+1)
		}
		d.Remove(node)
		return fmt.Sprintf("remove %s", where)
	default:
		touched(path)
		*m = *value
		if got := d.Replace(node, []byte(raw)); got != node {
			t.Fatal("Replace returned another node")
		}
		return fmt.Sprintf("replace %s %s", where, raw)
	}
}

// editBoth makes edits on a document and on its model until the decisions run out.
func editBoth(t testing.TB, body string, c *decisions) {
	d, err := Parse([]byte(body), Limits{})
	if err != nil {
		return
	}
	defer d.Release()
	root := newModel(d.Root())
	var log []string
	fail := func(err error) {
		t.Fatalf("%v\nof %s\nafter %s\nprinted %s", err, body, strings.Join(log, "\n"), d.AppendTo(nil))
	}
	for len(c.bytes) > 0 && len(log) < 60 {
		log = append(log, edit(t, d, root, c))
		if err := root.compare(d.Root(), "."); err != nil {
			fail(fmt.Errorf("the document differs: %w", err))
		}
		printed := d.AppendTo(nil)
		if !json.Valid(printed) {
			fail(fmt.Errorf("the text is not JSON"))
		}
		again, err := Parse(printed, unlimited())
		if err != nil {
			fail(fmt.Errorf("the text is refused: %w", err))
		}
		if err := root.compare(again.Root(), "."); err != nil {
			fail(fmt.Errorf("the text differs: %w", err))
		}
		if !EqualNodes(again.Root(), d.Root()) || !EqualNodes(d.Root(), again.Root()) {
			fail(fmt.Errorf("the text's nodes are not equal"))
		}
		again.Release()
	}
}

var editBodies = []string{
	`{"a":1,"b":[1,2,{"c":null}],"name":{"x":{"y":[]}}}`,
	"{\n  \"a\" : [ 1 , 2 ] ,\n  \"\\u0062\" : { },\n  \"c\":\t{ \"name\" : 1.0 }\n}\n",
	`[[[1],[2,[3]]],{},[],"x"]`,
	` [ ] `, `{}`, `7`,
	deployment,
	`{"k1":1,"k2":1,"k3":1,"k4":1,"k5":1,"k6":1,"k7":1,"k8":1,"k9":1,"k10":1,"k11":1,"k12":1,"k13":1,"k14":1,"k15":1,"k16":{"a":1},"k17":1,"a":[1],"b":2}`,
}

func TestRandomEdits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1500 {
		c := &decisions{make([]byte, random.IntN(120))}
		for i := range c.bytes {
			c.bytes[i] = byte(random.Uint32())
		}
		editBoth(t, editBodies[random.IntN(len(editBodies))], c)
	}
}

func FuzzEdits(f *testing.F) {
	for i, body := range editBodies {
		f.Add(body, []byte{byte(i), 1, 2, 3, 4, 5, 6, 7, 200, 100, 50, 25, 12, 6, 3, 1})
	}
	f.Fuzz(func(t *testing.T, body string, steps []byte) {
		if len(body) < 4096 && len(steps) < 512 {
			editBoth(t, body, &decisions{steps})
		}
	})
}
