package document

import (
	"fmt"
	"strings"
	"testing"
)

// looks is how many slots are looked at to find every member of an object with a table.
func looks(d *Document, object Node) int {
	e := &d.tape[object.i]
	slots := d.table(e.last)
	total := 0
	for slot, i := range slots {
		if i != 0 {
			home := int(d.tape[i].hash) & (len(slots) - 1)
			total += (slot-home+len(slots))%len(slots) + 1
		}
	}
	return total
}

// However many members an object has, and however they came into it, finding one, and finding that no two have the
// same key, takes a few looks for each.
func TestLooksForMembers(t *testing.T) {
	const n = 100_000
	for name, key := range map[string]func(i int) string{
		"numbers": func(i int) string { return fmt.Sprint(i) },
		"long":    func(i int) string { return strings.Repeat("x", 20) + fmt.Sprint(i) },
		"escaped": func(i int) string { return `\u0061` + fmt.Sprint(i) },
		"words":   func(i int) string { return fmt.Sprintf("%08d", i) },

		// Only some bytes differ.
		"first of 8":  func(i int) string { return fmt.Sprintf("%05dabc", i) },
		"first of 16": func(i int) string { return fmt.Sprintf("%05dabcdefghijk", i) },
		"last of 16":  func(i int) string { return fmt.Sprintf("abcdefghijk%05d", i) },
		"cases": func(i int) string {
			key := []byte("abcdefghijklmnopq")
			for k := range key {
				key[k] ^= byte(i>>k&1) << 5
			}
			return string(key)
		},
	} {
		var b strings.Builder
		b.WriteByte('{')
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"%s":0`, key(i))
		}
		b.WriteByte('}')
		parsed := mustParse(t, b.String())
		if got := looks(parsed, parsed.Root()); got > 3*n {
			t.Errorf("%s: %d looks for %d members", name, got, n)
		}
		edited := mustParse(t, `{}`)
		for m := parsed.Root().First(); m.Valid(); m = m.Next() {
			edited.Set(edited.Root(), m.Key(), []byte(`0`))
		}
		if got := looks(edited, edited.Root()); got > 3*n {
			t.Errorf("%s, added: %d looks for %d members", name, got, n)
		}
		// The tables that an object has outgrown take no more than its last one.
		if got, last := len(edited.index), 1<<edited.index[edited.tape[0].last+indexBits]; got > 3*last {
			t.Errorf("%s, added: tables of %d words, %d of them in the last", name, got, last)
		}
		parsed.Release()
		edited.Release()
	}
}
