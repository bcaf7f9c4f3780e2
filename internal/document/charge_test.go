package document

import (
	"errors"
	"runtime/debug"
	"strings"
	"testing"
)

// bounded grants memory up to a limit.
type bounded struct{ used, peak, limit int }

func (b *bounded) Grow(n int) bool {
	if b.used+n > b.limit {
		return false
	}
	b.used += n
	b.peak = max(b.peak, b.used)
	return true
}

func (b *bounded) Shrink(n int) { b.used -= n }

// What a document takes is asked for, whatever is done with it, and given back whole.
func TestDocumentsAskForMemory(t *testing.T) {
	many := "[" + strings.Repeat("1,", 100_000) + "1]"
	long := `"` + strings.Repeat("a", 200_000) + `"`
	for _, c := range []struct {
		name, body string
		edit       func(*testing.T, *Document)
		least      int // that is in use in the end
	}{
		{"parsed", many, func(*testing.T, *Document) {}, 100_000 * entryBytes},
		{"set", `{"a":1}`, func(_ *testing.T, d *Document) { d.Set(d.Root(), "b", []byte(many)) },
			100_000 * entryBytes},
		{"set strings", `{"a":1}`, func(_ *testing.T, d *Document) { d.Set(d.Root(), "b", []byte(long)) }, 200_000},
		{"appended", `[]`, func(_ *testing.T, d *Document) {
			for range 50_000 {
				d.Append(d.Root(), []byte("1"))
			}
		}, 50_000 * entryBytes},
		{"replaced", `{"a":1}`, func(t *testing.T, d *Document) { d.Replace(at(t, d, "a"), []byte(many)) },
			100_000 * entryBytes},
		{"filled", `[` + strings.Repeat("{},", 20_000) + `{}]`, func(_ *testing.T, d *Document) {
			m := NewMember("a", []byte("1"))
			for n := d.Root().First(); n.Valid(); n = n.Next() {
				d.Fill(n, &m, true)
			}
		}, 40_000 * entryBytes},
		{"merged", `{"a":1}`, func(t *testing.T, d *Document) { d.MergePatch(mustParse(t, `{"a":`+many+`}`).Root()) },
			100_000 * entryBytes},
		{"patched", `{"a":1}`, func(t *testing.T, d *Document) {
			err := d.ApplyJSONPatch(mustParse(t, `[{"op":"add","path":"/a","value":`+many+`}]`).Root(), Limits{})
			if !errors.Is(err, d.Err()) {
				t.Fatal(err)
			}
		}, 100_000 * entryBytes},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &bounded{limit: 1 << 30}
			d, err := Parse([]byte(c.body), Limits{Memory: m})
			if err != nil {
				t.Fatal(err)
			}
			c.edit(t, d)
			if m.used < c.least || m.peak > 5*c.least {
				t.Errorf("%d bytes are in use, %d were; at least %d are taken", m.used, m.peak, c.least)
			}
			clone := d.Clone()
			if m.used < 2*c.least {
				t.Errorf("with a clone %d bytes are in use; at least %d of them are taken", m.used, 2*c.least)
			}
			clone.Release()
			d.Release()
			if m.used != 0 {
				t.Errorf("%d bytes are not given back", m.used)
			}

			// If there is too little, the parser or the document fails, and everything is given
			// back.
			m = &bounded{limit: c.least / 2}
			d, err = Parse([]byte(c.body), Limits{Memory: m})
			var refused *Error
			if err != nil {
				if !errors.As(err, &refused) || refused.Code != NoMemory {
					t.Errorf("got %v", err)
				}
			} else {
				if c.edit(t, d); d.Err() != ErrNoMemory || string(d.AppendTo(nil)) != "null" {
					t.Errorf("error %v, and the document is %.40s", d.Err(), d.AppendTo(nil))
				}
				d.Release()
			}
			if m.used != 0 {
				t.Errorf("%d bytes are not given back", m.used)
			}
		})
	}
}

func TestCloneAsksForMemory(t *testing.T) {
	m := &bounded{limit: 100_000 * entryBytes * 2}
	d, err := Parse([]byte("["+strings.Repeat("1,", 50_000)+"1]"), Limits{Memory: m})
	if err != nil {
		t.Fatal(err)
	}
	m.limit = m.used + 1000
	clone := d.Clone()
	if clone.Err() != ErrNoMemory || clone.Root().Kind() != Null || d.Err() != nil {
		t.Errorf("errors %v of the clone, and %v", clone.Err(), d.Err())
	}
	clone.Release()
	if d.Release(); m.used != 0 {
		t.Errorf("%d bytes are not given back", m.used)
	}
}

// Small documents ask once, and take no memory for it.
func TestAskingIsCheap(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection may empty the pool
	m := &counting{}
	body := []byte(deployment)
	mustParse(t, string(body)).Release() // the pool has room for one from now on
	if n := testing.AllocsPerRun(100, func() {
		d, err := Parse(body, Limits{Memory: m})
		if err != nil {
			t.Fatal(err)
		}
		d.Release()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if m.asked > 101 {
		t.Errorf("asked %d times for %d documents", m.asked, 101)
	}
}

type counting struct{ asked int }

func (c *counting) Grow(int) bool { c.asked++; return true }
func (c *counting) Shrink(int)    {}
