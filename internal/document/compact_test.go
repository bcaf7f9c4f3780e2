package document

import (
	"fmt"
	"strings"
	"testing"
)

// TestCompact: a document that is kept reads, and can be edited, as before.
func TestCompact(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"items":[{"a":1},{"b":"x\ny"}],"large":{`)
	for i := range 40 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"k%d":0`, i)
	}
	b.WriteString(`}}`)
	for _, kind := range []string{"parsed", "cloned", "cloned as edited"} {
		d, err := Parse([]byte(b.String()), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if kind == "cloned as edited" { // its text is its own
			d.SetString(d.Root(), "edited", "before")
		}
		if kind != "parsed" {
			d = d.Clone()
		}
		items, _ := d.Root().Get("items")
		d.SetString(items.First(), "kind", "Widget")
		want := string(d.AppendTo(nil))
		second := items.First().Next()
		text, _ := second.Get("b")
		escaped := text.Str() // as the document has it, not as its text does
		other, err := Parse([]byte(`{"others":[{"c":2},{"d":"z\ny"},{"e":"\u0041\u0042"}]}`), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		other.SetString(other.Root(), "made", "later")
		d.Compact()
		if cap(d.tape) > len(d.tape)+len(d.tape)/8 || cap(d.side) > len(d.side)+len(d.side)/8 {
			t.Errorf("capacity %d for %d entries, %d for %d bytes", cap(d.tape), len(d.tape), cap(d.side), len(d.side))
		}
		for range 8 { // documents that may use what was given back
			c := other.Root().Clone()
			others, _ := c.Root().Get("others")
			for n := others.First(); n.Valid(); n = n.Next() {
				_ = n.First().Str()
			}
			if _, err := Parse([]byte(`{"others":[{"c":2},{"d":"z\ny"}]}`), Limits{}); err != nil {
				t.Fatal(err)
			}
		}
		if escaped != "x\ny" {
			t.Errorf("a string that was read has become %q", escaped)
		}
		if got := string(d.AppendTo(nil)); got != want {
			t.Errorf("%s: reads %s, want %s", kind, got, want)
		}
		large, _ := d.Root().Get("large")
		if n, ok := large.Get("k39"); !ok || n.Kind() != Number {
			t.Error("a member is gone")
		}
		d.SetString(items.First(), "more", "edits")
		if got := string(d.AppendTo(nil)); !strings.Contains(got, `"more":"edits"`) {
			t.Errorf("cannot be edited any more: %s", got)
		}
	}
}
