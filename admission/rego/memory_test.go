package rego

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
)

// testMemory grants so many bytes, and work if it may.
type testMemory struct {
	left   int
	works  bool
	worked int
}

func (m *testMemory) Grow(bytes int) bool {
	if bytes > m.left {
		return false
	}
	m.left -= bytes
	return true
}

func (m *testMemory) Shrink(bytes int) { m.left += bytes }

func (m *testMemory) Work() bool {
	m.worked++
	return m.works
}

// TestMemory: what an evaluation spends is asked for, heavy work waits for its turn once, and all
// is given back.
func TestMemory(t *testing.T) {
	p, err := Compile(Options{}, Module{File: "p.rego", Source: []byte(`package p

small if count(numbers.range(1, 10)) == 10

large if count(numbers.range(1, 8000)) == 8000

huge if {
	count(numbers.range(1, 20000)) == 20000
	count(numbers.range(2, 90000)) == 89999
}
`)})
	if err != nil {
		t.Fatal(err)
	}
	const most = 64 << 20
	for _, c := range []struct {
		rule   string
		left   int
		works  bool
		err    error
		worked int
	}{
		{"small", 0, false, nil, 0},
		{"large", most, true, nil, 0},
		{"large", 128 << 10, true, ErrNoMemory, 0},
		{"huge", most, true, nil, 1},
		{"huge", most, false, ErrNoMemory, 1},
		{"huge", 3 << 20, true, ErrNoMemory, 1},
	} {
		q, err := p.Query("data.p." + c.rule)
		if err != nil {
			t.Fatal(err)
		}
		m := &testMemory{left: c.left, works: c.works}
		_, err = q.Value(context.Background(), &Input{Review: Text("a"), Memory: m})
		if !errors.Is(err, c.err) || m.left != c.left || m.worked != c.worked {
			t.Errorf("%s of %d: %v, %d are left, asked for work %d times", c.rule, c.left, err, m.left, m.worked)
		}
	}
}

// TestMemoryOfValues: the values of a request are asked for before they are made.
func TestMemoryOfValues(t *testing.T) {
	for name, text := range map[string]string{
		"objects": `{"a":[` + strings.Repeat("{},", 50_000) + `{}]}`,
		"lists":   `{"a":[` + strings.Repeat("[],", 50_000) + `[]]}`,
		"numbers": `{"a":[` + strings.Repeat("1.5,", 50_000) + `1]}`,
		"text":    `{"a":"` + strings.Repeat("x", 2<<20) + `"}`,
	} {
		d, err := document.Parse([]byte(text), document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		made := testing.AllocsPerRun(1, func() {
			m := &testMemory{left: 1 << 20}
			if _, err := valueWithin(d.Root(), &meter{memory: m}); err != ErrNoMemory {
				t.Errorf("%s: %v", name, err)
			}
		})
		if made > 20_000 {
			t.Errorf("%s: %.0f allocations are made before it is refused", name, made)
		}
		m := &testMemory{left: 64 << 20}
		within := meter{memory: m}
		if _, err := valueWithin(d.Root(), &within); err != nil || m.left == 64<<20 {
			t.Errorf("%s: %v, %d are left", name, err, m.left)
		}
		if within.close(); m.left != 64<<20 {
			t.Errorf("%s: %d bytes are not given back", name, 64<<20-m.left)
		}
		d.Release()
	}
}
