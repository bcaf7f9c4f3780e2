package document

import (
	"errors"
	"testing"
)

// dropper leaves out the items that have a member "drop".
type dropper struct{ marker }

func (e *dropper) EditItem(d *Document) error {
	if _, found := d.Root().Get("drop"); found {
		return ErrOmit
	}
	return e.marker.EditItem(d)
}

func TestStreamOfItemsOnly(t *testing.T) {
	list := StreamOptions{Place: List, Path: []string{"items"}, Wrap: true, ItemsOnly: true}
	for _, c := range []struct {
		name   string
		o      StreamOptions
		text   string
		want   string
		listed bool
	}{
		{"all", list, ` {"kind":"X","items":[ {"a":1} , {"done":0}],"more":{}} `, `{"a":1,"done":true},{"done":0}`,
			true},
		{"some", list, `{"items":[{"drop":1},{"a":1},{"drop":2},{"drop":3},{"b":1}]}`,
			`{"a":1,"done":true},{"b":1,"done":true}`, true},
		{"others", list, `{"items":[1,null,[{}],{"a":1}]}`, `{"a":1,"done":true}`, true},
		{"bare", list, `[{"drop":1},{"a":1}]`, `{"a":1,"done":true}`, true},
		{"none", list, `[]`, ``, true},
		{"null", list, `{"items":null}`, ``, true},
		{"nothing", list, `{ }`, ``, true},
		{"no list", list, `{"error":"x"}`, ``, false},
		{"no list in its place", list, `{"items":{"a":{}}}`, ``, false},
		{"a scalar", list, `12`, ``, false},
		{"events", StreamOptions{Place: Sequence, ItemsOnly: true}, "{\"drop\":1}\n\n{\"a\":1}{\"done\":1}\n",
			"{\"a\":1,\"done\":true}\n{\"done\":1}\n", false},
	} {
		for size := 1; size <= len(c.text)+1; size++ {
			var s Stream
			s.Reset(c.o, &dropper{})
			var out []byte
			var err error
			for rest := []byte(c.text); len(rest) > 0 && err == nil; {
				piece := rest[:min(size, len(rest))]
				rest = rest[len(piece):]
				for len(piece) > 0 && err == nil {
					var used int
					out, used, err = s.Append(out, piece, len(out)+10)
					piece = piece[used:]
				}
			}
			if err == nil {
				out, err = s.Close(out)
			}
			if err != nil || string(out) != c.want || s.Listed() != c.listed {
				t.Fatalf("%s, pieces of %d: %v, listed %v\n got %s\nwant %s", c.name, size, err, s.Listed(), out,
					c.want)
			}
		}
	}
	var bad *Error
	var s Stream
	s.Reset(list, &dropper{})
	if _, _, err := s.Append(nil, []byte(`{"items":[{"a":01}]}`), 100); !errors.As(err, &bad) ||
		bad.Path != "items[0].a" {
		t.Errorf("bad JSON: %v", err)
	}
}
