package document

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// scarce grants what is asked for so many times.
type scarce struct {
	left, used, failed int
}

func (s *scarce) Grow(n int) bool {
	if s.left--; s.left < 0 {
		return false
	}
	s.used += n
	return true
}

func (s *scarce) Shrink(n int) { s.used -= n }
func (s *scarce) Fail()        { s.failed++ }

// change makes one edit that the decisions name, as callers do: with the nodes that it finds, or that an edit returned.
func change(d *Document, c *decisions, other Node) (err error) {
	n := d.Root()
	for n.Len() > 0 && c.below(3) > 0 {
		n = n.First()
		for range c.below(4) {
			if next := n.Next(); next.Valid() {
				n = next
			}
		}
	}
	raw := []byte([]string{
		"1", `"` + strings.Repeat("x", 300) + `"`, "[" + strings.Repeat("1,", 200) + "2]", `{"a":{"b":[{},{}]}}`, wide,
	}[c.below(5)])
	switch c.below(10) {
	case 0:
		d.Replace(n, raw)
	case 1:
		d.Set(n, []string{"a", "b", "key"}[c.below(3)], raw)
	case 2:
		d.SetString(d.Set(n, "o", []byte("{}")), "s", "text") // into what the edit before returned
	case 3:
		d.Append(n, raw)
	case 4:
		d.InsertBefore(n, raw)
	case 5:
		d.Remove(n)
	case 6:
		m := NewMember("filled", raw)
		if _, found := n.Get("filled"); !found {
			d.Fill(n, &m, c.below(2) == 0)
		}
	case 7:
		d.MergePatch(other)
	case 8:
		err = d.Atomically(func() error {
			d.Replace(n, raw)
			if c.below(2) == 0 {
				return errors.New("undone")
			}
			return nil
		})
	case 9:
		for k := n.Children(); k.Valid(); k.Next() { // a walk goes on
			d.Set(k.Node(), "w", raw)
		}
	}
	return err
}

// wide is an object with a table of its members.
var wide = func() string {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, `,"m%d":%d`, i, i)
	}
	return "{" + b.String()[1:] + "}"
}()

// failsWhole makes the same edits with memory for each possible number of requests: with enough the result is that of a
// document whose memory is not bounded, and without it the document fails, and shows no part of any edit.
func failsWhole(t *testing.T, body string, program []byte) {
	t.Helper()
	patch, err := Parse([]byte(`{"a":`+wide+`,"b":null,"c":[1,2,3]}`), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer patch.Release()
	run := func(m Memory) (d *Document, failed []bool) {
		d, err := Parse([]byte(body), Limits{Memory: m})
		if err != nil {
			return nil, nil
		}
		c := &decisions{bytes: program}
		for range 12 {
			err := change(d, c, patch.Root())
			if d.Err() != nil && err != nil && !errors.Is(err, ErrNoMemory) {
				t.Fatalf("a document that has failed: %v", err)
			}
			failed = append(failed, d.Err() != nil)
		}
		return d, failed
	}
	whole, _ := run(nil)
	want := string(whole.AppendTo(nil))
	whole.Release()
	for granted := 0; ; granted++ {
		m := &scarce{left: granted}
		d, failed := run(m)
		if d == nil {
			continue // there is none for the text
		}
		text, clone := string(d.AppendTo(nil)), d.Clone()
		cloned := string(clone.AppendTo(nil))
		isDone := d.Err() == nil
		switch {
		case isDone && text != want:
			t.Fatalf("with %d grants: %s, want %s", granted, text, want)
		case !isDone && (text != "null" || cloned != "null" || clone.Err() == nil || !d.Edited() || m.failed == 0):
			t.Fatalf("with %d grants the document failed, and is %s, its clone %s, edited %t; told %d times", granted, text, cloned, d.Edited(), m.failed)
		}
		for i := 1; i < len(failed); i++ {
			if failed[i-1] && !failed[i] {
				t.Fatalf("with %d grants the document has not failed any more after edit %d", granted, i)
			}
		}
		clone.Release()
		if d.Release(); m.used != 0 {
			t.Fatalf("with %d grants %d bytes are not given back", granted, m.used)
		}
		if isDone {
			return
		}
	}
}

var edited = []string{
	`{"a":1,"b":[1,2,{"c":3}],"o":{"x":"y"}}`, `[{"a":1},{"b":2},[],{}]`, `{}`, `[]`, wide,
	`{"deep":{"er":{"list":[[[1]]]}}}`, `null`,
}

// TestDocumentsFailWhole lets memory end at each edit of random ones.
func TestDocumentsFailWhole(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		program := make([]byte, 120)
		for i := range program {
			program[i] = byte(random.Uint32())
		}
		failsWhole(t, edited[random.IntN(len(edited))], program)
	}
}

func FuzzDocumentsFailWhole(f *testing.F) {
	f.Add(uint8(0), []byte("0123456789"))
	f.Add(uint8(4), []byte{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9})
	f.Fuzz(func(t *testing.T, body uint8, program []byte) { failsWhole(t, edited[int(body)%len(edited)], program) })
}

// TestFailedItemsDoNotLeave: a stream whose editor overlooks that an item has failed ends there.
func TestFailedItemsDoNotLeave(t *testing.T) {
	var s Stream
	m := &scarce{left: 1}
	s.Reset(StreamOptions{Path: []string{"items"}, Limits: Limits{Memory: m}}, overlooking{})
	out, _, err := s.Append(nil, []byte(`{"items":[{"a":1},{"a":2}]}`), 1<<20)
	if !errors.Is(err, ErrNoMemory) || strings.Contains(string(out), "null") {
		t.Errorf("%s, %v", out, err)
	}
}

// overlooking is an editor that makes items large.
type overlooking struct{ idle }

func (overlooking) EditItem(d *Document) error {
	d.Set(d.Root(), "b", []byte("["+strings.Repeat("1,", 100_000)+"1]"))
	return nil
}
